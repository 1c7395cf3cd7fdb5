"""The latencies in foreign spans: one by one, or all spans of one shape at once.

The spans of one tracer differ in their ids, times and numbers, and hardly in anything else: of two that are equally
long the tags, lengths and keys stand at the same places. A *shape* is learned from one span, byte by byte: which bytes
make its structure (all tags, lengths and attribute keys, and the name of the model), which hold what we look for (the
end, the start, the latencies), and which say nothing to us. A span whose structure is that of a shape, byte for byte,
has the same fields in the same places, so its numbers can be read where the shape says, those of all such spans in one
step. What has no shape (an attribute that comes twice, a latency that is no double, a field out of order), what fits
none, and what a shape finds faulty, is opened with protobuf and read alone: both ways say the same.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector import wire
from collector.histogram import Counts, Floats
from collector.measurement import MAX_VALUE, RejectedError, Resource, SpanLatencies
from slo import signals

QUEUE_TIME = "queue_time"
"""Time in the engine's queue: a latency, unlike signal `queue`, which counts requests."""
SPAN_LATENCIES = {
    signals.LATENCY_TTFT: signals.TTFT.sql,
    signals.LATENCY_TPOT: signals.TPOT.sql,
    signals.LATENCY_E2E: signals.E2E.sql,
    signals.LATENCY_QUEUE: QUEUE_TIME,
}
OTHER_SPAN = "span without a latency of ours"
STEPPED_SPAN = "span that ends before it starts: its sender's clock was set"

MAX_COLUMNS = 1_000
"""Models times latencies in the spans of one sender in one body; further models go to `other`."""
MIN_ALIKE = 4
"""Fewer spans of one length are read one by one: a shape is not learned for them."""
MAX_SHAPES = 8
"""Shapes tried on the spans of one length in one body."""
MAX_SHAPED_BYTES = 4_096
"""A longer span is read alone."""

_KEYS = {key.encode(): signal for key, signal in SPAN_LATENCIES.items()}
_MODEL_KEYS = {signals.REQUEST_MODEL.encode(), signals.RESPONSE_MODEL.encode()}
_TRACE = signals.LATENCY_E2E.rpartition(".")[0].encode()
"""What is in every span that has a latency."""
assert all(key.startswith(_TRACE) for key in _KEYS), "every latency is named alike"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_START, _END, _ATTRIBUTES = 7, 8, 9
_KEY_TAG, _VALUE_TAG = 0x0A, 0x12
_DOUBLE = b"\x12\x09\x21"
"""What stands before the eight bytes of a double in a `KeyValue`: its value, nine bytes long, a double."""
_NO_TIME = 2**63 - 1
"""A time beyond what 64 bits with a sign hold: far in the future all the same."""


@dataclass(frozen=True, slots=True)
class Latency:
    """One latency of one request."""

    model: str
    signal: str
    end_ns: int
    value_s: float


def latencies(span: bytes) -> list[Latency]:
    """The latencies of one span; none when it is not for us. Raises `RejectedError`, and `SteppedError` when the span
    ends before it starts."""
    try:
        opened = Span.FromString(span)
    except DecodeError:
        raise RejectedError("a span that cannot be read") from None
    found = [pair for pair in opened.attributes if pair.key in SPAN_LATENCIES]
    if not found:
        return []
    end_ns = opened.end_time_unix_nano
    if 0 < end_ns < opened.start_time_unix_nano:
        raise SteppedError(STEPPED_SPAN)
    if end_ns == 0:
        raise RejectedError("a span without an end")
    model = wire.model(wire.attributes(opened.attributes)) or signals.UNKNOWN_MODEL
    return [_latency(pair, model, min(end_ns, _NO_TIME)) for pair in found]


class SteppedError(RejectedError):
    """A span that ends before it starts: no fault of its sender's telemetry."""


def _latency(pair: KeyValue, model: str, end_ns: int) -> Latency:
    value = wire.value_number(pair.value)
    if not 0 <= value <= MAX_VALUE:
        raise RejectedError(f"{pair.key} is not a number of 0 s or more")
    return Latency(model, SPAN_LATENCIES[pair.key], end_ns, value)


# Shapes.


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


# Many spans.


class SpanReading:
    """The latencies in the spans of one sender."""

    def __init__(self) -> None:
        self.rejected = wire.Reasons()
        self.ignored = wire.Reasons()
        self._ends_ns: defaultdict[tuple[str, str], list[Counts]] = defaultdict(list)
        self._values_s: defaultdict[tuple[str, str], list[Floats]] = defaultdict(list)

    def read(self, spans: Sequence[bytes]) -> None:
        """Take the spans of one scope."""
        by_length: defaultdict[int, list[bytes]] = defaultdict(list)
        others = 0
        for span in spans:
            if _TRACE in span:
                by_length[len(span)].append(span)
            else:
                others += 1
        self.ignored.add(OTHER_SPAN, others)
        for length, alike in by_length.items():
            self._read_alike(length, alike)

    def columns(self, resource: Resource) -> Iterator[SpanLatencies]:
        """All that was read, by model and signal."""
        for (model, signal), ends_ns in self._ends_ns.items():
            values_s = np.concatenate(self._values_s[model, signal])
            yield SpanLatencies(resource, model, signal, np.concatenate(ends_ns), values_s)

    def _read_alike(self, length: int, spans: list[bytes]) -> None:
        left = spans
        for _ in range(MAX_SHAPES if length <= MAX_SHAPED_BYTES else 0):
            shape = learned(left[0]) if len(left) >= MIN_ALIKE else None
            if shape is None:
                break
            rows = np.frombuffer(b"".join(left), np.uint8).reshape(len(left), length)
            fits = shape.fits(rows)
            self._add_shaped(shape, rows[fits])
            left = [left[place] for place in np.flatnonzero(~fits)]
            if left and not fits[0]:
                self._read_alone(left.pop(0))
        for span in left:
            self._read_alone(span)

    def _add_shaped(self, shape: Shape, rows: NDArray[np.uint8]) -> None:
        ends_ns = times_ns(rows, shape.end_at)
        for signal, place in shape.values_at:
            self._add(shape.model, signal, ends_ns, doubles(rows, place))

    def _read_alone(self, span: bytes) -> None:
        try:
            found = latencies(span)
        except SteppedError as error:
            self.ignored.add(str(error))
            return
        except RejectedError as error:
            self.rejected.add(str(error))
            return
        if not found:
            self.ignored.add(OTHER_SPAN)
        for one in found:
            self._add(one.model, one.signal, np.array([one.end_ns]), np.array([one.value_s]))

    def _add(self, model: str, signal: str, ends_ns: Counts, values_s: Floats) -> None:
        if (model, signal) not in self._ends_ns and len(self._ends_ns) >= MAX_COLUMNS:
            model = signals.OTHER_MODEL
        self._ends_ns[model, signal].append(ends_ns)
        self._values_s[model, signal].append(values_s)
