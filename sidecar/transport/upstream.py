"""Connections to the one server behind the proxy: where it is, one connection, and the pool of idle ones.

A connection serves one exchange at a time and tells it what happens; between exchanges it rests in the pool. An idle
connection that the server has closed is never handed out: its end is looked for right before use, and it rests for
less time than servers keep theirs open. Some servers hang up after a stream although they said that they would not
(llama.cpp), a moment later, when the next request may be under way and must not be sent twice. So after an answer in
chunks a connection rests a little before it is used again, until the server has shown that it keeps such ones; and once
it has closed one at once, none is kept for a while. What can still race is the caller's to judge (see `proxy`).
"""

import asyncio
import contextlib
import os
import re
import select
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import urlsplit

from sidecar import limits
from sidecar.address import UNIX, UnixPath, unix_path
from sidecar.said.record import CONNECT_TIMEOUT
from sidecar.transport.certificates import ServerTls
from sidecar.transport.tls_transport import is_tls, pause_at_once

if TYPE_CHECKING:
    from sidecar.http.http_read import ResponseReader


class Exchanging(Protocol):
    """What a connection tells the exchange that uses it."""

    def upstream_data(self, data: bytes, at_ns: int) -> None: ...
    def upstream_lost(self, error: Exception | None) -> None: ...
    def upstream_full(self) -> None: ...
    def upstream_drained(self) -> None: ...


