"""Histogram points of the wire: what they hold is kept exactly, what contradicts itself is rejected."""

import math
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.decoding import sealed
from collector.decoding.distribution import Distributions
from collector.decoding.otlp import decode_metrics
from collector.values.histogram import Histogram, Layout, at_scale, from_values, merge
from collector.values.measurement import RejectedError
from sidecar.telling.otlp_wire import varint
from slo import signals
from tests.collector import messages
from tests.collector.messages import wire

Exponential = wire.ExponentialHistogramDataPoint
Explicit = wire.HistogramDataPoint
VALUES = [0.0, 0.05, 0.05, 0.3, 7.0]


def read_all(*points: Exponential | Explicit, cumulative: bool = False) -> list[Histogram | str]:
    """What is read of points that come in one body."""
    distributions = Distributions()
    for point in points:
        octets = point.SerializeToString()
        if isinstance(point, Exponential):
            distributions.add_exponential(sealed.exponential_point(octets), cumulative=cumulative)
        else:
            distributions.add_explicit(sealed.explicit_point(octets), cumulative=cumulative)
    return distributions.read()


@pytest.mark.parametrize("number", [6, 7])
def test_a_list_that_breaks_off_spoils_its_point_alone(number: int) -> None:
    """Of counts or bounds one is written as it should be not, the other not at all."""
    octets = Explicit(count=2).SerializeToString() + bytes((number << 3 | 2, 3, 1, 2, 3))
    distributions = Distributions()
    distributions.add_explicit(sealed.explicit_point(octets), cumulative=False)
    octets = Exponential(count=2).SerializeToString() + b"\x42\x03\x12\x01\xff"
    distributions.add_exponential(sealed.exponential_point(octets), cumulative=False)
    assert distributions.read() == ["bucket counts that cannot be read"] * 2


def read_histogram(point: Exponential | Explicit, *, cumulative: bool) -> Histogram:
    (one,) = read_all(point, cumulative=cumulative)
    if isinstance(one, str):
        raise RejectedError(one)
    return one


@pytest.mark.parametrize("scale", [9, 8, 5, 2, -3, -9])
def test_any_scale_comes_down_to_ours_or_stays_coarser(scale: int) -> None:
    one = read_histogram(messages.exponential_point(VALUES, scale=scale), cumulative=False)
    assert one.layout == Layout(min(scale, 5))
    assert one == at_scale(from_values(VALUES, Layout(scale)), 5)
    assert (one.count, one.zero_count, one.min, one.max) == (5, 1, 0.0, 7.0)


@pytest.mark.parametrize("scale", [20, 25, 2**31 - 1])
def test_a_scale_finer_than_any_sdk_writes_comes_down_too(scale: int) -> None:
    """At such a scale 2^31 buckets lie between 1 s and little more, or between little less and 1 s."""
    point = wire.ExponentialHistogramDataPoint(scale=scale, count=3, sum=3.0, time_unix_nano=1)
    point.positive.offset, point.positive.bucket_counts[:] = -1, [2, 1]
    one = read_histogram(point, cumulative=False)
    assert (one.layout, one.offset, one.counts.tolist()) == (Layout(5), -1, [2, 1])


def test_e03_buckets_of_two_scales_meet_by_value() -> None:
    a = wire.ExponentialHistogramDataPoint(scale=1, count=8, zero_count=1, sum=7.0)
    a.positive.offset, a.positive.bucket_counts[:] = -3, [2, 1, 4]
    b = wire.ExponentialHistogramDataPoint(scale=0, count=6, sum=6.0)
    b.positive.offset, b.positive.bucket_counts[:] = -1, [5, 1]
    first, second = (read_histogram(point, cumulative=False) for point in (a, b))
    both = merge(first, second)
    assert (both.layout.scale, both.offset, both.counts.tolist()) == (0, -2, [2, 10, 1])
    assert (both.zero_count, both.count) == (1, 14)


def test_e04_an_odd_offset_loses_no_count() -> None:
    point = wire.ExponentialHistogramDataPoint(scale=6, count=2, sum=2.0)
    point.positive.offset, point.positive.bucket_counts[:] = 1, [1, 1]
    one = read_histogram(point, cumulative=False)
    assert (one.layout.scale, one.offset, one.counts.tolist(), one.count) == (5, 0, [1, 1], 2)


