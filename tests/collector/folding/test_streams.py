"""Cumulative streams: E02 and its neighbours, and any cut of a stream into points gives the same total."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.folding.streams import FIRST_GRACE_S, MIXED_S, Increase, increase
from collector.values.deltas import StreamRow
from collector.values.histogram import Histogram, Layout, from_values, histogram, merge
from collector.values.measurement import Interval
from tests.strategies import usual_latencies_s

NS = 10**9
SINCE_NS = 1000 * NS


def fed(points: list[tuple[int, int, float]]) -> list[float | str | None]:
    """What each of some (start_s, end_s, value) adds, one after another; None of one that adds nothing. Points of one
    start are of one stream."""
    states: dict[int, StreamRow] = {}
    added: list[float | str | None] = []
    for start_s, end_s, value in points:
        interval = Interval(start_s * NS, end_s * NS, f"from {start_s}")
        one = increase(interval, value, last=states.get(start_s), since_ns=SINCE_NS)
        added.append(None if one is None else "mixed" if one.mixed else one.value)
        if one is not None:
            states[start_s] = one.state
    return added


CASES = {
    "E02: 5, 10, 15 are fifteen events": ([(1000, 1010, 5), (1000, 1020, 10), (1000, 1030, 15)], [5, 5, 5]),
    "a first point of a young sender counts whole": ([(1005, 1010, 5)], [5]),
    "one that started just before us counts too": ([(1000 - FIRST_GRACE_S, 1010, 5)], [5]),
    "an old sender's first point is where counting starts": ([(100, 1010, 500), (100, 1020, 503)], [None, 3]),
    "as is one that does not say when it started": ([(0, 1010, 500), (0, 1020, 503)], [None, 3]),
    "a repetition adds nothing": ([(1000, 1010, 5), (1000, 1010, 5), (1000, 1020, 6)], [5, None, 1]),
    "nor does a point out of order": ([(1000, 1020, 9), (1000, 1010, 5), (1000, 1030, 10)], [9, None, 1]),
    "a fall is a reset": ([(1000, 1010, 5), (1000, 1020, 2), (1000, 1030, 3)], [5, 2, 1]),
    "a new start is one even at a higher value": ([(1000, 1010, 5), (1015, 1020, 9)], [5, 9]),
    "two senders that share a resource do not mix": (
        [(1000, 1010, 5), (1003, 1011, 70), (1000, 1020, 8), (1003, 1021, 71), (1000, 1030, 9)],
        [5, 70, 3, 1, 1],
    ),
    "nor when the one started before this store": (
        [(100, 1010, 500), (1003, 1011, 7), (100, 1020, 501), (1003, 1021, 9)],
        [None, 7, 1, 2],
    ),
    "a late point from before a restart is out of order": (
        [(1000, 1010, 5), (1015, 1020, 2), (1000, 1008, 4), (1015, 1030, 3)],
        [5, 2, None, 1],
    ),
    "without a start a fall is a restart": ([(0, 1010, 500), (0, 1020, 2), (0, 1030, 5)], [None, 2, 3]),
    "without a start two that mix are refused, until it rises for long": (
        [
            (0, 1010, 500),
            (0, 1020, 2),
            (0, 1030, 501),
            (0, 1040, 3),
            (0, 1050, 502),
            (0, 1060, 503),
            (0, 1060 + MIXED_S, 504),
        ],
        [None, 2, 499, "mixed", "mixed", "mixed", 1],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_stream_of_points(name: str) -> None:
    points, expected = CASES[name]
    assert fed([(start_s, end_s, float(value)) for start_s, end_s, value in points]) == expected


def test_an_increase_says_over_what_time() -> None:
    last = StreamRow("s", 1000 * NS, 1010 * NS, 5.0)
    grown = increase(Interval(1000 * NS, 1020 * NS, "s"), 7.0, last=last, since_ns=SINCE_NS)
    assert grown == Increase(1010 * NS, 1020 * NS, 2.0, StreamRow("s", 1000 * NS, 1020 * NS, 7.0))
    first = increase(Interval(1015 * NS, 1020 * NS, "t"), 7.0, last=None, since_ns=SINCE_NS)
    assert first == Increase(1015 * NS, 1020 * NS, 7.0, StreamRow("t", 1015 * NS, 1020 * NS, 7.0))


def test_a_histogram_resets_when_any_bucket_falls() -> None:
    last = StreamRow("s", 1000 * NS, 1010 * NS, histogram(Layout(5), 0, [2, 1]))
    interval = Interval(1000 * NS, 1020 * NS, "s")
    fallen = histogram(Layout(5), 0, [1, 9])
    grown = increase(interval, fallen, last=last, since_ns=SINCE_NS)
    assert grown is not None
    assert grown.value == fallen


@pytest.mark.parametrize("value", [3.0, histogram(Layout(5), 0, [3])])
def test_what_became_another_kind_counts_anew(value: float | Histogram) -> None:
    other: float | Histogram = histogram(Layout(5), 0, [1]) if isinstance(value, float) else 1.0
    last = StreamRow("s", 1000 * NS, 1010 * NS, other)
    grown = increase(Interval(1000 * NS, 1020 * NS, "s"), value, last=last, since_ns=SINCE_NS)
    assert grown is not None
    assert grown.value == value


@given(st.lists(st.lists(usual_latencies_s, max_size=4), min_size=1, max_size=6))
def test_the_increases_of_a_cumulative_histogram_add_up_to_its_end(parts: list[list[float]]) -> None:
    total, added = Histogram(Layout(5)), Histogram(Layout(5))
    last: StreamRow | None = None
    for number, part in enumerate(parts):
        total = merge(total, from_values(part))
        interval = Interval(1000 * NS, (1010 + number) * NS, "s")
        grown = increase(interval, total, last=last, since_ns=SINCE_NS)
        assert grown is not None
        assert grown.value is not None
        added = merge(added, grown.value)
        last = StreamRow("s", interval.start_ns, interval.end_ns, total)
    assert (added.offset, added.counts.tolist()) == (total.offset, total.counts.tolist())
