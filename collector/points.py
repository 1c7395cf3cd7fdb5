"""Metric points read one by one: each becomes a measurement, or is rejected or ignored by name.

The table of metrics (`slo.signals`) says which names are ours and of which kind; a point of another kind than its name
promises is rejected. Histograms are the business of `distribution`.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    AGGREGATION_TEMPORALITY_DELTA,
    DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK,
    NumberDataPoint,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as WireMetric
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as WireResource

from collector import wire
from collector.distribution import HistogramPoint, read_histogram
from collector.measurement import (
    MAX_COUNT,
    MAX_VALUE,
    Batch,
    CounterPoint,
    EventPoint,
    GaugePoint,
    Interval,
    LatencyPoint,
    RejectedError,
    Resource,
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
    RESULT,
    SIGNAL,
    SLO_EVENTS,
    SYNTHETIC_CLASS,
    UNKNOWN_MODEL,
    Metric,
)

SECONDS = ("s", "")
MAX_UNIT = 16
"""As much of a wrong unit as the sender is told."""
LATENCY_NAMES = frozenset(metric.sql for metric in LATENCY_METRICS)
SHAPES = {"histogram": ("histogram", "exponential_histogram"), "counter": ("sum",), "gauge": ("gauge", "sum")}
"""The shapes on the wire that a kind of metric may take."""

UNKNOWN_METRIC = "metric of no interest"
NO_VALUE = "point without a recorded value"
SYNTHETIC = "latency of synthetic traffic"

AnyPoint = HistogramPoint | NumberDataPoint


@dataclass(frozen=True, slots=True)
class _Of:
    """What the points of one metric share; `stream` names a point's cumulative stream, '' for deltas."""

    resource: Resource
    metric: Metric
    stream: Callable[[wire.Attributes], str]


class Points:
    """Reads metrics into one batch."""

    def __init__(self) -> None:
        self._latencies: list[LatencyPoint] = []
        self._events: list[EventPoint] = []
        self._counters: list[CounterPoint] = []
        self._gauges: list[GaugePoint] = []
        self._rejected: Counter[str] = Counter()
        self._ignored: Counter[str] = Counter()

    def batch(self) -> Batch:
        """Everything read so far."""
        return Batch(
            latencies=tuple(self._latencies),
            events=tuple(self._events),
            counters=tuple(self._counters),
            gauges=tuple(self._gauges),
            rejected=wire.tallies(self._rejected),
            ignored=wire.tallies(self._ignored),
        )

    def read(self, sender: WireResource, resource: Resource, scope: str, metric: WireMetric) -> None:
        """Read the points of one metric; `resource` is what `sender` says of itself."""
        shape = metric.WhichOneof("data") or ""
        points: Sequence[AnyPoint] = getattr(metric, shape).data_points if shape else ()
        if shape not in ("histogram", "exponential_histogram", "sum", "gauge"):
            self._ignored[UNKNOWN_METRIC] += max(len(points), 1)
            return
        ours = BY_NAME.get(metric.name)
        if ours is None and metric.name:
            self._ignored[UNKNOWN_METRIC] += len(points)
            return
        fault = "a metric without a name" if ours is None else _fault(ours, metric, shape)
        if ours is None or fault is not None:
            self._rejected[str(fault)] += len(points)
            return

        def stream(found: wire.Attributes) -> str:
            return wire.stream_id(sender, scope, metric.name, point=found) if _cumulative(metric, shape) else ""

        of = _Of(resource, ours, stream)
        for point in points:
            self._read(of, point)

    def _read(self, of: _Of, point: AnyPoint) -> None:
        found = wire.attributes(point.attributes)
        if point.flags & DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK:
            self._ignored[NO_VALUE] += 1
            return
        try:
            if point.time_unix_nano == 0:
                raise RejectedError("a point without a time")
            if isinstance(point, NumberDataPoint):
                self._number(of, point, found)
            elif found.get(CLASS) == SYNTHETIC_CLASS:
                self._ignored[SYNTHETIC] += 1
            else:
                self._latencies.append(_latency(of, point, found))
        except RejectedError as error:
            self._rejected[f"{of.metric.name}: {error}"] += 1

    def _number(self, of: _Of, point: NumberDataPoint, found: wire.Attributes) -> None:
        value = _value(point)
        if of.metric.kind == "gauge":
            if abs(value) > MAX_VALUE:
                raise RejectedError(f"a value must be within {MAX_VALUE:g} of 0")
            self._gauges.append(_gauge(of, point, found, value))
            return
        largest = MAX_COUNT if of.metric is SLO_EVENTS else MAX_VALUE
        if not 0 <= value <= largest:
            raise RejectedError(f"a count must be from 0 to {largest:.0f}")
        if of.metric is SLO_EVENTS:
            self._events.append(_event(of, point, found, value))
        else:
            self._counters.append(_counter(of, point, found, value))


