"""The replay against a queue whose waits are known in closed form, and against the plainest simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from queues.erlang import chance_to_wait

from capacity.sizing.replay import is_kept, late_shares, waits


def plain(times: list[float], stays: list[float], places: int) -> list[float]:
    """First come, first served: each takes the place that is free first."""
    free, found = [0.0] * places, []
    for at, stay in zip(times, stays, strict=True):
        place = min(range(places), key=lambda one: free[one])
        begins = max(at, free[place])
        free[place] = begins + stay
        found.append(begins - at)
    return found


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0.01, 3)), min_size=1, max_size=60),
    st.integers(1, 5),
)
def test_waits_are_those_of_the_plainest_simulation(requests: list[tuple[float, float]], places: int) -> None:
    times = np.cumsum([gap for gap, _ in requests])
    stays = np.array([stay for _, stay in requests])
    assert waits(times, stays, places).tolist() == plain(times.tolist(), stays.tolist(), places)


@pytest.mark.parametrize(("places", "load"), [(1, 0.6), (4, 3.0), (20, 17.0)])
def test_the_share_that_waits_is_erlangs(places: int, load: float) -> None:
    """M/M/c: more than w wait with a chance of C exp(-(c - A) w)."""
    chance = np.random.default_rng(4)
    times, stays = np.cumsum(chance.exponential(1 / load, 200_000)), chance.exponential(1, 200_000)
    waited, longer = late_shares(times, stays, places, [1e-9, 0.5])
    known = chance_to_wait(places, load)
    assert waited == pytest.approx(known, rel=0.06)
    assert longer == pytest.approx(known * math.exp(-(places - load) * 0.5), rel=0.1)


def test_a_verdict_is_that_of_the_shares() -> None:
    chance = np.random.default_rng(5)
    times, stays = np.cumsum(chance.exponential(1.0, 50_000)), chance.exponential(3.0, 50_000)
    for places in (3, 4, 5, 8):
        shares = late_shares(times, stays, places, [0.5, 2.0])
        for budgets in ((0.05, 0.01), (0.3, 0.3), (0.001, 0.5)):
            kept = all(share <= budget for share, budget in zip(shares, budgets, strict=True))
            assert is_kept(times, stays, places, list(zip([0.5, 2.0], budgets, strict=True))) == kept
