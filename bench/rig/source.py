"""The server behind every proxy: answers like vLLM, at a pace that the request names, and does as little as it can.

Run as a process it prints its port. One port serves everything: the chat API, the pages that an onlooker reads
(`/metrics`, `/v1/models`), an OTLP sink that counts spans, and two wishes of the bench, `/bench/end` (finish every
stream now) and `/bench/spans` (how many spans came).

A request for a stream says in its body `chunks` (how many), `every_s` (the pace) and `together`: true makes all such
streams tick at once, as an engine's decoding step does; false gives each a phase of its own.
"""

import asyncio
import itertools
import re
from collections.abc import Callable
from typing import Any

import orjson
import uvloop

WORDS = ("me", " details", " ans", " the", " quick", " brown", "\n", " jumps", " läzy", ".")
IDENTITY = {"id": "chatcmpl-a98e0a0eaf3004b9", "created": 1796010822, "model": "m"}
USAGE = {"prompt_tokens": 18, "total_tokens": 42, "completion_tokens": 24}
HEAD = b"HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 03:53:41 GMT\r\nserver: uvicorn\r\n"
STREAM_HEAD = HEAD + b"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
GOLDEN = 0.618033988749895  # multiples of it, modulo 1, spread evenly however many there are


def whole(body: bytes, kind: str = "application/json") -> bytes:
    return HEAD + f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def framed(content: bytes) -> bytes:
    event = b"data: " + content + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


def event(delta: dict[str, str], *, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "token_ids": None}
    return framed(orjson.dumps(IDENTITY | {"object": "chat.completion.chunk", "choices": [choice]}))


ROLE = event({"role": "assistant", "content": ""})
CHUNKS = [event({"content": word}) for word in WORDS]
FINISH = event({"content": "!"}, finish="stop")
COUNT = framed(orjson.dumps(IDENTITY | {"object": "chat.completion.chunk", "choices": [], "usage": USAGE}))
DONE = framed(b"[DONE]") + b"0\r\n\r\n"
TEXT = "The quick brown fox jumps over the lazy dog and then some more of what a short answer says. "
SHORT = whole(
    orjson.dumps(
        IDENTITY
        | {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}],
            "usage": USAGE | {"prompt_tokens_details": None},
            "service_tier": None,
            "system_fingerprint": "vllm-0.32.0-7bfb608c",
            "kv_transfer_params": None,
        }
    )
)


def metrics_page() -> bytes:
    """Of the size and the kind of vLLM's own: 660 lines, most of them buckets of histograms."""
    labels = 'engine="0",model_name="m"'
    lines = [f"vllm:num_requests_running{{{labels}}} 3.0", f"vllm:num_requests_waiting{{{labels}}} 0.0"]
    lines += [f"vllm:kv_cache_usage_perc{{{labels}}} 0.31"]
    for name in ("time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds"):
        lines += histogram(f"vllm:{name}", labels, buckets=20)
    for number in range(20):
        lines += histogram(f"vllm:request_detail_{number}", labels, buckets=24)
    return whole(("\n".join(lines) + "\n").encode(), "text/plain; version=0.0.4; charset=utf-8")


def histogram(name: str, labels: str, *, buckets: int) -> list[str]:
    edges = [f"{0.001 * 1.6**step:.4g}" for step in range(buckets)] + ["+Inf"]
    lines = [f"# HELP {name} Something that the engine measures.", f"# TYPE {name} histogram"]
    lines += [f'{name}_bucket{{{labels},le="{edge}"}} 42.0' for edge in edges]
    return [*lines, f"{name}_count{{{labels}}} 42.0", f"{name}_sum{{{labels}}} 4.2"]


MODELS = whole(orjson.dumps({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "vllm"}]}))
METRICS = metrics_page()
VERSION = whole(b'{"version":"0.32.0"}')


