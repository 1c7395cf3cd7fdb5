"""A real Prometheus and Alertmanager beside the demo, where both are installed.

They run on the rules and routes that `firsttoken alerts build` writes; then they notify, and the collector only shows
its own verdict. Neither can be told to take any free port and say which, so a port is chosen first, and it is the
process's own log that says whether it got it: something else may be what answers there.
"""

import asyncio
import json
import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from firsttoken.demo_plan import TICK_S, environment
from firsttoken.errors import ChildError, UnreachableError
from firsttoken.http_json import ask_text
from firsttoken.json_fields import object_at, objects_at
from firsttoken.processes import Child, Command, Family
from slo.promql import OBJECTIVE_LABEL, TIER_LABEL

ALERTMANAGER_NAMES = ("alertmanager", "prometheus-alertmanager")
START_TRIES = 3
READY_TIMEOUT_S = 60.0
GLANCE_S = 0.2


@dataclass(frozen=True, slots=True)
class Binaries:
    prometheus: str
    alertmanager: str


@dataclass(frozen=True, slots=True)
class Stack:
    """Where the two answer."""

    prometheus_url: str
    alertmanager_url: str


def installed(path: str | None = None) -> Binaries | None:
    """Both programs from PATH (or a path given), or None."""
    prometheus = shutil.which("prometheus", path=path)
    alertmanager = next((found for name in ALERTMANAGER_NAMES if (found := shutil.which(name, path=path))), None)
    return Binaries(prometheus, alertmanager) if prometheus and alertmanager else None


def configuration(rule_files: str, *, alertmanager: str, targets: Mapping[str, str]) -> dict[str, object]:
    """prometheus.yml (JSON is YAML): scrape each named `host:port`, evaluate and scrape at the demo's pace."""
    every = f"{TICK_S}s"
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [rule_files],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()
        ],
    }


def firing(answer: object) -> tuple[str, ...]:
    """Objectives whose burn alerts fire, from Prometheus's `/api/v1/alerts`; sorted, each once."""
    alerts = objects_at(object_at(answer, "data"), "alerts")
    firing = [object_at(alert, "labels") for alert in alerts if alert.get("state") == "firing"]
    burning = {str(labels[OBJECTIVE_LABEL]) for labels in firing if {OBJECTIVE_LABEL, TIER_LABEL} <= set(labels)}
    return tuple(sorted(burning))


async def start(
    family: Family, found: Binaries, folder: Path, *, targets: Mapping[str, str], environ: Mapping[str, str]
) -> Stack:
    """Start both on the rules in `folder`. `targets` are URLs to scrape. Raises ChildError."""
    rules = folder / "rules"
    routes = rules / "alertmanager.yaml"

    def alertmanager(port: int) -> Command:
        flags = ("--config.file", str(routes), "--storage.path", str(folder / "alertmanager"))
        listen = ("--web.listen-address", f"127.0.0.1:{port}", "--cluster.listen-address", "")
        return Command("alertmanager", (found.alertmanager, *flags, *listen), environment(environ))

    alerts_url = await _start(family, alertmanager)
    config = folder / "prometheus" / "prometheus.yml"
    hosts = {job: urlsplit(url).netloc for job, url in targets.items()}
    written = configuration(str(rules / "*.rules.yaml"), alertmanager=urlsplit(alerts_url).netloc, targets=hosts)
    config.write_text(json.dumps(written, indent=2))

    def prometheus(port: int) -> Command:
        flags = ("--config.file", str(config), "--storage.tsdb.path", str(config.parent / "data"))
        return Command(
            "prometheus",
            (found.prometheus, *flags, "--web.listen-address", f"127.0.0.1:{port}"),
            environment(environ),
        )

    return Stack(await _start(family, prometheus), alerts_url)


async def _start(family: Family, command: Callable[[int], Command]) -> str:
    """Start a program on a free port; another may take the port first, so a few are tried."""
    for tries_left in reversed(range(START_TRIES)):
        port = _free_port()
        child = await family.start(command(port))
        try:
            return await _ready(child, port)
        except ChildError:
            await family.dismiss(child)
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


async def _ready(child: Child, port: int) -> str:
    """Wait until the child says that it has the port, and answers there that it is ready."""
    await child.says(rf'Listening on.*address="?127\.0\.0\.1:{port}\b', READY_TIMEOUT_S)
    url = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            while child.is_alive:
                if await asyncio.to_thread(_is_ready, url):
                    return url
                await asyncio.sleep(GLANCE_S)
    except TimeoutError:
        raise ChildError(f"{child.name} is not ready after {READY_TIMEOUT_S:g} s (log: {child.log})") from None
    raise child.fault()


def _is_ready(url: str) -> bool:
    try:
        ask_text(f"{url}/-/ready", timeout_s=2.0)
    except UnreachableError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
