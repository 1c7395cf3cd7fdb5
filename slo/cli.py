"""`firsttoken slo`: validates a spec and shows what its alerts can do; speaks other formats; prints the JSON Schema.

Exit codes: 0 fine, 1 an import that left something behind, 2 usage or a spec that cannot be used (every problem on its
own line, as file:line:column).
"""

import argparse
import json
import os
import sys
from decimal import Decimal

from rich import box
from rich.console import Console
from rich.table import Table

from slo.check import KEPT, facts, headings, mapping, row, warnings
from slo.flags import Parser
from slo.objective import Objective, Spec, json_schema, load
from slo.openslo import cli as openslo
from slo.quantity import QuantityError, per_second, percent_text
from slo.source import SpecError
from slo.words import counted, promise

TABLE_WIDTH = 128
WIDE_TABLE_WIDTH = 144
"""With the column of false alerts."""


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken slo ...`; returns the exit code."""
    parser = Parser(
        prog="firsttoken slo",
        description="Look at a spec before anything relies on it.",
        epilog="`firsttoken slo replay FILE --database URL` shows what a spec would have cost over the stored past.",
    )
    parser.add_version()
    commands = parser.add_subparsers(dest="command", required=True, metavar="check|schema|import|export")
    check = commands.add_parser(
        "check",
        help="validate, and print what each burn alert needs and how fast it is",
        description="Validate a spec, and print what each burn alert needs to fire, and how soon it would.",
    )
    check.add_argument("files", nargs="+", metavar="FILE", help="slo.yaml, or a folder of such files")
    check.add_argument(
        "--traffic",
        type=_traffic,
        metavar="RATE",
        help="requests each objective sees, as 600/h: reckon how often each alert would ring for nothing",
    )
    check.add_argument("--json", action="store_true", help="print the same as JSON")
    _add_formats(commands)
    commands.add_parser(
        "schema", help="print the JSON Schema of slo.yaml", description="Print the JSON Schema of slo.yaml."
    )
    args = parser.parse_args(argv)
    if args.command == "import":
        return openslo.run_import(args)
    if args.command == "export":
        return openslo.run_export(args)
    if args.command == "schema":
        print(json.dumps(json_schema(), indent=2))
        return 0
    return _check(args)


def _add_formats(commands: "argparse._SubParsersAction[Parser]") -> None:
    """The commands that speak the formats of others."""
    files = "slo.yaml, or a folder of such files"
    out = "the file to write, which must not be there yet (default: print it)"
    foreign = commands.add_parser(
        "import",
        help="carry OpenSLO v1 or Sloth prometheus/v1 specs over",
        description="Carry OpenSLO v1 or Sloth prometheus/v1 specs over into slo.yaml, and say of each objective what "
        "could not be. Exit 0: everything was carried over, 1: something was left behind.",
    )
    foreign.add_argument("files", nargs="+", metavar="FILE", help="OpenSLO or Sloth, as YAML")
    foreign.add_argument("--out", metavar="FILE", help=out)
    export = commands.add_parser(
        "export",
        help="write slo.yaml as OpenSLO v1",
        description="Write slo.yaml as OpenSLO v1, over the sidecars' counters, and say what other tools will not see.",
    )
    export.add_argument("files", nargs="+", metavar="FILE", help=files)
    export.add_argument("--format", required=True, choices=openslo.FORMATS, help="openslo")
    export.add_argument("--out", metavar="FILE", help=out)


def _traffic(text: str) -> Decimal:
    try:
        return per_second(text)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _check(args: argparse.Namespace) -> int:
    try:
        specs = load(args.files)
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps([mapping(spec, args.traffic) for spec in specs], indent=2))
        return 0
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE_TABLE_WIDTH  # a pipe has no width of its own
    for spec in specs:
        _show(console, spec, args.traffic)
    return 0


def _show(console: Console, spec: Spec, per_s: Decimal | None) -> None:
    where = f" in {spec.environment}" if spec.environment else ""
    console.print(
        f"service [bold]{spec.service}[/]{where}: {counted(len(spec.objectives), 'objective')}, spec {spec.hash}"
    )
    wide_enough = console.width >= (TABLE_WIDTH if per_s is None else WIDE_TABLE_WIDTH)
    for objective in spec.objectives:
        console.print()
        console.print(_tier_table(objective, per_s) if wide_enough else _tier_list(objective, per_s))
    if per_s is not None:
        console.print(
            f"\nfalse in 30d: alerts to expect while {percent_text(KEPT)} of what may be bad is bad, at random and "
            "steadily (events as a Poisson process)"
        )
    for warning in warnings(spec, per_s):
        console.print(f"\n[yellow]warning:[/] {warning}")


def _tier_table(objective: Objective, per_s: Decimal | None) -> Table:
    table = Table(title=_title(objective), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in headings(per_s):
        table.add_column(heading, no_wrap=True)
    for fact in facts(objective, per_s):
        table.add_row(*row(fact, per_s))
    return table


def _tier_list(objective: Objective, per_s: Decimal | None) -> str:
    """The table's facts for a narrow terminal, a line or two a tier."""
    rows = (dict(zip(headings(per_s), row(fact, per_s), strict=True)) for fact in facts(objective, per_s))
    lines = ("  " + ", ".join(f"{heading} {value}" for heading, value in cells.items()) for cells in rows)
    return "\n".join((f"[bold]{_title(objective)}[/]", *lines))


def _title(objective: Objective) -> str:
    return f"{objective.name}: {promise(objective)}"