class Stream:
    """One streamed answer, from its head to its end."""

    def __init__(self, source: "Source", transport: asyncio.Transport, wish: dict[str, Any]) -> None:
        self._source, self._transport = source, transport
        self._left, self._every_s = int(wish["chunks"]), float(wish["every_s"])
        self._counts = bool((wish.get("stream_options") or {}).get("include_usage"))
        self._words = itertools.cycle(CHUNKS)
        self._timer: asyncio.TimerHandle | None = None
        source.streams.add(self)
        transport.write(STREAM_HEAD + ROLE + CHUNKS[0])
        if wish["together"]:
            source.tick_with(self, self._every_s)
        else:
            loop = asyncio.get_running_loop()
            self._at_s = loop.time() + self._every_s * ((source.next_phase() % 1) or 1)
            self._timer = loop.call_at(self._at_s, self._paced)

    def _paced(self) -> None:
        self.tick()
        if self in self._source.streams:
            self._at_s += self._every_s
            self._timer = asyncio.get_running_loop().call_at(self._at_s, self._paced)

    def tick(self) -> None:
        self._left -= 1
        if self._left > 0:
            self._transport.write(next(self._words))
        else:
            self.end()

    def end(self) -> None:
        if self in self._source.streams:
            self.forget()
            self._transport.write(FINISH + (COUNT if self._counts else b"") + DONE)

    def forget(self) -> None:
        self._source.streams.discard(self)
        if self._timer is not None:
            self._timer.cancel()


class Source:
    """What all connections share."""

    def __init__(self) -> None:
        self.streams: set[Stream] = set()
        self.spans = 0
        self._together: dict[float, list[Stream]] = {}
        self._phases = itertools.count(1)
        self.pages: dict[bytes, Callable[[bytes], bytes]] = {
            b"/v1/models": lambda _: MODELS,
            b"/metrics": lambda _: METRICS,
            b"/version": lambda _: VERSION,
            b"/v1/traces": self._traces,
            b"/v1/metrics": lambda _: whole(b"", "application/x-protobuf"),
            b"/bench/end": self._end,
            b"/bench/spans": lambda _: whole(b"%d" % self.spans),
        }

    def next_phase(self) -> float:
        return next(self._phases) * GOLDEN

    def tick_with(self, stream: Stream, every_s: float) -> None:
        if every_s not in self._together:
            self._together[every_s] = []
            loop = asyncio.get_running_loop()
            loop.call_later(every_s, self._step, every_s, loop.time() + every_s)
        self._together[every_s].append(stream)

    def _step(self, every_s: float, at_s: float) -> None:
        """One decoding step: every stream of this pace gets its chunk."""
        alive = [stream for stream in self._together[every_s] if stream in self.streams]
        if not alive:
            del self._together[every_s]
            return
        self._together[every_s] = alive
        for stream in alive:
            stream.tick()
        at_s += every_s
        asyncio.get_running_loop().call_at(at_s, self._step, every_s, at_s)

    def _traces(self, body: bytes) -> bytes:
        self.spans += spans_in(body)
        return whole(b"", "application/x-protobuf")

    def _end(self, _: bytes) -> bytes:
        for stream in list(self.streams):
            stream.end()
        return whole(b"{}")


class Session(asyncio.Protocol):
    """One connection to the source; one request at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._buffer = b""
        self._stream: Stream | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def connection_lost(self, _: Exception | None) -> None:
        if self._stream is not None:
            self._stream.forget()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        found = LENGTH.search(self._buffer, 0, end + 2)
        size = end + 4 + (int(found[1]) if found else 0)
        if len(self._buffer) < size:
            return
        request, self._buffer = self._buffer[:size], self._buffer[size:]
        self._answer(request.split(b" ", 2)[1], request[end + 4 :])

    def _answer(self, path: bytes, body: bytes) -> None:
        if path == b"/v1/chat/completions":
            wish = orjson.loads(body)
            if wish.get("stream"):
                self._stream = Stream(self._source, self._transport, wish)
            else:
                self._transport.write(SHORT)
        elif (page := self._source.pages.get(path)) is not None:
            self._transport.write(page(body))
        else:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")


def spans_in(request: bytes) -> int:
    """How many spans an ExportTraceServiceRequest holds: resource_spans (1), in it scope_spans (2), in it spans (2)."""
    return sum(1 for resource in fields(request, 1) for scope in fields(resource, 2) for _ in fields(scope, 2))


def fields(message: bytes, wanted: int) -> list[bytes]:
    """The contents of every length-delimited field of that number; the others on this way are length-delimited too."""
    found, at = [], 0
    while at < len(message):
        tag, at = varint(message, at)
        size, at = varint(message, at)
        if tag == wanted << 3 | 2:
            found.append(message[at : at + size])
        at += size
    return found


def varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


async def serve() -> None:
    source = Source()
    server = await asyncio.get_running_loop().create_server(lambda: Session(source), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
