"""Good and bad events: counts of windows, ages, and whether bad events lie in two spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.windowing.events import ACTIVE_S, EventKey, EventRow, Events, Held

NOW_S = 1_800_000_000
KEY = EventKey("", "chat", "m", "ttft", "h")
OTHER = EventKey("", "chat", "n", "ttft", "h")
WINDOWS_S = (60, 300, 3600)


def events(*rows: EventRow, tick_s: int = 10) -> Events:
    one = Events(WINDOWS_S, tick_s=tick_s, now_s=NOW_S)
    one.add(rows)
    return one


def test_series_are_counted_alone_and_together() -> None:
    one = events(EventRow(KEY, NOW_S, 5, 1), EventRow(OTHER, NOW_S - 100, 7, 2, 3))
    assert one.held([KEY], 60) == Held(5, 1)
    assert one.held([OTHER], 60) == Held(0, 0)
    assert one.held([KEY, OTHER], 300) == Held(12, 3, 3)
    assert one.held([], 300) == Held(0, 0)


def test_events_leave_with_time_and_their_series_stays_known() -> None:
    one = events(EventRow(KEY, NOW_S, 5, 1))
    one.advance(NOW_S + 60)
    assert (one.held([KEY], 60), one.held([KEY], 300)) == (Held(0, 0), Held(5, 1))
    assert (one.firsts_s().tolist(), one.last_s(KEY), one.has(KEY)) == ([NOW_S], NOW_S, True)


def test_zeros_make_a_series_known() -> None:
    one = events(EventRow(KEY, NOW_S - 50, 0, 0))
    assert one.held([KEY], 3600) == Held(0, 0)
    assert one.firsts_s().tolist() == [NOW_S - 50]
    assert one.has(OTHER) is False


def test_a_series_is_spoken_of_until_it_has_been_silent_for_long() -> None:
    one = events(EventRow(KEY, NOW_S, 1, 0))
    moments = (NOW_S - 3600, NOW_S, NOW_S + ACTIVE_S, NOW_S + ACTIVE_S + 10)
    assert [one.spoken(KEY, at_s) for at_s in moments] == [True, True, True, False]
    assert not one.spoken(OTHER, NOW_S)


def test_lanes_are_read_together_and_behind_the_last_there_is_nothing() -> None:
    one = events(EventRow(KEY, NOW_S, 5, 1), EventRow(OTHER, NOW_S, 7, 2, 3))
    assert (one.count, one.lanes([OTHER, KEY])) == (2, [1, 0])
    assert one.sums(60).tolist() == [[5, 1, 0], [7, 2, 3], [0, 0, 0]]


def test_keys_are_found_by_objective() -> None:
    one = events(EventRow(KEY, NOW_S, 1, 0), EventRow(OTHER, NOW_S, 1, 0), EventRow(KEY, NOW_S, 1, 0))
    assert list(one.keys("", "chat", "ttft")) == [KEY, OTHER]
    assert list(one.keys("prod", "chat", "ttft")) == []


@given(
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 1), st.integers(0, 2)), max_size=12),
    st.sampled_from(WINDOWS_S),
    st.sampled_from([60, None]),
    st.sampled_from([2, 10]),
)
def test_spans_are_those_of_all_bad_events_of_the_window(
    adds: list[tuple[int, int, int]], window_s: int, spread_s: int | None, tick_s: int
) -> None:
    rows = [EventRow((KEY, OTHER)[lane], (NOW_S - 10 * steps) // tick_s * tick_s, 1, bad) for steps, lane, bad in adds]
    one = events(*rows, tick_s=tick_s)
    keys = [key for key in (KEY, OTHER) if one.has(key)]
    inside = [row.start_s for row in rows if row.bad and row.start_s > NOW_S // tick_s * tick_s - window_s]
    spans = {start_s // (spread_s or tick_s) for start_s in inside}
    assert one.bad_spans(keys, window_s, spread_s=spread_s) == min(len(spans), 2)


def test_bad_events_of_one_minute_are_one_span_though_of_many_ticks() -> None:
    start_s = NOW_S - 600
    one = events(*(EventRow(KEY, start_s + at_s, 0, 5) for at_s in (0, 10, 20, 50)))
    assert one.bad_spans([KEY], 3600, spread_s=60) == 1
    assert one.bad_spans([KEY], 3600, spread_s=None) == 2


def test_late_bad_events_do_not_hide_later_ones_of_their_minute() -> None:
    one = events(*(EventRow(KEY, NOW_S + at_s, 0, 5) for at_s in (50, 0, 110)))
    one.advance(NOW_S + 100)
    assert one.bad_spans([KEY], 60, spread_s=60) == 2


@pytest.mark.parametrize("moved_s", [0, 100, 3000, 4000])
def test_time_takes_spans_away(moved_s: int) -> None:
    one = events(EventRow(KEY, NOW_S - 600, 0, 5), EventRow(KEY, NOW_S, 0, 5))
    one.advance(NOW_S + moved_s)
    expected = 2 if moved_s < 3000 else 1 if moved_s < 3600 else 0
    assert one.bad_spans([KEY], 3600, spread_s=60) == expected
