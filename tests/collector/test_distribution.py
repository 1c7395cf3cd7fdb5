"""Histogram points of the wire: what they hold is kept exactly, what contradicts itself is rejected."""

import math
from collections.abc import Callable

import pytest

from collector.distribution import read_histogram
from collector.histogram import Layout, at_scale, from_values
from collector.measurement import RejectedError
from tests.collector import messages
from tests.collector.messages import wire

Exponential = wire.ExponentialHistogramDataPoint
VALUES = [0.0, 0.05, 0.05, 0.3, 7.0]


@pytest.mark.parametrize("scale", [9, 8, 5, 2, -3])
def test_any_scale_comes_down_to_ours_or_stays_coarser(scale: int) -> None:
    one = read_histogram(messages.exponential_point(VALUES, scale=scale), cumulative=False)
    assert one == at_scale(from_values(VALUES, Layout(scale)), 5)
    assert (one.count, one.zero_count, one.min, one.max) == (5, 1, 0.0, 7.0)


def test_a_cumulative_point_has_no_extremes_of_its_interval() -> None:
    one = read_histogram(messages.exponential_point(VALUES), cumulative=True)
    assert (one.min, one.max, one.count) == (None, None, 5)


def test_explicit_buckets_keep_their_bounds() -> None:
    one = read_histogram(messages.explicit_point((0.1, 1.0), (4, 0, 3)), cumulative=False)
    assert (one.layout, one.counts.tolist(), one.min, one.max) == (Layout(None, (0.1, 1.0)), [4, 0, 3], None, None)


def test_a_missing_sum_is_estimated_from_the_buckets() -> None:
    point = messages.exponential_point([2.0, 3.0, 100.0])
    point.ClearField("sum")
    assert read_histogram(point, cumulative=False).sum == pytest.approx(105, rel=0.011)


def test_an_empty_point_says_nothing_of_its_extremes() -> None:
    point = messages.exponential_point([])
    point.min, point.max, point.sum = math.inf, -math.inf, 0.0
    one = read_histogram(point, cumulative=False)
    assert (one.count, one.min, one.max, one.sum) == (0, None, None, 0.0)


def changed(change: Callable[[Exponential], object]) -> Exponential:
    point = messages.exponential_point(VALUES)
    change(point)
    return point


def explicit_changed(change: Callable[[wire.HistogramDataPoint], object]) -> wire.HistogramDataPoint:
    point = messages.explicit_point((0.1, 1.0), (4, 0, 3))
    change(point)
    return point


def far(point: Exponential) -> None:
    point.positive.offset = 2**31 - 1000


def many(point: Exponential) -> None:
    point.positive.bucket_counts.extend([1] * 5000)


def huge(point: Exponential) -> None:
    point.positive.bucket_counts[0] = 2**64 - 1


def unsorted(point: wire.HistogramDataPoint) -> None:
    point.explicit_bounds[:] = [1.0, 0.1]


def no_number(point: wire.HistogramDataPoint) -> None:
    point.explicit_bounds[:] = [0.1, math.nan]


def no_bounds(point: wire.HistogramDataPoint) -> None:
    point.explicit_bounds[:] = []
    point.bucket_counts[:] = [7]


REJECTED = {
    "a negative value": (changed(lambda p: p.negative.bucket_counts.append(1)), "never negative"),
    "a scale beyond all": (changed(lambda p: setattr(p, "scale", 21)), "scale 21"),
    "a wide zero": (changed(lambda p: setattr(p, "zero_threshold", 0.2)), "hides latencies"),
    "a zero that is no number": (changed(lambda p: setattr(p, "zero_threshold", math.nan)), "hides latencies"),
    "a bucket beyond all": (changed(far), "beyond any latency"),
    "too many buckets": (changed(many), "more than 4096 buckets"),
    "a count beyond all": (changed(huge), "a count above"),
    "zeros beyond all": (changed(lambda p: setattr(p, "zero_count", 2**63)), "a count above"),
    "a count that does not add up": (changed(lambda p: setattr(p, "count", 6)), "hold 5 values and the count says 6"),
    "a sum that is no number": (changed(lambda p: setattr(p, "sum", math.nan)), "finite numbers"),
    "a sum beyond all": (changed(lambda p: setattr(p, "sum", 9e307)), "finite numbers"),
    "an endless maximum": (changed(lambda p: setattr(p, "max", math.inf)), "finite numbers"),
    "a negative minimum": (changed(lambda p: setattr(p, "min", -1.0)), "finite numbers"),
    "unsorted bounds": (explicit_changed(unsorted), "ascending"),
    "bounds that are no numbers": (explicit_changed(no_number), "ascending"),
    "no bounds": (explicit_changed(no_bounds), "needs bounds"),
    "a bucket too few": (explicit_changed(lambda p: p.bucket_counts.pop()), "needs bounds"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_contradicts_itself_is_rejected(name: str) -> None:
    point, reason = REJECTED[name]
    with pytest.raises(RejectedError, match=reason):
        read_histogram(point, cumulative=False)
