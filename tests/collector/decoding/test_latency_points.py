"""The histogram points of a body: whichever way each is read, all are there, in their order, under their names."""

from collections.abc import Callable

import numpy as np
import pytest

from collector.decoding.otlp import decode_metrics
from collector.values.measurement import LatencyPoints, Tally
from slo import signals
from tests.collector import messages
from tests.collector.messages import CUMULATIVE, wire

TTFT = signals.TTFT.name
FOREIGN = {signals.SERVICE_NAME: "chat", signals.SERVICE_INSTANCE: "i"}


def read(*found: wire.Metric, resource: dict[str, messages.Value] | None = None) -> LatencyPoints:
    """The latencies of a body, of which none was rejected."""
    request = messages.metrics(*found, resource=resource) if resource else messages.metrics(*found)
    batch = decode_metrics(request.SerializeToString(), json=False)
    assert batch.rejected == ()
    assert isinstance(batch.latencies, LatencyPoints)
    return batch.latencies


def point(value: float, **attributes: messages.Value) -> wire.ExponentialHistogramDataPoint:
    return messages.exponential_point([value], attributes=attributes)


def without_sum(value: float) -> wire.ExponentialHistogramDataPoint:
    """It is read alone: its sum is estimated."""
    one = point(value)
    one.ClearField("sum")
    return one


def test_deltas_of_a_sidecar_stay_columns_of_both_shapes_in_their_order() -> None:
    explicit = messages.explicit_point((0.1, 1.0), (4, 0, 3))
    explicit.sum = 3.0
    found = read(
        messages.exponential(TTFT, point(1.0)),
        messages.explicit(signals.E2E.name, explicit),
        messages.exponential(signals.TPOT.name, point(2.0)),
    )
    assert found.others == ()
    assert [one.signal for one in found.deltas.whose] == [one.signal for one in found] == ["ttft", "e2e", "tpot"]
    assert [one.histogram.count for one in found] == [1, 7, 1]
    assert np.array_equal(found.deltas.ends_ns, [one.interval.end_ns for one in found])


def test_what_is_read_alone_stands_behind_the_columns() -> None:
    found = read(messages.exponential(TTFT, without_sum(1.0), point(2.0), without_sum(3.0)))
    assert [round(one.histogram.sum) for one in found] == [2, 1, 3]
    assert len(found.deltas.whose) == 1


def test_points_of_a_stream_stay_in_their_order_whichever_way_they_are_read() -> None:
    several = [without_sum(1.0), point(2.0), without_sum(3.0), point(4.0)]
    found = read(messages.exponential(TTFT, *several, temporality=CUMULATIVE), resource=FOREIGN)
    assert [round(one.histogram.sum) for one in found] == [1, 2, 3, 4]
    assert len({one.interval.stream for one in found}) == 1
    assert all(one.histogram.min is one.histogram.max is None for one in found)


def test_what_comes_at_every_interval_is_the_same_object() -> None:
    metric = messages.exponential(TTFT, point(1.0, **{signals.REQUEST_MODEL: "m"}))
    first, second = read(metric).deltas.whose[0], read(metric).deltas.whose[0]
    assert first is second
    assert (first.model, first.signal, first.censored) == ("m", "ttft", False)


def test_synthetic_latencies_are_ignored_among_others() -> None:
    synthetic = point(1.0, **{signals.CLASS: signals.SYNTHETIC_CLASS})
    body = messages.metrics(messages.exponential(TTFT, point(2.0), synthetic)).SerializeToString()
    batch = decode_metrics(body, json=False)
    assert [one.histogram.count for one in batch.latencies] == [1]
    assert [tally.count for tally in batch.ignored] == [1]


@pytest.mark.parametrize("metric", [messages.exponential, messages.explicit])
def test_a_point_that_cannot_be_read_is_rejected_among_others(metric: Callable[..., wire.Metric]) -> None:
    good = point(1.0) if metric is messages.exponential else messages.explicit_point((0.1, 1.0), (4, 0, 3))
    body = messages.metrics(metric(TTFT, good, type(good)(count=77))).SerializeToString()
    count = b"\x21" + (77).to_bytes(8, "little")
    assert body.count(count) == 1
    batch = decode_metrics(body.replace(count, b"\x2a\xff" + count[2:]), json=False)
    assert [one.histogram.count for one in batch.latencies] == [good.count]
    assert batch.rejected == (Tally(f"{TTFT}: a point that cannot be read", 1),)


def test_long_attributes_are_read_anew() -> None:
    metric = messages.exponential(TTFT, point(1.0, long="x" * 2000, **{signals.REQUEST_MODEL: "m"}))
    assert [(one.model, one.histogram.count) for one in read(metric)] == [("m", 1)]
