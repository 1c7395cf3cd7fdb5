"""Is what `firsttoken capacity certify` and `batch` find true? Their searches, on simulated servers with known answers.

M/M/c by sojourn, a batching server as a birth-death process, a latency cliff, and a server that freezes: for each the
highest rate within the budget is known in closed form. Certified must be at most that, with few exceptions and none
that spends two budgets, and not much less; where requests alone spend the budget, nothing may be certified. The batch
is searched on the birth-death process with a knob, and must be the best or its neighbour. No speed is measured here, so
the machine does not matter: the same seeds give the same figures anywhere.

`--check` makes the exit code say whether every promise was kept.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script's own folder is on the path, the project's is not

from queues import tunings
from queues.grade import BEDS, HEAD, Bed, Grade, grade
from rich.console import Console
from rich.table import Table

SEEDS, QUICK_SEEDS = 40, 4
MOST_REQUESTS = 100_000
MAX_SEEDS = 1000
Graded = Grade | tunings.TuningGrade
T = TypeVar("T", Bed, tunings.TuningBed)
WIDTH = 150


def draw(head: Sequence[str], grades: Sequence[Graded], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if 0 < place < len(head) - 1 else "left", no_wrap=True)
    for one in grades:
        table.add_row(*one.row())
    console.print(table)


def markdown(head: Sequence[str], grades: Sequence[Graded]) -> None:
    print(f"| {' | '.join(head)} |")
    print(f"|---{'|---:' * (len(head) - 2)}|---|")
    for one in grades:
        print(f"| {' | '.join(one.row())} |")


def told(beds: Sequence[T]) -> Iterator[T]:
    """The beds, each named on a terminal while it is searched."""
    for bed in beds:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{bed.name}", end="", file=sys.stderr, flush=True)
        yield bed


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="The certified search, graded on servers of known capacity.")
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument("--seeds", type=int, default=SEEDS, help=f"searches of each server (default {SEEDS})")
    seeds.add_argument("--quick", dest="seeds", action="store_const", const=QUICK_SEEDS, help="a few of each")
    parser.add_argument("--most-requests", type=int, default=MOST_REQUESTS, metavar="N", help="of one run")
    parser.add_argument("--only", default="", metavar="TEXT", help="servers whose name holds this")
    parser.add_argument("--markdown", action="store_true", help="print the table that README.md keeps")
    parser.add_argument("--check", action="store_true", help="exit 1 if a promise is not kept")
    return parser


def main() -> int:
    parser = flags()
    given = parser.parse_args()
    if not 1 <= given.seeds <= MAX_SEEDS:
        parser.error(f"--seeds {given.seeds}: from 1 to {MAX_SEEDS}")
    if given.most_requests < 100:
        parser.error(f"--most-requests {given.most_requests}: at least 100")
    beds = [bed for bed in BEDS if given.only in bed.name]
    knobs = [bed for bed in tunings.BEDS if given.only in bed.name]
    if not beds and not knobs:
        names = ", ".join(bed.name for bed in (*BEDS, *tunings.BEDS))
        parser.error(f"--only {given.only}: no server's name holds it; use one of {names}")
    certified = [grade(bed, range(given.seeds), given.most_requests) for bed in told(beds)]
    tuned = [tunings.grade(bed, range(given.seeds)) for bed in told(knobs)]
    for head, grades in ((HEAD, certified), (tunings.HEAD, tuned)):
        if grades and given.markdown:
            markdown(head, grades)
        elif grades:
            draw(head, grades, Console(width=WIDTH, highlight=False))
    faults = [one.faults for one in certified] + [one.faults for one in tuned]
    kept = sum(not each for each in faults)
    print(f"{kept} of {len(faults)} servers as promised, {given.seeds} searches each")
    return 1 if given.check and kept < len(faults) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
