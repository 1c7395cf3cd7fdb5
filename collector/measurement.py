"""What a body of telemetry says, in our own words: the values between `otlp` and `rollup`.

Times are the sender's, in nanoseconds since the epoch, as they came. A point with a `stream` is cumulative: its value
counts from `start_ns` on; one without is a delta over (start_ns, end_ns].
"""

from dataclasses import dataclass

from collector.histogram import Histogram

MAX_COUNT = 1 << 40
"""The most events or values that one point may hold: sums of many points stay far inside 64 bits."""
MAX_VALUE = 1e18
"""The largest gauge, counter, latency or sum taken, either way: sums of many stay finite."""


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
    """When a point holds, and the identity of its stream when it is cumulative, else ''."""

    start_ns: int
    end_ns: int
    stream: str = ""


@dataclass(frozen=True, slots=True)
class LatencyPoint:
    """A histogram of a latency; `censored` when it holds waits that ended without a value."""

    resource: Resource
    model: str
    signal: str
    interval: Interval
    histogram: Histogram
    censored: bool = False


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


@dataclass(frozen=True, slots=True)
class SpanLatency:
    """One latency of one request, read from the span of a foreign tracer."""

    resource: Resource
    model: str
    signal: str
    at_ns: int
    value_s: float


@dataclass(frozen=True, slots=True)
class Tally:
    """How many points or spans met one fate."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Batch:
    """One body, read. `rejected` is the sender's fault and told to it; `ignored` is merely not for us."""

    latencies: tuple[LatencyPoint, ...] = ()
    events: tuple[EventPoint, ...] = ()
    counters: tuple[CounterPoint, ...] = ()
    gauges: tuple[GaugePoint, ...] = ()
    spans: tuple[SpanLatency, ...] = ()
    rejected: tuple[Tally, ...] = ()
    ignored: tuple[Tally, ...] = ()
