"""Sizes against an independent simulation, and against arrivals of which the answer is known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from capacity.errors import WorkloadError
from capacity.sizing.demand import Demand, demand_at
from capacity.sizing.measured import Alone, Measured
from capacity.sizing.replica import Replica, replica, works
from capacity.sizing.sized import Terms, gpu_hours, sized
from tests.capacity.sizing.test_replay import plain
from tests.capacity.sizing.test_replica import KNOWN, OBJECTIVES
from tests.capacity.sizing.traces import bursts, demands

BY_HAND = Measured("by hand", 0.5, None, Alone(0.25, 0.025, None), None)
DEMANDS = demands()


def keeps(one: Replica, demand: Demand, work: list[float], replicas: int) -> bool:
    """The objectives, by the plainest simulation there is."""
    stays = [one.stay_s * amount for amount in work]
    waited = plain(demand.times_s.tolist(), stays, replicas * one.places)
    return all(sum(wait > limit.wait_s for wait in waited) <= limit.budget * len(waited) for limit in one.allowed)


@pytest.mark.parametrize("demand", DEMANDS, ids=[demand.source.rpartition("/")[2] for demand in DEMANDS])
def test_by_replay_is_what_an_independent_simulation_finds(demand: Demand) -> None:
    one = replica(BY_HAND, OBJECTIVES, demand, 1)
    found = sized(demand, BY_HAND, one, Terms())
    work = works(demand, BY_HAND).tolist()
    poisson = math.ceil(demand.mean_rps * sum(work) / len(work) / BY_HAND.certified_rps)
    assert poisson == found.by_poisson
    if found.by_replay == found.by_poisson:
        assert keeps(one, demand, work, poisson)
    else:
        assert keeps(one, demand, work, found.by_replay)
        assert not keeps(one, demand, work, found.by_replay - 1)
    assert found.replicas == max(found.by_replay, found.by_peak) + 1


def test_a_fleet_that_nobody_has_is_a_mistake_and_said_to_be_one() -> None:
    known = replace(BY_HAND, certified_rps=1e-300)
    one = replica(BY_HAND, OBJECTIVES, bursts(), 1)
    with pytest.raises(WorkloadError, match="one replica takes 1e-300: that is more than 100,000 replicas"):
        sized(bursts(), known, one, Terms())


@pytest.mark.parametrize("demand", [d for d in DEMANDS if d.source == "bursts" or "code" in d.source], ids=str)
def test_where_requests_come_in_bursts_poisson_would_have_been_wrong(demand: Demand) -> None:
    found = sized(demand, BY_HAND, replica(BY_HAND, OBJECTIVES, demand, 1), Terms())
    assert found.by_replay >= 2 * found.by_poisson
    shares = {one.replicas: one for one in found.candidates}
    assert max(shares[found.by_poisson].replay) > 0.2
    assert max(shares[found.by_poisson].poisson) < 0.01
    assert found.peak.dispersion > 5


def poisson_demand(rate: float, seconds: float) -> Demand:
    chance = np.random.default_rng(3)
    return demand_at("poisson", np.cumsum(chance.exponential(1 / rate, int(rate * seconds))))


def test_where_arrivals_are_poisson_replay_says_as_poisson_does() -> None:
    demand = poisson_demand(22.0, 3600)
    found = sized(demand, KNOWN, replica(KNOWN, OBJECTIVES, demand, 1), Terms())
    assert found.by_replay == found.by_poisson == 6
    assert found.peak.dispersion == pytest.approx(1, abs=0.15)
    assert found.peak.uncertainty == pytest.approx(0.2)
    assert found.by_peak == math.ceil(found.peak.peak_rps / (4.0 * (1 - found.peak.headroom)))


def test_terms_do_what_they_say() -> None:
    demand = poisson_demand(10.0, 3600)
    one = replica(KNOWN, OBJECTIVES, demand, 1)
    plain_terms, doubled = (sized(demand, KNOWN, one, terms) for terms in (Terms(), Terms(growth=2.0)))
    assert doubled.peak.mean_rps == pytest.approx(2 * plain_terms.peak.mean_rps)
    assert doubled.by_poisson == math.ceil(2 * plain_terms.peak.busiest_rps / 4.0)
    held = sized(demand, KNOWN, one, Terms(headroom=0.5, spare=0))
    assert held.peak.headroom == 0.5
    assert held.replicas == held.by_peak == math.ceil(held.peak.peak_rps / 2.0)


def test_uncertainty_is_that_of_the_bracket_and_a_fifth_where_there_is_none() -> None:
    demand = poisson_demand(10.0, 1800)
    one = replica(KNOWN, OBJECTIVES, demand, 1)
    for refuted, share in ((4.2, 1 - 4 / 4.2), (8.0, 0.5), (None, 0.2)):
        found = sized(demand, replace(KNOWN, refuted_rps=refuted), one, Terms())
        assert found.peak.uncertainty == pytest.approx(share)
        assert found.peak.headroom >= share


def test_the_same_demand_is_sized_the_same() -> None:
    one = replica(BY_HAND, OBJECTIVES, bursts(), 1)
    assert sized(bursts(), BY_HAND, one, Terms()) == sized(bursts(), BY_HAND, one, Terms())


def test_gpu_hours() -> None:
    demand = bursts()
    found = sized(demand, BY_HAND, replica(BY_HAND, OBJECTIVES, demand, 1), Terms(gpus=2))
    hours = gpu_hours(found, demand, Terms(gpus=2))
    assert hours["a_day"] == found.replicas * 48
    assert hours["a_day_by_poisson"] == (found.by_poisson + 1) * 48
    assert demand.mean_tokens is not None
    a_second = found.replicas * 2 / 3600
    assert hours["a_million_output_tokens"] == pytest.approx(1e6 * a_second / (demand.mean_rps * demand.mean_tokens[1]))
