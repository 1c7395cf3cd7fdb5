"""The client of the bench: connections that ask, count what comes, and note when the first event came."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

PATIENCE_S = 60.0
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
PROMPT = "What does this cost? " * 20


@dataclass(slots=True)
class Meter:
    """What all connections to one arm saw."""

    events: int = 0
    reads: int = 0  # that brought events
    answers: int = 0
    failures: int = 0
    ttft_ns: list[int] = field(default_factory=list)


class Wire(asyncio.Protocol):
    """One kept-alive connection; one request at a time."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._done: Callable[[], None] | None = None
        self._asked_ns = 0
        self._left: int | None = None  # bytes to come, of an answer of known length
        self._in_body = self.seen_event = False
        self._head = self._tail = self.text = b""
        self.alive = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def connection_lost(self, _: Exception | None) -> None:
        self.alive = False
        if self._done is not None:
            self._meter.failures += 1
            self._finish()

    def ask(self, request: bytes, done: Callable[[], None]) -> None:
        self._done, self._left, self._in_body, self.seen_event = done, None, False, False
        self._head = self._tail = b""
        self._asked_ns = time.perf_counter_ns()
        if self.alive:
            self._transport.write(request)
        else:
            asyncio.get_running_loop().call_soon(self.connection_lost, None)

    def close(self) -> None:
        self.alive = False
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        if not self._in_body:
            self._head += data
            end = self._head.find(b"\r\n\r\n") + 4
            if end < 4:
                return
            if not self._head.startswith(b"HTTP/1.1 200"):
                self._meter.failures += 1
            found = LENGTH.search(self._head, 0, end - 2)
            self._left = int(found[1]) if found else None
            data, self._in_body = self._head[end:], True
            self.text = data
        self._body(data)

    def _body(self, data: bytes) -> None:
        meter = self._meter
        events = data.count(b"data: ")
        if events:
            meter.events += events
            meter.reads += 1
            if not self.seen_event:
                self.seen_event = True
                meter.ttft_ns.append(time.perf_counter_ns() - self._asked_ns)
        if self._left is not None:
            self._left -= len(data)
            ended = self._left <= 0
        else:
            self._tail = data[-5:] if len(data) >= 5 else (self._tail + data)[-5:]
            ended = self._tail == b"0\r\n\r\n"
        if ended:
            self._finish()

    def _finish(self) -> None:
        done, self._done = self._done, None
        self._meter.answers += 1
        if done is not None:
            done()


class Fleet:
    """All connections to one port."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.meter = Meter()
        self._wires: list[Wire] = []

    async def wires(self, count: int) -> list[Wire]:
        """So many live connections; those already there first."""
        loop = asyncio.get_running_loop()
        self._wires = [wire for wire in self._wires if wire.alive]
        while len(self._wires) < count:
            _, wire = await loop.create_connection(lambda: Wire(self.meter), "127.0.0.1", self.port)
            self._wires.append(wire)
        return self._wires[:count]

    def close(self) -> None:
        for wire in self._wires:
            wire.close()
        self._wires.clear()


class Ended:
    """Waits until so many answers have ended."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._event = asyncio.Event()

    def one(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._event.set()

    async def wait(self) -> None:
        await asyncio.wait_for(self._event.wait(), PATIENCE_S)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: api.test\r\nAccept: */*\r\n\r\n".encode()


def chat(extra: str = "") -> bytes:
    """A chat request as the OpenAI client sends it; `extra` are further members of its body."""
    body = f'{{"model":"m","messages":[{{"role":"user","content":"{PROMPT}"}}],"temperature":0.7{extra}}}'.encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: api.test\r\nAccept: application/json\r\n"
        "Content-Type: application/json\r\nUser-Agent: OpenAI/Python 2.8.1\r\nAuthorization: Bearer none\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def stream(*, chunks: int, every_s: float, together: bool = False) -> bytes:
    pace = f',"stream":true,"chunks":{chunks},"every_s":{every_s},"together":{str(together).lower()}'
    return chat(pace)


async def once(wire: Wire, request: bytes) -> None:
    ended = Ended(1)
    wire.ask(request, ended.one)
    await ended.wait()
