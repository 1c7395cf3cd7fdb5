"""The slot of one worker: a process is started in it, listened to, and replaced when it ends unasked.

    start ─▶ Ready ─▶ Report, Report, ... ─▶ end ─▶ (asked for? over : a pause, and the next one starts)

The pause grows while one process after another dies young. What was sent before an end is heard, whatever the end was:
a pipe is read to its last byte.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from contextlib import suppress

from sidecar import limits
from sidecar.workers.worker_pipe import Ask, Drain, Hurry, Message, Pipe, Ready, Report, Start, State, pair, pipe_over
from sidecar.workers.workers_eye import WorkersEye

log = logging.getLogger(__name__)


class WorkerSlot:
    """One worker's slot. `start` gives what a new process is told, `sockets` what it listens on; `changed` is called
    when it takes requests and when it is gone. `misfires`: how many in a row ended before they took requests."""

    def __init__(
        self,
        number: int,
        eye: WorkersEye,
        start: Callable[[], Start],
        *,
        sockets: Callable[[], list[socket.socket]],
        changed: Callable[[], None],
    ) -> None:
        self._eye, self._start, self._sockets, self._changed = eye, start, sockets, changed
        self.number = number
        self._pipe: Pipe | None = None
        self._process: Process | None = None
        self._ending = asyncio.Event()
        self._asked = 0
        self._asking: dict[int, asyncio.Future[None]] = {}
        self._silent_s = 0
        self._has_begun = False
        self.misfires = self._died_young = 0

    @property
    def ready(self) -> bool:
        """Whether a worker here takes requests."""
        return self._has_begun and self._pipe is not None

    async def keep(self) -> None:
        """Have a worker here until told to end."""
        while not self._ending.is_set():
            began_s, self._has_begun = time.monotonic(), False
            end = await self._live()
            self.misfires = 0 if self._has_begun else self.misfires + 1
            lost = self._eye.lost(self.number, unasked=not self._ending.is_set())
            young = time.monotonic() - began_s < limits.WORKER_YOUNG_S
            self._died_young = self._died_young + 1 if young else 0
            self._changed()
            if not self._ending.is_set():
                await self._pause(end, lost)

    async def _pause(self, end: str, lost: int) -> None:
        pause_s = min(limits.WORKER_PAUSE_S * 2 ** max(0, self._died_young - 1), limits.WORKER_LONGEST_PAUSE_S)
        log.warning(
            "worker %d %s: %d requests were in flight and count as errors; the next starts in %g s",
            self.number,
            end,
            lost,
            pause_s,
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._ending.wait()

    async def _live(self) -> str:
        """One process, from its start to its end; how it ended."""
        try:
            self._process, pipe = await self._spawn()
        except OSError as error:
            return f"could not be started ({os.strerror(error.errno or 0)})"
        process, self._pipe, self._silent_s = self._process, pipe, 0
        pipe.send(self._start())
        pipe.send(self._eye.state())
        if self._ending.is_set():
            pipe.send(Drain())
        while (message := await pipe.receive()) is not None:
            self._take(message)
        self._pipe = None
        self._answer(self._asked)
        await pipe.close()
        code = await self._reaped(process)
        self._process = None
        return _words(code)

    async def _spawn(self) -> tuple[Process, Pipe]:
        ours, theirs = pair()
        sockets = [*theirs, *self._sockets()]
        numbers = [one.fileno() for one in sockets]
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                *("-m", "sidecar.worker"),
                *map(str, numbers),
                stdin=DEVNULL,
                pass_fds=numbers,
                # The worker finds what this process found, whatever folder it stands in.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        except OSError:
            for end in ours:
                end.close()
            raise
        finally:
            for one in sockets:
                one.close()
        return process, await pipe_over(ours)

    async def _reaped(self, process: Process) -> int:
        """The exit code of a process whose pipe has ended."""
        try:
            async with asyncio.timeout(limits.WORKER_END_S):
                return await process.wait()
        except TimeoutError:
            _kill(process)
            return await process.wait()

    # What is said.

    def _take(self, message: Message) -> None:
        if isinstance(message, Report):
            self._silent_s = 0
            self._eye.look(self._eye.reported, self.number, message)
            self._answer(message.answers)
        elif isinstance(message, Ready):
            self._has_begun, self._silent_s = True, 0
            self._changed()

    def _answer(self, number: int) -> None:
        """Those who asked for a report up to the `number`th time have it, or will not get it."""
        for asked in [asked for asked in self._asking if asked <= number]:
            future = self._asking.pop(asked)
            if not future.done():
                future.set_result(None)

    def tell(self, message: Message) -> None:
        """Tell the worker something, if there is one; the state can wait for one that does not listen."""
        if self._pipe is not None and not (isinstance(message, State) and self._pipe.is_backed_up):
            self._pipe.send(message)

    def second(self, state: State) -> None:
        """What each second brings. A worker that says nothing for long does not start, or stands still and its clients
        with it. (Counted are seconds of this process: a worker that was stopped together with it is not silent.)"""
        self.tell(state)
        self._silent_s += 1
        limit_s = limits.WORKER_SILENT_S if self._has_begun else limits.WORKER_START_S
        if self._silent_s > limit_s and self._pipe is not None and self._process is not None:
            log.error("worker %d has said nothing for %d s and is killed", self.number, limit_s)
            _kill(self._process)

    async def report(self) -> None:
        """Have the worker report what it has counted until now; waits no longer than `WORKER_ANSWER_S`."""
        if self._pipe is None or not self.ready or self._pipe.is_backed_up:
            return
        self._asked += 1
        answered = self._asking[self._asked] = asyncio.get_running_loop().create_future()
        self._pipe.send(Ask(self._asked))
        await asyncio.wait([answered], timeout=limits.WORKER_ANSWER_S)

    def end(self) -> None:
        """Begin to end; asked again, without waiting for requests in flight."""
        self.tell(Hurry() if self._ending.is_set() else Drain())
        self._ending.set()

    def kill(self) -> None:
        """End at once."""
        self._ending.set()
        if self._process is not None:
            _kill(self._process)


def _kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()


def _words(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
