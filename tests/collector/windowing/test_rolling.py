"""Rolling sums: kept incrementally they equal the sums made anew, under any adds, late data and moves of time."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.windowing.rolling import MAX_PIECES, MAX_STRETCHES, RollingCounts, step_of

COLUMNS = 3
WINDOWS_S = (15, 60, 600, 7200, 86400, 2_419_200)
APART_S = (60, 3590, 3600, 3610, 7200, 21_600, 21_900, 86_400, 259_200, 259_260, 2_419_200)
"""Some are held at another step than the one before, and differ by less."""


@dataclass(frozen=True)
class Event:
    start_s: int
    lane: int
    column: int
    count: int


def add(rolling: RollingCounts, events: list[Event]) -> None:
    def array(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, dtype=np.int64)

    rolling.reserve(max((event.lane for event in events), default=0))
    cells = array([event.lane * COLUMNS + event.column for event in events])
    rolling.add(array([event.start_s for event in events]), cells, array([event.count for event in events]))


@pytest.mark.parametrize("apart", [1, 5000])
def test_many_steps_at_once_are_those_one_by_one(apart: int) -> None:
    """However many there are, and whether their cells lie close together or far apart when pieces are joined."""
    events = [Event(900 + 10 * (n % 9), apart * (n % 4), n % COLUMNS, n + 1) for n in range(3 * MAX_PIECES)]
    together, alone = (RollingCounts(COLUMNS, WINDOWS_S, tick_s=10, now_s=1000) for _ in range(2))
    add(together, events)
    assert len({event.start_s for event in events}) > MAX_STRETCHES
    for event in events:
        add(alone, [event])
    for now_s in (1000, 1500, 5_000_000):
        for one in (together, alone):
            one.advance(now_s)
        for window_s in WINDOWS_S:
            assert held(together, window_s) == held(alone, window_s) == anew(events, window_s, tick_s=10, now_s=now_s)


def anew(events: list[Event], window_s: int, *, tick_s: int, now_s: int) -> dict[tuple[int, int], int]:
    """The sums of a window by its definition: steps, at the window's rung, that start after now - window."""
    step_s, now_s = step_of(window_s, tick_s), now_s - now_s % tick_s
    sums: dict[tuple[int, int], int] = {}
    for event in events:
        if event.start_s - event.start_s % step_s > now_s - window_s:
            cell = event.lane, event.column
            sums[cell] = sums.get(cell, 0) + event.count
    return sums


def held(rolling: RollingCounts, window_s: int) -> dict[tuple[int, int], int]:
    """What a window holds, asked in all three ways."""
    sums = rolling.window(window_s)
    assert all(np.array_equal(rolling.lane(lane, window_s), sums[lane]) for lane in range(3))
    windows_s = []
    for ascending_s, grown in rolling.growing(np.array([2, -1, 0]), slice(1, COLUMNS)):
        windows_s.append(ascending_s)
        assert ascending_s != window_s or np.array_equal(grown, [sums[2, 1:], [0, 0], sums[0, 1:]])
    assert windows_s == sorted(windows_s)
    assert window_s in windows_s
    lanes, columns = np.nonzero(sums)
    return {(int(lane), int(column)): int(sums[lane, column]) for lane, column in zip(lanes, columns, strict=True)}


moves_s = st.one_of(st.integers(-30, 40), st.integers(0, 4000), st.integers(0, 200_000), st.just(3_000_000))
ages_s = st.one_of(st.integers(-300, 120), st.integers(0, 8000), st.integers(0, 100_000), st.integers(0, 3_000_000))


