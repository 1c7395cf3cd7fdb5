"""`firsttoken demo`: the whole story on one machine.

Sets the stage (demo server, collector, sidecar, and Prometheus with Alertmanager where they are installed, each a
process of its own on a free port), lets users in (the load), tells the story, holds the two measurements against each
other and takes everything down again. Exit codes: 0 the page fired and resolved (or, for `none`, did not ring), 1 it
did not, or a process ended early, 2 usage or a folder that must not be used.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from firsttoken import demo_compare, demo_plan, prometheus
from firsttoken.demo_folder import claimed
from firsttoken.demo_plan import DEFAULT_SECONDS, INCIDENTS, NONE, Plan
from firsttoken.demo_stage import set_stage, where
from firsttoken.demo_story import Ending, Story, measured
from firsttoken.demo_view import Frame, draw, line
from firsttoken.errors import FirstTokenError, FolderError, UsageError
from firsttoken.pager import Pager
from firsttoken.processes import Child, Family
from slo.flags import Parser, variable

LINE_EVERY_S = 5.0
SETTLE_GLANCES = 20
SETTLE_GLANCE_S = 1.0
SETTLED_AFTER = 6
STAY_UP_S = 4 * 3600.0


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken demo ...`; returns the exit code."""
    args = _parser(os.environ).parse_args(argv)
    try:
        told = demo_plan.plan(args.seconds, args.incident)
        with claimed(Path(args.dir)) as folder:
            return asyncio.run(_with_signals(_Demo(told, folder, may_use_prometheus=not args.no_prometheus)))
    except FirstTokenError as error:
        print(f"firsttoken demo: {error}", file=sys.stderr)
        return 2 if isinstance(error, FolderError | UsageError) else 1


async def _with_signals(demo: "_Demo") -> int:
    """Run the demo so that a first signal ends it in order, and a second one at once."""
    running = asyncio.ensure_future(demo.run())
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if demo.is_ending:
            demo.kill()
        else:
            demo.is_ending = True
            running.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    try:
        return await running
    except asyncio.CancelledError:
        print("firsttoken demo: interrupted before the story was over; every process is ended", file=sys.stderr)
        return 1


