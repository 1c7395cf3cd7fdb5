import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.guarding.drain import CLIP, FEWEST, Cost, Drain
from sidecar.limits import GUARD_FORGET_S

S = 1_000_000_000
positive = st.floats(1e-6, 1e6)


def learnt(gap_s: float, *, depth: int = 4, gaps: int = 20, size: int = 100, at_ns: int = 0) -> Drain:
    drain = Drain()
    for _ in range(gaps):
        drain.drained(depth, 1, size, seconds=gap_s, at_ns=at_ns)
    return drain


def pace_s(drain: Drain, depth: int, *, at_ns: int = 0) -> float:
    """What one request of the usual size costs at a depth."""
    return drain.pace(depth, at_ns)[0] * drain.queued_s(1, drain.usual_size)


# What a request takes.


@given(positive, st.integers(1, 1 << 30))
def test_one_size_has_one_cost(seconds: float, size: int) -> None:
    cost = Cost()
    for _ in range(5):
        cost.add(size, seconds)
    assert cost.of(1, size) == pytest.approx(seconds)
    assert cost.fixed_s >= 0
    assert cost.per_byte_s >= 0


@pytest.mark.parametrize(("fixed_s", "per_byte_s"), [(0.5, 0.0), (0.0, 1e-3), (0.2, 1e-3)])
def test_a_line_is_found_whatever_it_consists_of(fixed_s: float, per_byte_s: float) -> None:
    cost, chance = Cost(), Random(5)
    for _ in range(200):
        size = round(chance.lognormvariate(6, 1))
        cost.add(size, fixed_s + per_byte_s * size)
    for size in (100, 400, 2000):
        # The fit leans to a cost that sizes don't change, which is right where they hardly vary.
        assert cost.of(1, size) == pytest.approx(fixed_s + per_byte_s * size, rel=0.25)


@given(
    st.lists(st.tuples(st.integers(0, 1 << 20), st.floats(0, 1e5)), min_size=1, max_size=30), st.integers(0, 1 << 20)
)
def test_no_cost_is_ever_negative_or_endless(seen: list[tuple[int, float]], size: int) -> None:
    cost = Cost()
    for one in seen:
        cost.add(*one)
    assert cost.fixed_s >= 0
    assert cost.per_byte_s >= 0
    assert math.isfinite(cost.of(3, size))


# How fast the queue drains.


def test_nothing_is_known_before_enough_gaps() -> None:
    assert learnt(0.1, gaps=FEWEST).pace(4, 0) == (0.0, False)
    assert learnt(0.1, gaps=FEWEST + 1).pace(4, 0)[1]


def test_a_depth_beyond_those_seen_takes_their_pace_and_is_not_known() -> None:
    drain = learnt(0.1, depth=4)
    assert [drain.pace(depth, 0)[1] for depth in (4, 7, 8, 15, 16, 1000)] == [True, True, True, True, False, False]
    assert pace_s(drain, 1000) == pytest.approx(0.1)
    assert drain.pace(3, 0) == (0.0, False), "nor is a lower one, where a server may idle between two arrivals"


def test_each_depth_has_its_own_pace() -> None:
    drain = Drain()
    for depth, gap_s in ((2, 0.5), (40, 0.05)) * 30:
        drain.drained(depth, 1, 100, seconds=gap_s, at_ns=0)
    assert pace_s(drain, 3) == pytest.approx(0.5)
    assert pace_s(drain, 60) == pytest.approx(0.05)


def test_what_left_the_queue_with_a_first_token_shares_its_gap() -> None:
    drain = learnt(0.1)
    for _ in range(200):
        drain.drained(4, 5, 500, seconds=0.5, at_ns=0)
    assert pace_s(drain, 4) == pytest.approx(0.1)


def test_one_gap_that_is_far_too_long_counts_little() -> None:
    drain = learnt(0.1, gaps=60)
    drain.drained(4, 1, 100, seconds=1000.0, at_ns=0)
    assert pace_s(drain, 4) < 0.1 * (1 + CLIP / 20)


def test_a_server_that_stays_slower_is_followed() -> None:
    drain = learnt(0.1, gaps=60)
    for _ in range(60):
        drain.drained(4, 1, 100, seconds=1.0, at_ns=0)
    assert pace_s(drain, 4) > 0.8


def test_gaps_are_forgotten() -> None:
    drain = learnt(0.1)
    assert drain.pace(4, GUARD_FORGET_S * S)[1]
    assert drain.pace(4, GUARD_FORGET_S * S + 1) == (0.0, False)
    drain.drained(4, 1, 100, seconds=0.1, at_ns=2 * GUARD_FORGET_S * S)
    assert drain.pace(4, 2 * GUARD_FORGET_S * S) == (0.0, False), "one new gap makes no pace of old ones"


def test_who_meets_nobody_has_a_cost_of_its_own() -> None:
    drain = learnt(0.1)
    drain.met_nobody(100, 0.7)
    assert drain.idle_s(100) == pytest.approx(0.7)
    drain.met_nobody(100, 1000.0)
    assert drain.idle_s(100) < 0.7 * CLIP, "nor does one cold start stand for all"


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_any_unit_of_time_gives_the_same_pace(gap_s: float, unit: float) -> None:
    chance, other = Random(3), Random(3)
    ones, others = Drain(), Drain()
    for _ in range(20):
        ones.drained(4, 1, 100, seconds=gap_s * chance.random(), at_ns=0)
        others.drained(4, 1, 100, seconds=unit * gap_s * other.random(), at_ns=0)
    assert pace_s(others, 4) == pytest.approx(unit * pace_s(ones, 4))
