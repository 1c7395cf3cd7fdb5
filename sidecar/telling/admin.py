"""The admin address: `/metrics`, `/healthz`, `/readyz`, over as little HTTP as that needs.

GET and HEAD only; one answer after another on a kept connection, which ends with the first request that has a body or
is not plain HTTP/1.x. The reader is our own few lines: these pages also live inside other people's servers (see
`middleware`), where the proxy's parser need not be installed. With a token every page but the two probes asks for
it (`Authorization: Bearer ...`): the probes say no more than yes or no.
"""

import asyncio
import hmac
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from sidecar import limits
from sidecar.http.http_head import RequestHead, find, find_all, tokens
from sidecar.judging.faults import told
from sidecar.telling.accept import wants_openmetrics

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """One page."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Later:
    """A page whose text takes long: `make` is called on another thread, and knows by then all that it shows. One that
    can be had in OpenMetrics too has another way to be made."""

    make: Callable[[], Answer]
    openmetrics: Callable[[], Answer] | None = None


Pages = Mapping[bytes, Callable[[], Answer | Later]]
PROBES = (b"/healthz", b"/readyz")
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed"}


class AdminDoor:
    """Makes a connection of each accepted socket, up to a number."""

    def __init__(self, pages: Pages, *, token: str | None = None) -> None:
        self.pages, self.token = pages, token
        self.open: set[AdminConnection] = set()

    def __call__(self) -> "AdminConnection":
        return AdminConnection(self)

    def answer(self, head: RequestHead) -> Answer | Later:
        """The page that a request asks for."""
        page = self.pages.get(head.path)
        if page is None:
            return Answer(404, b"not found: there is /metrics, /healthz and /readyz\n")
        if head.method not in (b"GET", b"HEAD"):
            return Answer(405, b"only GET and HEAD\n")
        if self.token is not None and head.path not in PROBES and not self._authorized(head, self.token):
            return Answer(401, b"the admin token is needed: Authorization: Bearer ...\n")
        answer = page()
        if isinstance(answer, Later) and answer.openmetrics is not None and wants_openmetrics(head.headers):
            return Later(answer.openmetrics)
        return answer

    def _authorized(self, head: RequestHead, token: str) -> bool:
        given = find(head.headers, b"authorization") or b""
        return hmac.compare_digest(given, b"Bearer " + token.encode())

    def close(self) -> None:
        """Close every connection; what was written of its answer still leaves."""
        for connection in list(self.open):
            connection.close()


class AdminConnection(asyncio.Protocol):
    """One client of the admin address: a request is answered once its client has taken the answer before."""

    def __init__(self, door: AdminDoor) -> None:
        self._door = door
        self._transport: asyncio.Transport | None = None
        self._unread = b""
        self._idle: asyncio.TimerHandle | None = None
        self._making: asyncio.Task[None] | None = None
        self._full = self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's in all but their bases.
        self._transport = cast("asyncio.Transport", transport)
        if len(self._door.open) >= limits.ADMIN_CONNECTIONS:
            self._transport.abort()
            return
        self._door.open.add(self)
        self._rest()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the loop's own signature
        self._door.open.discard(self)
        self._transport = None
        if self._idle is not None:
            self._idle.cancel()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._next()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _rest(self) -> None:
        """End the connection if no whole request comes for a while; a client that takes nothing either gets no more."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(limits.ADMIN_IDLE_S, self._expire)

    def _expire(self) -> None:
        if self._transport is not None and self._making is None:
            self._transport.abort()

    @property
    def _is_free(self) -> bool:
        """Whether the next request may be answered."""
        busy = self._making is not None or self._full
        return not busy and self._transport is not None and not self._transport.is_closing()

    def _next(self) -> None:
        start, unread = 0, self._unread
        while self._is_free:
            end = unread.find(b"\r\n\r\n", start)
            if max(end, len(unread) if end < 0 else 0) - start > limits.MAX_HEAD_BYTES:
                self._send(Answer(431, b"the request head is too long\n"), body=True, keep=False)
            elif end < 0:
                break
            else:
                raw, start = unread[start:end], end + 4
                self._take(_head(raw))
        self._unread = unread[start:]
        self._hold()

    def _hold(self) -> None:
        """Read no more than is answered."""
        paused = self._making is not None or self._full
        if self._transport is None or paused == self._paused:
            return
        self._paused = paused
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _take(self, head: RequestHead | None) -> None:
        self._rest()
        if head is None:
            self._send(Answer(400, b"not a valid HTTP/1.1 request\n"), body=True, keep=False)
            return
        keep, body = head.keep_alive and not head.has_body, head.method != b"HEAD"
        try:
            answer = self._door.answer(head)
        except Exception as error:  # noqa: BLE001  as in `_made`
            answer = _unmade(error)
        if isinstance(answer, Later):
            self._making = asyncio.get_running_loop().create_task(self._made(answer, body=body, keep=keep))
        else:
            self._send(answer, body=body, keep=keep)

    async def _made(self, later: Later, *, body: bool, keep: bool) -> None:
        try:
            answer = await asyncio.get_running_loop().run_in_executor(None, later.make)
        except Exception as error:  # noqa: BLE001  the client must hear of it, and so must the log
            answer = _unmade(error)
        self._making = None
        if self._transport is not None and not self._transport.is_closing():
            self._send(answer, body=body, keep=keep)
            self._rest()
            self._next()

    def _send(self, answer: Answer, *, body: bool, keep: bool) -> None:
        assert self._transport is not None
        closing = "" if keep else "Connection: close\r\n"
        head = (
            f"HTTP/1.1 {answer.status} {_REASONS.get(answer.status, 'Error')}\r\n"
            f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n{closing}\r\n"
        )
        self._transport.write(head.encode() + (answer.body if body else b""))
        if not keep:
            self._transport.close()


def _unmade(error: Exception) -> Answer:
    log.error("a page of the admin address cannot be made: %s", told(error))
    return Answer(500, b"this page cannot be made\n")


_REQUEST_LINE = re.compile(rb"([A-Z]+) (/[!-~]*) HTTP/1\.([01])")


def _head(raw: bytes) -> RequestHead | None:
    """The head of a request, without its empty line; None for what is none."""
    line, *fields = raw.split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    pairs = [(name, value.strip()) for name, colon, value in (field.partition(b":") for field in fields) if colon]
    if match is None or len(pairs) != len(fields):
        return None
    headers = tuple(pairs)
    return RequestHead(
        method=match[1],
        target=match[2],
        minor=int(match[3]),
        headers=headers,
        keep_alive=match[3] == b"1" and b"close" not in tokens(b",".join(find_all(headers, b"connection"))),
        chunked=find(headers, b"transfer-encoding") is not None,
        length=0 if find(headers, b"content-length") in (None, b"0") else 1,
    )
