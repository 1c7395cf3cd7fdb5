"""A proxy in this process between real sockets: tiny servers behind it, raw clients before it."""

import asyncio
import contextlib
import functools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import uvloop

from sidecar.counting.exemplar import Trace, own_trace
from sidecar.counting.histogram import LogBuckets
from sidecar.counting.tally import Tally
from sidecar.judging.deadline_timer import DeadlineTimer
from sidecar.judging.eye import Eye
from sidecar.judging.labels import ModelLabels
from sidecar.relaying.proxy import Door, Manners
from sidecar.said.record import EndedRequest
from sidecar.transport.upstream import Pool, Target
from slo.objective import Spec, parse
from slo.signals import LATENCY_BUCKETS_S, REQUESTS, SLO_EVENTS

CHAT = "/v1/chat/completions"
PATIENT_S = 30.0
Handler = Callable[["Received", asyncio.StreamWriter], Awaitable[None]]


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on the loop that the sidecar runs on; a hang is a failure."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        uvloop.run(asyncio.wait_for(test(*args, **kwargs), PATIENT_S))

    return run


@dataclass(frozen=True)
class Received:
    """A request as the server behind the proxy got it, byte for byte."""

    head: bytes
    body: bytes

    @property
    def line(self) -> str:
        return self.head.split(b"\r\n", 1)[0].decode("latin-1")

    @property
    def fields(self) -> list[str]:
        return [line.decode("latin-1") for line in self.head.split(b"\r\n")[1:] if line]

    def field(self, name: str) -> str | None:
        found = [line.partition(":")[2].strip() for line in self.fields if line.lower().startswith(f"{name.lower()}:")]
        return found[0] if found else None


async def read_message(reader: asyncio.StreamReader) -> Received:
    """One request or answer, its chunks taken apart; raises IncompleteReadError at the end of the connection."""
    head = await reader.readuntil(b"\r\n\r\n")
    if re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
        return Received(head, await _chunks(reader))
    if length := re.search(rb"(?i)\r\ncontent-length: *(\d+)", head):
        return Received(head, await reader.readexactly(int(length[1])))
    return Received(head, b"")


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return body


def raw(answer: bytes) -> Handler:
    """A server that gives every request the same bytes."""

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    return handle


