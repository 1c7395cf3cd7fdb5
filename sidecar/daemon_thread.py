"""Work on a thread that nobody waits for in the end.

Files may lie on a file system that does not answer, over a network above all. The event loop must not wait for that,
and neither may the end of the process, which waits for every thread of the loop's own pool, as long as it takes.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

R = TypeVar("R")


async def on_daemon_thread(act: Callable[..., R], *args: object, within_s: float | None = None) -> R:
    """What `act` gives or raises. TimeoutError: no answer in `within_s`; one that comes later is dropped."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[R] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(answer.set_result, act(*args))
        except Exception as error:  # noqa: BLE001  whoever waits has it
            settle = partial(answer.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_unless_late, answer, settle)

    threading.Thread(target=run, name="daemon read", daemon=True).start()
    try:
        return await asyncio.wait_for(answer, within_s)
    except TimeoutError:
        if not answer.cancelled():
            raise  # of `act` itself
        raise TimeoutError(f"no answer within {within_s:g} s") from None


def _unless_late(answer: "asyncio.Future[R]", settle: Callable[[], None]) -> None:
    if not answer.done():
        settle()