point_values = st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 100)), max_size=40)


@given(st.lists(st.tuples(point_values, st.integers(-3, 7), st.booleans()), max_size=6))
def test_points_are_read_together_as_they_are_alone(several: list[tuple[list[float], int, bool]]) -> None:
    points: list[Exponential | Explicit] = []
    for values, scale, is_explicit in several:
        if is_explicit:
            counts = [0, 0, 0]
            for value in values:
                counts[(value > 0.1) + (value > 1.0)] += 1
            points.append(messages.explicit_point((0.1, 1.0), counts))
        else:
            points.append(messages.exponential_point(values, scale=scale))
    assert read_all(*points) == [one for point in points for one in read_all(point)]
    for one, (values, scale, is_explicit) in zip(read_all(*points), several, strict=True):
        assert isinstance(one, Histogram)
        if not is_explicit:
            expected = at_scale(from_values(values, Layout(scale)), 5)
            assert (one.offset, one.counts.tolist(), one.zero_count) == (
                expected.offset,
                expected.counts.tolist(),
                expected.zero_count,
            )


def test_a_faulty_point_spoils_none_of_its_neighbours() -> None:
    good = messages.exponential_point(VALUES)
    found = read_all(good, changed(huge), good, changed(many), messages.exponential_point([]), good)
    assert [isinstance(one, str) for one in found] == [False, True, False, True, False, False]
    assert found[0] == found[2] == found[5]


def test_counts_of_many_bytes_are_read() -> None:
    counts = [1, 127, 128, 16_383, 16_384, 2**35 + 1, 0, 3]
    point = wire.ExponentialHistogramDataPoint(scale=5, count=sum(counts), sum=1.0)
    point.positive.bucket_counts[:] = counts
    assert read_histogram(point, cumulative=False).counts.tolist() == counts


def one_by_one(field: int, values: list[int]) -> bytes:
    """Elements of a repeated varint field, not packed."""
    return b"".join(bytes((field << 3, value)) for value in values)


def test_counts_that_were_written_one_by_one_are_read() -> None:
    point = messages.exponential_point([0.05, 0.05, 7.0])
    packed = point.positive.SerializeToString()
    counts = list(point.positive.bucket_counts)
    point.positive.ClearField("bucket_counts")
    buckets = point.positive.SerializeToString() + one_by_one(2, counts)
    point.ClearField("positive")
    raw = point.SerializeToString() + b"\x42" + varint(len(buckets)) + buckets
    assert len(buckets) > len(packed)
    assert Exponential.FromString(raw).positive.bucket_counts == counts
    assert decoded_raw(raw) == read_histogram(messages.exponential_point([0.05, 0.05, 7.0]), cumulative=False)


def test_explicit_counts_that_were_written_one_by_one_are_read() -> None:
    point = messages.explicit_point((0.1, 1.0), (4, 0, 3))
    fields = b"".join(b"\x31" + count.to_bytes(8, "little") for count in (4, 0, 3))
    fields += b"".join(b"\x39" + struct.pack("<d", bound) for bound in (0.1, 1.0))
    point.ClearField("bucket_counts")
    point.ClearField("explicit_bounds")
    raw = Explicit.FromString(point.SerializeToString() + fields)
    assert list(raw.bucket_counts) == [4, 0, 3]
    request = unpacked_metric(point.SerializeToString() + fields, kind=9)
    (one,) = decode_metrics(request, json=False).latencies
    assert (one.histogram.layout, one.histogram.counts.tolist()) == (Layout(None, (0.1, 1.0)), [4, 0, 3])


def decoded_raw(point: bytes) -> Histogram:
    """An exponential point, given as bytes, read from a body."""
    (one,) = decode_metrics(unpacked_metric(point, kind=10), json=False).latencies
    return one.histogram


def unpacked_metric(point: bytes, *, kind: int) -> bytes:
    """A body of one metric, of one point that is given as bytes."""

    def block(field: int, data: bytes) -> bytes:
        return bytes((field << 3 | 2,)) + varint(len(data)) + data

    data = block(1, point) + b"\x10\x01"
    return block(1, block(2, block(2, block(1, signals.TTFT.name.encode()) + block(kind, data))))


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
    "a scale beyond all": (changed(lambda p: setattr(p, "scale", -11)), "scale -11"),
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
