"""Do pages come once, early, and never for nothing? A corpus of incidents, judged by our tiers and by the classic set.

For each kind of incident, each level of traffic and each seed there is a month of one service: what its sidecar would
have counted for six objectives. Our tiers (`slo.burn`) and the set of the SRE Workbook judge the same counts. No speed
is measured here, so the machine does not matter: the same seeds give the same figures anywhere.

`--check` makes the exit code say whether every promise was kept that could be judged.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script's own folder is on the path, the project's is not

from corpus import promises, summary
from corpus.counts import month
from corpus.incidents import INCIDENTS, Incident
from corpus.paging import Outcome, outcomes
from corpus.service import OBJECTIVES
from corpus.summary import Table
from rich.console import Console
from rich.table import Table as Drawn

from slo.objective import Objective

SEEDS, QUICK_SEEDS = 10, 1
TRAFFIC = (6, 60, 600, 6_000, 60_000)
MAX_PER_H = 1_000_000
MAX_SEEDS = 1000
WIDTH = 150


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is judged."""

    incidents: tuple[Incident, ...]
    traffic: tuple[int, ...]
    objectives: tuple[Objective, ...]
    seeds: int


def judged(chosen: Chosen) -> Iterator[Outcome]:
    """The outcomes of every month, one for each set of tiers."""
    for incident in chosen.incidents:
        say(incident.name)
        for per_h in chosen.traffic:
            for seed in range(chosen.seeds):
                yield from outcomes(month(incident, per_h=per_h, seed=seed), chosen.objectives)
    say("")


def say(line: str) -> None:
    """Progress, where somebody looks."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def draw(table: Table, console: Console) -> None:
    drawn = Drawn(title=table.title, title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(table.head):
        drawn.add_column(name, justify="right" if place else "left", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*row)
    console.print(drawn, "", sep="\n")


def markdown(table: Table) -> Iterator[str]:
    yield f"{table.title}:\n"
    yield f"| {' | '.join(table.head)} |"
    yield f"|---{'|---:' * (len(table.head) - 1)}|"
    yield from (f"| {' | '.join(row)} |" for row in table.rows)
    yield ""


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Incidents judged by our burn tiers and by the classic set.")
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument("--seeds", type=int, default=SEEDS, help=f"months of each kind and traffic (default {SEEDS})")
    seeds.add_argument("--quick", dest="seeds", action="store_const", const=QUICK_SEEDS, help="one month of each")
    parser.add_argument("--traffic", metavar="LIST", default=",".join(map(str, TRAFFIC)), help="requests an hour")
    for flag, names in (("--incidents", INCIDENTS), ("--objectives", OBJECTIVES)):
        parser.add_argument(flag, metavar="LIST", default=",".join(one.name for one in names), help="default: all")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write what became of every month there")
    parser.add_argument("--markdown", action="store_true", help="print the tables that README.md keeps")
    parser.add_argument("--check", action="store_true", help="exit 1 if a promise is not kept")
    return parser


def choices(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Chosen:
    """What was asked for; ends the program on what can't be."""
    if not 1 <= given.seeds <= MAX_SEEDS:
        parser.error(f"--seeds {given.seeds}: from 1 to {MAX_SEEDS}")
    levels = listed(given.traffic)
    if not levels or not all(level.isdecimal() and 1 <= int(level) <= MAX_PER_H for level in levels):
        parser.error(f"--traffic {given.traffic}: requests an hour from 1 to {MAX_PER_H}, as 60,6000")
    incidents = {incident.name: incident for incident in INCIDENTS}
    objectives = {objective.name: objective for objective in OBJECTIVES}
    for flag, text, known in (
        ("--incidents", given.incidents, set(incidents)),
        ("--objectives", given.objectives, set(objectives)),
    ):
        if not listed(text) or not set(listed(text)) <= known:
            parser.error(f"{flag} {text}: there is no such one; use {', '.join(sorted(known))}")
    return Chosen(
        tuple(incidents[name] for name in listed(given.incidents)),
        tuple(int(level) for level in levels),
        tuple(objectives[name] for name in listed(given.objectives)),
        given.seeds,
    )


def listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def main() -> int:
    parser = flags()
    given = parser.parse_args()
    found = list(judged(choices(parser, given)))
    console = Console(width=WIDTH, highlight=False)
    for table in summary.tables(found):
        if given.markdown:
            print(*markdown(table), sep="\n")
        else:
            draw(table, console)
    said = list(promises.verdicts(found))
    print(*said, sep="\n")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    return 1 if given.check and any(verdict.kept is False for verdict in said) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
