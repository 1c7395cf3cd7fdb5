"""Metric points read into measurements; what cannot be is rejected or ignored by name.

The table of metrics (`slo.signals`) says which names are ours and of which kind; a point of another kind than its name
promises is rejected. Histograms are the business of `latency_points`, which reads those of a body together.
"""

import math
from collections.abc import Sequence
from typing import cast

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    AGGREGATION_TEMPORALITY_DELTA,
)

from collector.decoding import sealed, wire
from collector.decoding.intervals import Of, interval
from collector.decoding.latency_points import LatencyReading, read_together, said_of
from collector.values.measurement import (
    MAX_COUNT,
    MAX_VALUE,
    Batch,
    CounterPoint,
    EventPoint,
    GaugePoint,
    Interval,
    LatencyPoints,
    RejectedError,
)
from slo.signals import BAD, BY_NAME, GOOD, LABELS, OBJECTIVE, OBJECTIVE_HASH, RESULT, SLO_EVENTS, UNKNOWN_MODEL, Metric

SECONDS = ("s", "")
MAX_UNIT = 16
"""As much of a wrong unit as the sender is told."""
SHAPES = {"histogram": ("histogram", "exponential_histogram"), "counter": ("sum",), "gauge": ("gauge", "sum")}
"""The shapes on the wire that a kind of metric may take."""

MAX_POINTS = 100_000
"""Points of ours in one body; those of metrics beyond are rejected."""

TOO_MANY_POINTS = f"more than {MAX_POINTS} points in a body: send smaller batches"
UNKNOWN_METRIC = "metric of no interest"


class Points:
    """Reads metrics into one batch."""

    def __init__(self) -> None:
        self._events: list[EventPoint] = []
        self._counters: list[CounterPoint] = []
        self._gauges: list[GaugePoint] = []
        self._rejected = wire.Reasons()
        self._ignored = wire.Reasons()
        self._latencies = LatencyReading(self._rejected, self._ignored)
        self._read_points = 0

    @property
    def count(self) -> int:
        """Points of ours."""
        return self._read_points

    def batch(self) -> Batch:
        """Everything read so far."""
        return batches([self])[0]

    @property
    def latencies(self) -> LatencyReading:
        """Those that are histograms."""
        return self._latencies

    def finished(self, latencies: LatencyPoints) -> Batch:
        """Everything, with the histograms as they were read."""
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
        of = Of(sender, scope, ours, shape != "gauge" and _cumulative(data))
        if ours.kind == "histogram":
            self._latencies.add(of, str(shape), data)
            return
        for point in cast("Sequence[sealed.NumberPoint]", data.data_points):
            try:
                said = said_of(point, self._ignored)
                if said is not None:
                    self._number(of, point, said)
            except RejectedError as error:
                self._rejected.add(f"{ours.name}: {error}")

    def _number(self, of: Of, point: sealed.NumberPoint, said: wire.Said) -> None:
        value = _value(point)
        if of.metric.kind == "gauge":
            if abs(value) > MAX_VALUE:
                raise RejectedError(f"a value must be within {MAX_VALUE:g} of 0")
            self._gauges.append(_gauge(of, point, said, value))
            return
        largest = MAX_COUNT if of.metric is SLO_EVENTS else MAX_VALUE
        if not 0 <= value <= largest:
            raise RejectedError(f"a count must be from 0 to {largest:.0f}")
        when = interval(of, point.start_time_unix_nano, point.time_unix_nano, said)
        if of.metric is SLO_EVENTS:
            self._events.append(_event(of, said, when, value))
        else:
            self._counters.append(_counter(of, said, when, value))


def batches(several: Sequence[Points]) -> list[Batch]:
    """Everything that was read of each body, their histograms all at once."""
    latencies = read_together([one.latencies for one in several])
    return [one.finished(found) for one, found in zip(several, latencies, strict=True)]


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


def _event(of: Of, said: wire.Said, when: Interval, value: float) -> EventPoint:
    found = said.texts
    objective, result = found.get(OBJECTIVE, ""), found.get(RESULT, "")
    if not objective or result not in (GOOD, BAD):
        raise RejectedError(f"an event needs {OBJECTIVE}, and {RESULT} {GOOD} or {BAD}")
    who, model = of.sender.resource, said.model or UNKNOWN_MODEL
    return EventPoint(who, model, objective, found.get(OBJECTIVE_HASH, ""), result == GOOD, when, value)


def _counter(of: Of, said: wire.Said, when: Interval, value: float) -> CounterPoint:
    found = said.texts
    own = tuple(sorted((LABELS[key], found[key]) for key in of.metric.attributes if key in found))
    return CounterPoint(of.sender.resource, said.model, of.metric.sql, own, when, value)


def _gauge(of: Of, point: sealed.NumberPoint, said: wire.Said, value: float) -> GaugePoint:
    own = next((said.texts[key] for key in of.metric.attributes if key in said.texts), "")
    return GaugePoint(of.sender.resource, said.model, of.metric.sql, own, point.time_unix_nano, value)


def _value(point: sealed.NumberPoint) -> float:
    kind = point.WhichOneof("value")
    value = float(point.as_int) if kind == "as_int" else point.as_double if kind == "as_double" else math.nan
    if not math.isfinite(value):
        raise RejectedError("the value is no finite number")
    return value
