"""Planes: a histogram put into columns and read back is the same, within the plane's span and honestly beyond it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.values import bins
from collector.values.histogram import Counts, Histogram, Layout, from_values
from collector.values.quantile import Buckets, buckets, quantile_between, quantiles, ranks_of
from collector.windowing.plane import Plane, Reached
from tests.strategies import BOUNDS, exponential_histograms, usual_latencies_s

SHARES = (0.5, 0.95, 1.0)


def put(plane: Plane, start_s: int, one: Histogram) -> None:
    """A histogram in a lane of its own."""
    plane.add(np.array([plane.new_lane()]), np.array([start_s]), bins.of([one]))


def whole(plane: Plane) -> Counts:
    """What its only window holds."""
    ((_, sums),) = plane.growing(np.arange(plane.lanes))
    return sums


def through(one: Histogram) -> Buckets:
    """What a plane holds of one histogram."""
    plane = Plane(one.layout, [60], tick_s=10, now_s=1000)
    put(plane, 1000, one)
    return plane.buckets(0, 60)


@given(
    st.lists(usual_latencies_s, max_size=20), st.sampled_from([Layout(5), Layout(0), Layout(8), Layout(None, BOUNDS)])
)
def test_usual_latencies_keep_their_buckets(values: list[float], layout: Layout) -> None:
    one = from_values(values, layout)
    held, whole = through(one), buckets(Histogram(one.layout, one.zero_count, one.offset, one.counts))
    order = np.argsort(whole.low)
    assert np.array_equal(held.counts, whole.counts[order])
    assert np.array_equal(held.low, whole.low[order])
    assert np.array_equal(held.high, whole.high[order])


@given(exponential_histograms(), st.sampled_from(SHARES))
def test_any_latency_lies_where_the_plane_says(one: Histogram, share: float) -> None:
    held = through(one)
    assert held.count == one.count
    exact = quantiles([buckets(one)], [share])[0]
    told = quantiles([held], [share])[0]
    if exact.value is not None:
        assert told.at_least is not None
        assert told.at_least <= exact.value * (1 + 1e-9)
        assert told.value is None or exact.value * (1 - told.rel_error) <= told.value * (1 + 1e-9)


def test_zeros_are_zero_and_the_ends_say_that_they_are_ends() -> None:
    held = through(from_values([0.0, 0.0, 1e-9, 1e9]))
    assert held.counts.tolist() == [2, 1, 1]
    assert (held.low[0], held.high[0]) == (0.0, 0.0)
    assert (held.low[1], held.high[1]) == (0.0, 2.0**-14)
    assert (held.low[2], held.high[2]) == (2.0**14, np.inf)
    half, largest = quantiles([held], (0.5, 1.0))
    assert (half.value, half.rel_error) == (0.0, 0.0)
    assert (largest.value, largest.at_least) == (None, 2.0**14)


@pytest.mark.parametrize("scale", [-10, -4, -1, 0, 3, 8])
def test_every_scale_has_its_columns(scale: int) -> None:
    values = [0.0, 1e-3, 0.4, 1.0, 1.5, 60.0]
    held = through(from_values(values, Layout(scale)))
    assert held.count == len(values)
    told = quantiles([held], [1.0])[0]
    assert told.at_least is not None
    assert told.at_least < 60


@given(
    st.lists(st.lists(usual_latencies_s, max_size=12), min_size=1, max_size=6),
    st.sampled_from([Layout(5), Layout(-1), Layout(None, BOUNDS)]),
)
def test_ranks_of_all_lanes_at_once_lie_where_each_alone_says(lanes: list[list[float]], layout: Layout) -> None:
    plane = Plane(layout, [60], tick_s=10, now_s=1000)
    for values in lanes:
        put(plane, 1000, from_values(values, layout))
    sums, (low, high) = whole(plane), plane.edges()
    assert sums.shape == (plane.lanes, low.size)
    assert sums.sum(axis=1).tolist() == [len(values) for values in lanes]
    if low.size == 0:
        return
    reached = Reached(sums)
    assert reached.totals.tolist() == [len(values) for values in lanes]
    columns = reached.found(np.arange(len(lanes)), ranks_of(SHARES, reached.totals))
    for lane, values in enumerate(lanes):
        if values:
            told = tuple(quantile_between(low[column], high[column]) for column in columns[lane])
            assert told == quantiles([plane.buckets(lane, 60)], SHARES)


def test_a_plane_reads_between_the_first_and_the_last_column_in_use() -> None:
    plane = Plane(Layout(5), [60], tick_s=10, now_s=1000)
    put(plane, 1000, from_values([]))
    assert whole(plane).shape == (1, 0)
    put(plane, 1000, from_values([0.1, 0.2]))
    put(plane, 900, from_values([7.0]))
    low, high = plane.edges()
    assert (low[0] < 0.1 <= high[0], low[-1] < 7.0 <= high[-1]) == (True, True)
    assert whole(plane).sum() == 2


def test_a_rank_that_a_row_does_not_reach_lies_in_its_last_column() -> None:
    reached = Reached(np.array([[1, 0], [0, 0], [0, 2]]))
    assert reached.found(np.arange(3), np.array([[1, 9], [1, 1], [1, 2]])).tolist() == [[0, 1], [1, 1], [1, 1]]
    assert reached.found(np.array([2, 0]), np.array([[1, 2], [1, 9]])).tolist() == [[1, 1], [0, 1]]
