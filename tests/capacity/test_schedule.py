"""Schedules: their law, their limits, and that a seed decides everything."""

import itertools
import math
from random import Random

import pytest

from capacity.errors import WorkloadError
from capacity.schedule import MAX_ARRIVALS, Span, Workload, arrivals, fixed, poisson

WORKLOAD = Workload((("a", 3.0), ("b", 1.0)), Span(4, 8), Span(16, 16))


def test_fixed_times_are_an_even_gap_apart_from_zero() -> None:
    assert list(fixed(4, 1)) == [0.0, 0.25, 0.5, 0.75]


def test_fixed_covers_a_length_that_is_no_multiple_of_the_gap() -> None:
    assert list(fixed(2, 1.1)) == [0.0, 0.5, 1.0]


def test_poisson_keeps_rate_and_has_exponential_gaps() -> None:
    times = list(poisson(50, 400, Random(7)))
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    mean = math.fsum(gaps) / len(gaps)
    deviation = math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert 0 < times[0] < times[-1] < 400
    assert times == sorted(times)
    assert len(times) == pytest.approx(20_000, rel=0.03)  # four standard deviations of a Poisson count
    assert deviation / mean == pytest.approx(1.0, rel=0.05)  # a fixed schedule has 0 here


def test_the_same_seed_gives_the_same_load_and_another_seed_another() -> None:
    def load(seed: int) -> object:
        chance = Random(seed)
        return arrivals(poisson(10, 10, chance), WORKLOAD, chance)

    assert load(1) == load(1)
    assert load(1) != load(2)


def test_models_come_by_weight_and_lengths_within_their_span() -> None:
    drawn = arrivals(fixed(4000, 1), WORKLOAD, Random(3))
    assert sum(arrival.model == "a" for arrival in drawn) == pytest.approx(3000, rel=0.05)
    assert {arrival.input_words for arrival in drawn} == {4, 5, 6, 7, 8}
    assert {arrival.output_tokens for arrival in drawn} == {16}


@pytest.mark.parametrize(("rate", "seconds"), [(0, 1), (-1, 1), (math.nan, 1), (1, 0), (1, math.inf)])
def test_a_rate_or_length_that_makes_no_load_is_refused(rate: float, seconds: float) -> None:
    with pytest.raises(WorkloadError, match="above 0"):
        list(fixed(rate, seconds))
    with pytest.raises(WorkloadError, match="above 0"):
        list(poisson(rate, seconds, Random(0)))


def test_more_arrivals_than_the_limit_are_refused() -> None:
    with pytest.raises(WorkloadError, match=str(MAX_ARRIVALS)):
        list(fixed(MAX_ARRIVALS, 1.01))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (5, 4), (1, 10**9)])
def test_a_span_that_is_none_is_refused(low: int, high: int) -> None:
    with pytest.raises(WorkloadError, match="LOW-HIGH"):
        Span(low, high)


@pytest.mark.parametrize("models", [(), (("a", 0.0),), (("a", math.nan),)])
def test_models_need_a_weight_above_zero(models: tuple[tuple[str, float], ...]) -> None:
    with pytest.raises(WorkloadError, match="model"):
        Workload(models, Span(1, 1), Span(1, 1))
