"""`firsttoken slo`: validates a spec and shows what its alerts can do; prints the JSON Schema.

Exit codes: 0 fine, 2 usage or a spec that cannot be used (every problem on its own line, as file:line:column).
"""

import json
import os
import sys
from collections.abc import Iterator
from decimal import Decimal

from rich import box
from rich.console import Console
from rich.table import Table

from slo.burn import Tier, factor_text, tiers
from slo.flags import Parser
from slo.objective import Objective, PromptBytes, Spec, json_schema, load
from slo.quantity import about_text, duration_text, percent_text
from slo.signals import SIGNALS
from slo.source import SpecError
from slo.words import promise

BAD_SHARES = (Decimal(1), Decimal("0.5"), Decimal("0.2"))
TABLE_WIDTH = 128


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken slo ...`; returns the exit code."""
    parser = Parser(prog="firsttoken slo", description="Look at a spec before anything relies on it.")
    parser.add_version()
    commands = parser.add_subparsers(dest="command", required=True, metavar="check|schema")
    check = commands.add_parser("check", help="validate, and print what each burn alert needs and how fast it is")
    check.add_argument("files", nargs="+", metavar="FILE", help="slo.yaml, or a folder of such files")
    commands.add_parser("schema", help="print the JSON Schema of slo.yaml")
    args = parser.parse_args(argv)
    if args.command == "schema":
        print(json.dumps(json_schema(), indent=2))
        return 0
    return _check(args.files)


def _check(files: list[str]) -> int:
    try:
        specs = load(files)
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = TABLE_WIDTH  # a pipe has no width of its own
    for spec in specs:
        where = f" in {spec.environment}" if spec.environment else ""
        console.print(f"service [bold]{spec.service}[/]{where}: {len(spec.objectives)} objectives, spec {spec.hash}")
        for objective in spec.objectives:
            console.print()
            console.print(_tier_table(objective) if console.width >= TABLE_WIDTH else _tier_list(objective))
        for warning in warnings(spec):
            console.print(f"\n[yellow]warning:[/] {warning}")
    return 0


def warnings(spec: Spec) -> Iterator[str]:
    """What a spec leaves unwatched though nothing in it is wrong."""
    by_signal = {name: [o for o in spec.objectives if o.signal == name] for name in SIGNALS}
    if by_signal["ttft"] and not by_signal["e2e"]:
        yield (
            f"service {spec.service} has no e2e objective: requests that do not stream have no first token, "
            "and only availability judges them"
        )
    if gap := _uncovered_bytes(by_signal["ttft"]):
        yield f"no ttft objective of service {spec.service} covers prompts of {gap}"


def _uncovered_bytes(objectives: list[Objective]) -> str | None:
    """The first range of prompt sizes that no objective judges, as text; None when there is none, or no objective."""
    ranges = [o.match.prompt_bytes or PromptBytes() for o in objectives]
    reach = 0
    for judged in sorted(ranges, key=lambda judged: judged.at_least):
        if judged.at_least > reach:
            return f"{reach} to {judged.at_least} bytes"
        if judged.below is None:
            return None
        reach = max(reach, judged.below)
    return f"{reach} bytes and more" if ranges else None


HEADINGS = (
    "tier",
    "windows",
    "notify",
    "burn over",
    "bad over",
    "bad events",
    *(f"at {percent_text(share)} bad" for share in BAD_SHARES),
    "ends after",
    "spends",
)


def _tier_table(objective: Objective) -> Table:
    table = Table(title=_title(objective), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in HEADINGS:
        table.add_column(heading, no_wrap=True)
    for tier in tiers(objective):
        table.add_row(*_tier_row(tier))
    return table


def _tier_list(objective: Objective) -> str:
    """The table's facts for a narrow terminal, a line or two a tier."""
    rows = (dict(zip(HEADINGS, _tier_row(tier), strict=True)) for tier in tiers(objective))
    lines = ("  " + ", ".join(f"{heading} {value}" for heading, value in row.items()) for row in rows)
    return "\n".join((f"[bold]{_title(objective)}[/]", *lines))


def _title(objective: Objective) -> str:
    return f"{objective.name}: {promise(objective)}"


def _tier_row(tier: Tier) -> Iterator[str]:
    yield tier.name
    yield f"{duration_text(tier.long_s)}/{duration_text(tier.short_s)}"
    yield tier.notify
    yield factor_text(tier)
    yield percent_text(round(tier.bad_share_needed, 4))
    yield f">= {tier.min_bad_events}"
    for share in BAD_SHARES:
        yield _about(tier.detection_s(share))
    yield _about(tier.reset_s(Decimal(1)))
    yield percent_text(round(tier.budget_spent, 3))


def _about(seconds: Decimal | None) -> str:
    return "never" if seconds is None else about_text(seconds)
