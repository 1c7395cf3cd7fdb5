"""Steps of the last minutes: any order in, and of every window at every moment what adding it up anew gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.windowing.trail import Trail

STEPS = st.lists(st.tuples(st.integers(0, 40).map(lambda n: 10 * n), st.integers(0, 9)), min_size=1, max_size=40)
WINDOWS = st.integers(10, 300)
MOMENTS = np.arange(0, 420, 10)


def trail(*steps: tuple[int, float]) -> Trail:
    one = Trail()
    for start_s, value in steps:
        one.add(start_s, value)
    return one


@given(STEPS, WINDOWS)
def test_a_window_holds_the_steps_that_start_within_it(steps: list[tuple[int, int]], window_s: int) -> None:
    one = trail(*steps)
    anew = [sum(value for start_s, value in steps if at - window_s < start_s <= at) for at in MOMENTS.tolist()]
    assert one.sums(window_s, at_s=MOMENTS).tolist() == anew
    assert [one.sum(window_s, at_s=at) for at in MOMENTS.tolist()] == anew
    for at in MOMENTS.tolist():
        starts_s, values = one.steps(window_s, at_s=at)
        assert sorted(set(starts_s.tolist())) == starts_s.tolist()
        assert values.sum() == one.sum(window_s, at_s=at)
        assert one.most(window_s, at_s=at) == max(values.tolist(), default=0)
        assert one.counts(window_s, at_s=np.array([at])).tolist() == [len(values)]


@given(STEPS, WINDOWS)
def test_the_slope_is_that_of_least_squares(steps: list[tuple[int, int]], window_s: int) -> None:
    one = trail(*steps)
    for at, slope in zip(MOMENTS.tolist(), one.slopes(window_s, at_s=MOMENTS).tolist(), strict=True):
        starts_s, values = one.steps(window_s, at_s=at)
        if len(values) < 2:
            assert np.isnan(slope)
        else:
            assert slope == pytest.approx(np.polynomial.polynomial.polyfit(starts_s, values, 1)[1], abs=1e-9)


def test_what_stays_the_same_does_not_grow_by_a_rounding() -> None:
    one = trail(*((1_800_000_000 + 7 * number, 12) for number in range(100)))
    assert one.slopes(600, at_s=np.array([1_800_000_693])).tolist() == [0.0]


def test_a_gauge_has_its_latest_value_while_that_is_fresh() -> None:
    one = Trail()
    one.put(100, 4)
    one.put(120, 6)
    one.put(120, 7)
    moments = np.array([90, 100, 119, 120, 180, 181])
    np.testing.assert_array_equal(one.values(60, at_s=moments), [np.nan, 4, 4, 7, 7, np.nan])


def test_steps_of_one_moment_are_one_whatever_comes_between() -> None:
    one = trail((10, 1), (30, 1), (20, 1), (10, 1), (30, 1))
    starts_s, values = one.steps(100, at_s=100)
    assert (starts_s.tolist(), values.tolist()) == ([10, 20, 30], [2, 1, 2])


def test_what_is_past_is_forgotten() -> None:
    one = trail((10, 1), (20, 2), (30, 4))
    assert one.forget(until_s=20)
    assert one.sum(100, at_s=30) == 4
    assert not one.forget(until_s=30)
