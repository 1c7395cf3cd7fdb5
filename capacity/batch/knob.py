"""How a server is told how many sequences it may run at once: by its own route, or by being started anew.

A route gets POST {"max_batch": N} and may say on GET what it is set to. A command has {batch} in it; it either ends
once the server before is gone and a new one started, or is the server itself and goes on: then it is ended before the
next is started. The last one is left running, in a session of its own. A turn that is cancelled is over once what it
sent has come to its end, so that nothing of it comes late.
"""

import asyncio
import json
import math
import os
import shlex
import signal
import subprocess
from collections.abc import Awaitable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from capacity.client import Target
from capacity.discovery import MODELS_PATH
from capacity.errors import TargetError, UnreachableError
from capacity.exchange import UNANSWERED, exchange
from slo.words import reason

T = TypeVar("T")
PLACEHOLDER = "{batch}"
SHOWN_CHARS = 200
READY_WITHIN_S = 900.0
GONE_WITHIN_S = 180.0
STEADY_S = 2.0
END_WITHIN_S = 30.0
GLANCE_S = 0.25
SHORT_GLANCE_S = 0.05
"""Between looks for the moment in which nobody answers, which may be short."""


class Knob(Protocol):
    """What turns the batch size."""

    async def now(self) -> int | None:
        """The batch size the server is set to; None where it does not say."""
        ...

    async def turn(self, batch: int) -> None:
        """Set the batch size and wait until it holds. Raises TargetError or UnreachableError."""
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the server, as the demo server's /admin/batch."""

    url: str

    async def now(self) -> int | None:
        try:
            status, body = await self._ask("GET", None)
            found = json.loads(body)["max_batch"] if status == HTTPStatus.OK else None
        except (UnreachableError, ValueError, LookupError, TypeError):
            return None
        return found if type(found) is int and found >= 1 else None

    async def turn(self, batch: int) -> None:
        status, body = await self._ask("POST", json.dumps({"max_batch": batch}).encode())
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            said = body[:SHOWN_CHARS].decode(errors="replace")
            raise TargetError(f"--batch-url {self.url} answers {status} to a batch of {batch}: {said}")

    async def _ask(self, method: str, body: bytes | None) -> tuple[int, bytes]:
        try:
            return await _whole(asyncio.to_thread(exchange, self.url, method, body))
        except UNANSWERED as error:
            raise UnreachableError(f"--batch-url {self.url} does not answer ({reason(error)})") from None


@dataclass(slots=True)
class Restart:
    """A command that starts the server with a batch size."""

    command: str
    to: Target
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    async def now(self) -> int | None:
        return None

    async def turn(self, batch: int) -> None:
        await _whole(asyncio.to_thread(self._end))
        is_one_before = await asyncio.to_thread(_answers, self.to)
        words = [word.replace(PLACEHOLDER, str(batch)) for word in shlex.split(self.command)]
        try:
            # Signals of the terminal are for this search, not for the server it has started; and what it prints is
            # nobody's, so that it may outlive this process.
            process = self._process = subprocess.Popen(  # noqa: S603, ASYNC220  the user's own command
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise TargetError(f"--restart {words[0]} cannot be run: {error.strerror}") from None
        if is_one_before:
            await self._until_gone(process, batch)
        await self._until_ready(process, batch)

    async def _until_gone(self, process: "subprocess.Popen[bytes]", batch: int) -> None:
        """Wait until nobody answers, or the command has ended: what answers till then may be the server before."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + GONE_WITHIN_S
        while not _has_ended(process, batch) and await asyncio.to_thread(_answers, self.to):
            if loop.time() >= until_s:
                raise UnreachableError(
                    f"--restart goes on, and {self.to.url} did not stop answering within {GONE_WITHIN_S:g} s: the "
                    "server before must be stopped, or the command must end once a new one is started"
                )
            await asyncio.sleep(SHORT_GLANCE_S)

    async def _until_ready(self, process: "subprocess.Popen[bytes]", batch: int) -> None:
        """Wait for a server that answers; for some time on end where the command has not ended."""
        loop = asyncio.get_running_loop()
        until_s, since_s = loop.time() + READY_WITHIN_S, math.inf
        while loop.time() < until_s:
            has_ended = _has_ended(process, batch)
            if await asyncio.to_thread(_answers, self.to):
                since_s = min(since_s, loop.time())
                if has_ended or loop.time() - since_s >= STEADY_S:
                    return
            else:
                since_s = math.inf
            await asyncio.sleep(GLANCE_S)
        raise UnreachableError(f"{self.to.url} did not answer within {READY_WITHIN_S:g} s of a restart")

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def knob(batch_url: str | None, restart: str | None, to: Target) -> Knob:
    """The knob that the flags name. Raises TargetError."""
    if (batch_url is None) == (restart is None):
        which = "is missing" if batch_url is None else "and --restart are both given: use one"
        raise TargetError(
            f"--batch-url {which}; write --batch-url http://HOST:PORT/admin/batch or --restart 'CMD {{batch}}'"
        )
    if batch_url is not None:
        return _route(batch_url)
    assert restart is not None
    if PLACEHOLDER not in restart:
        raise TargetError(f"--restart {restart}: write {PLACEHOLDER} where the batch size belongs")
    try:
        shlex.split(restart)
    except ValueError as error:
        raise TargetError(f"--restart {restart} cannot be read ({error})") from None
    return Restart(restart, to)


def _route(url: str) -> Route:
    should_be = "write http://HOST:PORT/admin/batch"
    if "@" in url.partition("://")[2].partition("/")[0]:  # said without the URL, which holds a password
        raise TargetError(f"--batch-url holds a user or password, and none is sent: {should_be}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise TargetError(f"--batch-url {url}: {error}; {should_be}") from None
    rest = parts.path + parts.query
    is_plain = rest.isascii() and rest.isprintable() and " " not in rest
    if parts.scheme not in ("http", "https") or not host or port == 0 or not is_plain:
        raise TargetError(f"--batch-url {url} is no address: {should_be}")
    try:
        host.encode("idna")
    except UnicodeError:
        raise TargetError(f"--batch-url {url}: {host[:80]} cannot be a host: {should_be}") from None
    return Route(url)


async def _whole(act: Awaitable[T]) -> T:
    """What a thread does, waited for to its end even where the wait is cancelled: a thread cannot be called back, and
    what it did late would come after the next turn. Its own timeouts bound it."""
    going = asyncio.ensure_future(act)
    cancelled: asyncio.CancelledError | None = None
    while not going.done():
        try:
            await asyncio.wait({going})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        going.exception()  # heard, for nobody else will
        raise cancelled
    return going.result()


def _has_ended(process: "subprocess.Popen[bytes]", batch: int) -> bool:
    """Whether the command is over. Raises TargetError where it failed."""
    if process.poll():
        raise TargetError(
            f"--restart with a batch of {batch} failed with exit code {process.returncode}: run it by hand"
        )
    return process.returncode == 0


def _answers(to: Target) -> bool:
    try:
        status, _ = exchange(to.url + MODELS_PATH)
    except UNANSWERED:
        return False
    return status == HTTPStatus.OK
