"""Is the cause that an alert gives the right one? Faults put into a live demo server, behind the real sidecar, before
the real collector.

For each kind of fault that the demo server can have, and each seed, there are two incidents: alone, and with a change
of the load at the same moment. The cause that counts is that of the alert which fires first, as it fires. Several
stacks run beside each other; nothing is hastened but that windows are seconds.

`--check` makes the exit code say whether every promise was kept.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script's own folder is on the path, the project's is not

from injected import matrix
from injected.episode import Outcome, episode
from injected.incidents import KINDS, Incident, incidents
from injected.stack import stack

SEEDS, QUICK_SEEDS, STACKS = 10, 1, 3
MAX_SEEDS, MAX_STACKS, MAX_SEED = 100, 16, 1_000_000


async def played(chosen: list[Incident], *, stacks: int, folder: Path) -> list[Outcome]:
    """The outcomes of all of them, on so many stacks beside each other."""
    waiting, found, started = iter(chosen), [], time.monotonic()

    async def play(number: int) -> None:
        async with stack(folder / f"stack-{number}", say) as one:
            for incident in waiting:
                outcome = await episode(one, incident)
                found.append(outcome)
                mark = "right" if outcome.is_right else "UNKNOWN" if outcome.said == "unknown" else "WRONG"
                at = f"[{len(found)}/{len(chosen)}, {time.monotonic() - started:.0f} s, stack {number}]"
                say(f"{at} {outcome.incident}: {mark}, {outcome.alert} after {outcome.after_s:g} s: {outcome.text}")

    async with asyncio.TaskGroup() as group:
        for number in range(stacks):
            group.create_task(play(number))
    return found


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Faults of a live demo server, and the causes that alerts give.")
    seeds = parser.add_mutually_exclusive_group()
    seeds.add_argument("--seeds", type=int, default=SEEDS, help=f"incidents of each kind (default {SEEDS})")
    seeds.add_argument("--quick", dest="seeds", action="store_const", const=QUICK_SEEDS, help="one of each")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed (default 0)")
    parser.add_argument("--kinds", metavar="LIST", default=",".join(one.name for one in KINDS), help="default: all")
    parser.add_argument("--stacks", type=int, default=STACKS, help=f"beside each other (default {STACKS})")
    parser.add_argument("--dir", metavar="DIR", type=Path, help="keep databases and logs there")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write what became of every incident there")
    parser.add_argument("--markdown", action="store_true", help="print the matrix as README.md keeps it")
    parser.add_argument("--check", action="store_true", help="exit 1 if a promise is not kept")
    return parser


def choices(parser: argparse.ArgumentParser, given: argparse.Namespace) -> list[Incident]:
    """What was asked for; ends the program on what can't be."""
    for flag, value, least, most in (
        ("--seeds", given.seeds, 1, MAX_SEEDS),
        ("--stacks", given.stacks, 1, MAX_STACKS),
        ("--first", given.first, 0, MAX_SEED),
    ):
        if not least <= value <= most:
            parser.error(f"{flag} {value}: from {least} to {most}")
    names = [name.strip() for name in given.kinds.split(",") if name.strip()]
    known = {kind.name: kind for kind in KINDS}
    if not names or not set(names) <= set(known):
        parser.error(f"--kinds {given.kinds}: there is no such one; use {', '.join(known)}")
    return incidents(tuple(known[name] for name in names), range(given.first, given.first + given.seeds))


def main() -> int:
    parser = flags()
    given = parser.parse_args()
    chosen = choices(parser, given)
    with tempfile.TemporaryDirectory(prefix="attribution-") as temporary:
        found = asyncio.run(played(chosen, stacks=given.stacks, folder=given.dir or Path(temporary)))
    print(*matrix.lines(found, markdown=given.markdown), sep="\n")
    verdicts = matrix.verdicts(found)
    print(*verdicts, sep="\n")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    return 1 if given.check and not all(verdict.kept for verdict in verdicts) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
