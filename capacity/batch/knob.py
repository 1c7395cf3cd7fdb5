"""How a server is told how many sequences it may run at once: by its own route, or by being started anew.

A route gets POST {"max_batch": N} and may say on GET what it is set to. A command has {batch} in it; it either ends
once a new server is started, or is the server itself and goes on: then it is ended before the next is started. The
last one is left running, in a session of its own.
"""

import asyncio
import http.client
import json
import math
import os
import shlex
import signal
import ssl
import subprocess
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from capacity.client import Target
from capacity.discovery import MODELS_PATH
from capacity.errors import TargetError, UnreachableError

PLACEHOLDER = "{batch}"
ASK_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 64 * 1024
SHOWN_CHARS = 200
READY_WITHIN_S = 900.0
STEADY_S = 2.0
END_WITHIN_S = 30.0
GLANCE_S = 0.25


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
            found = json.loads(body)["max_batch"] if status == http.HTTPStatus.OK else None
        except (UnreachableError, ValueError, LookupError, TypeError):
            return None
        return found if type(found) is int and found >= 1 else None

    async def turn(self, batch: int) -> None:
        status, body = await self._ask("POST", json.dumps({"max_batch": batch}).encode())
        if not http.HTTPStatus.OK <= status < http.HTTPStatus.MULTIPLE_CHOICES:
            said = body[:SHOWN_CHARS].decode(errors="replace")
            raise TargetError(f"--batch-url {self.url} answers {status} to a batch of {batch}: {said}")

    async def _ask(self, method: str, body: bytes | None) -> tuple[int, bytes]:
        try:
            return await asyncio.to_thread(_exchange, urlsplit(self.url), method, body)
        except (OSError, http.client.HTTPException) as error:
            raise UnreachableError(f"--batch-url {self.url} does not answer ({error})") from None


@dataclass(slots=True)
class Restart:
    """A command that starts the server with a batch size."""

    command: str
    to: Target
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    async def now(self) -> int | None:
        return None

    async def turn(self, batch: int) -> None:
        await asyncio.to_thread(self._end)
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
        await self._until_ready(process, batch)

    async def _until_ready(self, process: "subprocess.Popen[bytes]", batch: int) -> None:
        """Wait for a server that answers; for some time on end where the command has not ended, for what answers may
        still be the one before."""
        loop = asyncio.get_running_loop()
        until_s, since_s = loop.time() + READY_WITHIN_S, math.inf
        while loop.time() < until_s:
            if process.poll():
                raise TargetError(
                    f"--restart with a batch of {batch} failed with exit code {process.returncode}: run it by hand"
                )
            if await asyncio.to_thread(_answers, self.to):
                since_s = min(since_s, loop.time())
                if process.poll() == 0 or loop.time() - since_s >= STEADY_S:
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
        parts = urlsplit(batch_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise TargetError(f"--batch-url {batch_url} is no address: write http://HOST:PORT/admin/batch")
        return Route(batch_url)
    assert restart is not None
    if PLACEHOLDER not in restart:
        raise TargetError(f"--restart {restart}: write {PLACEHOLDER} where the batch size belongs")
    try:
        shlex.split(restart)
    except ValueError as error:
        raise TargetError(f"--restart {restart} cannot be read ({error})") from None
    return Restart(restart, to)


def _exchange(url: SplitResult, method: str, body: bytes | None) -> tuple[int, bytes]:
    assert url.hostname is not None
    connection = (
        http.client.HTTPSConnection(url.hostname, url.port, timeout=ASK_TIMEOUT_S, context=ssl.create_default_context())
        if url.scheme == "https"
        else http.client.HTTPConnection(url.hostname, url.port, timeout=ASK_TIMEOUT_S)
    )
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request(method, path, body, {"content-type": "application/json"} if body else {})
        response = connection.getresponse()
        return response.status, response.read(MAX_ANSWER_BYTES)
    finally:
        connection.close()


def _answers(to: Target) -> bool:
    try:
        status, _ = _exchange(urlsplit(to.url + MODELS_PATH), "GET", None)
    except (OSError, http.client.HTTPException):
        return False
    return status == http.HTTPStatus.OK
