"""`firsttoken dashboards`: writes Grafana dashboards from slo.yaml, and checks what was written.

A flag wins over its environment variable `FIRSTTOKEN_<FLAG>`, that over the default. Exit codes: 0 fine, 1 a check
failed, 2 usage, bad input or a place that cannot be written. Nothing is written before everything is made, and each
file is there whole or not at all. The same specs and flags give the same bytes.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from dashboards.boards.catalogue import catalogue
from dashboards.boards.plan import Given
from dashboards.check.folder import checked
from dashboards.errors import DashboardsError, UnwritableError, UsageError
from dashboards.grafana.board import text_of
from dashboards.model import DATASOURCES, PROMETHEUS, Datasource
from slo.capacity_result import CapacityResultError, read_results
from slo.flags import Parser, variable
from slo.objective import load
from slo.output import put, unwritable
from slo.quantity import QuantityError, whole_seconds
from slo.source import SpecError

PROGRAM = "firsttoken dashboards"
DEFAULT_SLO = "slo.yaml"
DEFAULT_SCRAPE_INTERVAL = "1m"
"""Prometheus's own default, so that no rate is empty however rarely it scrapes."""


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken dashboards ...`; returns the exit code."""
    try:
        args = parser(os.environ).parse_args(argv)
        return _check(args) if args.command == "check" else _build(args)
    except SpecError as error:
        print("\n".join(f"{PROGRAM}: {problem}" for problem in error.problems), file=sys.stderr)
    except (CapacityResultError, DashboardsError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
    return 2


def parser(environ: Mapping[str, str]) -> Parser:
    """The command line, its defaults taken from the environment."""
    main_parser = Parser(prog=PROGRAM, description="Grafana dashboards from slo.yaml.")
    main_parser.add_version()
    commands = main_parser.add_subparsers(dest="command", required=True, metavar="build|check")
    build = commands.add_parser(
        "build",
        help="write one JSON file a dashboard",
        description="Write Grafana dashboards, one JSON file each, to import or to provision.",
    )
    _build_flags(build, environ)
    check = commands.add_parser(
        "check",
        help="hold dashboards against the rules that make them work everywhere",
        description="Hold the dashboards in a folder, however edited, against the rules that make them work by import, "
        "by provisioning and through the API. Exit 1: one of them is broken.",
    )
    check.add_argument("dir", metavar="DIR", help="the folder that build wrote to")
    return main_parser


def _build_flags(build: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    slo, out = environ.get(variable("--slo")) or DEFAULT_SLO, environ.get(variable("--out")) or None
    build.add_argument("--slo", action="append", metavar="FILE", help=f"spec or folder of specs, repeatable ({slo})")
    build.set_defaults(default_slo=slo)
    build.add_argument("--out", default=out, required=out is None, metavar="DIR", help="folder to write to")
    build.add_argument(
        "--datasource",
        default=environ.get(variable("--datasource")) or PROMETHEUS.name,
        metavar="|".join(DATASOURCES),
        help="what the panels read from (%(default)s)",
    )
    build.add_argument(
        "--scrape-interval",
        default=environ.get(variable("--scrape-interval")) or DEFAULT_SCRAPE_INTERVAL,
        metavar="TIME",
        help="how often Prometheus scrapes: the finest step of any panel, of which a rate spans four (%(default)s)",
    )
    build.add_argument(
        "--capacity",
        action="append",
        default=environ.get(variable("--capacity"), "").split(),
        metavar="[SERVICE=]FILE",
        help="what firsttoken capacity found of a service, to draw load and batch against; repeatable",
    )


def dashboards(given: Given, datasource: Datasource, *, scrape_interval_s: int) -> Mapping[str, str]:
    """Texts by file name: every dashboard over one datasource. Raises `LibraryMissingError`."""
    found = catalogue(given, datasource, min_step_s=scrape_interval_s)
    return {name: text_of(dashboard) for name, dashboard in found.items()}


def _build(args: argparse.Namespace) -> int:
    if args.datasource not in DATASOURCES:
        raise UsageError(f"--datasource {args.datasource} is none: use {', '.join(DATASOURCES)}")
    if not args.out:  # as an unset variable of a shell is
        raise UsageError("--out names no folder: write --out grafana/")
    try:
        scrape_interval_s = whole_seconds(args.scrape_interval)
    except QuantityError as error:
        raise UsageError(f"--scrape-interval: {error}") from None
    specs = load(args.slo or [args.default_slo])
    results = read_results(args.capacity, specs)
    for one in results:
        if one.note:
            print(f"note: {one.note}", file=sys.stderr)
    given = Given(specs, results)
    texts = dashboards(given, DATASOURCES[args.datasource], scrape_interval_s=scrape_interval_s)
    for name, text in texts.items():
        print(_written(Path(args.out) / name, text))
    return 0


def _check(args: argparse.Namespace) -> int:
    failed = 0
    for finding in checked(Path(args.dir)):
        failed += bool(finding.faults)
        print(f"{'FAILED' if finding.faults else 'ok'}: {finding.path}")
        for fault in finding.faults:
            print(f"{finding.path}: {fault}", file=sys.stderr)
    return 1 if failed else 0


def _written(path: Path, text: str) -> Path:
    try:
        return put(path, text)
    except OSError as error:
        raise UnwritableError(unwritable(path, error)) from None