@given(
    st.sampled_from([2, 10, 60]),
    st.sampled_from([WINDOWS_S, APART_S]),
    st.lists(
        st.tuples(
            moves_s,
            st.lists(st.tuples(ages_s, st.integers(0, 9), st.integers(0, 2), st.integers(1, 2**40)), max_size=4),
        ),
        max_size=8,
    ),
)
@settings(max_examples=200, deadline=None)
def test_incremental_sums_equal_those_made_anew(
    tick_s: int, windows_s: tuple[int, ...], acts: list[tuple[int, list[tuple[int, int, int, int]]]]
) -> None:
    now_s = 10_000_000
    rolling = RollingCounts(COLUMNS, windows_s, tick_s=tick_s, now_s=now_s)
    events: list[Event] = []
    for move_s, adds in acts:
        rolling.advance(now_s + move_s)
        now_s = max(now_s, now_s + move_s)
        came = [Event((now_s - age_s) // tick_s * tick_s, lane, column, n) for age_s, lane, column, n in adds]
        add(rolling, came)
        events += came
        for window_s in windows_s:
            assert held(rolling, window_s) == anew(events, window_s, tick_s=tick_s, now_s=now_s), window_s


@given(st.lists(st.tuples(ages_s, st.integers(0, 3), st.integers(0, 2), st.integers(1, 9)), max_size=8))
@settings(deadline=None)
def test_any_order_gives_the_same_sums(adds: list[tuple[int, int, int, int]]) -> None:
    now_s = 10_000_000
    events = [Event((now_s - age_s) // 10 * 10, lane, column, n) for age_s, lane, column, n in adds]
    one = RollingCounts(COLUMNS, WINDOWS_S, tick_s=10, now_s=now_s)
    add(one, events)
    other = RollingCounts(COLUMNS, WINDOWS_S, tick_s=10, now_s=now_s)
    for event in reversed(events):
        add(other, [event])
    for moved_s in (0, 30, 90_000):
        one.advance(now_s + moved_s)
        other.advance(now_s + moved_s)
        assert all(held(one, w) == held(other, w) for w in WINDOWS_S)


@pytest.mark.parametrize(
    ("window_s", "tick_s", "step_s"),
    [
        (15, 2, 2),
        (3600, 10, 10),
        (3601, 10, 60),
        (21600, 10, 60),
        (86400, 10, 600),
        (259200, 2, 600),
        (300_000, 10, 3600),
    ],
)
def test_a_window_is_held_at_a_step_that_is_small_beside_it(window_s: int, tick_s: int, step_s: int) -> None:
    assert step_of(window_s, tick_s) == step_s
    assert step_s <= max(tick_s, 0.017 * window_s)


def test_an_edge_is_off_by_less_than_a_step() -> None:
    """An event leaves a window of 60 s once 60 s have passed since the start of its tick: after 50 s at least."""
    rolling = RollingCounts(COLUMNS, [60], tick_s=10, now_s=1000)
    add(rolling, [Event(1000, 0, 0, 1)])
    rolling.advance(1059)
    assert held(rolling, 60) == {(0, 0): 1}
    rolling.advance(1060)
    assert held(rolling, 60) == {}


def test_what_lies_ahead_counts_at_once() -> None:
    rolling = RollingCounts(COLUMNS, [60], tick_s=10, now_s=1000)
    add(rolling, [Event(1200, 0, 0, 1)])
    assert held(rolling, 60) == {(0, 0): 1}
    rolling.advance(1259)
    assert held(rolling, 60) == {(0, 0): 1}


def test_memory_is_bounded_by_steps_and_not_by_what_comes() -> None:
    rolling = RollingCounts(COLUMNS, [3600, 2_419_200], tick_s=10, now_s=0)
    for now_s in range(0, 40_000, 10):
        rolling.advance(now_s)
        add(rolling, [Event(now_s, 0, 0, 1), Event(now_s, 1, 2, 300)])
    ((fine, coarse),) = rolling._chains
    assert (fine.step_s, coarse.step_s) == (10, 3600)
    assert len(fine.slabs) == 360
    assert len(coarse.slabs) == 11  # what lies in the last hour is held at the finer step alone
    ended = [pieces for start_s, pieces in coarse.slabs.items() if start_s + 2 * coarse.step_s <= rolling._now_s]
    assert len(ended) >= 9
    assert {len(pieces) for pieces in ended} == {1}  # what came tick by tick lies together once the step is over
    assert held(rolling, 3600) == {(0, 0): 360, (1, 2): 108_000}
    assert held(rolling, 2_419_200) == {(0, 0): 4000, (1, 2): 1_200_000}


def test_answers_are_kept_until_a_ring_changes_and_never_mixed_up() -> None:
    """However often somebody asks, and for whichever lanes and columns."""
    rolling = RollingCounts(COLUMNS, [60, 600], tick_s=10, now_s=1000)
    add(rolling, [Event(1000, 0, 0, 1), Event(500, 1, 1, 2)])
    lanes, columns = [np.array(some) for some in ([0, 1], [1, 0], [-1, 1])], [slice(0, 3), slice(1, 2)]

    def check() -> None:
        for some in lanes:
            for part in columns:
                for window_s, sums in rolling.growing(some, part):
                    whole = np.concatenate((rolling.window(window_s), np.zeros((1, COLUMNS), dtype=np.int64)))
                    assert np.array_equal(sums, whole[some][:, part])

    for _ in range(2):
        check()
    add(rolling, [Event(500, 1, 1, 5), Event(990, 0, 2, 7)])
    check()
    kept = rolling._asked[1][-1].sums
    assert next(reversed(list(rolling.growing(lanes[2], columns[1]))))[1] is not kept
    assert rolling._asked[1][-1].sums is kept
    for now_s in (1050, 1060, 1100, 1590, 1600):
        rolling.advance(now_s)
        check()


def test_lanes_grow_and_stay_where_they_are() -> None:
    rolling = RollingCounts(COLUMNS, [60], tick_s=10, now_s=1000)
    add(rolling, [Event(1000, 1, 1, 5)])
    rolling.reserve(500)
    add(rolling, [Event(1000, 500, 2, 7)])
    assert held(rolling, 60) == {(1, 1): 5, (500, 2): 7}
    rolling.advance(1060)
    assert held(rolling, 60) == {}
