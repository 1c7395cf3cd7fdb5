"""The values of a body: what equals what, and how many there are."""

from dataclasses import replace

import numpy as np
import pytest

from collector.values.histogram import from_values
from collector.values.histograms import side_by_side
from collector.values.measurement import (
    Batch,
    CounterPoint,
    DeltaColumns,
    GaugePoint,
    Interval,
    LatencyPoint,
    LatencyPoints,
    Resource,
    SpanLatencies,
    Whose,
)

WHO = Resource("", "chat", "i9", "otel")
SPANS = SpanLatencies(WHO, "m", "ttft", np.array([10, 20]), np.array([0.1, 0.2]))


def test_spans_are_equal_when_all_of_them_are() -> None:
    assert replace(SPANS, ends_ns=np.array([10, 20])) == SPANS
    others = [
        replace(SPANS, model="n"),
        replace(SPANS, ends_ns=np.array([10, 21])),
        replace(SPANS, values_s=np.array([0.1, 0.3])),
        replace(SPANS, ends_ns=np.array([10]), values_s=np.array([0.1])),
        "spans",
    ]
    assert all(other != SPANS for other in others)
    with pytest.raises(TypeError):
        hash(SPANS)


def test_a_batch_knows_how_much_it_holds() -> None:
    interval = Interval(0, 10)
    batch = Batch(
        latencies=(LatencyPoint(WHO, "m", "ttft", interval, from_values([0.1])),),
        counters=(CounterPoint(WHO, "m", "tokens", (), interval, 5.0),) * 2,
        gauges=(GaugePoint(WHO, "m", "waiting", "", 10, 1.0),),
        spans=(SPANS, SPANS),
    )
    assert (batch.points, batch.span_latencies) == (4, 4)
    assert (Batch().points, Batch().span_latencies) == (0, 0)


def test_columns_of_deltas_are_points_when_somebody_asks() -> None:
    whose = Whose(WHO, "m", "ttft"), Whose(WHO, "n", "e2e", censored=True)
    several = from_values([0.1]), from_values([2.0, 3.0])
    columns = DeltaColumns(whose, np.array([0, 5]), np.array([10, 15]), side_by_side(several), (WHO,))
    points = (
        LatencyPoint(WHO, "m", "ttft", Interval(0, 10), several[0]),
        LatencyPoint(WHO, "n", "e2e", Interval(5, 15), several[1], censored=True),
    )
    other = LatencyPoint(WHO, "m", "tpot", Interval(0, 10, "stream"), several[0])
    found = LatencyPoints(columns, (other,))
    assert found == (*points, other)
    assert (len(found), found[1], found[1:]) == (3, points[1], (points[1], other))
    assert tuple(columns.chosen(np.array([1]))) == points[1:]
    assert found != LatencyPoints(columns)
    assert found != "points"
    assert LatencyPoints() == ()
    with pytest.raises(TypeError):
        hash(found)