def _fault(ours: Metric, metric: WireMetric, shape: str) -> str | None:
    """What is wrong with a metric as a whole; None when its points can be read."""
    if shape not in SHAPES[ours.kind]:
        return f"{ours.name}: it is a {ours.kind}, and came as a {shape.replace('_', ' ')}"
    if ours.kind == "histogram" and metric.unit not in SECONDS:
        return f"{ours.name}: the unit is {metric.unit[:MAX_UNIT]!r}: send seconds"
    if shape == "gauge":
        return None
    known = AGGREGATION_TEMPORALITY_CUMULATIVE, AGGREGATION_TEMPORALITY_DELTA
    if getattr(metric, shape).aggregation_temporality not in known:
        return f"{ours.name}: the aggregation temporality is unspecified: send delta or cumulative"
    if shape == "sum" and ours.kind == "counter" and not metric.sum.is_monotonic:
        return f"{ours.name}: a counter must be monotonic"
    if shape == "sum" and ours.kind == "gauge" and not _cumulative(metric, shape):
        return f"{ours.name}: it is a gauge, and came as changes: send values"
    return None


def _cumulative(metric: WireMetric, shape: str) -> bool:
    temporality: int = getattr(metric, shape).aggregation_temporality
    return temporality == AGGREGATION_TEMPORALITY_CUMULATIVE


def _latency(of: _Of, point: HistogramPoint, found: wire.Attributes) -> LatencyPoint:
    censored = of.metric is CENSORED
    signal = found.get(SIGNAL, "") if censored else of.metric.sql
    if signal not in LATENCY_NAMES:
        raise RejectedError(f"{SIGNAL} is {signal!r}: use one of {', '.join(sorted(LATENCY_NAMES))}")
    interval = _interval(of, point, found)
    histogram = read_histogram(point, cumulative=bool(interval.stream))
    return LatencyPoint(of.resource, wire.model(found) or UNKNOWN_MODEL, signal, interval, histogram, censored)


def _event(of: _Of, point: NumberDataPoint, found: wire.Attributes, value: float) -> EventPoint:
    objective, result = found.get(OBJECTIVE, ""), found.get(RESULT, "")
    if not objective or result not in (GOOD, BAD):
        raise RejectedError(f"an event needs {OBJECTIVE}, and {RESULT} {GOOD} or {BAD}")
    model, interval = wire.model(found) or UNKNOWN_MODEL, _interval(of, point, found)
    return EventPoint(of.resource, model, objective, found.get(OBJECTIVE_HASH, ""), result == GOOD, interval, value)


def _counter(of: _Of, point: NumberDataPoint, found: wire.Attributes, value: float) -> CounterPoint:
    own = tuple(sorted((LABELS[key], found[key]) for key in of.metric.attributes if key in found))
    return CounterPoint(of.resource, wire.model(found), of.metric.sql, own, _interval(of, point, found), value)


def _gauge(of: _Of, point: NumberDataPoint, found: wire.Attributes, value: float) -> GaugePoint:
    own = next((found[key] for key in of.metric.attributes if key in found), "")
    return GaugePoint(of.resource, wire.model(found), of.metric.sql, own, point.time_unix_nano, value)


def _interval(of: _Of, point: AnyPoint, found: wire.Attributes) -> Interval:
    # A start beyond the end, up to 2^64, is a clock that was set: nothing is known of the time before the end.
    start_ns = min(point.start_time_unix_nano, point.time_unix_nano)
    return Interval(start_ns, point.time_unix_nano, of.stream(found))


def _value(point: NumberDataPoint) -> float:
    kind = point.WhichOneof("value")
    value = float(point.as_int) if kind == "as_int" else point.as_double if kind == "as_double" else math.nan
    if not math.isfinite(value):
        raise RejectedError("the value is no finite number")
    return value
