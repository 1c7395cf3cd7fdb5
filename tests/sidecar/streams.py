"""Recorded and written byte timelines, and how tests feed them to an exchange."""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from sidecar.said.dialects import Ask, read_ask, recognise
from sidecar.said.exchange import Exchange
from sidecar.said.record import Record

DATA = Path(__file__).parents[1] / "data" / "sidecar"
CAPTURES = DATA / "captures"
MS = 1_000_000

Reads = tuple[tuple[int, bytes], ...]
"""Reads of one body: nanoseconds since the request was held, and the bytes."""


@dataclass(frozen=True)
class Stream:
    """A response as a timeline, and the fields of its record that must come of it."""

    id: str
    holds: str
    path: str
    reads: Reads
    expect: dict[str, Any] = field(default_factory=dict)
    body: bytes = b'{"model": "moss-1b", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
    status: int = 200
    content_type: str = "text/event-stream"
    content_encoding: str = ""

    def __str__(self) -> str:
        return f"{self.id}: {self.holds}"

    @property
    def ask(self) -> Ask:
        dialect = recognise(self.path.encode())
        assert dialect is not None, self.path
        return read_ask(dialect, self.body)

    @property
    def end_ns(self) -> int:
        return max((at_ns for at_ns, _ in self.reads), default=0)

    def started(self, content_encoding: str | None = None) -> Exchange:
        """An exchange whose head has come; the body may be packed otherwise than the stream's own."""
        encoding = self.content_encoding if content_encoding is None else content_encoding
        exchange = Exchange(self.ask, 0)
        exchange.response_started(self.status, self.content_type, content_encoding=encoding, at_ns=self.end_ns and 1)
        return exchange


def play(stream: Stream, reads: Iterable[tuple[int, bytes]] | None = None) -> Record:
    """The record of the whole stream, in its own reads or in others."""
    exchange = stream.started()
    for at_ns, data in stream.reads if reads is None else reads:
        exchange.feed(data, at_ns)
    exchange.response_ended(stream.end_ns)
    return exchange.record()


@cache
def written() -> tuple[Stream, ...]:
    """The streams of `streams.yaml`."""
    loaded = yaml.load((DATA / "streams.yaml").read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return tuple(_written(case) for case in loaded)


def _written(case: dict[str, Any]) -> Stream:
    reads = tuple((round(at_ms * MS), _bytes(data)) for at_ms, data in case["reads"])
    stream = Stream(case["id"], case["holds"], case["path"], reads, case["expect"], **case.get("head", {}))
    return replace(stream, body=json.dumps(case["body"]).encode()) if "body" in case else stream


def _bytes(text: str) -> bytes:
    return base64.b64decode(text[4:]) if text.startswith("b64:") else text.encode()


def captured(name: str, path: str, *, stream: bool = True) -> Stream:
    """A recorded response: its head, and its body's bytes by the reads that brought them, chunk framing undone."""
    raw = (CAPTURES / f"{name}.raw").read_bytes()
    head, _, framed = raw.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:])}
    chunked = headers.get("transfer-encoding") == "chunked"
    keep = _chunk_bytes(framed) if chunked else [True] * len(framed)
    start = len(raw) - len(framed)
    reads = []
    for line in (CAPTURES / f"{name}.recv.jsonl").read_text().splitlines():
        received = json.loads(line)
        at_s, offset, size = received["t"], received["off"], received["len"]
        piece = bytes(raw[i] for i in range(max(offset, start), offset + size) if keep[i - start])
        if piece:
            reads.append((round(at_s * 1e9), piece))
    body = {"model": "tiny", "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
    return Stream(
        f"C-{name}", "recorded bytes", path, tuple(reads), body=json.dumps(body).encode(),
        status=int(lines[0].split()[1]), content_type=headers.get("content-type", ""),
    )  # fmt: skip


def _chunk_bytes(framed: bytes) -> list[bool]:
    """Of each byte of a chunked body, whether it is content."""
    keep = [False] * len(framed)
    at = 0
    while at < len(framed):
        line_end = framed.index(b"\r\n", at)
        size = int(framed[at:line_end].split(b";")[0], 16)
        at = line_end + 2
        keep[at : at + size] = [True] * size
        at += size + 2
        if size == 0:
            break
    return keep


def byte_by_byte(reads: Reads) -> Iterator[tuple[int, bytes]]:
    """The same bytes at the same times, each byte a read of its own."""
    for at_ns, data in reads:
        for i in range(len(data)):
            yield at_ns, data[i : i + 1]


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The same bytes in pieces, cut at these places (taken modulo the length)."""
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]
