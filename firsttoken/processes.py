"""Child processes that are all gone afterwards, whatever happens.

Each child leads a process group of its own and is tethered to us (`tether`). `Family` starts them, hears what they
print, notices the one that ends early, and at its end stops them in the reverse order of their start: SIGTERM, and
SIGKILL for what has not gone after a grace. Only process ids that we started are ever signalled.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

from firsttoken import tether
from firsttoken.errors import ChildError

GRACE_S = 6.0
READY_TIMEOUT_S = 90.0
GLANCE_S = 0.05
TAIL_LINES = 5
MAX_LOG_TAIL_BYTES = 16 * 1024

Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class Command:
    """What to run: a short name for people and its log file, the argument vector, and the whole environment."""

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class Child:
    """One running process and the log that holds its stdout and stderr."""

    def __init__(self, command: Command, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = command.name
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ended(self) -> int:
        """Wait for the end; the exit status, negative for a signal."""
        return await self._process.wait()

    async def says(self, pattern: str, timeout_s: float = READY_TIMEOUT_S) -> re.Match[str]:
        """Wait until a line of the log matches. Raises ChildError when the child ends or takes too long before."""
        line = re.compile(pattern, re.MULTILINE)
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    is_last_look = not self.is_alive
                    if match := line.search(self.log.read_text(errors="replace")):
                        return match
                    if is_last_look:
                        raise self.fault()
                    await asyncio.sleep(GLANCE_S)
        except TimeoutError:
            raise ChildError(f"{self.name} was not ready after {timeout_s:g} s: {self._last_words()}") from None

    def fault(self) -> ChildError:
        """How the child ended, with the last it said."""
        status = self._process.returncode
        how = f"signal {signal.Signals(-status).name}" if status is not None and status < 0 else f"exit {status}"
        return ChildError(f"{self.name} ended early ({how}): {self._last_words()}")

    def send(self, number: signal.Signals) -> None:
        """Signal the child's whole group, if the child is still there."""
        if self.is_alive:
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                return

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """End it: SIGTERM, then SIGKILL after the grace."""
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                await self.ended()
        except TimeoutError:
            self.send(signal.SIGKILL)
            await self.ended()

    def _last_words(self) -> str:
        text = self.log.read_bytes()[-MAX_LOG_TAIL_BYTES:].decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()][-TAIL_LINES:]
        return f"{' | '.join(lines) or 'it said nothing'} (log: {self.log})"


class Family:
    """The children of one story; as an async context it leaves none behind."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.children: list[Child] = []
        self._watches: dict[asyncio.Task[int], Child] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()

    async def start(self, command: Command) -> Child:
        """Start a child. Its log is `<logs>/<name>.log`."""
        log = self._logs / f"{command.name}.log"
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *command.argv),
                env=dict(command.environ),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        child = Child(command, process, log)
        self.children.append(child)
        self._watches[asyncio.create_task(child.ended())] = child
        return child

    async def run(self, command: Command, timeout_s: float) -> None:
        """Run a command to its end. Raises ChildError when it fails or takes too long."""
        child = await self.start(command)
        self._forget(child)
        try:
            async with asyncio.timeout(timeout_s):
                status = await child.ended()
        except TimeoutError:
            raise ChildError(f"{child.name} is not done after {timeout_s:g} s (log: {child.log})") from None
        if status:
            raise child.fault()

    async def dismiss(self, child: Child) -> None:
        """Stop a child that is not needed any more; its end is then no early one."""
        self._forget(child)
        await child.stop()

    def _forget(self, child: Child) -> None:
        """Take a child's end as no early one."""
        self._watches = {watch: other for watch, other in self._watches.items() if other is not child}

    async def guard(self, story: Awaitable[Told]) -> Told:
        """Let a story run while every child lives. Raises ChildError for the first that ends before it."""
        telling = asyncio.ensure_future(story)
        try:
            while not telling.done():
                await asyncio.wait({telling, *self._watches}, return_when=asyncio.FIRST_COMPLETED, timeout=1.0)
                dead = next((child for watch, child in self._watches.items() if watch.done()), None)
                if dead is not None and not telling.done():
                    raise dead.fault()
            return await telling
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def stop(self) -> None:
        """Stop every child, the last started first."""
        for child in reversed(self.children):
            await child.stop()
        await asyncio.gather(*self._watches, return_exceptions=True)

    def kill(self) -> None:
        """End every child at once."""
        for child in self.children:
            child.send(signal.SIGKILL)
