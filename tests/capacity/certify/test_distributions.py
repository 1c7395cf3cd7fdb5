"""The distributions against sums and closed forms that do not use them."""

import math

import pytest

from capacity.certify.distributions import beta_cdf, few_or_less, least, many_or_more, student_above


def binomial(seen: range, of: int, share: float) -> float:
    return math.fsum(math.comb(of, k) * share**k * (1 - share) ** (of - k) for k in seen)


@pytest.mark.parametrize("of", [1, 7, 60, 900])
@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 0.93])
def test_shares_are_the_binomial_summed_up(of: int, share: float) -> None:
    for seen in {0, 1, of // 20, of // 2, of - 1, of} & set(range(of + 1)):
        assert few_or_less(seen, of, share) == pytest.approx(binomial(range(seen + 1), of, share), rel=1e-9, abs=1e-15)
        more = binomial(range(seen, of + 1), of, share)
        assert many_or_more(seen, of, share) == pytest.approx(more, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("t", [-40.0, -1.0, 0.0, 0.3, 2.0, 30.0])
def test_student_has_closed_forms_at_one_and_two_degrees_and_is_normal_at_many(t: float) -> None:
    assert student_above(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, abs=1e-12)
    assert student_above(t, 2) == pytest.approx(0.5 - t / (2 * math.sqrt(2 + t * t)), abs=1e-12)
    assert student_above(t, 1e7) == pytest.approx(0.5 * math.erfc(t / math.sqrt(2)), abs=1e-6)


def test_beta_is_whole_at_its_ends_and_smooth_between_whole_parameters() -> None:
    assert beta_cdf(0, 2, 3) == 0
    assert beta_cdf(1, 2, 3) == 1
    assert beta_cdf(0.3, 1, 1) == pytest.approx(0.3)
    assert beta_cdf(0.2, 2.5, 1) == pytest.approx(0.2**2.5)
    assert beta_cdf(2e6 / 2.002e9, 2e6, 2e9) == pytest.approx(0.5, abs=0.01)


def test_least_finds_where_something_begins_to_hold() -> None:
    assert least(lambda x: x * x >= 2, 0, 2) == pytest.approx(math.sqrt(2), rel=1e-8)
