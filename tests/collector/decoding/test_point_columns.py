"""Points read side by side say what each says when it is read alone, and only what is faultless is taken."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.decoding.point_columns import SHAPES, Read
from collector.values.histogram import Layout
from tests.collector import messages
from tests.collector.decoding.test_distribution import REJECTED, VALUES, point_values, read_all
from tests.collector.messages import wire

Exponential = wire.ExponentialHistogramDataPoint
Point = Exponential | wire.HistogramDataPoint


def read(points: list[Point]) -> Read:
    """Points of one shape, read together."""
    shape = "exponential_histogram" if isinstance(points[0], Exponential) else "histogram"
    return SHAPES[shape].read([point.SerializeToString() for point in points])


def check(points: list[Point]) -> list[bool]:
    """Which of the points are plain; all of them are as they are alone."""
    found = read(points)
    for point, is_plain, histogram in zip(points, found.plain.tolist(), found.histograms, strict=True):
        if is_plain:
            assert [histogram] == read_all(point)
    return found.plain.tolist()


@given(st.lists(st.tuples(point_values, st.integers(-9, 7), st.sampled_from(["", "min", "max", "sum"])), min_size=1))
def test_exponential_points_are_read_as_they_are_alone(several: list[tuple[list[float], int, str]]) -> None:
    points: list[Point] = []
    for values, scale, missing in several:
        point = messages.exponential_point(values, scale=scale)
        if missing:
            point.ClearField(missing)
        points.append(point)
    assert check(points) == [point.HasField("sum") or not point.count for point in points]


@given(st.lists(st.lists(st.integers(0, 2**40 // 3), min_size=3, max_size=3), min_size=1, max_size=8))
def test_explicit_points_are_read_as_they_are_alone(several: list[list[int]]) -> None:
    points: list[Point] = []
    for number, counts in enumerate(several):
        point = messages.explicit_point((0.1, 1.0 + number % 2), counts)
        point.sum = 1.5
        points.append(point)
    assert all(check(points))
    assert read(points).histograms.layout_at()[0] == Layout(None, (0.1, 1.0))


@pytest.mark.parametrize("name", REJECTED)
def test_what_is_faulty_is_not_plain_and_spoils_no_neighbour(name: str) -> None:
    faulty, _ = REJECTED[name]
    good: Point = messages.exponential_point(VALUES)
    if not isinstance(faulty, Exponential):
        good = messages.explicit_point((0.1, 1.0), (4, 0, 3))
        good.sum = 1.5
    assert check([good, faulty, good, faulty]) == [True, False, True, False]


def flagged(point: Exponential) -> None:
    point.flags = wire.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK


LEFT: dict[str, Callable[[Exponential], object]] = {
    "a point that has no value": flagged,
    "a point without a time": lambda point: point.ClearField("time_unix_nano"),
    "an end beyond 63 bits": lambda point: setattr(point, "time_unix_nano", 2**63 + 1),
    "a start beyond 63 bits": lambda point: setattr(point, "start_time_unix_nano", 2**63 + 1),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_needs_a_word_is_left_to_be_read_alone(name: str) -> None:
    point = messages.exponential_point(VALUES)
    LEFT[name](point)
    assert not read([point]).plain.any()


def test_exemplars_and_empty_negatives_are_passed_over() -> None:
    point = messages.exponential_point(VALUES)
    point.exemplars.add(as_double=0.3, time_unix_nano=5)
    point.negative.bucket_counts[:] = [0, 0]
    assert check([point, messages.exponential_point([])]) == [True, True]


def test_attributes_and_times_are_those_of_each_point() -> None:
    points = [messages.exponential_point(VALUES, attributes={"a": name}) for name in ("x", "yy", "z")]
    found = read([*points])
    assert [Exponential.FromString(raw).attributes for raw in found.attributes] == [one.attributes for one in points]
    assert found.ends_ns.tolist() == [one.time_unix_nano for one in points]
    assert found.starts_ns.tolist() == [one.start_time_unix_nano for one in points]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_points_are_none(shape: str) -> None:
    found = SHAPES[shape].read([])
    assert (found.plain.tolist(), found.attributes, list(found.histograms)) == ([], [], [])
