"""One connection of a client: bytes out, heads and bodies in, and the bytes that must come."""

import asyncio
import contextlib
import re
import socket
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from storm.kinds import Request

SMALL_BUFFER = 4096
STATUS = re.compile(rb"HTTP/1\.([01]) (\d+)")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
NO_LINGERING = struct.pack("ii", 1, 0)


class BrokenError(Exception):
    """The answer ended before its end."""


@dataclass(frozen=True, slots=True)
class Head:
    """What an answer's head says. `keeps`: another request may follow."""

    status: int
    keeps: bool


class Wire:
    """One connection to the sidecar."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._chunked = False
        self._left: int | None = 0
        writer.transport.set_write_buffer_limits(high=0)  # what was sent has left this process

    @classmethod
    async def to(cls, port: int, *, small: bool = False) -> "Wire":
        """A new connection; `small`: with little room for what is not read."""
        sock = socket.socket()
        sock.setblocking(False)
        if small:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        try:
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        except BaseException:
            sock.close()
            raise
        return cls(*await asyncio.open_connection(sock=sock, limit=SMALL_BUFFER if small else 1 << 16))

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self, *, reset: bool = False) -> None:
        if reset:
            with contextlib.suppress(OSError):
                self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
        self._writer.transport.abort()

    async def head(self) -> Head:
        """The final head; BrokenError when there comes none."""
        while True:
            with _breaking():
                raw = await self._reader.readuntil(b"\r\n\r\n")
            if (found := STATUS.match(raw)) is None:
                raise BrokenError(f"no head: {raw[:60]!r}")
            if (status := int(found[2])) >= 200:
                break
        lower, length = raw.lower(), LENGTH.search(raw)
        chunked = b"\r\ntransfer-encoding: chunked" in lower
        keeps = b"\r\nconnection: close" not in lower
        if found[1] == b"0":
            keeps = keeps and b"\r\nconnection: keep-alive" in lower
        self._chunked, self._left = chunked, int(length[1]) if length is not None else None
        return Head(status, keeps and (chunked or length is not None))

    async def more(self) -> bytes:
        """The next bytes of the body, none once it is whole; BrokenError when they stop before."""
        with _breaking():
            if self._chunked:
                return await self._chunk()
            data = await self._reader.read(1 << 16 if self._left is None else min(self._left, 1 << 16))
        if self._left is not None:
            if self._left and not data:
                raise BrokenError("cut")
            self._left -= len(data)
        return data

    async def _chunk(self) -> bytes:
        if size := int(await self._line(), 16):
            data = await self._reader.readexactly(size)
            await self._line()
            return data
        while await self._line():
            pass
        return b""

    async def _line(self) -> bytes:
        return (await self._reader.readuntil(b"\r\n"))[:-2]


@contextlib.contextmanager
def _breaking() -> Iterator[None]:
    try:
        yield
    except (ConnectionError, asyncio.IncompleteReadError, ValueError) as error:
        raise BrokenError(type(error).__name__) from None


class Expected:
    """The bytes that must come, compared as they come. `tokens`: how many have begun; `same`: all was as it must be."""

    def __init__(self, asked: Request) -> None:
        self._pieces = _pieces(asked)
        self._unpack = zlib.decompressobj(wbits=31) if asked.takes_gzip else None
        self._rest = b""
        self.tokens = 0
        self.same = True

    def take(self, data: bytes) -> None:
        """Bytes of the body."""
        data = self._unpack.decompress(data) if self._unpack is not None else data
        while data and self.same:
            if not self._rest:
                is_token, self._rest = next(self._pieces, (False, b""))
                self.tokens += is_token
            size = min(len(data), len(self._rest))
            self.same = size > 0 and data[:size] == self._rest[:size]
            data, self._rest = data[size:], self._rest[size:]

    @property
    def is_complete(self) -> bool:
        return self.same and not self._rest and next(self._pieces, None) is None


def _pieces(asked: Request) -> Iterator[tuple[bool, bytes]]:
    """Each piece of the body, and whether it is a token."""
    before = 0
    for step in asked.script.steps:
        if step.word != "usage" or asked.kind.asks_usage:
            for piece in asked.script.payload(step, before):
                yield step.word in ("token", "endless"), piece
        before += step.tokens
