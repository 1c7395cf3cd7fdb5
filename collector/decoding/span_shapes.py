"""The shape of a span: where its numbers stand, learned from one and read off all that are like it in one step.

The spans of one tracer differ in their ids, times and numbers, and hardly in anything else: of two that are equally
long the tags, lengths and keys stand at the same places. A *shape* is learned from one span, byte by byte: which bytes
make its structure (all tags, lengths and attribute keys, and the name of the model), which hold what we look for (the
end, the start, the latencies), and which say nothing to us. A span whose structure is that of a shape, byte for byte,
has the same fields in the same places, so its numbers can be read where the shape says. An attribute that comes twice,
a latency that is no double or a field out of order has no shape: `spans` opens such a span with protobuf.
"""

from dataclasses import dataclass, field

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.decoding import wire
from collector.values.histogram import Counts, Floats
from collector.values.measurement import MAX_VALUE
from slo import signals

QUEUE_TIME = "queue_time"
"""Time in the engine's queue: a latency, unlike signal `queue`, which counts requests."""
SPAN_LATENCIES = {
    signals.LATENCY_TTFT: signals.TTFT.sql,
    signals.LATENCY_TPOT: signals.TPOT.sql,
    signals.LATENCY_E2E: signals.E2E.sql,
    signals.LATENCY_QUEUE: QUEUE_TIME,
}

_KEYS = {key.encode(): signal for key, signal in SPAN_LATENCIES.items()}
_MODEL_KEYS = {signals.REQUEST_MODEL.encode(), signals.RESPONSE_MODEL.encode()}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_START, _END, _ATTRIBUTES = 7, 8, 9
_KEY_TAG, _VALUE_TAG = 0x0A, 0x12
_DOUBLE = b"\x12\x09\x21"
"""What stands before the eight bytes of a double in a `KeyValue`: its value, nine bytes long, a double."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Where the numbers of a span stand. A span is of this shape when, under `mask`, its bytes are `structure`."""

    mask: NDArray[np.uint8]
    structure: NDArray[np.uint8]
    model: str
    start_at: int
    end_at: int
    values_at: tuple[tuple[str, int], ...]

    def fits(self, spans: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which of some spans, as rows of bytes of this shape's length, are of this shape and free of faults."""
        alike: NDArray[np.bool_] = ((spans & self.mask) == self.structure).all(axis=1)
        start, end = times_ns(spans, self.start_at), times_ns(spans, self.end_at)
        # A time beyond 63 bits is negative here.
        alike &= (start >= 0) & (start <= end) & (end > 0)
        with np.errstate(invalid="ignore"):
            for _, place in self.values_at:
                value = doubles(spans, place)
                alike &= (value >= 0) & (value <= MAX_VALUE)
        return alike


def times_ns(spans: NDArray[np.uint8], place: int) -> Counts:
    """The time that stands at one place of each span."""
    return np.ascontiguousarray(spans[:, place : place + 8]).view("<i8")[:, 0]


def doubles(spans: NDArray[np.uint8], place: int) -> Floats:
    """The double that stands at one place of each span."""
    return np.ascontiguousarray(spans[:, place : place + 8]).view("<f8")[:, 0]


class _NoShapeError(Exception):
    """The span is none whose likes can be read together."""


@dataclass(slots=True)
class _Learning:
    """A shape while it is read off a span."""

    span: bytes
    mask: bytearray
    times: dict[int, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    models: set[bytes] = field(default_factory=set)

    def keep(self, start: int, end: int, mask: int = 0xFF) -> None:
        """These bytes are structure."""
        self.mask[start:end] = bytes((mask,)) * (end - start)

    def varint(self, at: int) -> tuple[int, int]:
        """The varint at a place, and the place behind it."""
        value = shift = 0
        while True:
            byte = self.span[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value, at
            if shift > 63:
                raise _NoShapeError


def learned(span: bytes) -> Shape | None:
    """The shape of a span; None when it has none."""
    learning = _Learning(span, bytearray(len(span)))
    try:
        attributes = wire.attributes(Span.FromString(span).attributes)
        _learn_span(learning)
    except (DecodeError, IndexError, _NoShapeError):
        return None
    if learning.times.keys() != {_START, _END} or not learning.values:
        return None
    mask = np.frombuffer(bytes(learning.mask), np.uint8)
    return Shape(
        mask,
        np.frombuffer(span, np.uint8) & mask,
        wire.model(attributes) or signals.UNKNOWN_MODEL,
        learning.times[_START],
        learning.times[_END],
        tuple(learning.values.items()),
    )


def _learn_span(of: _Learning) -> None:
    at = 0
    while at < len(of.span):
        tag, behind = of.varint(at)
        of.keep(at, behind)
        number, kind = tag >> 3, tag & 7
        if kind == _FIXED64:
            if number in (_START, _END) and of.times.setdefault(number, behind) != behind:
                raise _NoShapeError
            at = behind + 8
        elif kind == _BYTES:
            size, start = of.varint(behind)
            of.keep(behind, start)
            at = start + size
            if number == _ATTRIBUTES:
                _learn_attribute(of, start, at)
        elif kind == _VARINT:
            _, at = of.varint(behind)
            of.keep(behind, at, 0x80)
        elif kind == _FIXED32:
            at = behind + 4
        else:
            raise _NoShapeError
        if at > len(of.span):
            raise _NoShapeError


def _learn_attribute(of: _Learning, start: int, end: int) -> None:
    """The key is structure: no other attribute stands there. So is a latency's kind, and all that names the model."""
    if of.span[start] != _KEY_TAG:
        raise _NoShapeError
    size, key_at = of.varint(start + 1)
    value_at = key_at + size
    of.keep(start, value_at)
    key = of.span[key_at:value_at]
    if key in _MODEL_KEYS:
        of.keep(value_at, end)
        if key in of.models or of.span[value_at] != _VALUE_TAG:
            raise _NoShapeError
        of.models.add(key)
    elif key in _KEYS:
        signal = _KEYS[key]
        if of.span[value_at : end - 8] != _DOUBLE or signal in of.values:
            raise _NoShapeError
        of.keep(value_at, end - 8)
        of.values[signal] = end - 8
    elif value_at < end:
        size, behind = of.varint(value_at + 1)
        of.keep(value_at, behind)
        # What stands behind the value could be another key, and would win over the first.
        if of.span[value_at] != _VALUE_TAG or behind + size != end:
            raise _NoShapeError
