"""What runs say of a share: counted exactly where requests are independent, and worth less where they are not."""

import math

import numpy as np
import pytest

from capacity.certify.evidence import NO_EVENT, Evidence, Series, evidence


def independent(share: float, requests: int, seed: int = 0) -> Series:
    return (np.random.default_rng(seed).random(requests) < share).astype(np.int8)


def clumped(share: float, requests: int, clump: int, seed: int = 0) -> Series:
    return np.repeat(independent(share, requests // clump, seed), clump)


def test_the_warm_up_and_what_is_no_event_are_left_out() -> None:
    run = np.array([1] * 25 + [NO_EVENT] * 25 + [0] * 50, dtype=np.int8)
    assert (evidence([run]).requests, evidence([run]).bad) == (50, 0)


def test_independent_requests_are_worth_about_their_number() -> None:
    worths = [evidence([independent(0.1, 8000, seed)]).worth for seed in range(30)]
    assert 0.75 * 6000 < float(np.median(worths)) <= 6000


def test_requests_that_stick_together_over_blocks_are_worth_less() -> None:
    worths = [evidence([clumped(0.1, 8000, 1000, seed)]).worth for seed in range(30)]
    assert float(np.median(worths)) < 2400


def test_clumps_that_are_known_of_bound_the_worth_even_if_none_was_seen() -> None:
    none = np.zeros(4000, dtype=np.int8)
    assert evidence([none]).worth == 3000
    assert evidence([none], clump=50).worth == 60
    assert evidence([none], clump=1e9).worth == 1


@pytest.mark.parametrize("clump", [1, 10, 100])
def test_a_share_at_the_budget_is_rarely_taken_for_less_or_for_more(clump: int) -> None:
    found = [evidence([clumped(0.05, 20_000, clump, seed)], clump=clump) for seed in range(300)]
    assert sum(one.chance_if_at_least(0.05) <= 0.05 for one in found) <= 300 * 0.08
    assert sum(one.chance_if_at_most(0.05) <= 0.05 for one in found) <= 300 * 0.08


def test_an_interval_holds_what_the_chances_allow() -> None:
    one = evidence([independent(0.05, 4000)])
    low, high = one.interval(0.05)
    assert low < one.share < high
    assert one.chance_if_at_most(low) == pytest.approx(0.05, rel=1e-3)
    assert one.chance_if_at_least(high) == pytest.approx(0.05, rel=1e-3)


def test_without_a_bad_one_the_upper_bound_is_the_exact_one() -> None:
    low, high = evidence([np.zeros(400, dtype=np.int8)]).interval(0.05)
    assert low == 0
    assert high == pytest.approx(1 - 0.05 ** (1 / 300), rel=1e-6)


def test_no_requests_say_nothing() -> None:
    one = evidence([np.empty(0, dtype=np.int8)])
    assert (one.share, one.chance_if_at_least(0.05), one.chance_if_at_most(0.05)) == (1, 1, 1)


def test_the_same_again_has_half_the_variance() -> None:
    one = Evidence(100, 10, 20.0, 0.1, 90.0)
    assert one.twice().error == pytest.approx(one.error / math.sqrt(2))
    assert one.twice().share == one.share
