"""What is usual: the season, the noise and its memory, found again in made days."""

import math

import numpy as np
import pytest

from collector.judging.usual import MIN_SPREAD, WARM_MINUTES, Baseline
from tests.collector.latency_weeks import MINUTES_A_DAY, RHO, SEASON, SIGMA, minutes


def learnt(values: list[float], *, first: int = 0) -> Baseline:
    baseline = Baseline()
    for number, value in enumerate(values, first):
        baseline.learn(60 * number, value)
    return baseline


def logs(*, days: int, window: int = 1) -> list[float]:
    return [math.log(value) for value in minutes(3, days=days, window=window)]


def test_nothing_is_usual_before_a_whole_day_is_known() -> None:
    assert learnt(logs(days=1)[:-1]).usual(86400 - 60) is None
    assert learnt(logs(days=1)).usual(86400) is not None


def test_a_day_of_a_few_minutes_is_not_known() -> None:
    baseline = Baseline()
    for number in range(WARM_MINUTES - 1):
        baseline.learn(240 * number, 1.0)
    assert baseline.usual(86400 + 1800) is None


def test_of_a_day_one_level_is_known_and_of_three_the_season() -> None:
    one, three = learnt(logs(days=1)).usual(86400), learnt(logs(days=4)).usual(4 * 86400)
    assert one is not None
    assert three is not None
    assert one.at(21600) == one.at(64800) == pytest.approx(math.log(0.4), abs=0.05)
    for at_s in range(0, 86400, 3600):
        expected = math.log(0.4) + SEASON * math.sin(2 * math.pi * at_s / 86400)
        assert three.at(at_s) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("window", [1, 5])
def test_the_spread_is_what_means_scatter_by_whatever_the_window(window: int) -> None:
    """Of an AR(1) the mean of n values scatters as one of n independent ones with sigma sqrt((1 + rho) / (1 - rho)),
    and so does that of its moving averages."""
    usual = learnt(logs(days=7, window=window)).usual(7 * 86400)
    assert usual is not None
    assert usual.spread == pytest.approx(SIGMA * math.sqrt((1 + RHO) / (1 - RHO)), rel=0.25)


def test_outliers_do_not_widen_it() -> None:
    values = logs(days=4)
    wild = [value + 3 if number % 97 == 0 else value for number, value in enumerate(values)]
    calm, torn = learnt(values).usual(4 * 86400), learnt(wild).usual(4 * 86400)
    assert calm is not None
    assert torn is not None
    assert torn.spread == pytest.approx(calm.spread, rel=0.2)


def test_a_latency_that_never_varies_has_the_spread_of_the_histogram() -> None:
    usual = learnt([1.0] * MINUTES_A_DAY).usual(86400)
    assert usual is not None
    assert usual.spread == MIN_SPREAD


def test_it_is_found_anew_each_half_hour_and_kept_between() -> None:
    baseline = learnt(logs(days=1))
    first = baseline.usual(86400)
    baseline.learn(86400, 9.0)
    assert baseline.usual(86400 + 1799) is first
    assert baseline.usual(86400 + 1800) is not first


def test_the_spread_is_of_the_last_day() -> None:
    wide = [5 * value for value in np.random.default_rng(1).normal(0, 0.1, 3 * MINUTES_A_DAY)]
    calm = np.random.default_rng(2).normal(0, 0.1, MINUTES_A_DAY + 60).tolist()
    usual = learnt([*wide, *calm]).usual(4 * 86400 + 3600)
    assert usual is not None
    assert usual.spread < 0.2


def test_of_a_day_that_is_gone_what_was_known_stays() -> None:
    baseline = learnt(logs(days=1))
    known = baseline.usual(86400)
    assert baseline.usual(3 * 86400) is known
