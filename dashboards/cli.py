"""`firsttoken dashboards build`: writes Grafana dashboards from slo.yaml.

A flag wins over its environment variable `FIRSTTOKEN_<FLAG>`, that over the default. Exit codes: 0 fine, 2 usage, bad
input or a place that cannot be written. Nothing is written before everything is made, and each file is there whole or
not at all. The same specs and flags give the same bytes.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from dashboards.errors import DashboardsError, LibraryMissingError, UnwritableError, UsageError
from dashboards.model import DATASOURCES, PROMETHEUS, Datasource
from dashboards.panels import text_of
from dashboards.prometheus import PrometheusSource
from dashboards.promise import periods_s
from dashboards.slo_overview import slo_overview
from dashboards.source import Source
from slo.objective import Spec, load
from slo.output import put
from slo.quantity import QuantityError, whole_seconds
from slo.source import SpecError

PROGRAM = "firsttoken dashboards"
DEFAULT_SLO = "slo.yaml"
DEFAULT_SCRAPE_INTERVAL = "1m"
"""Prometheus's own default, so that no rate is empty however rarely it scrapes."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {PROGRAM} --help)")


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken dashboards ...`; returns the exit code."""
    try:
        _build(parser(os.environ).parse_args(argv))
    except SpecError as error:
        print("\n".join(f"{PROGRAM}: {problem}" for problem in error.problems), file=sys.stderr)
        return 2
    except DashboardsError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    return 0


def parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    """The command line, its defaults taken from the environment."""
    main_parser = _Parser(prog=PROGRAM, description="Grafana dashboards from slo.yaml.")
    main_parser.add_argument("--version", action="version", version=f"firsttoken {version('firsttoken')}")
    commands = main_parser.add_subparsers(dest="command", required=True, metavar="build", parser_class=_Parser)
    build = commands.add_parser(
        "build",
        help="write one JSON file a dashboard",
        description="Write Grafana dashboards, one JSON file each, to import or to provision.",
    )
    slo = environ.get("FIRSTTOKEN_SLO", DEFAULT_SLO)
    out = environ.get("FIRSTTOKEN_OUT")
    build.add_argument("--slo", action="append", metavar="FILE", help=f"spec or folder of specs, repeatable ({slo})")
    build.set_defaults(default_slo=slo)
    build.add_argument("--out", default=out, required=out is None, metavar="DIR", help="folder to write to")
    build.add_argument(
        "--datasource",
        default=environ.get("FIRSTTOKEN_DATASOURCE", PROMETHEUS.name),
        metavar="|".join(DATASOURCES),
        help="what the panels read from (%(default)s)",
    )
    build.add_argument(
        "--scrape-interval",
        default=environ.get("FIRSTTOKEN_SCRAPE_INTERVAL", DEFAULT_SCRAPE_INTERVAL),
        metavar="TIME",
        help="how often Prometheus scrapes: the finest step of any panel, of which a rate spans four (%(default)s)",
    )
    return main_parser


def dashboards(specs: tuple[Spec, ...], datasource: Datasource, *, scrape_interval_s: int) -> Mapping[str, str]:
    """Texts by file name: every dashboard over one datasource. Raises `LibraryMissingError`."""
    suffix = "" if datasource is PROMETHEUS else f"-{datasource.name}"
    overview = slo_overview(_source(specs, datasource), specs, min_step_s=scrape_interval_s)
    return {f"slo-overview{suffix}.json": text_of(overview)}


def _source(specs: tuple[Spec, ...], datasource: Datasource) -> Source:
    if datasource is PROMETHEUS:
        return PrometheusSource(periods_s(specs))
    try:
        from dashboards.sql import SqlSource
    except ModuleNotFoundError as error:
        raise LibraryMissingError(
            f"--datasource {datasource.name} needs {error.name}: pip install 'firsttoken[collector]'"
        ) from None
    return SqlSource(datasource, specs)


def _build(args: argparse.Namespace) -> None:
    if args.datasource not in DATASOURCES:
        raise UsageError(f"--datasource {args.datasource} is none: use {', '.join(DATASOURCES)}")
    try:
        scrape_interval_s = whole_seconds(args.scrape_interval)
    except QuantityError as error:
        raise UsageError(f"--scrape-interval: {error}") from None
    specs = load(args.slo or [args.default_slo])
    texts = dashboards(specs, DATASOURCES[args.datasource], scrape_interval_s=scrape_interval_s)
    for name, text in texts.items():
        print(_written(Path(args.out) / name, text))


def _written(path: Path, text: str) -> Path:
    try:
        return put(path, text)
    except OSError as error:
        where = error.filename or path
        raise UnwritableError(f"{where}: {error.strerror}: give --out a folder that can be written to") from None
