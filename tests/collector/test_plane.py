"""Planes: a histogram put into columns and read back is the same, within the plane's span and honestly beyond it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.histogram import Histogram, Layout, from_values
from collector.plane import Plane
from collector.quantile import Buckets, buckets, quantiles
from tests.strategies import BOUNDS, exponential_histograms, usual_latencies_s

SHARES = (0.5, 0.95, 1.0)


def through(one: Histogram) -> Buckets:
    """What a plane holds of one histogram."""
    plane = Plane(one.layout, [60], tick_s=10, now_s=1000)
    columns, counts = plane.cells(one)
    plane.rolling.reserve(0)
    plane.rolling.add(np.full(columns.size, 1000), (np.zeros(columns.size, dtype=np.int64), columns), counts)
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
    found = quantiles([held], [share])[0]
    if exact.value is not None:
        assert found.at_least <= exact.value * (1 + 1e-9)
        assert found.value is None or exact.value * (1 - found.rel_error) <= found.value * (1 + 1e-9)


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
    found = quantiles([held], [1.0])[0]
    assert found.at_least < 60


@given(
    st.lists(st.lists(usual_latencies_s, max_size=12), min_size=1, max_size=6),
    st.sampled_from([Layout(5), Layout(-1), Layout(None, BOUNDS)]),
)
def test_all_lanes_at_once_answer_as_each_alone(lanes: list[list[float]], layout: Layout) -> None:
    plane = Plane(layout, [60], tick_s=10, now_s=1000)
    for lane, values in enumerate(lanes):
        columns, counts = plane.cells(from_values(values, layout))
        plane.rolling.reserve(lane)
        plane.rolling.add(np.full(columns.size, 1000), (np.full(columns.size, lane), columns), counts)
    table = plane.table(60, SHARES)
    for lane, values in enumerate(lanes):
        assert table.counts[lane] == len(values)
        assert tuple(table.of(lane)) == quantiles([plane.buckets(lane, 60)], SHARES)