def sized(body: bytes, *, kind: str = "application/json", status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def delta(text: str) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % text.encode()


STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def completion(*texts: str) -> bytes:
    """A whole streamed chat answer."""
    return SSE_HEAD + b"".join(chunk(delta(text)) for text in texts) + chunk(STOP) + b"0\r\n\r\n"


def chat(*, stream: bool = True, model: str = "m", extra: str = "", pad: int = 0) -> bytes:
    """A whole chat request."""
    body = b'{"model":"%s","stream":%s,"messages":[{"role":"user","content":"%s"}]}' % (
        model.encode(),
        b"true" if stream else b"false",
        b"x" * pad,
    )
    head = f"POST {CHAT} HTTP/1.1\r\nHost: api.test\r\nContent-Type: application/json\r\n{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def spec(*objectives: str, classes: str = "") -> Spec:
    """A spec of service `chat` with these objectives, each a YAML flow mapping."""
    lines = "".join(f"  - {objective}\n" for objective in objectives)
    return parse(f"service: chat\n{classes}objectives:\n{lines}")[0]


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a port of this machine, closed at the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@dataclass
class Behind:
    """The server behind the proxy, and what it saw."""

    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    closed: int = 0
    port: int = 0
    close_seen: asyncio.Event = field(default_factory=asyncio.Event)


Wild = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(wild: Wild) -> AsyncIterator[int]:
    """A server that handles the bytes of its connections itself; its port. Nothing of it is left afterwards."""
    tasks = set[asyncio.Task[None]]()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await wild(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(connection(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[Behind]:
    """A keep-alive HTTP server on a free port. A request with `X-Watch` stops when its client closes."""
    behind = Behind()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind.connections += 1
        try:
            while True:
                request = await read_message(reader)
                behind.requests.append(request)
                working = asyncio.ensure_future(handler(request, writer))
                if request.field("x-watch"):
                    closing = asyncio.ensure_future(reader.read(1))
                    await asyncio.wait([working, closing], return_when=asyncio.FIRST_COMPLETED)
                    for task in (working, closing):
                        task.cancel()
                await working
        finally:
            behind.closed += 1
            behind.close_seen.set()

    async with listening(connection) as behind.port:
        yield behind


@dataclass
class Rig:
    """The proxy under test, and what its eye saw."""

    port: int
    door: Door
    eye: Eye
    behind: Behind
    _tally: Tally
    _ended: list[EndedRequest]

    @property
    def tally(self) -> Tally:
        """All that was counted until now."""
        self.eye.catch_up()
        return self._tally

    @property
    def ended(self) -> list[EndedRequest]:
        """Every request that was over until now."""
        self.eye.catch_up()
        return self._ended

    def client(self) -> contextlib.AbstractAsyncContextManager[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection of its own."""
        return connected(self.port)

    async def ask(self, request: bytes) -> Received:
        """Send one request on a connection of its own; its answer."""
        async with self.client() as (reader, writer):
            writer.write(request)
            return await read_message(reader)

    async def ask_all(self, request: bytes) -> bytes:
        """Send bytes and read until the proxy closes."""
        async with self.client() as (reader, writer):
            writer.write(request)
            return await reader.read()

    def events(self) -> dict[tuple[str, str, str], int]:
        """SLO events counted: (model, objective, result) -> number, without zeros."""
        found: dict[tuple[str, str, str], int] = {}
        for point in self.tally.totals():
            if point.metric is SLO_EVENTS and point.value:
                values = [value for _, value in point.attributes]
                found[values[0], values[1], values[3]] = int(point.value)
        return found

    def outcomes(self) -> dict[str, int]:
        """Requests counted by outcome, without zeros."""
        found: dict[str, int] = {}
        for point in self.tally.totals():
            if point.metric is REQUESTS and point.value:
                outcome = dict(point.attributes)["firsttoken.outcome"]
                found[outcome] = found.get(outcome, 0) + int(point.value)
        return found

    def latencies(self) -> dict[str, LogBuckets]:
        """Histograms that hold a value, by metric name."""
        _, distributions = self.tally.take(delta=False)
        return {point.metric.name: point.buckets for point in distributions if isinstance(point.buckets, LogBuckets)}


@contextlib.asynccontextmanager
async def proxied(
    handler: Handler | None,
    *,
    objectives: Spec | None = None,
    manners: Manners | None = None,
    port: int = 1,
    connect_s: float = 5.0,
    max_models: int = 100,
    traced: bool = False,
) -> AsyncIterator[Rig]:
    """A proxy before a server that answers with `handler`; None: before whatever listens on `port`, by itself none.
    `traced`: the span of each request is exported, as far as the eye is told."""
    async with contextlib.AsyncExitStack() as stack:
        behind = Behind(port=port) if handler is None else await stack.enter_async_context(serving(handler))
        loop, ended = asyncio.get_running_loop(), list[EndedRequest]()
        tally = Tally(lambda _: LATENCY_BUCKETS_S)

        def note(request: EndedRequest) -> Trace | None:
            ended.append(request)
            return own_trace(request.context, request.start_unix_ns) if traced else None

        eye = Eye(
            DeadlineTimer(loop),
            tally=tally,
            labels=ModelLabels(max_models),
            ended=note,
            class_header=b"x-firsttoken-class",
        )
        eye.load(objectives)
        door = Door(Pool(Target("http", "127.0.0.1", behind.port), connect_s=connect_s), eye, manners or Manners())
        server = await loop.create_server(door, "127.0.0.1", 0)
        try:
            yield Rig(server.sockets[0].getsockname()[1], door, eye, behind, tally, ended)
        finally:
            server.close()
            await door.drain(0)
            await asyncio.sleep(0)


class AtOnce:
    """A backlog that puts nothing off."""

    def note(self, act: Callable[..., object], *about: object) -> None:
        act(*about)

    note_bytes = note_late = note

    def settle(self) -> None:
        """There is nothing."""


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; the test's own time limit ends a wait in vain."""
    while not holds():  # noqa: ASYNC110  a test's patience
        await asyncio.sleep(0.005)
