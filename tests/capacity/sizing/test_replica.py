"""A replica holds what was measured: its rate under Poisson arrivals, and no more."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from capacity.errors import WorkloadError
from capacity.sizing.demand import Demand
from capacity.sizing.measured import Alone, Measured
from capacity.sizing.replay import late_shares
from capacity.sizing.replica import allowed, first_that, parts, replica, works
from slo.objective import Objective, parse
from tests.capacity.sizing.traces import bursts

SPEC = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms}
  - {name: tpot, signal: tpot, percentile: 99, threshold: 50ms}
"""
OBJECTIVES: tuple[Objective, ...] = parse(SPEC)[0].objectives
KNOWN = Measured("c.json", 4.0, 5.0, Alone(0.1, 0.02, 2.0), 2.5, (1000.0, 96.0))


def flat(demand: Demand) -> Demand:
    return replace(demand, tokens=())


@pytest.mark.parametrize("rate", [0.5, 4.0, 30.0])
def test_the_certified_rate_is_kept_and_a_fifth_more_is_not(rate: float) -> None:
    """By arrivals that it was not made with."""
    one = replica(replace(KNOWN, certified_rps=rate), OBJECTIVES, flat(bursts()), 1)
    assert one.places >= rate * 2.5
    chance = np.random.default_rng(99)
    waits = [limit.wait_s for limit in one.allowed]

    def spent(at: float) -> float:
        times = np.cumsum(chance.exponential(1 / at, 60_000))
        shares = late_shares(times, np.full(times.size, one.stay_s), one.places, waits)
        return max(share / limit.budget for share, limit in zip(shares, one.allowed, strict=True))

    assert spent(0.95 * rate) < 1 < spent(1.2 * rate)


def test_what_an_objective_allows_is_the_slack_of_a_request_that_is_alone() -> None:
    found = {one.name: one for one in allowed(OBJECTIVES, KNOWN.alone, 96.0)}
    assert found["ttft"].wait_s == pytest.approx(0.4)
    assert found["tpot"].wait_s == pytest.approx(0.03 * 95)
    assert (found["ttft"].budget, found["tpot"].budget) == pytest.approx((0.05, 0.01))
    assert [one.name for one in allowed(OBJECTIVES, KNOWN.alone, None)] == ["ttft"]
    late = allowed([OBJECTIVES[0].model_copy(update={"threshold": Decimal("0.05")})], KNOWN.alone, 96.0)
    assert late[0].wait_s == 0


def test_work_is_that_of_a_mean_certified_request() -> None:
    demand = replace(bursts(), tokens=((1000, 96), (2000, 96), (1000, 192)))
    first, further = parts(KNOWN.alone, 96.0).first_s, parts(KNOWN.alone, 96.0).further_s
    whole = first + further
    assert (first, further) == pytest.approx((0.1, 0.02 * 95))
    assert works(demand, KNOWN).tolist() == pytest.approx([1, 1 + first / whole, 1 + further / whole])
    by_hand = replace(KNOWN, mean_tokens=None)
    assert works(bursts(), by_hand).mean() == pytest.approx(1)
    assert set(works(flat(bursts()), KNOWN).tolist()) == {1.0}


def test_requests_without_tokens_are_no_work_and_refused_unless_all_are_alike() -> None:
    nothing = replace(bursts(), tokens=((0, 0),) * 3)
    with pytest.raises(WorkloadError, match="--trace bursts: its requests have no tokens"):
        works(nothing, KNOWN)
    assert works(nothing, replace(KNOWN, mean_tokens=None)).tolist() == [1, 1, 1]


def test_what_nobody_says_cannot_be_sized() -> None:
    nothing = replace(KNOWN, alone=Alone(None, None, None), stay_s=None)
    with pytest.raises(WorkloadError, match="no objective says how long a request may wait"):
        replica(nothing, OBJECTIVES, bursts(), 1)
    with pytest.raises(WorkloadError, match="nothing says how long a request takes"):
        parts(Alone(None, 0.02, None), None)


@pytest.mark.parametrize("true_from", [1, 2, 7, 8, 9, 1000])
def test_the_least_number_is_found(true_from: int) -> None:
    assert first_that(lambda n: n >= true_from, 1) == true_from
    assert first_that(lambda n: n >= true_from, 5) == max(true_from, 5)