class Taking(Protocol):
    """Who may take a read before the exchange is told of it, which then never is: a token is a call less."""

    def take(self, data: bytes, at_ns: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class Target:
    """The server of `--upstream`. On a unix socket it is called `localhost`."""

    scheme: str
    host: str
    port: int
    prefix: str = ""
    unix: UnixPath | None = None

    @property
    def authority(self) -> str:
        """Host and port as a Host field and a URL show them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.scheme == "https" else 80
        return host if self.port == default else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        if self.unix is not None:
            return f"{self.unix}:{self.prefix}" if self.prefix else str(self.unix)
        return f"{self.scheme}://{self.authority}{self.prefix}"


def parse_target(url: str) -> Target:
    """The server that `url` names; raises ValueError saying what would be right."""
    if url.startswith(UNIX):
        return _unix_target(url)
    right = "write http://HOST:PORT, https://HOST or unix:/PATH"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{url} is no URL ({error}): {right}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url} is no URL of a server: {right}")
    if parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError(f"a server's URL has no query, fragment or user: {right}")
    if not _is_host(parts.hostname) or not _VISIBLE.fullmatch(parts.path):
        raise ValueError(f"{url!r} is no URL of a server: {right}, with what is special escaped as %20")
    return Target(
        parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), parts.path.rstrip("/")
    )


def split_unix(url: str) -> tuple[UnixPath, str]:
    """The socket of `unix:/PATH` or `unix:/PATH:/HTTP/PATH`, and the rest, as nginx writes them."""
    file, colon, rest = url.removeprefix(UNIX).partition(":/")
    return unix_path(file), f"/{rest}" if colon else ""


def _unix_target(url: str) -> Target:
    socket_path, prefix = split_unix(url)
    if not _VISIBLE.fullmatch(prefix) or "?" in prefix or "#" in prefix:
        raise ValueError(f"{url!r} is no server: write unix:/PATH, or unix:/PATH:/PREFIX without a query")
    return Target("http", "localhost", 80, prefix.rstrip("/"), socket_path)


_VISIBLE = re.compile(r"[!-~]*")


def _is_host(name: str) -> bool:
    """Whether a name can be looked up: neither a space in it nor an empty or endless part."""
    try:
        return _VISIBLE.fullmatch(name.encode("idna").decode("ascii")) is not None
    except UnicodeError:
        return False


def why_unreachable(error: Exception) -> str:
    """Why no connection could be made, in one word, for the client and for `error.type`."""
    if isinstance(error, TimeoutError):
        return CONNECT_TIMEOUT
    if isinstance(error, ssl.SSLError):
        return "connect_tls"
    return "connect_refused" if isinstance(error, ConnectionRefusedError) else "connect_failed"


class Connection(asyncio.Protocol):
    """One connection to the server.

    A server that refuses a long request answers and closes while the rest is still on its way. The event loop meets
    that as a failed write and forgets the socket, with the answer unread in it; a second hold on the socket, taken
    once a request needs a second write, keeps it readable.
    """

    __slots__ = (
        "_paused",
        "_poll",
        "_spare",
        "_transport",
        "_user",
        "_writes",
        "given_up",
        "habit",
        "idle_since_s",
        "on_lost",
        "reader",
        "reused",
        "taker",
    )

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._user: Exchanging | None = None
        self.taker: Taking | None = None
        self._writes = 0
        self._spare: socket.socket | None = None
        self._poll: select.poll | None = None
        self._paused = False
        self.reader: ResponseReader | None = None  # kept for whoever reads the answers on it
        self.idle_since_s = 0.0
        self.on_lost: Callable[[Connection, Exception | None], None] | None = None
        self.reused = False
        self.given_up = False
        self.habit: Habit | None = None

    @property
    def alive(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def use(self, user: Exchanging) -> None:
        """Hand the connection to an exchange."""
        self._user, self._writes, self.taker = user, 0, None

    def write(self, data: bytes) -> None:
        if self._transport is None:
            return
        if self._writes == 1:
            self._hold_socket(self._transport)
        self._writes += 1
        self._transport.write(data)

    def _hold_socket(self, transport: asyncio.Transport) -> None:
        if self._spare is None and not is_tls(transport):
            with contextlib.suppress(OSError):  # no file left: then without
                self._spare = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))

    def _last_words(self) -> bytes:
        """What the server had said before the connection broke; lets go of the socket."""
        spare, self._spare = self._spare, None
        if spare is None:
            return b""
        with spare, contextlib.suppress(OSError):
            return spare.recv(limits.LAST_WORDS_BYTES, socket.MSG_DONTWAIT)
        return b""

    def rest(self) -> bool:
        """Be used by nobody until `use`; whether it may be used again. One that still owes the server bytes of a
        request that was answered early would hold up the next."""
        self._user = self.taker = None
        transport = self._transport
        if transport is None or transport.is_closing() or transport.get_write_buffer_size():
            return False
        self.resume_reading()
        return True

    def pause_reading(self) -> None:
        if self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and self._paused:
            self._paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close at once: what was not sent is dropped, and the server sees that nobody listens any more."""
        self._user = self.taker = None
        self.given_up = True
        if self._transport is not None:
            self._transport.abort()

    def closed_by_server(self) -> bool:
        """Whether anything waits to be read on an idle connection: it can only be its end, or nonsense."""
        if self._transport is None or self._transport.is_closing():
            return True
        if self._poll is None:
            ends = select.POLLRDHUP if is_tls(self._transport) else select.POLLRDHUP | select.POLLIN  # a session ticket
            self._poll = select.poll()
            self._poll.register(self._transport.get_extra_info("socket").fileno(), ends)
        return bool(self._poll.poll(0))

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's in all but their bases.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=64 << 10)
        if is_tls(transport):
            pause_at_once(transport)

    def data_received(self, data: bytes) -> None:
        at_ns = monotonic_ns()
        if self.taker is not None and self.taker.take(data, at_ns):
            return
        if self._user is None:
            self.abort()  # nobody asked: a later request must not take this for its answer
        else:
            self._user.upstream_data(data, at_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self.on_lost is not None:
            self.on_lost(self, exc)
        words = self._last_words()
        if self._user is not None and exc is not None and words:
            self.data_received(words)
        if self._user is not None:
            user, self._user = self._user, None
            user.upstream_lost(exc)
        if self.reader is not None:
            self.reader.close()

    def pause_writing(self) -> None:
        if self._user is not None:
            self._user.upstream_full()

    def resume_writing(self) -> None:
        if self._user is not None:
            self._user.upstream_drained()


@dataclass(slots=True)
class Habit:
    """What the server does with its connections after answers in chunks. `keeps`: one has been used again."""

    keeps: bool = False
    wary_until_s: float = 0.0

    def hung_up(self, now_s: float) -> None:
        self.keeps, self.wary_until_s = False, now_s + limits.POOL_WARY_S


class Pool:
    """The idle connections to one server, and the maker of new ones."""

    def __init__(
        self,
        target: Target,
        *,
        connect_s: float = limits.CONNECT_S,
        idle_s: float = limits.POOL_IDLE_S,
        tls: ServerTls | None = None,
    ) -> None:
        self.target, self.prefix = target, target.prefix.encode()
        self.reached = False
        self._connect_s, self._idle_s = connect_s, idle_s
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._after_chunks = Habit()
        self._tls = tls or ServerTls()

    @property
    def open_count(self) -> int:
        return len(self._open)

    def take(self) -> Connection | None:
        """An idle connection that is still good, the latest used first."""
        now_s = time.monotonic()
        for place in range(len(self._idle) - 1, -1, -1):
            connection = self._idle[place]
            rested_s, habit = now_s - connection.idle_since_s, connection.habit
            if habit is not None and not habit.keeps and rested_s < limits.POOL_PROBATION_S:
                continue
            del self._idle[place]
            if rested_s < self._idle_s and not connection.closed_by_server():
                if habit is not None:
                    habit.keeps = True
                connection.reused = True
                return connection
            self._note_hang_up(connection, now_s)
            connection.abort()
        return None

    def _note_hang_up(self, connection: Connection, now_s: float) -> None:
        if connection.habit is not None and now_s - connection.idle_since_s < limits.POOL_HANG_UP_S:
            connection.habit.hung_up(now_s)

    async def connect(self) -> Connection:
        """A new connection; raises OSError (TimeoutError after `connect_s`)."""
        making = self._make_tcp() if self.target.unix is None else self._make_unix(self.target.unix)
        connection = await asyncio.wait_for(making, self._connect_s)
        self._open.add(connection)
        connection.on_lost = self._forget
        if not connection.alive:
            self._open.discard(connection)
            raise ConnectionResetError("closed as soon as it was made")
        self.reached = True
        return connection

    async def _make_tcp(self) -> Connection:
        loop, host, port = asyncio.get_running_loop(), self.target.host, self.target.port
        if self.target.scheme != "https":
            return (await loop.create_connection(Connection, host, port))[1]
        tls = self._tls
        try:
            made = await loop.create_connection(
                Connection, host, port, ssl=tls.context, server_hostname=tls.name_of(host)
            )
        except ssl.SSLError as error:
            tls.failed(error)
            raise
        return made[1]

    async def _make_unix(self, path: UnixPath) -> Connection:
        while True:
            try:
                return (await asyncio.get_running_loop().create_unix_connection(Connection, path.path))[1]
            except BlockingIOError:  # the server's queue is full: TCP would wait by itself
                await asyncio.sleep(limits.UNIX_RETRY_S)

    def give(self, connection: Connection, *, after_chunks: bool = False) -> None:
        """Take back a connection whose exchange ended cleanly."""
        now_s = time.monotonic()
        habit = connection.habit = self._after_chunks if after_chunks else None
        is_wary = habit is not None and now_s < habit.wary_until_s
        if is_wary or len(self._idle) >= limits.POOL_CONNECTIONS or not connection.rest():
            connection.abort()
            return
        connection.idle_since_s = now_s
        self._idle.append(connection)

    def sweep(self) -> None:
        """Close what has rested too long; the oldest stand first."""
        limit_s = time.monotonic() - self._idle_s
        while self._idle and (self._idle[0].idle_since_s < limit_s or not self._idle[0].alive):
            self._idle.pop(0).abort()

    def close(self) -> None:
        for connection in list(self._open):
            connection.abort()
        self._idle.clear()

    def _forget(self, connection: Connection, error: Exception | None) -> None:
        self._open.discard(connection)
        if isinstance(error, ssl.SSLError):  # under TLS 1.3 a server that wants our certificate says so only now
            self._tls.failed(error)
        if connection in self._idle:
            self._idle.remove(connection)
            if not connection.given_up:
                self._note_hang_up(connection, time.monotonic())
