"""Does a page come once, and never for nothing? A live service, by Prometheus and Alertmanager, and by the collector.

Each case of `paging_parts/cases.py` is played on a service of its own: demo server with three models, sidecar,
collector, four objectives. Two pagers listen: Alertmanager tells one, by the rules and routes that `alerts build`
writes; the collector tells the other by itself. Both see the same traffic, and neither path knows of the other.

Exit codes: 0 as it should be, 1 a case told what it should not, or did not tell what it should, 2 bad usage.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script's own folder is on the path, the project's is not

from paging_parts.cases import CASES, PATHS, Case
from paging_parts.service import PROMETHEUS, service
from paging_parts.verdict import Line, Played, line, table

from firsttoken import prometheus
from firsttoken.errors import FirstTokenError
from firsttoken.pager import Notification

BESIDE, MAX_BESIDE = 4, 9


async def played(cases: Sequence[Case], paths: tuple[str, ...], *, beside: int, folder: Path) -> list[Line]:
    """The lines of all cases, so many of which are played beside each other, the longest first."""
    waiting, found = iter(sorted(cases, key=lambda case: -case.usual_s)), dict[str, list[Line]]()

    async def lane() -> None:
        for case in waiting:
            found[case.name] = await play(case, paths, folder / case.name.replace(" ", "-"))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(beside, len(cases))):
            group.create_task(lane())
    return [each for case in cases for each in found[case.name]]


async def play(case: Case, paths: tuple[str, ...], folder: Path) -> list[Line]:
    """One case from the start of its service to its end; a process that ended early is its fault, and no other's."""
    started_s = time.monotonic()
    messages: dict[str, tuple[Notification, ...]] = dict.fromkeys(paths, ())
    try:
        async with service(folder, case.slo_yaml, paths) as one:
            seen = await one.family.guard(case.play(one))
            messages = {path: tuple(pager.notifications) for path, pager in one.pagers.items()}
    except FirstTokenError as error:
        seen = Played("", fault=str(error))
    lines = [line(case.name, path, case.wanted, messages=messages[path], played=seen) for path in paths]
    for each in lines:
        say(f"[{time.monotonic() - started_s:.0f} s] {'  '.join(each.cells)}")
    return lines


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What a live service tells its pager, by either path.")
    names = ", ".join(case.name for case in CASES)
    parser.add_argument("--cases", metavar="LIST", help=f"of: {names} (default: all)")
    parser.add_argument("--paths", metavar="LIST", default=",".join(PATHS), help="of: %(default)s (default: both)")
    parser.add_argument("--beside", type=int, default=BESIDE, metavar="N", help=f"at once (default {BESIDE})")
    parser.add_argument("--dir", metavar="DIR", type=Path, help="keep contracts, databases and logs there")
    parser.add_argument("--markdown", action="store_true", help="print the table as README.md keeps it")
    return parser


def choices(parser: argparse.ArgumentParser, given: argparse.Namespace) -> tuple[list[Case], tuple[str, ...]]:
    """The cases and paths that were asked for; ends the program on what can't be."""
    if not 1 <= given.beside <= MAX_BESIDE:
        parser.error(f"--beside {given.beside}: from 1 to {MAX_BESIDE}")
    known = {case.name: case for case in CASES}
    names = list(known) if given.cases is None else _listed(given.cases)
    if not names or not set(names) <= set(known):
        parser.error(f"--cases {given.cases}: there is no such one; use {', '.join(known)}")
    paths = _listed(given.paths)
    if not paths or not set(paths) <= set(PATHS):
        parser.error(f"--paths {given.paths}: use {', '.join(PATHS)}")
    if PROMETHEUS in paths and prometheus.installed() is None:
        parser.error(f"--paths {given.paths}: prometheus or alertmanager is not on the PATH; tests/install_tools.sh")
    return [known[name] for name in dict.fromkeys(names)], tuple(dict.fromkeys(paths))


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def main() -> int:
    parser = flags()
    given = parser.parse_args()
    cases, paths = choices(parser, given)
    with tempfile.TemporaryDirectory(prefix="paging-") as temporary:
        lines = asyncio.run(played(cases, paths, beside=given.beside, folder=given.dir or Path(temporary)))
    print(*table(lines, markdown=given.markdown), sep="\n")
    return 1 if any(one.faults for one in lines) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
