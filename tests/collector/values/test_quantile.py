"""Quantiles against sorted values: within the stated error, whatever the distribution; and what cannot be known."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.values.histogram import Floats, Histogram, Layout, from_values, histogram, merge
from collector.values.quantile import Censored, Quantile, buckets, estimated_sum, quantiles, rank, split_at
from tests.strategies import BOUNDS, explicit_histograms, exponential_histograms, usual_latencies_s, value_lists

SHARES = (0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
PROMISED = 0.011

DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "uniform": lambda rng, n: rng.uniform(0.001, 100, n),
    "narrow uniform": lambda rng, n: rng.uniform(0.2, 0.2001, n),
    "constant": lambda rng, n: np.full(n, 0.37),
    "constant at an edge": lambda rng, n: np.full(n, 0.5),
    "exponential": lambda rng, n: rng.exponential(0.3, n),
    "lognormal": lambda rng, n: rng.lognormal(-1.5, 0.5, n),
    "wide lognormal": lambda rng, n: rng.lognormal(-1.5, 2.5, n),
    "normal": lambda rng, n: np.abs(rng.normal(0.5, 0.1, n)),
    "gamma": lambda rng, n: rng.gamma(0.5, 0.2, n),
    "weibull": lambda rng, n: rng.weibull(0.7, n),
    "pareto": lambda rng, n: 0.05 * (1 + rng.pareto(1.1, n)),
    "cauchy": lambda rng, n: np.abs(rng.standard_cauchy(n)) + 1e-3,
    "triangular": lambda rng, n: rng.triangular(0.01, 0.02, 3, n),
    "two modes": lambda rng, n: np.where(rng.random(n) < 0.9, rng.normal(0.1, 0.01, n), rng.normal(8, 0.5, n)),
    "zeros and a tail": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.exponential(1, n)),
    "few values": lambda rng, n: rng.choice([0.05, 0.1, 0.25, 4.0], n),
    "ascending": lambda rng, n: np.linspace(0.001, 10, n),
    "geometric ladder": lambda rng, n: np.geomspace(0.001, 100, n),
    "tiny": lambda rng, n: rng.lognormal(-16, 1, n),
    "huge": lambda rng, n: rng.lognormal(9, 1, n),
}


def nearest(values: Floats, share: float) -> float:
    """The exact answer: the value of rank ceil(share * n)."""
    return float(np.sort(values)[max(math.ceil(round(share * values.size, 9)), 1) - 1])


@pytest.mark.parametrize("size", [1, 2, 10, 1_000, 100_000])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_quantile_is_within_the_stated_error(name: str, size: int) -> None:
    values = DISTRIBUTIONS[name](np.random.default_rng(size), size)
    found = quantiles([buckets(from_values(values))], SHARES)
    for share, one in zip(SHARES, found, strict=True):
        exact = nearest(values, share)
        assert one.value is not None
        assert one.rel_error <= PROMISED
        assert abs(one.value - exact) <= one.rel_error * exact * (1 + 1e-9), (share, one, exact)
        assert one.at_least <= exact * (1 + 1e-9)
    assert found[0].value is not None
    assert found[-1].value is not None
    assert values.min() <= found[0].value
    assert found[-1].value <= values.max() * (1 + 1e-12)


@pytest.mark.parametrize("scale", [-1, 0, 2, 8])
def test_the_error_is_that_of_the_scale(scale: int) -> None:
    values = np.random.default_rng(3).lognormal(0, 1, 1000)
    base = 2.0 ** (2.0**-scale)
    without_extremes = buckets(histogram(Layout(scale), *_parts(values, scale)))
    for share, one in zip(SHARES, quantiles([without_extremes], SHARES), strict=True):
        assert one.value is not None
        assert one.rel_error == pytest.approx((base - 1) / (base + 1))
        assert abs(one.value / nearest(values, share) - 1) <= one.rel_error * (1 + 1e-9)


def _parts(values: Floats, scale: int) -> tuple[int, list[int]]:
    one = from_values(values, Layout(scale))
    return one.offset, one.counts.tolist()


@given(st.lists(value_lists(), min_size=1, max_size=4), st.floats(0, 1))
def test_a_mixture_of_layouts_answers_within_its_error(parts: list[list[float]], share: float) -> None:
    layouts = [Layout(5), Layout(None, BOUNDS), Layout(0), Layout(8)]
    values = np.sort(np.array([value for part in parts for value in part]))
    found = quantiles([buckets(from_values(p, layout)) for p, layout in zip(parts, layouts, strict=False)], [share])[0]
    if values.size == 0:
        assert found == Quantile()
        return
    exact = nearest(values, share)
    assert found.at_least <= exact * (1 + 1e-9)
    if found.value is not None and found.at_least == 0:
        assert exact <= found.value * (1 + 1e-9)
    elif found.value is not None:
        assert abs(found.value - exact) <= max(found.rel_error * exact, found.value * 1e-9) * (1 + 1e-9)


@given(exponential_histograms(), exponential_histograms())
def test_several_parts_answer_as_their_merge(a: Histogram, b: Histogram) -> None:
    together = quantiles([buckets(a), buckets(b)], SHARES)
    merged = quantiles([buckets(merge(a, b))], SHARES)
    for one, other in zip(together, merged, strict=True):
        if one.value is not None and other.value is not None:
            assert abs(one.value - other.value) <= max(one.rel_error, other.rel_error) * 2 * max(one.value, other.value)


def test_ranks_are_whole_where_the_share_of_the_count_is() -> None:
    assert [rank(share, 100) for share in (0.07, 0.29, 0.55, 0.57, 0.95, 0.99, 0.999)] == [7, 29, 55, 57, 95, 99, 100]
    assert rank(0.0, 5) == 1
    assert rank(1.0, 5) == 5
    assert rank(0.95, 21) == 20


def test_nothing_has_no_quantile() -> None:
    assert quantiles([], (0.5,)) == (Quantile(),)
    assert quantiles([buckets(Histogram(Layout(5)))], (0.5,)) == (Quantile(),)


class TestCensored:
    """A request without a value is slower than every value: its quantile is unknown, never a number."""

    values = buckets(from_values([0.1] * 90))

    def test_a_quantile_among_them_is_unknown_and_exceeds_what_they_waited(self) -> None:
        waited = Censored([buckets(from_values([2.0] * 10))])
        p50, p90, p95 = quantiles([self.values], (0.5, 0.9, 0.95), censored=waited)
        assert p50.value == pytest.approx(0.1, rel=PROMISED)
        assert p90.value == pytest.approx(0.1, rel=PROMISED)
        assert p95.value is None
        assert 2.0 * (1 - 2 * PROMISED) <= p95.at_least <= 2.0

    def test_those_that_wait_still_count_too(self) -> None:
        (p95,) = quantiles([self.values], (0.95,), censored=Censored(overdue=10, overdue_s=0.5))
        assert (p95.value, p95.at_least) == (None, 0.5)

    def test_they_may_be_all_there_is(self) -> None:
        (p50,) = quantiles([], (0.5,), censored=Censored(overdue=3, overdue_s=0.5))
        assert (p50.value, p50.at_least) == (None, 0.5)

    def test_short_waits_do_not_raise_what_is_known(self) -> None:
        """Ten of a hundred gave up after 10 ms: of the 95th it is known only that 94 lie below it."""
        slow = buckets(from_values([5.0] * 90))
        (p95,) = quantiles([slow], (0.95,), censored=Censored([buckets(from_values([0.01] * 10))]))
        assert p95.value is None
        assert p95.at_least == pytest.approx(5.0, rel=2 * PROMISED)

    @given(st.lists(usual_latencies_s, max_size=20), st.lists(usual_latencies_s, max_size=20), st.sampled_from(SHARES))
    def test_known_or_a_true_lower_bound(self, values: list[float], waits: list[float], share: float) -> None:
        """Whatever the censored would have taken (longer than they waited), at_least is not above the truth."""
        if not values and not waits:
            return
        found = quantiles([buckets(from_values(values))], (share,), censored=Censored([buckets(from_values(waits))]))[0]
        barely = nearest(np.array([*values, *(wait * 1.0001 for wait in waits)]), share)
        for_ever = nearest(np.array([*values, *(math.inf for _ in waits)]), share)
        assert found.at_least <= barely * (1 + 1e-9)
        assert (found.value is None) == math.isinf(for_ever)


class TestExplicit:
    """An explicit histogram says what its own buckets say."""

    one = histogram(Layout(None, BOUNDS), 0, [10, 10, 60, 10, 5, 5])

    def test_its_error_is_that_of_its_bucket(self) -> None:
        (p50,) = quantiles([buckets(self.one)], (0.5,))
        assert p50.value == pytest.approx(2 * 0.25 * 0.5 / 0.75)
        assert p50.rel_error == pytest.approx(0.25 / 0.75)

    def test_beyond_its_last_bound_only_the_bound_is_known(self) -> None:
        p95, p99 = quantiles([buckets(self.one)], (0.95, 0.99))
        assert (p95.value is not None, p99.value, p99.at_least) == (True, None, 2.5)

    def test_under_its_first_bound_anything_is_possible(self) -> None:
        (p5,) = quantiles([buckets(self.one)], (0.05,))
        assert (p5.value, p5.rel_error, p5.at_least) == (0.1, 1.0, 0.0)

    def test_extremes_that_are_known_narrow_it(self) -> None:
        values = [0.3] * 9 + [40.0]
        p50, largest = quantiles([buckets(from_values(values, Layout(None, BOUNDS)))], (0.5, 1.0))
        assert largest.value is not None
        assert p50.value is not None
        assert abs(p50.value / 0.3 - 1) <= p50.rel_error
        assert largest.value <= 40.0


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (0.1, (10, 90, 0)),
        (0.5, (80, 20, 0)),
        (2.5, (95, 5, 0)),
        (0.3, (20, 80, 60)),
        (0.4, (80, 20, 60)),
        (60.0, (95, 5, 5)),
    ],
)
def test_d05_a_threshold_is_exact_at_a_bound_and_says_so_elsewhere(
    threshold: float, expected: tuple[int, int, int]
) -> None:
    split = split_at(TestExplicit.one, threshold)
    assert (split.below, split.above, split.unsure) == expected


def test_a_threshold_under_the_first_bound_calls_nothing_bad_that_may_be_good() -> None:
    """The first bucket says of its values only that they are under its bound: unsure, and no reason for an alert."""
    one = from_values([0.01, 0.02, 0.2, 0.3], Layout(None, (0.25, 1.0)))
    split = split_at(one, 0.1)
    assert (split.below, split.above, split.unsure) == (3, 1, 3)


@given(st.one_of(exponential_histograms(), explicit_histograms()), usual_latencies_s)
def test_a_split_counts_everything_once(one: Histogram, threshold: float) -> None:
    split = split_at(one, threshold)
    assert split.below + split.above == one.count
    assert 0 <= split.unsure <= one.count


@given(st.lists(usual_latencies_s, max_size=50), usual_latencies_s)
def test_a_split_is_wrong_by_at_most_what_it_calls_unsure(values: list[float], threshold: float) -> None:
    split = split_at(from_values(values), threshold)
    exact = sum(value <= threshold for value in values)
    assert abs(split.below - exact) <= split.unsure


def test_a_sum_from_buckets_is_within_their_error() -> None:
    values = np.random.default_rng(5).lognormal(0, 1, 1000)
    assert estimated_sum(buckets(from_values(values))) == pytest.approx(values.sum(), rel=PROMISED)
    assert estimated_sum(buckets(TestExplicit.one)) > 0
