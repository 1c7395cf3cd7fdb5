"""What every process of ours does from beginning to end: settle, do its chores, read its spec again, hear its end."""

import asyncio
import gc
import logging
import resource
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path

from sidecar import limits
from sidecar.daemon_thread import on_daemon_thread
from sidecar.judging.faults import MAX_PLACES_TOLD, told
from slo import objective
from slo.objective import Spec
from slo.source import SpecError

log = logging.getLogger(__name__)

YOUNG_OBJECTS = 20_000
GIL_SWITCH_S = 0.0005  # an exporting thread hands the interpreter back to the loop after this, not after 5 ms


def raise_file_limit() -> None:
    """Let this process open as many files as it may: the usual soft limit of 1,024 ends at five hundred streams."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, limits.MAX_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        wanted = soft
    else:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if 0 <= wanted < limits.FEW_FILES:
        log.warning("%d files may be open here, enough for about %d requests at a time: raise it", wanted, wanted // 2)


def settle() -> None:
    """All is made that lives as long as the process: let the interpreter spend its time on requests."""
    gc.collect()
    gc.freeze()  # what lives so long need not be searched again and again
    gc.set_threshold(YOUNG_OBJECTS)  # a request leaves no cycles: searching its objects each 700 takes a tenth of it
    sys.setswitchinterval(GIL_SWITCH_S)


def tell_loop_faults() -> None:
    """Have what goes wrong within the event loop told in one line, each place once, and nothing quoted.

    Its own words are a page that shows the arguments of calls, and uvloop has them for clients that leave while a TLS
    connection to the server is being made for them.
    """
    lines = set[str]()

    def tell(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        line = told(error) if isinstance(error, BaseException) else str(context["message"])
        if line not in lines and len(lines) < MAX_PLACES_TOLD:
            lines.add(line)
            log.error("event loop: %s", line)

    asyncio.get_running_loop().set_exception_handler(tell)


class Ending:
    """The end that a signal asks for; asked for again, `hurry` is called."""

    def __init__(
        self,
        *,
        hurry: Callable[[], None] = lambda: None,
        numbers: Iterable[int] = (signal.SIGTERM, signal.SIGINT),
    ) -> None:
        self._hurry, self._asked = hurry, asyncio.Event()
        for number in numbers:
            asyncio.get_running_loop().add_signal_handler(number, self.ask)

    def ask(self) -> None:
        """What either signal does."""
        if self._asked.is_set():
            self._hurry()
        self._asked.set()

    async def wait(self) -> None:
        """Until the end is asked for."""
        await self._asked.wait()


def on_hangup(act: Callable[[], Coroutine[None, None, object]]) -> "OneAtATime":
    """Do `act` at each SIGHUP, never two at once, and at each call of what this gives."""
    again = OneAtATime(act)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, again)
    return again


async def every(interval_s: float, act: Callable[[], None], *, look: Callable[..., object]) -> None:
    """Do `act` each interval, on a grid that does not drift; `look` takes a fault in it."""
    next_s = time.monotonic()
    while True:
        next_s = max(next_s + interval_s, time.monotonic())
        await asyncio.sleep(next_s - time.monotonic())
        look(act)


def chore(act: Coroutine[None, None, None], *, look: Callable[..., object]) -> asyncio.Task[None]:
    """Begin what should go on for ever: a fault that ends it is `look`'s, so that it does not end unsaid."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            look(_raised, error)

    task = asyncio.get_running_loop().create_task(act)
    task.add_done_callback(ended)
    return task


def _raised(error: BaseException) -> None:
    raise error


class OneAtATime:
    """Does an act at each call, never two at once: what is asked for while it runs makes it run once more, after."""

    def __init__(self, act: Callable[[], Coroutine[None, None, object]]) -> None:
        self._act = act
        self._wanted = False
        self._running: asyncio.Task[None] | None = None

    def __call__(self) -> None:
        self._wanted = True
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._wanted:
            self._wanted = False
            await self._act()


async def read_again(paths: Sequence[Path], service: str) -> Spec | None:
    """The spec of a service as its files say now; None when they are bad or name it no more, which the log tells."""
    try:
        specs = await on_daemon_thread(objective.load, paths, within_s=limits.READ_S)
    except SpecError as error:
        for problem in error.problems:
            log.error("reload: %s", problem)
        return None
    except TimeoutError as error:
        log.error("reload: the spec cannot be read: %s", error)
        return None
    except Exception as error:  # noqa: BLE001  a fault in reading must not pass for a spec that was read
        log.error("reload: the spec cannot be read: %s", told(error))
        return None
    spec = next((spec for spec in specs if spec.service == service), None)
    if spec is None:
        log.error("reload: no spec of service %s: the old one stays", service)
    return spec