class _Demo:
    """One run of the demo."""

    def __init__(self, told: Plan, folder: Path, *, may_use_prometheus: bool) -> None:
        self.is_ending = False
        self._plan = told
        self._folder = folder
        self._binaries = prometheus.installed() if may_use_prometheus else None
        self._console = Console(highlight=False, soft_wrap=True)
        self._family = Family(folder / "logs")

    def kill(self) -> None:
        """End every process at once."""
        self._family.kill()

    async def run(self) -> int:
        """Tell the story; on a terminal, stay up after it until a signal. The exit code."""
        async with Pager(time.time) as pager, self._family as family:
            is_fine = await family.guard(self._perform(pager))
            if sys.stdin.isatty() and self._console.is_terminal:
                await self._stay_up()
            self.is_ending = True
        return 0 if is_fine else 1

    async def _perform(self, pager: Pager) -> bool:
        """From an empty folder to the last line; whether all went as it should."""
        with_prometheus = ", Prometheus, Alertmanager" if self._binaries else ""
        self._say(f"starting engine, collector, sidecar{with_prometheus} in {self._shown('')} ...")
        self._stage = await set_stage(
            self._family, self._folder, pager_url=pager.url, binaries=self._binaries, environ=os.environ
        )
        for said in where(self._stage, self._shown):
            self._say(said)
        notifier = "Prometheus and Alertmanager notify" if self._binaries else "the collector notifies"
        self._say(f"{notifier} the demo's own pager; the story takes about {self._plan.length_s:.0f} s")
        users = await self._let_users_in("load", self._plan.load_s)
        self._story = Story(self._plan, self._stage, pager, now_s=time.time)
        ending = await self._tell(self._story)
        await self._family.dismiss(users)
        for said in ending.lines:
            self._say(said)
        for comparison in await self._compare(ending):
            self._say(comparison.text)
        if not ending.is_fine:
            self._say(f"this is not how it should go: look into {self._shown('logs')}")
        return ending.is_fine

    async def _let_users_in(self, name: str, seconds: float) -> Child:
        to = self._stage.proxy_url
        return await self._family.start(demo_plan.load(name, self._folder, os.environ, proxy_url=to, seconds=seconds))

    async def _tell(self, story: Story) -> Ending:
        """Tell the story and show it meanwhile."""
        with self._screen() as show:
            telling, watching = asyncio.ensure_future(story.tell()), asyncio.ensure_future(story.watch(show))
            try:
                await asyncio.wait({telling, watching}, return_when=asyncio.FIRST_COMPLETED)
                if watching.done():
                    watching.result()  # it watches for ever: only a fault of ours ends it
                return telling.result()
            finally:
                telling.cancel()
                watching.cancel()
                await asyncio.gather(telling, watching, return_exceptions=True)

    async def _compare(self, ending: Ending) -> tuple[demo_compare.Comparison, ...]:
        whole, until_s = await self._settled(), time.time()
        report = demo_compare.read_report(self._folder / "load.json")
        healthy = demo_compare.compare("while healthy", ending.healthy, report, until_s=ending.healthy_until_s)
        return healthy, demo_compare.compare("over the whole story", whole, report, until_s=until_s)

    async def _settled(self) -> demo_compare.Measured | None:
        """The last row of SQL, once what was under way has come in: no new request for a few evaluations."""
        row, unchanged = await asyncio.to_thread(measured, self._folder), 0
        for _ in range(SETTLE_GLANCES):
            await asyncio.sleep(SETTLE_GLANCE_S)
            newer = await asyncio.to_thread(measured, self._folder)
            is_same = (row and (row.count, row.censored)) == (newer and (newer.count, newer.censored))
            row, unchanged = newer, unchanged + 1 if is_same else 0
            if unchanged >= SETTLED_AFTER:
                break
        return row

    async def _stay_up(self) -> None:
        """Keep everything running, with users, until a signal: that is how it is meant to end."""
        self._story.enter("after", "everything stays up for you to look at; Ctrl-C ends it", 0.0)
        try:
            await self._let_users_in("load-more", STAY_UP_S)
            with self._screen() as show:
                await self._family.guard(self._story.watch(show))
        except asyncio.CancelledError:
            return

    @contextmanager
    def _screen(self) -> Iterator[Callable[[Frame], None]]:
        """A live table on a terminal; elsewhere a line every few seconds and at each turn of the story."""
        if self._console.is_terminal:
            with Live(console=self._console, auto_refresh=False) as live:
                yield lambda frame: live.update(draw(frame), refresh=True)
        else:
            yield Lines(self._say)

    def _shown(self, name: str) -> str:
        """A path inside the folder as it is best written from here."""
        path = self._folder / name
        here = Path.cwd()
        return str(path.relative_to(here) if path.is_relative_to(here) else path)

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False)
        sys.stdout.flush()


class Lines:
    """Says a frame when a while has passed, the phase has changed or the pager has rung."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: Frame | None = None

    def __call__(self, frame: Frame) -> None:
        before = self._said
        if (
            before is None
            or frame.at_s - before.at_s >= LINE_EVERY_S
            or (frame.phase.name, len(frame.notifications)) != (before.phase.name, len(before.notifications))
        ):
            self._say(line(frame))
            self._said = frame


def _parser(environ: Mapping[str, str]) -> Parser:
    parser = Parser(
        prog="firsttoken demo",
        description="The whole story on one machine: a healthy while, an incident, its page, recovery, its end. "
        "With a terminal it stays up after that until Ctrl-C. Exit 0: the page fired and resolved; 1: it did not.",
    )

    def add(flag: str, default: object, **options: Any) -> None:
        parser.add_argument(flag, default=environ.get(variable(flag)) or default, **options)

    kinds = [*INCIDENTS, NONE]
    add("--seconds", DEFAULT_SECONDS, type=int, metavar="N", help="about how long the story lasts (%(default)s)")
    add("--incident", "slow", choices=kinds, help=f"what goes wrong: {', '.join(kinds)} (%(default)s)", metavar="KIND")
    add("--dir", ".demo", metavar="DIR", help="the one folder it writes to (%(default)s)")
    parser.add_argument(
        "--no-prometheus", action="store_true", help="let the collector notify, even where Prometheus is"
    )
    parser.add_version()
    return parser
