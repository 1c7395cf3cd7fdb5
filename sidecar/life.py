"""What every process of ours does in its life: take an address, do its chores, read its spec again."""

import asyncio
import logging
import os
import resource
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

from sidecar import limits
from sidecar.settings import Address
from slo import objective
from slo.objective import Spec
from slo.source import SpecError

log = logging.getLogger(__name__)

BACKLOG = 1024


class ListenError(Exception):
    """An address that cannot be listened on; the message is for the user."""


async def listen(door: Callable[[], asyncio.Protocol], address: Address, *, flag: str) -> asyncio.Server:
    """Accept connections for `door`; ListenError names the address and the flag that gave it."""
    try:
        loop = asyncio.get_running_loop()
        return await loop.create_server(door, address.host, address.port, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        # asyncio words this error at length; a name that cannot be resolved has a negative number of its own, and one
        # that is none (an empty label) is an error of its encoding.
        number = getattr(error, "errno", None) or 0
        words = getattr(error, "strerror", None) or "not a host name"
        reason = (os.strerror(number) if number > 0 else words).lower()
        raise ListenError(f"cannot listen on {address} ({flag}): {reason}: choose another address") from None


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


def announce(what: str, server: asyncio.Server) -> None:
    """Say on stdout where a listener is, in one line."""
    host, port = server.sockets[0].getsockname()[:2]
    print(f"{what}: http://{Address(host, port)}", flush=True)


async def every(interval_s: float, act: Callable[[], None], *, look: Callable[..., None]) -> None:
    """Do `act` each interval, on a grid that does not drift; `look` takes a fault in it."""
    next_s = time.monotonic()
    while True:
        next_s = max(next_s + interval_s, time.monotonic())
        await asyncio.sleep(next_s - time.monotonic())
        look(act)


def chore(act: Coroutine[None, None, None], *, look: Callable[..., None]) -> asyncio.Task[None]:
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

    def __init__(self, act: Callable[[], Coroutine[None, None, None]]) -> None:
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
        specs = await asyncio.get_running_loop().run_in_executor(None, objective.load, paths)
    except SpecError as error:
        for problem in error.problems:
            log.error("reload: %s", problem)
        return None
    except Exception as error:  # noqa: BLE001  a fault in reading must not pass for a spec that was read
        log.error("reload: the spec cannot be read: %s", type(error).__name__)
        return None
    spec = next((spec for spec in specs if spec.service == service), None)
    if spec is None:
        log.error("reload: no spec of service %s: the old one stays", service)
    return spec
