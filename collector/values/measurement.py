"""What a body of telemetry says, in our own words: the values between `otlp` and `rollup`.

Times are the sender's, in nanoseconds since the epoch, as they came. A point with a `stream` is cumulative: its value
counts from `start_ns` on, 0 when its sender does not say since when; one without is a delta over (start_ns, end_ns].
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import numpy as np

from collector.values.histogram import Counts, Floats, Histogram
from collector.values.histograms import Histograms, side_by_side

NS = 10**9
"""Nanoseconds in a second."""
MAX_COUNT = 1 << 40
"""The most events or values that one point may hold: sums of many points stay far inside 64 bits."""
MAX_VALUE = 1e18
"""The largest gauge, counter, latency or sum taken, either way: sums of many stay finite."""
FAILED = "failed"
"""What stands for a latency where requests that failed are ranked: how long each took to do so."""


class RejectedError(ValueError):
    """A point or span that is its sender's fault; the message is the reason that the sender is told."""


@dataclass(frozen=True, slots=True)
class Resource:
    """Who speaks. `environment` is '' when unset, `source` proxy, middleware, engine or otel."""

    environment: str
    service: str
    instance: str
    source: str


@dataclass(frozen=True, slots=True)
class Interval:
    """When a point holds, and the identity of its stream when it is cumulative, else ''. `unstarted` is the stream that
    it was before its sender knew since when it counts; `place` is where the interval of a delta is remembered, '' when
    it is not."""

    start_ns: int
    end_ns: int
    stream: str = ""
    unstarted: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """A histogram of a latency; `censored` when it holds waits that ended without a value."""

    resource: Resource
    model: str
    signal: str
    interval: Interval
    histogram: Histogram
    censored: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Whose:
    """Whose latency: all that tells one from another but for the layout of its buckets. Kept by who reads bodies, so
    that what comes at every interval is the same object each time."""

    resource: Resource
    model: str
    signal: str
    censored: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class DeltaColumns:
    """Latencies of deltas of which no interval need be remembered, side by side: `histograms[k]` is of `whose[k]` over
    (starts_ns[k], ends_ns[k]]. `resources` are those who speak, each once."""

    whose: Sequence[Whose]
    starts_ns: Counts
    ends_ns: Counts
    histograms: Histograms
    resources: tuple[Resource, ...]

    def __iter__(self) -> Iterator[LatencyPoint]:
        times = zip(self.starts_ns.tolist(), self.ends_ns.tolist(), strict=True)
        for of, (start_ns, end_ns), histogram in zip(self.whose, times, self.histograms, strict=True):
            yield LatencyPoint(of.resource, of.model, of.signal, Interval(start_ns, end_ns), histogram, of.censored)

    def chosen(self, places: Counts) -> "DeltaColumns":
        """Some of them, in the order of the places."""
        whose = [self.whose[place] for place in places.tolist()]
        times = self.starts_ns[places], self.ends_ns[places]
        return DeltaColumns(whose, *times, self.histograms.chosen(places), tuple({one.resource for one in whose}))


NO_DELTAS = DeltaColumns((), np.zeros(0, np.int64), np.zeros(0, np.int64), side_by_side(()), ())


@dataclass(frozen=True, slots=True, eq=False)
class LatencyPoints(Sequence[LatencyPoint]):
    """The points of a body: deltas side by side, and behind them all others. A point of the former is made when
    somebody asks for it."""

    deltas: DeltaColumns = NO_DELTAS
    others: tuple[LatencyPoint, ...] = ()

    def __len__(self) -> int:
        return len(self.deltas.whose) + len(self.others)

    def __iter__(self) -> Iterator[LatencyPoint]:
        return chain(self.deltas, self.others)

    @overload
    def __getitem__(self, place: int) -> LatencyPoint: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[LatencyPoint, ...]: ...
    def __getitem__(self, place: int | slice) -> LatencyPoint | tuple[LatencyPoint, ...]:
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LatencyPoints | tuple):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # columns are no key of anything


@dataclass(frozen=True, slots=True)
class CounterPoint:
    """A count, named as in SQL, with its further attributes as (label, value), sorted."""

    resource: Resource
    model: str
    name: str
    attributes: tuple[tuple[str, str], ...]
    interval: Interval
    value: float


@dataclass(frozen=True, slots=True)
class EventPoint:
    """Events of one objective that its sender judged good, or bad."""

    resource: Resource
    model: str
    objective: str
    objective_hash: str
    good: bool
    interval: Interval
    value: float


@dataclass(frozen=True, slots=True)
class GaugePoint:
    """A momentary value, named as in SQL; `attribute` is the rank or signal it speaks of, or ''."""

    resource: Resource
    model: str
    name: str
    attribute: str
    at_ns: int
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class SpanLatencies:
    """One latency of several requests, read from the spans of a foreign tracer: request k ended at `ends_ns[k]` and
    took `values_s[k]`. Equal when all of that is."""

    resource: Resource
    model: str
    signal: str
    ends_ns: Counts
    values_s: Floats

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SpanLatencies):
            return NotImplemented
        alike = (self.resource, self.model, self.signal) == (other.resource, other.model, other.signal)
        return alike and np.array_equal(self.ends_ns, other.ends_ns) and np.array_equal(self.values_s, other.values_s)

    __hash__ = None  # type: ignore[assignment]  # arrays are no key of anything


@dataclass(frozen=True, slots=True)
class Request:
    """One request as its span tells of it: ids, times, names and lengths, never content.

    It ended at `end_ns` and took `took_s` in all. `latencies` is signal -> seconds, of those that its span knows;
    `outcome` and `class_` are '' where it does not say.
    """

    resource: Resource
    trace_id: str
    span_id: str
    model: str
    class_: str
    outcome: str
    has_failed: bool
    end_ns: int
    took_s: float
    latencies: Mapping[str, float]
    input_tokens: int | None
    output_tokens: int | None

    @property
    def end_s(self) -> int:
        return self.end_ns // NS

    def ranks(self) -> dict[str, float]:
        """By what it may be among the worst, and how bad it is by that."""
        return {**self.latencies, **({FAILED: self.took_s} if self.has_failed else {})}


@dataclass(frozen=True, slots=True)
class Tally:
    """How many points or spans met one fate."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Batch:
    """One body, read. `worst` are some of its requests, to be looked at. `rejected` is the sender's fault and told to
    it; `ignored` is merely not for us."""

    latencies: Sequence[LatencyPoint] = ()
    events: tuple[EventPoint, ...] = ()
    counters: tuple[CounterPoint, ...] = ()
    gauges: tuple[GaugePoint, ...] = ()
    spans: tuple[SpanLatencies, ...] = ()
    worst: tuple[Request, ...] = ()
    rejected: tuple[Tally, ...] = ()
    ignored: tuple[Tally, ...] = ()

    @property
    def points(self) -> int:
        """Metric points read."""
        return len(self.latencies) + len(self.events) + len(self.counters) + len(self.gauges)

    @property
    def span_latencies(self) -> int:
        """Latencies read from spans."""
        return sum(one.values_s.size for one in self.spans)
