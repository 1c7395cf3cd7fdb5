"""`firsttoken alerts check DIR`: the tools of Prometheus and Alertmanager over what was generated."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from alerts.artefacts import ALERTMANAGER_FILE, ROUTE_TESTS_FILE, RULES_SUFFIX, TESTS_SUFFIX
from alerts.errors import AlertsError, ToolMissingError
from slo.output import unlisted
from slo.promql import quoted

TIMEOUT_S = 600
PACKAGES = {"promtool": "prometheus", "amtool": "prometheus-alertmanager"}
"""The Debian package of each tool."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One run of a tool: what was run, whether it found no fault, and what it said."""

    command: str
    is_fine: bool
    said: str


def commands(folder: Path) -> tuple[tuple[str, ...], ...]:
    """What is to be run over a folder of artefacts. Raises `AlertsError` when there are none."""
    rules, tests = (sorted(map(str, folder.glob(f"*{suffix}"))) for suffix in (RULES_SUFFIX, TESTS_SUFFIX))
    if not rules:
        if why := unlisted(folder):
            raise AlertsError(f"{folder}: {why}: give a folder that firsttoken alerts build wrote")
        raise AlertsError(f"{folder} holds no *{RULES_SUFFIX}: run firsttoken alerts build --out {folder}")
    found = [("promtool", "check", "rules", "--lint=all", "--lint-fatal", *rules)]
    if tests:
        found.append(("promtool", "test", "rules", *tests))
    if (folder / ALERTMANAGER_FILE).exists():
        found.append(("amtool", "check-config", str(folder / ALERTMANAGER_FILE)))
        found += _route_tests(folder)
    return tuple(found)


def _route_tests(folder: Path) -> Iterator[tuple[str, ...]]:
    """One run of amtool for each set of labels: it must reach the receiver that stands beside it."""
    path = folder / ROUTE_TESTS_FILE
    if not path.exists():
        return
    try:
        cases = [(case["labels"], case["receiver"]) for case in yaml.safe_load(path.read_text(encoding="utf-8"))]
    except (yaml.YAMLError, KeyError, TypeError):
        raise AlertsError(f"{path} is no list of labels and receivers: run firsttoken alerts build") from None
    for labels, receiver in cases:
        written = (f"{name}={quoted(str(value))}" for name, value in labels.items())
        config = f"--config.file={folder / ALERTMANAGER_FILE}"
        yield ("amtool", "config", "routes", "test", config, f"--verify.receivers={receiver}", *written)


def missing_tools(wanted: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """Tools that the commands need and PATH lacks."""
    return tuple(sorted({command[0] for command in wanted if shutil.which(command[0]) is None}))


def run(folder: Path) -> Iterator[Finding]:
    """Run every command that can be run, then raise `ToolMissingError` when some could not."""
    wanted = commands(folder)
    missing = missing_tools(wanted)
    for command in wanted:
        if command[0] not in missing:
            yield _run(command)
    if missing:
        packages = " ".join(PACKAGES[tool] for tool in missing)
        raise ToolMissingError(f"{' and '.join(missing)} not found on PATH: install {packages} (apt-get install)")


def _run(command: tuple[str, ...]) -> Finding:
    shown = " ".join(command)
    try:
        result = subprocess.run(  # noqa: S603  a tool found on PATH, arguments of our own
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Finding(shown, False, f"took more than {TIMEOUT_S} s")
    return Finding(shown, result.returncode == 0, result.stdout.strip())
