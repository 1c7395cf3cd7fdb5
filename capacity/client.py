"""An HTTP/1.1 client that does one thing: send a request, and stamp every read of the answer as it happens.

Times are taken in the protocol's own callback, so nothing queues between the socket and the stamp. Connections are kept
and used again, the most recent first; one that is not fit for another request is closed.
"""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from capacity.errors import TargetError
from capacity.reply import Reply
from slo.signals import CLASS_HEADER

Clock = Callable[[], float]
CONNECT_TIMEOUT_S = 10.0
MAX_IDLE = 1024
CHAT_PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Target:
    """A server to be asked: where it listens, and what stands before its `/v1` paths."""

    host: str
    port: int
    prefix: str = ""
    is_tls: bool = False

    @property
    def url(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://{self.authority}{self.prefix}"

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def target(url: str) -> Target:
    """The target that a URL names; a trailing `/v1` may stand or not. Raises TargetError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise TargetError(f"--target {_without_secret(url)} is no URL: write http://HOST:PORT") from None
    is_plain = not (parts.query or parts.fragment or parts.username) and parts.path.isascii() and " " not in parts.path
    if parts.scheme not in ("http", "https") or not host or port == 0 or not is_plain:
        raise TargetError(f"--target {_without_secret(url)} is no server's address: write http://HOST:PORT")
    try:
        host.encode("idna")
    except UnicodeError:
        raise TargetError(f"--target {url}: {host[:80]} cannot be a host: write http://HOST:PORT") from None
    is_tls = parts.scheme == "https"
    return Target(host, port or (443 if is_tls else 80), parts.path.rstrip("/").removesuffix("/v1"), is_tls)


def _without_secret(url: str) -> str:
    """What stands behind the last @: where a URL is none, nobody can tell where in it a password ends."""
    _, at, tail = url.rpartition("@")
    return f"...@{tail}" if at else url


def request_bytes(to: Target, path: str, *, body: bytes | None = None, request_class: str | None = None) -> bytes:
    """A whole request: POST with a JSON body, or GET without one."""
    lines = [f"{'GET' if body is None else 'POST'} {to.prefix}{path} HTTP/1.1", f"Host: {to.authority}"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if request_class is not None:
        lines.append(f"{CLASS_HEADER}: {request_class}")
    return "\r\n".join([*lines, "Accept: text/event-stream, application/json", "", ""]).encode() + (body or b"")


@dataclass(slots=True)
class Exchange:
    """One request under way: its reply, when sending began, and when the last byte was written out."""

    reply: Reply = field(default_factory=Reply)
    sent_s: float | None = None
    written_s: float | None = None


class _Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def __init__(self, clock: Clock) -> None:
        self.is_usable = True
        self._clock = clock
        self._exchange: Exchange | None = None
        self._over: asyncio.Event = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        at_s = self._clock()
        if self._exchange is None:
            self.close()  # nobody asked: this connection can't be trusted with a reply
            return
        reply = self._exchange.reply
        reply.feed(data, at_s)
        if reply.is_complete or reply.has_failed:
            self._over.set()

    def resume_writing(self) -> None:
        if self._exchange is not None:
            self._exchange.written_s = self._clock()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio names it
        self.is_usable = False
        if self._exchange is not None:
            self._exchange.reply.end()
        self._over.set()

    async def run(self, exchange: Exchange, request: bytes) -> None:
        """Send a request and read its reply to the end. A connection that is cancelled is closed."""
        self._exchange = exchange
        self._over.clear()
        try:
            self._transport.write(request)
            if not self._transport.get_write_buffer_size():
                exchange.written_s = self._clock()
            if self.is_usable:
                await self._over.wait()
        finally:
            self._exchange = None
            if not (exchange.reply.is_complete and exchange.reply.can_keep_alive):
                self.close()

    def close(self) -> None:
        self.is_usable = False
        self._transport.abort()


class Client:
    """Exchanges with one target over connections that are kept."""

    def __init__(self, to: Target, clock: Clock) -> None:
        self._to = to
        self._clock = clock
        self._idle: list[_Connection] = []
        self._tls = ssl.create_default_context() if to.is_tls else None

    async def run(self, exchange: Exchange, request: bytes) -> None:
        """Run one exchange to its end; raises OSError when no connection can be made.

        A kept connection that the server closed at the very moment of sending is no answer: it is tried once more.
        """
        connection = self._kept()
        if connection is not None:
            await self._run_on(connection, exchange, request)
            if exchange.reply.has_begun:
                return
            exchange.reply = Reply()
        await self._run_on(await self._connect(), exchange, request)

    async def _run_on(self, connection: _Connection, exchange: Exchange, request: bytes) -> None:
        await connection.run(exchange, request)
        if connection.is_usable and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _kept(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable:
                return connection
        return None

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self._clock), self._to.host, self._to.port, ssl=self._tls
                )
        except TimeoutError:
            raise ConnectionError(f"none was made within {CONNECT_TIMEOUT_S:g} s") from None
        return connection

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
