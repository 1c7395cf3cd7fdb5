"""Coverage: what part of a window is known, in minutes or ticks, for services that speak and those that need not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.windowing.coverage import Coverage, of_series

DAY_S = 86400
NOW_S = 1_800_000_000


def known(starts: list[int], *, tick_s: int = 10) -> Coverage:
    one = Coverage(tick_s=tick_s, horizon_s=28 * DAY_S)
    for start_s in starts:
        one.add(start_s)
    return one


def test_nothing_known_is_nothing() -> None:
    assert known([]).share(3600, now_s=NOW_S) == 0.0
    assert known([]).share(3600, now_s=NOW_S, assumed=True) == 0.0


def test_three_minutes_after_an_empty_start_are_three_minutes() -> None:
    one = known(list(range(NOW_S - 180, NOW_S, 10)))
    assert one.share(3600, now_s=NOW_S) == pytest.approx(3 / 60)
    assert one.share(300, now_s=NOW_S) == pytest.approx(18 / 30)
    assert one.share(28 * DAY_S, now_s=NOW_S) == pytest.approx(3 / (28 * 1440))


def test_a_minute_is_known_by_any_tick_of_it_and_a_fine_window_by_each() -> None:
    one = known(list(range(NOW_S - 3600, NOW_S, 60)))
    assert one.share(3600, now_s=NOW_S) == 1.0
    assert one.share(300, now_s=NOW_S) == pytest.approx(5 / 30)


def test_the_running_step_counts_neither_way() -> None:
    one = known(list(range(NOW_S - 3600, NOW_S, 10)))
    for late_s in (0, 1, 9):
        assert one.share(60, now_s=NOW_S + late_s) == 1.0
    for late_s in (0, 30, 59):
        assert one.share(3600, now_s=NOW_S + late_s) == 1.0
    one.add(NOW_S)
    assert one.share(60, now_s=NOW_S) == 1.0


def test_a_gap_is_a_gap_until_late_data_fills_it() -> None:
    starts = [start_s for start_s in range(NOW_S - 3600, NOW_S, 10) if not NOW_S - 1800 <= start_s < NOW_S - 900]
    one = known(starts)
    assert one.share(3600, now_s=NOW_S) == pytest.approx(45 / 60)
    for start_s in range(NOW_S - 1800, NOW_S - 900, 10):
        one.add(start_s)
    assert one.share(3600, now_s=NOW_S) == 1.0


def test_silence_of_a_service_that_need_not_speak_is_known() -> None:
    one = known([NOW_S - 1800])
    assert one.share(3600, now_s=NOW_S) == pytest.approx(1 / 60)
    assert one.share(3600, now_s=NOW_S, assumed=True) == pytest.approx(30 / 60)
    assert one.share(1800, now_s=NOW_S, assumed=True) == 1.0


def test_what_is_older_than_the_ring_does_not_come_back_as_new() -> None:
    one = known([NOW_S])
    for days in range(28, 60):
        for minute in range(5):
            one.add(NOW_S - days * DAY_S - 60 * minute)
    assert one.share(28 * DAY_S, now_s=NOW_S + 60) == pytest.approx(1 / (28 * 1440))


@given(
    st.sets(st.integers(0, 2000), max_size=200),
    st.sampled_from([60, 300, 600, 3600, 7200]),
    st.integers(0, 21_000),
    st.sampled_from([2, 10]),
)
def test_it_is_the_share_of_steps_that_are_known(steps: set[int], window_s: int, now_s: int, tick_s: int) -> None:
    starts = sorted(NOW_S + 10 * step for step in steps if 10 * step <= now_s)
    one, at_s = known(starts, tick_s=tick_s), NOW_S + now_s
    step_s = tick_s if window_s < 600 else 60
    until = at_s // step_s
    expected = {start_s // step_s for start_s in starts} & set(range(until - window_s // step_s, until))
    assert one.share(window_s, now_s=at_s) == pytest.approx(len(expected) * step_s / window_s)


def test_a_series_is_covered_no_longer_than_it_is_there() -> None:
    assert of_series(1.0, window_s=3600, age_s=900) == 0.25
    assert of_series(0.1, window_s=3600, age_s=900) == 0.1
    assert of_series(1.0, window_s=3600, age_s=9000) == 1.0
    assert of_series(1.0, window_s=3600, age_s=-10) == 0.0
