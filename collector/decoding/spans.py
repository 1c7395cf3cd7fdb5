"""The latencies in foreign spans: those of one shape at once, all others one by one.

Both ways say the same. A shape (`span_shapes`) is learned from the first of several spans of one length, and the
numbers of all that fit it are read in one step. What has no shape, what fits none, and what a shape finds faulty, is
opened with protobuf and read alone. A tracer writes alike in every body, so shapes are remembered, a bounded number of
them: what fits one is not even searched for a latency.
"""

import functools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.decoding import wire, worst_spans
from collector.decoding.span_shapes import SPAN_LATENCIES, Shape, doubles, learned, times_ns
from collector.values.histogram import Counts, Floats
from collector.values.measurement import MAX_VALUE, RejectedError, Request, Resource, SpanLatencies
from slo import signals

OTHER_SPAN = "span without a latency of ours"
STEPPED_SPAN = "span that ends before it starts: its sender's clock was set"

MAX_COLUMNS = 1_000
"""Models times latencies in the spans of one sender in one body; further models go to `other`."""
MIN_ALIKE = 4
"""Fewer spans of one length are read one by one: a shape is not learned for them."""
MAX_SHAPES = 8
"""Shapes remembered of one length, and as many learned from the spans of one length in one body."""
MAX_LENGTHS = 128
"""Lengths of which shapes are remembered."""
MAX_SHAPED_BYTES = 4_096
"""A longer span is read alone."""

Number = TypeVar("Number", np.int64, np.float64)

_TRACE = signals.LATENCY_E2E.rpartition(".")[0].encode()
"""What is in every span that has a latency."""
assert all(key.encode().startswith(_TRACE) for key in SPAN_LATENCIES), "every latency is named alike"
_NO_TIME = 2**63 - 1
"""A time beyond what 64 bits with a sign hold: far in the future all the same."""


class SteppedError(RejectedError):
    """A span that ends before it starts: no fault of its sender's telemetry."""


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


def _latency(pair: KeyValue, model: str, end_ns: int) -> Latency:
    value = wire.value_number(pair.value)
    if not 0 <= value <= MAX_VALUE:
        raise RejectedError(f"{pair.key} is not a number of 0 s or more")
    return Latency(model, SPAN_LATENCIES[pair.key], end_ns, value)


class SpanReading:
    """The latencies in the spans of one sender, and the worst of its requests."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self.rejected = wire.Reasons()
        self.ignored = wire.Reasons()
        self._ends_ns: defaultdict[tuple[str, str], list[Counts]] = defaultdict(list)
        self._values_s: defaultdict[tuple[str, str], list[Floats]] = defaultdict(list)
        self._slow: dict[bytes, None] = {}

    def read(self, spans: Sequence[bytes]) -> None:
        """Take the spans of one scope."""
        by_length: defaultdict[int, list[bytes]] = defaultdict(list)
        for span in spans:
            by_length[len(span)].append(span)
        for length, alike in by_length.items():
            left = self._read_known(length, alike)
            telling = [span for span in left if _TRACE in span]
            self.ignored.add(OTHER_SPAN, len(left) - len(telling))
            self._read_alike(length, telling)

    def worst(self) -> Iterator[Request]:
        """The worst requests of those that were read."""
        return worst_spans.all_opened(self._slow, self._resource)

    def columns(self) -> Iterator[SpanLatencies]:
        """All that was read, by model and signal."""
        for (model, signal), ends_ns in self._ends_ns.items():
            values_s = self._values_s[model, signal]
            yield SpanLatencies(self._resource, model, signal, _joined(ends_ns), _joined(values_s))

    def _read_known(self, length: int, spans: list[bytes]) -> list[bytes]:
        """Read what fits a shape that is remembered; the other spans."""
        left = spans
        for shape in list(_remembered(length)):
            if len(left) < MIN_ALIKE:
                break
            left, _ = self._read_shaped(shape, left)
        return left

    def _read_alike(self, length: int, spans: list[bytes]) -> None:
        left = spans
        for _ in range(MAX_SHAPES if length <= MAX_SHAPED_BYTES else 0):
            shape = learned(left[0]) if len(left) >= MIN_ALIKE else None
            if shape is None:
                break
            _remember(length, shape)
            first, (left, is_fit) = left[0], self._read_shaped(shape, left)
            if left and not is_fit:
                self._read_alone(first)
                left = left[1:]
        for span in left:
            self._read_alone(span)

    def _read_shaped(self, shape: Shape, spans: list[bytes]) -> tuple[list[bytes], bool]:
        """Read the spans of one length that fit the shape; those that do not, and whether the first did."""
        rows = np.frombuffer(b"".join(spans), np.uint8).reshape(len(spans), -1)
        fits = shape.fits(rows)
        if fits.all():
            self._add_shaped(shape, rows)
            return [], True
        if fits.any():
            self._add_shaped(shape, rows[fits])
        return [spans[place] for place in np.flatnonzero(~fits)], bool(fits[0])

    def _add_shaped(self, shape: Shape, rows: NDArray[np.uint8]) -> None:
        ends_ns = times_ns(rows, shape.end_at)
        for signal, place in shape.values_at:
            values_s = doubles(rows, place)
            self._add(shape.model, signal, ends_ns, values_s)
            if signal in worst_spans.RANKED:
                of = (self._resource.environment, self._resource.service, shape.model, signal)
                for at in worst_spans.beyond(of, values_s, int(ends_ns[-1])):
                    self._slow[rows[at].tobytes()] = None

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
        if found:
            self._slow[span] = None
        for one in found:
            self._add(one.model, one.signal, np.array([one.end_ns]), np.array([one.value_s]))

    def _add(self, model: str, signal: str, ends_ns: Counts, values_s: Floats) -> None:
        if (model, signal) not in self._ends_ns and len(self._ends_ns) >= MAX_COLUMNS:
            model = signals.OTHER_MODEL
        self._ends_ns[model, signal].append(ends_ns)
        self._values_s[model, signal].append(values_s)


def _joined(columns: list[NDArray[Number]]) -> NDArray[Number]:
    """The columns one behind another. One that is alone stays itself: the times of a request's latencies are one
    column, and `rollup` hears it once."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


@functools.lru_cache(maxsize=MAX_LENGTHS)
def _remembered(_length: int) -> list[Shape]:
    """The shapes that spans of one length had, those that were learned last first."""
    return []


def _remember(length: int, shape: Shape) -> None:
    known = _remembered(length)
    known[:] = [shape, *known[: MAX_SHAPES - 1]]
