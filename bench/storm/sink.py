"""The OTLP endpoint, which has outages: takes what comes, refuses, hangs, breaks off, and comes back.

    taking     as it should be
    deaf       nothing listens: connections are refused, those that are open end
    busy       503; every second time with a `Retry-After`
    hanging    a body is read and never answered
    breaking   the connection is reset in the middle of a body
    silent     a body is taken and kept, and the connection ends without an answer: it will come again
    picky      spans are refused for good (400)
    partial    the first span of each body is refused, the rest is taken

A body that is known by its bytes is taken once, and has its first answer again in every mode that answers. What was
taken lies in a file: for each body its lane, how many of its items were refused, its length and its bytes.

Run as a process with a folder and a seed it prints its port. A line `calm` on stdin ends the outages; `report` is
answered by one line of JSON, once the file is whole.
"""

import asyncio
import contextlib
import hashlib
import random
import re
import socket
import struct
import sys
from collections import Counter
from pathlib import Path

import orjson
import uvloop

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
ENTRY = struct.Struct("<BBI")
TRACES, METRICS = 0, 1
OUTAGES = ("deaf", "busy", "hanging", "breaking", "silent", "picky", "partial")
TAKING_S, OUTAGE_S = (2.0, 14.0), (1.0, 7.0)
ONE_REFUSED = b"\x0a\x02\x08\x01"  # an ExportTraceServiceResponse whose partial_success has rejected_spans 1


class Sink:
    """The endpoint and what it has taken."""

    def __init__(self, file: Path) -> None:
        self.mode = "taking"
        self.times: Counter[str] = Counter()
        self._file = file.open("wb")
        self._answers: dict[bytes, bytes] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self.calm = asyncio.Event()

    async def listen(self) -> int:
        self._server = await asyncio.start_server(self._session, "127.0.0.1", self._port)
        self._port = int(self._server.sockets[0].getsockname()[1])
        return self._port

    async def turn(self, mode: str) -> None:
        """Behave like this from now on."""
        self.mode = mode
        if mode == "deaf":
            assert self._server is not None
            self._server.close()
            self._server = None
        elif self._server is None:
            await self.listen()
        if mode == "deaf" or mode == "taking":
            for writer in list(self._writers):
                writer.transport.abort()

    async def weather(self, rng: random.Random) -> None:
        """Outages, one after the other, in an order of their own."""
        while not self.calm.is_set():
            for mode in rng.sample(OUTAGES, len(OUTAGES)):
                await self._pause(rng.uniform(*TAKING_S))
                if self.calm.is_set():
                    return
                await self.turn(mode)
                self.times[f"{mode}: outages"] += 1
                await self._pause(rng.uniform(*OUTAGE_S))
                await self.turn("taking")

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.calm.wait(), seconds)

    def report(self) -> bytes:
        self._file.flush()
        return orjson.dumps(self.times)

    async def _session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._serve(reader, writer):
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        found = LENGTH.search(head)
        size = int(found[1]) if found else 0
        if self.mode == "breaking":
            await reader.readexactly(size // 2)
            self.times["breaking: bodies"] += 1
            no_lingering = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
            return False
        body = await reader.readexactly(size)
        self.times[f"{self.mode}: bodies"] += 1
        if self.mode == "hanging":
            await reader.read(1)
            return False
        lane = TRACES if head.split(b" ", 2)[1].endswith(b"/traces") else METRICS
        answer = self._take(lane, body)
        if answer is None:
            return False
        writer.write(answer)
        return True

    def _take(self, lane: int, body: bytes) -> bytes | None:
        """Keep a body, if this is a time for it; the answer, or None to break off without one."""
        digest = hashlib.sha256(body).digest()
        if digest in self._answers:
            self.times["came again"] += 1
            return None if self.mode == "silent" else _answer(200, self._answers[digest])
        if self.mode == "busy":
            return _answer(503, wait_s=1 if self.times["busy: bodies"] % 2 else None)
        if self.mode == "picky" and lane == TRACES:
            return _answer(400)
        refused = int(self.mode == "partial" and lane == TRACES)
        self._answers[digest] = ONE_REFUSED if refused else b""
        self._file.write(ENTRY.pack(lane, refused, len(body)) + body)
        if self.mode == "silent":
            return None
        return _answer(200, self._answers[digest])


def _answer(status: int, body: bytes = b"", *, wait_s: int | None = None) -> bytes:
    again = "" if wait_s is None else f"Retry-After: {wait_s}\r\n"
    head = f"HTTP/1.1 {status} Told\r\nContent-Type: application/x-protobuf\r\n{again}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def serve(file: Path, seed: str) -> None:
    sink = Sink(file)
    print(await sink.listen(), flush=True)
    weather = asyncio.create_task(sink.weather(random.Random(seed)))
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):  # until the bench is gone
        if line.strip() == "calm":
            sink.calm.set()
            await weather
        print(sink.report().decode() if line.strip() == "report" else sink.mode, flush=True)


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1]), sys.argv[2]))
