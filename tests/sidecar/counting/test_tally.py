import math

import pytest

from sidecar.counting.tally import Attributes, Increment, Number, Tally
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


def test_a_series_that_is_held_is_the_one_that_is_shown_until_it_is_forgotten() -> None:
    counts = tally()
    held = counts.counter(SLO_EVENTS, A)
    assert counts.total(SLO_EVENTS, A) == 0
    held.count += 2
    counts.add(SLO_EVENTS, A)
    assert counts.counter(SLO_EVENTS, A) is held
    assert counts.total(SLO_EVENTS, A) == 3
    counts.keep(SLO_EVENTS, lambda _: False)
    held.count += 1
    assert list(counts.totals()) == []


def test_a_latency_that_is_held_counts_on_over_a_reload_and_an_interval() -> None:
    counts = tally()
    held = counts.latency(TTFT, A)
    for edges_s in ((0.5, 1.0), (0.4, 1.0)):
        counts.new_edges(lambda _, edges_s=edges_s: edges_s)  # type: ignore[misc]
        held.record(0.3)
        assert counts.take(delta=True)[1][0].buckets.count == 1
        assert next(counts.classics())[2].cumulative()[0] == (edges_s[0], 1)


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
    counts.latency(TTFT, A)
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


def test_what_a_tally_hands_over_makes_another_whole() -> None:
    counts, whole = tally(), tally()
    whole.create(REQUESTS, B)
    for seconds in (0.2, 0.7):
        counts.add(REQUESTS, A)
        counts.create(SLO_EVENTS, A)
        counts.record(TTFT, A, seconds)
        whole.grow(counts.increment())
    assert counts.increment() == Increment()
    assert list(whole.totals()) == [Number(REQUESTS, B, 0), Number(REQUESTS, A, 2)]  # no zeros come over
    ((_, _, latency),) = whole.classics()
    assert latency.cumulative() == [(0.5, 1), (1.0, 2), (math.inf, 2)]
    _, (point,) = whole.take(delta=True)
    assert point.buckets.count == 2
    assert counts.total(REQUESTS, A) == 2  # its own totals stay


def test_who_holds_a_latency_goes_on_counting_in_it_after_it_was_handed_over() -> None:
    counts, whole = tally(), tally()
    held = counts.latency(TTFT, A)
    for seconds in (0.2, 0.7, 3.0):
        held.record(seconds)
        whole.grow(counts.increment())
    ((_, _, latency),) = whole.classics()
    assert latency.cumulative()[-1] == (math.inf, 3)


def test_classic_buckets_of_other_edges_are_left_out_of_the_sum() -> None:
    counts, whole = tally(), Tally(lambda _: (0.25,))
    counts.record(TTFT, A, 0.2)
    whole.grow(counts.increment())
    ((_, _, latency),) = whole.classics()
    assert latency.cumulative() == [(0.25, 0), (math.inf, 0)]
    _, (point,) = whole.take(delta=True)
    assert point.buckets.count == 1
