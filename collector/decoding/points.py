"""Metric points read one by one: each becomes a measurement, or is rejected or ignored by name.

The table of metrics (`slo.signals`) says which names are ours and of which kind; a point of another kind than its name
promises is rejected. Histograms are the business of `distribution`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    AGGREGATION_TEMPORALITY_DELTA,
    DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK,
)

from collector.decoding import sealed, wire
from collector.decoding.distribution import Distributions
from collector.values.measurement import (
    MAX_COUNT,
    MAX_VALUE,
    Batch,
    CounterPoint,
    EventPoint,
    GaugePoint,
    Interval,
    LatencyPoint,
    RejectedError,
)
from slo.signals import (
    BAD,
    BY_NAME,
    CENSORED,
    CLASS,
    GOOD,
    LABELS,
    LATENCY_METRICS,
    OBJECTIVE,
    OBJECTIVE_HASH,
    PROMPT_TOKENS,
    RESULT,
    SIGNAL,
    SLO_EVENTS,
    SYNTHETIC_CLASS,
    TTFT_BY_PROMPT,
    TTFT_STRATA,
    UNKNOWN_MODEL,
    Metric,
)

SECONDS = ("s", "")
MAX_UNIT = 16
"""As much of a wrong unit as the sender is told."""
SPLIT: dict[str, tuple[str, dict[str, str]]] = {
    CENSORED.name: (SIGNAL, {metric.sql: metric.sql for metric in LATENCY_METRICS}),
    TTFT_BY_PROMPT.name: (PROMPT_TOKENS, TTFT_STRATA),
}
"""The metrics that hold several latencies: the attribute that tells them apart, and the signal of each value."""
SHAPES = {"histogram": ("histogram", "exponential_histogram"), "counter": ("sum",), "gauge": ("gauge", "sum")}
"""The shapes on the wire that a kind of metric may take."""

REMEMBERED_DELTAS = 8
"""Intervals of a foreign delta series that are known again; its sender must name its instance, or it may be several."""
MAX_POINTS = 100_000
"""Points of ours in one body; those of metrics beyond are rejected."""

TOO_MANY_POINTS = f"more than {MAX_POINTS} points in a body: send smaller batches"
UNKNOWN_METRIC = "metric of no interest"
NO_VALUE = "point without a recorded value"
SYNTHETIC = "latency of synthetic traffic"


@dataclass(frozen=True, slots=True)
class _Of:
    """What the points of one metric share."""

    sender: wire.Sender
    scope: str
    metric: Metric
    cumulative: bool


_Taker = Callable[[_Of, Any, wire.Said], None]
"""Takes a point, whose type its shape tells."""


class Points:
    """Reads metrics into one batch."""

    def __init__(self) -> None:
        self._distributions = Distributions()
        self._latencies: list[tuple[_Of, str, str, Interval]] = []
        self._events: list[EventPoint] = []
        self._counters: list[CounterPoint] = []
        self._gauges: list[GaugePoint] = []
        self._rejected = wire.Reasons()
        self._ignored = wire.Reasons()
        self._last = Interval(0, 0)
        self._read_points = 0

    def batch(self) -> Batch:
        """Everything read so far."""
        latencies = tuple(self._distributed())
        return Batch(
            latencies=latencies,
            events=tuple(self._events),
            counters=tuple(self._counters),
            gauges=tuple(self._gauges),
            rejected=self._rejected.tallies(),
            ignored=self._ignored.tallies(),
        )

    def read(self, sender: wire.Sender, scope: str, metric: sealed.Metric) -> None:
        """Read the points of one metric of one sender."""
        shape = metric.WhichOneof("data")
        data: sealed.Data | None = getattr(metric, shape) if shape else None
        ours = BY_NAME.get(metric.name)
        if data is None or (ours is None and metric.name):
            self._ignored.add(UNKNOWN_METRIC, len(data.data_points) if data else 1)
            return
        fault = "a metric without a name" if ours is None else _fault(ours, metric, str(shape), data)
        if ours is None or fault is not None:
            self._rejected.add(str(fault), len(data.data_points))
            return
        self._read_points += len(data.data_points)
        if self._read_points > MAX_POINTS:
            self._rejected.add(TOO_MANY_POINTS, len(data.data_points))
            return
        of = _Of(sender, scope, ours, shape != "gauge" and _cumulative(data))
        take = self._taker(str(shape))
        for point in data.data_points:
            try:
                if point.flags & DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK:
                    self._ignored.add(NO_VALUE)
                elif point.time_unix_nano == 0:
                    raise RejectedError("a point without a time")
                else:
                    take(of, point, wire.said(point.attributes))
            except RejectedError as error:
                self._rejected.add(f"{ours.name}: {error}")

    def _taker(self, shape: str) -> _Taker:
        """What takes a point of a shape."""
        takers: dict[str, _Taker] = {"histogram": self._explicit, "exponential_histogram": self._exponential}
        return takers.get(shape, self._number)

    def _explicit(self, of: _Of, point: sealed.ExplicitPoint, said: wire.Said) -> None:
        if self._accept(of, point, said):
            self._distributions.add_explicit(point, cumulative=of.cumulative)

    def _exponential(self, of: _Of, point: sealed.ExponentialPoint, said: wire.Said) -> None:
        if self._accept(of, point, said):
            self._distributions.add_exponential(point, cumulative=of.cumulative)

    def _accept(self, of: _Of, point: sealed.Point, said: wire.Said) -> bool:
        """Keep what a latency says of itself; False when it is none of ours."""
        if said.texts.get(CLASS) == SYNTHETIC_CLASS:
            self._ignored.add(SYNTHETIC)
            return False
        signal, interval = _signal(of.metric, said), self._interval(of, point, said)
        self._latencies.append((of, said.model or UNKNOWN_MODEL, signal, interval))
        return True

    def _number(self, of: _Of, point: sealed.NumberPoint, said: wire.Said) -> None:
        value = _value(point)
        if of.metric.kind == "gauge":
            if abs(value) > MAX_VALUE:
                raise RejectedError(f"a value must be within {MAX_VALUE:g} of 0")
            self._gauges.append(_gauge(of, point, said, value))
            return
        largest = MAX_COUNT if of.metric is SLO_EVENTS else MAX_VALUE
        if not 0 <= value <= largest:
            raise RejectedError(f"a count must be from 0 to {largest:.0f}")
        interval = self._interval(of, point, said)
        if of.metric is SLO_EVENTS:
            self._events.append(_event(of, said, interval, value))
        else:
            self._counters.append(_counter(of, said, interval, value))

    def _interval(self, of: _Of, point: sealed.Point, said: wire.Said) -> Interval:
        # A start beyond the end, up to 2^64, is a clock that was set: nothing is known of the time before the end.
        end_ns = point.time_unix_nano
        start_ns = min(point.start_time_unix_nano, end_ns)
        if not of.cumulative and (of.sender.ours or not of.sender.resource.instance):
            # All the deltas of one export share their interval.
            if self._last.end_ns != end_ns or self._last.start_ns != start_ns:
                self._last = Interval(start_ns, end_ns)
            return self._last
        name = of.sender, of.scope, of.metric.name, said
        if not of.cumulative:
            # A collector in between may send again, in another body, what its own sender had sent it twice.
            # Its place is its moment in units of half to once its length, so that a sender's jitter moves nothing.
            bits = (end_ns - start_ns).bit_length()
            ordinal = bits * REMEMBERED_DELTAS + (end_ns >> max(bits - 1, 0)) % REMEMBERED_DELTAS
            place = wire.stream_id(*name, -1 - ordinal) if 0 < start_ns < end_ns else ""
            return Interval(start_ns, end_ns, place=place)
        unstarted = wire.stream_id(*name, 0)
        if start_ns < point.start_time_unix_nano:
            # It goes on as the same stream once its clock is right again.
            return Interval(0, end_ns, wire.stream_id(*name, point.start_time_unix_nano))
        if start_ns in (0, end_ns):
            return Interval(0, end_ns, unstarted)
        return Interval(start_ns, end_ns, wire.stream_id(*name, start_ns), unstarted)

    def _distributed(self) -> Sequence[LatencyPoint]:
        """The latencies whose buckets could be read."""
        points = []
        for (of, model, signal, interval), histogram in zip(self._latencies, self._distributions.read(), strict=True):
            if isinstance(histogram, str):
                self._rejected.add(f"{of.metric.name}: {histogram}")
            else:
                censored = of.metric is CENSORED
                points.append(LatencyPoint(of.sender.resource, model, signal, interval, histogram, censored))
        return points


def _fault(ours: Metric, metric: sealed.Metric, shape: str, data: sealed.Data) -> str | None:
    """What is wrong with a metric as a whole; None when its points can be read."""
    if shape not in SHAPES[ours.kind]:
        return f"{ours.name}: it is a {ours.kind}, and came as a {shape.replace('_', ' ')}"
    if ours.kind == "histogram" and metric.unit not in SECONDS:
        return f"{ours.name}: the unit is {metric.unit[:MAX_UNIT]!r}: send seconds"
    if shape == "gauge":
        return None
    if data.aggregation_temporality not in (AGGREGATION_TEMPORALITY_CUMULATIVE, AGGREGATION_TEMPORALITY_DELTA):
        return f"{ours.name}: the aggregation temporality is unspecified: send delta or cumulative"
    if ours.kind == "counter" and not data.is_monotonic:
        return f"{ours.name}: a counter must be monotonic"
    if ours.kind == "gauge" and not _cumulative(data):
        return f"{ours.name}: it is a gauge, and came as changes: send values"
    return None


def _cumulative(data: sealed.Data) -> bool:
    return data.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE


def _signal(metric: Metric, said: wire.Said) -> str:
    """The signal of a latency, as SQL has it."""
    key, signals = SPLIT.get(metric.name, ("", {}))
    if not key:
        return metric.sql
    found = said.texts.get(key, "")
    if found not in signals:
        raise RejectedError(f"{key} is {found!r}: use one of {', '.join(sorted(signals))}")
    return signals[found]


def _event(of: _Of, said: wire.Said, interval: Interval, value: float) -> EventPoint:
    found = said.texts
    objective, result = found.get(OBJECTIVE, ""), found.get(RESULT, "")
    if not objective or result not in (GOOD, BAD):
        raise RejectedError(f"an event needs {OBJECTIVE}, and {RESULT} {GOOD} or {BAD}")
    who, model = of.sender.resource, said.model or UNKNOWN_MODEL
    return EventPoint(who, model, objective, found.get(OBJECTIVE_HASH, ""), result == GOOD, interval, value)


def _counter(of: _Of, said: wire.Said, interval: Interval, value: float) -> CounterPoint:
    found = said.texts
    own = tuple(sorted((LABELS[key], found[key]) for key in of.metric.attributes if key in found))
    return CounterPoint(of.sender.resource, said.model, of.metric.sql, own, interval, value)


def _gauge(of: _Of, point: sealed.NumberPoint, said: wire.Said, value: float) -> GaugePoint:
    own = next((said.texts[key] for key in of.metric.attributes if key in said.texts), "")
    return GaugePoint(of.sender.resource, said.model, of.metric.sql, own, point.time_unix_nano, value)


def _value(point: sealed.NumberPoint) -> float:
    kind = point.WhichOneof("value")
    value = float(point.as_int) if kind == "as_int" else point.as_double if kind == "as_double" else math.nan
    if not math.isfinite(value):
        raise RejectedError("the value is no finite number")
    return value
