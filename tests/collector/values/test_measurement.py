"""The values of a body: what equals what, and how many there are."""

from dataclasses import replace

import numpy as np
import pytest

from collector.values.histogram import from_values
from collector.values.measurement import (
    Batch,
    CounterPoint,
    GaugePoint,
    Interval,
    LatencyPoint,
    Resource,
    SpanLatencies,
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
