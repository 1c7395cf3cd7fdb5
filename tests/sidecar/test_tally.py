import math

import pytest

from sidecar.tally import Attributes, Number, Tally
from slo.signals import REQUESTS, SLO_EVENTS, TTFT

A: Attributes = (("m", "a"),)
B: Attributes = (("m", "b"),)


def tally() -> Tally:
    return Tally(lambda _: (0.5, 1.0))


def test_a_counter_is_born_at_zero() -> None:
    counts = tally()
    counts.create(REQUESTS, A)
    assert list(counts.totals()) == [Number(REQUESTS, A, 0)]
    counts.add(REQUESTS, A)
    counts.create(REQUESTS, A)
    assert counts.total(REQUESTS, A) == 1
    assert counts.total(REQUESTS, B) == 0


def test_intervals_add_up_to_the_total() -> None:
    counts = tally()
    taken = 0.0
    for size in (3, 0, 5):
        counts.add(REQUESTS, A, size)
        (point,), _ = counts.take(delta=True)
        assert point.value == size
        taken += point.value
    assert taken == counts.total(REQUESTS, A) == 8


def test_cumulative_points_never_fall() -> None:
    counts = tally()
    for total in (2, 4):
        counts.add(REQUESTS, A, 2)
        counts.record(TTFT, A, 0.3)
        (point,), (latency,) = counts.take(delta=False)
        assert (point.value, latency.buckets.count) == (total, total / 2)


def test_an_interval_of_latencies_is_its_own_and_an_empty_one_is_absent() -> None:
    counts = tally()
    counts.create_latency(TTFT, A)
    assert counts.take(delta=True)[1] == ()
    counts.record(TTFT, A, 0.3)
    assert counts.take(delta=True)[1][0].buckets.count == 1
    assert counts.take(delta=True)[1] == ()
    counts.record(TTFT, A, 0.7)
    assert counts.take(delta=True)[1][0].buckets.min == 0.7
    ((metric, attributes, classic),) = counts.classics()
    assert (metric, attributes) == (TTFT, A)
    assert classic.cumulative() == [(0.5, 1), (1.0, 2), (math.inf, 2)]


def test_what_is_no_latency_is_counted_nowhere() -> None:
    counts = tally()
    with pytest.raises(ValueError, match="no latency"):
        counts.record(TTFT, A, math.nan)
    ((_, _, classic),) = counts.classics()
    assert classic.cumulative()[-1][1] == 0


def test_counters_of_a_replaced_objective_are_forgotten() -> None:
    counts = tally()
    counts.add(SLO_EVENTS, A)
    counts.add(SLO_EVENTS, B, 2)
    counts.take(delta=True)
    counts.keep(SLO_EVENTS, lambda attributes: attributes == B)
    assert list(counts.totals()) == [Number(SLO_EVENTS, B, 2)]
    counts.add(SLO_EVENTS, A)
    assert sorted(point.value for point in counts.take(delta=True)[0]) == [0, 1]
    counts.keep(REQUESTS, lambda _: False)


def test_new_edges_start_their_histograms_again() -> None:
    counts = tally()
    counts.record(TTFT, A, 0.3)
    counts.new_edges(lambda _: (0.5, 1.0))
    assert next(counts.classics())[2].cumulative()[-1][1] == 1
    counts.new_edges(lambda _: (0.4, 1.0))
    assert next(counts.classics())[2].cumulative() == [(0.4, 0), (1.0, 0), (math.inf, 0)]
