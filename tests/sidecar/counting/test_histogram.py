import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics._internal.exponential_histogram.mapping.logarithm_mapping import LogarithmMapping

from sidecar.counting.exemplar import Trace
from sidecar.counting.histogram import SCALE, ClassicHistogram, EdgeBuckets, LogBuckets, LogHistogram

latencies = st.floats(min_value=1e-6, max_value=1e5, allow_nan=False)


def counted(values: list[float], max_size: int = 640) -> LogBuckets:
    histogram = LogHistogram()
    for value in values:
        histogram.add(value)
    return histogram.buckets(max_size=max_size)


@given(st.lists(latencies, min_size=1, max_size=50))
def test_buckets_are_those_of_the_sdk(values: list[float]) -> None:
    buckets, mapping = counted(values, max_size=2000), LogarithmMapping(SCALE)
    expected: dict[int, int] = {}
    for value in values:
        index = mapping.map_to_index(value)
        expected[index] = expected.get(index, 0) + 1
    found = {buckets.offset + place: count for place, count in enumerate(buckets.counts) if count}
    # A value within rounding of an edge may fall on either side of it.
    if found != expected:
        assert sum(found.values()) == sum(expected.values())
        assert all(abs(a - b) <= 1 for a, b in zip(sorted(found), sorted(expected), strict=False))


@pytest.mark.parametrize("power", range(-15, 12))
def test_an_edge_belongs_to_the_bucket_below_it(power: int) -> None:
    assert counted([2.0**power]).offset == power * (1 << SCALE) - 1


@given(latencies)
def test_a_value_is_known_to_1_1_percent(value: float) -> None:
    buckets = counted([value])
    base = 2 ** (1 / (1 << buckets.scale))
    middle = math.sqrt(base ** (buckets.offset) * base ** (buckets.offset + 1))
    assert abs(middle / value - 1) < 0.011


@given(st.lists(latencies, max_size=40), st.lists(latencies, max_size=40))
def test_counts_of_two_add_up_to_those_of_both(left: list[float], right: list[float]) -> None:
    def bins(values: list[float]) -> dict[int, int]:
        buckets = counted(values, max_size=10_000)
        return {buckets.offset + place: count for place, count in enumerate(buckets.counts) if count}

    merged = bins(left)
    for index, count in bins(right).items():
        merged[index] = merged.get(index, 0) + count
    assert merged == bins(left + right)


def test_a_wide_spread_is_joined_until_it_fits() -> None:
    values = [10.0**power for power in range(-6, 6)]
    buckets = counted(values)
    assert buckets.scale == SCALE - 1
    assert len(buckets.counts) <= 640
    assert sum(buckets.counts) == buckets.count == 12
    assert (buckets.min, buckets.max) == (1e-6, 1e5)


@given(st.lists(latencies, min_size=1, max_size=60), st.integers(2, 64))
def test_joining_loses_no_count(values: list[float], max_size: int) -> None:
    buckets = counted(values, max_size)
    assert sum(buckets.counts) == len(values)
    assert 1 <= len(buckets.counts) <= max_size
    assert 2.0 ** (buckets.offset / 2.0**buckets.scale) <= min(values) * 1.0001


def test_zero_has_a_bucket_of_its_own_and_nothing_is_nothing() -> None:
    assert counted([0.0]).zero_count == 1
    assert counted([0.0]).counts == ()
    assert counted([]) == LogBuckets(SCALE, 0, 0.0, 0.0, 0.0, 0, 0, ())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.001])
def test_what_is_no_latency_is_refused_and_changes_nothing(value: float) -> None:
    histogram = LogHistogram()
    with pytest.raises(ValueError, match="no latency"):
        histogram.add(value)
    assert histogram.count == 0


def test_a_classic_edge_counts_what_is_exactly_on_it() -> None:
    histogram = ClassicHistogram([1.0, 0.5, 0.5])
    for value in (0.5, 0.500001, 1.0, 7.0):
        histogram.add(value)
    assert histogram.cumulative() == [(0.5, 1), (1.0, 3), (math.inf, 4)]
    assert histogram.sum == pytest.approx(9.000001)


def test_a_bucket_keeps_the_newest_request_that_has_a_trace() -> None:
    histogram = ClassicHistogram([0.5, 1.0])
    first, second, third = (Trace(bytes((n,)) * 16, bytes(8), n) for n in (1, 2, 3))
    for value, trace in ((0.1, first), (0.5, second), (0.2, None), (7.0, third), (0.7, None)):
        histogram.add(value, trace)
    assert histogram.exemplars == {0: (0.5, second), 2: (7.0, third)}
    assert histogram.moved_to([0.4]).exemplars == {}


def test_other_edges_start_again_and_the_same_go_on() -> None:
    histogram = ClassicHistogram([1.0])
    histogram.add(0.1)
    assert histogram.moved_to([1.0]) is histogram
    assert histogram.moved_to([1.0, 2.0]).cumulative()[-1] == (math.inf, 0)


def test_anothers_buckets_count_at_their_edges() -> None:
    buckets = EdgeBuckets((0.5, 1.0), (2, 0, 3), None)
    assert buckets.count == 5
    assert buckets.cumulative() == [(0.5, 2), (1.0, 2), (math.inf, 5)]
    assert buckets.exemplars == {}


@given(st.lists(st.floats(0, 1e4), max_size=50), st.lists(st.floats(0, 1e4), max_size=50))
def test_merged_histograms_are_those_of_the_union(one: list[float], other: list[float]) -> None:
    logs, classics = [LogHistogram() for _ in range(3)], [ClassicHistogram((0.5, 10)) for _ in range(3)]
    for place, values in enumerate((one, other, one + other)):
        for value in values:
            logs[place].add(value)
            classics[place].add(value, Trace(bytes(16), bytes(8), place) if value > 1 else None)
    logs[0].merge(logs[1])
    classics[0].merge(classics[1])
    merged, union = logs[0].buckets(), logs[2].buckets()
    assert (merged.count, merged.min, merged.max) == (union.count, union.min, union.max)
    assert (merged.scale, merged.offset, merged.counts) == (union.scale, union.offset, union.counts)
    assert merged.sum == pytest.approx(union.sum)
    assert classics[0].cumulative() == classics[2].cumulative()
    assert set(classics[0].exemplars) == set(classics[2].exemplars)
    newest = {place: exemplar for place, exemplar in classics[0].exemplars.items() if place in classics[1].exemplars}
    assert newest == classics[1].exemplars
