"""An outside view of one request, on a clock of its own, and how near other numbers for the same request come to it.

The client is a plain socket: every read is noted with its time before anything is made of it, and the answer is taken
apart afterwards, by code that shares nothing with the sidecar's. A token counts when the read came that completes its
event, as everywhere in this project; time begins when the last byte of the request was handed to the system.
"""

import json
import secrets
import socket
import statistics
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.sidecar.receiver import Attribute, Receiver, attributes

PATIENCE_S = 60.0
ENOUGH = 20
"""Of so many requests the median is judged: what disturbs single ones on a busy machine is no disagreement."""
WITHIN_S = 0.003
CHUNKED = b"transfer-encoding: chunked"
SHARE = 0.03

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """One answer as it came: its bytes, and for each read where it ended and when, since the request was sent."""

    raw: bytes
    ends: tuple[int, ...]
    times_s: tuple[float, ...]
    whole: bool
    """Whether the answer ended as its framing says, not by a connection that broke off."""

    @property
    def head(self) -> list[str]:
        return self.raw.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")

    @property
    def status(self) -> int:
        return int(self.head[0].split()[1])

    @property
    def body(self) -> bytes:
        return b"".join(self.raw[start:end] for start, end in self._pieces())

    @property
    def document(self) -> Json:
        """The body as one JSON value."""
        loaded: Json = json.loads(self.body)
        return loaded

    @property
    def events(self) -> list[tuple[float, Json]]:
        """The JSON of each `data:` event, and when the read came that completed it."""
        at = [place for start, end in self._pieces() for place in range(start, end)]
        body = self.body
        found, start = [], 0
        while (end := body.find(b"\n\n", start)) >= 0:
            data = body[start:end].removeprefix(b"data: ")
            if data.startswith(b"{"):
                found.append((self.times_s[bisect_left(self.ends, at[end + 1] + 1)], json.loads(data)))
            start = end + 2
        return found

    @property
    def tokens_s(self) -> list[float]:
        """When each event came that carries text."""
        return [at_s for at_s, event in self.events if text_of(event)]

    @property
    def text(self) -> str:
        return "".join(text_of(event) for _, event in self.events)

    @property
    def ttft_s(self) -> float:
        return self.tokens_s[0]

    @property
    def e2e_s(self) -> float:
        return self.times_s[-1]

    def tpot_s(self, tokens: int) -> float:
        """The mean time of a token after the first, of an answer of so many."""
        return (self.tokens_s[-1] - self.tokens_s[0]) / (tokens - 1)

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """Where the body stands in the raw bytes: one span, or one a chunk."""
        start = self.raw.index(b"\r\n\r\n") + 4
        if CHUNKED.decode() not in [line.lower() for line in self.head]:
            yield start, len(self.raw)
            return
        while (line_end := self.raw.find(b"\r\n", start)) >= 0 and (size := int(self.raw[start:line_end], 16)):
            yield line_end + 2, min(line_end + 2 + size, len(self.raw))
            start = line_end + 2 + size + 2


def text_of(event: Json) -> str:
    """The text that one event adds, in any dialect of these tests."""
    if isinstance(event.get("content"), str):
        return str(event["content"])
    parts = [choice.get("delta") or choice for choice in event.get("choices", ())]
    return "".join(part.get("content") or part.get("reasoning") or part.get("text") or "" for part in parts)


def begin(port: int, path: str, asked: Mapping[str, object], *fields: str) -> socket.socket:
    """A connection on which one POST was sent, and nothing was read yet."""
    body = json.dumps(asked).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *fields]
    wire = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.sendall("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
    return wire


def post(port: int, path: str, asked: Mapping[str, object], *fields: str, events: int | None = None) -> Seen:
    """One POST on a connection of its own. `events`: leave, with the answer unfinished, once so many have come."""
    with begin(port, path, asked, *fields) as wire:
        return read(wire, events=events)


def read(wire: socket.socket, *, events: int | None = None) -> Seen:
    """The answer to a request that was sent just now, to its end or to so many events."""
    sent_s = time.monotonic()
    raw, ends, times_s = bytearray(), [], []
    is_end: Callable[[bytearray], bool] | None = None
    whole = False
    while not whole and (data := received(wire)):
        times_s.append(time.monotonic() - sent_s)
        raw += data
        ends.append(len(raw))
        is_end = is_end or _end_of(raw)
        whole = is_end is not None and is_end(raw)
        if events is not None and raw.count(b"\n\n") >= events:
            break
    return Seen(bytes(raw), tuple(ends), tuple(times_s), whole)


def received(wire: socket.socket) -> bytes:
    """What came next; nothing once the connection is gone."""
    try:
        return wire.recv(1 << 16)
    except ConnectionResetError:
        return b""


def _end_of(raw: bytearray) -> Callable[[bytearray], bool] | None:
    """How the end of an answer is told, once its head has come."""
    head, blank, _ = bytes(raw).lower().partition(b"\r\n\r\n")
    if not blank:
        return None
    if b"\r\n" + CHUNKED in head:
        return lambda raw: raw.endswith(b"\r\n0\r\n\r\n")
    [length] = [int(line.partition(b":")[2]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
    end = len(head) + len(blank) + length
    return lambda raw: len(raw) >= end


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace that a client makes a request part of, and the client's own span in it."""

    id: bytes = field(default_factory=partial(secrets.token_bytes, 16))
    span_id: bytes = field(default_factory=partial(secrets.token_bytes, 8))

    @property
    def header(self) -> str:
        return f"traceparent: 00-{self.id.hex()}-{self.span_id.hex()}-01"


def spans_of(receiver: Receiver) -> dict[bytes, tuple[Span, dict[str, Attribute]]]:
    """The sidecar's spans that have come, with their attributes, by trace id."""
    return {span.trace_id: (span, attributes(span.attributes)) for span in receiver.spans()}


def median_gap(pairs: Sequence[tuple[float, float]]) -> float:
    """The median distance between two measurements of the same requests."""
    assert len(pairs) >= ENOUGH, f"{len(pairs)} requests are too few to judge by"
    return statistics.median(abs(ours - theirs) for ours, theirs in pairs)


def assert_ttft_agrees(pairs: Sequence[tuple[float, float]]) -> None:
    """Within 3 ms or 3 %, whichever is more."""
    allowed_s = max(WITHIN_S, SHARE * statistics.median(theirs for _, theirs in pairs))
    gap_s = median_gap(pairs)
    assert gap_s <= allowed_s, f"TTFT differs by {gap_s * 1e3:.3f} ms in the median, {allowed_s * 1e3:.3f} are allowed"


def assert_tpot_agrees(pairs: Sequence[tuple[float, float]]) -> None:
    """Within 3 %."""
    pace_s = statistics.median(theirs for _, theirs in pairs)
    assert pace_s > 0, "the client got its answers whole: it was kept waiting for a core, and saw no pace"
    gap = median_gap(pairs) / pace_s
    assert gap <= SHARE, f"TPOT differs by {gap:.2%} in the median, {SHARE:.0%} is allowed"
