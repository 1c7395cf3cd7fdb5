"""The server behind the sidecar: plays the script that each request brings, and remembers which it saw.

Run as a process it prints its port. Beside completions it shows the pages that an onlooker of vLLM reads, and
`/storm/report`: the requests that came whole, those that came twice, whose asker left and when (monotonic seconds), and
how many connections and scripts are open now.
"""

import asyncio
import contextlib
import re
import socket
import struct
import sys
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

import orjson
import uvloop

from storm.script import MODEL, Script, Step, read

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
REFUSED = b"\r\nx-storm: refuse"
EARLY_BYTES = 100_000  # read of a request that is refused before its end
PAGES = {
    b"/v1/models": orjson.dumps({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "vllm"}]}),
    b"/version": b'{"version":"0.32.0"}',
}


class _Packer(Protocol):
    """What `zlib.compressobj` gives."""

    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self, mode: int = ..., /) -> bytes: ...


@dataclass(slots=True)
class Memory:
    """What all connections share."""

    seen: Counter[int] = field(default_factory=Counter)
    left_at_s: dict[int, float] = field(default_factory=dict)
    connections: int = 0
    playing: int = 0

    def metrics(self) -> bytes:
        labels = f'{{engine="0",model_name="{MODEL}"}}'
        figures = {"num_requests_running": self.playing, "num_requests_waiting": 0, "kv_cache_usage_perc": 0.31}
        return "".join(f"vllm:{name}{labels} {value}\n" for name, value in figures.items()).encode()

    def report(self) -> bytes:
        return orjson.dumps(
            {
                "seen": list(self.seen),
                "twice": sorted(number for number, times in self.seen.items() if times > 1)[:10],
                "left_at_s": self.left_at_s,
                "connections": self.connections,
                "playing": self.playing,
            },
            option=orjson.OPT_NON_STR_KEYS,
        )


class LeftError(Exception):
    """Nobody listens any more."""


class Play:
    """One script on its way out."""

    def __init__(
        self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, usage: bool
    ) -> None:
        self._script, self._reader, self._writer, self._usage = script, reader, writer, usage
        self._packer: _Packer | None = None
        self._chunks = True
        self._tokens = 0
        self.keeps = True

    async def run(self) -> None:
        for step in self._script.steps:
            await self._step(step)

    async def _step(self, step: Step) -> None:
        word = step.word
        if word == "wait":
            await self._pause(step.number(0))
        elif word == "early":
            self._write(b"HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n")
        elif word == "head":
            self._head(step.arguments[0])
        elif word in ("whole", "short", "status"):
            self._whole(step)
        elif word in ("token", "endless"):
            await self._talk(step)
        elif word in ("end", "trailers"):
            self._end(trailers=word == "trailers")
        elif word == "hang":
            await self._pause(3600)
        elif word in ("cut", "garbage"):
            payload = b"".join(self._script.payload(step, 0))
            self._write(b"100\r\n" + payload if word == "cut" else b"zz\r\nno chunk\r\n")
            self._close()
        elif word in ("reset", "close"):
            self._close(reset=word == "reset")
        elif word != "usage" or self._usage:
            for piece in self._script.payload(step, self._tokens):
                self._put(piece)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the asker leaves: it sends nothing more before it has its answer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._reader.read(1)
                raise LeftError

    def _head(self, framing: str) -> None:
        fields = b"Content-Type: text/event-stream; charset=utf-8\r\n"
        if framing == "gzip":
            self._packer = zlib.compressobj(wbits=31)
            fields += b"Content-Encoding: gzip\r\n"
        self._chunks = framing != "close"
        fields += b"Transfer-Encoding: chunked\r\n" if self._chunks else b"Connection: close\r\n"
        self._write(b"HTTP/1.1 200 OK\r\nServer: storm\r\n%b\r\n" % fields)

    def _whole(self, step: Step) -> None:
        (body,) = self._script.payload(step, 0)
        status = int(step.number(0)) if step.word == "status" else 200
        size = len(body) + (10 if step.word == "short" else 0)
        last = self._script.steps[-1].word == "close"
        fields = f"Content-Type: application/json\r\nContent-Length: {size}\r\n" + "Connection: close\r\n" * last
        head = f"HTTP/1.1 {status} Told\r\n{fields}\r\n"
        self._write(head.encode() + body)
        if step.word == "short":
            self._close()

    async def _talk(self, step: Step) -> None:
        """Tokens; no faster than they are taken."""
        gap_s = step.number(1 if step.word == "token" else 0)
        for piece in self._script.payload(step, self._tokens):
            self._put(piece)
            self._tokens += 1
            await self._writer.drain()
            if gap_s:
                await self._pause(gap_s)
            elif self._reader.at_eof():
                raise LeftError

    def _put(self, piece: bytes) -> None:
        if self._packer is not None:
            piece = self._packer.compress(piece) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        self._write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunks else piece)

    def _end(self, *, trailers: bool) -> None:
        if not self._chunks:
            self._close()
            return
        if self._packer is not None:
            piece = self._packer.flush()
            self._write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self._write(b"0\r\n" + (b"X-Served-By: storm\r\n" if trailers else b"") + b"\r\n")

    def _write(self, data: bytes) -> None:
        if self._writer.transport.is_closing():
            raise LeftError
        self._writer.write(data)

    def _close(self, *, reset: bool = False) -> None:
        self.keeps = False
        if reset:
            no_lingering = struct.pack("ii", 1, 0)
            self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
        self._writer.close()


class Source:
    """All connections."""

    def __init__(self) -> None:
        self._memory = Memory()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._memory.connections += 1
        try:
            while await self._serve(reader, writer):
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # it ends as it began: unasked
        finally:
            self._memory.connections -= 1
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether another may follow."""
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, _ = head.split(b" ", 2)
        if method != b"POST":
            writer.write(self._page(method, path))
            return b"connection: close" not in head.lower()
        if REFUSED in head.lower():
            await reader.readexactly(EARLY_BYTES)
            await Play(read("status:413 close", 0), reader, writer, usage=False).run()
            return False
        wish = orjson.loads(await _body(head, reader))
        number = wish["storm"]["number"]
        self._memory.seen[number] += 1
        usage = bool((wish.get("stream_options") or {}).get("include_usage"))
        play = Play(read(wish["storm"]["script"], number), reader, writer, usage=usage)
        self._memory.playing += 1
        try:
            await play.run()
        except (LeftError, ConnectionError):
            self._memory.left_at_s[number] = asyncio.get_running_loop().time()
            return False
        finally:
            self._memory.playing -= 1
        return play.keeps

    def _page(self, method: bytes, path: bytes) -> bytes:
        memory = self._memory
        path = path.partition(b"?")[0]
        made = {b"/metrics": memory.metrics, b"/storm/report": memory.report}
        body = made[path]() if path in made else PAGES.get(path, b"")
        status = b"200 OK" if body else b"404 Not Found"
        kind = b"text/plain" if path == b"/metrics" else b"application/json"
        head = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (status, kind, len(body))
        return head if method == b"HEAD" else head + body


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    if (length := LENGTH.search(head)) is not None:
        return await reader.readexactly(int(length[1]))
    if not CHUNKED.search(head):
        return b""
    pieces = []
    while size := int((await reader.readline()).strip() or b"0", 16):
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(pieces)


async def serve() -> None:
    server = await asyncio.start_server(Source(), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until the bench is gone


if __name__ == "__main__":
    uvloop.run(serve())
