"""What arrivals are like, where the answer is known."""

import numpy as np
import pytest

from capacity.arrivals import dispersion, mean_rps, peak_rps, windows


def poisson(rate: float, count: int, seed: int = 1) -> np.ndarray:  # type: ignore[type-arg]
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


def test_rates_of_even_arrivals() -> None:
    times = np.arange(0, 3600, 0.5)
    assert mean_rps(times) == pytest.approx(2)
    assert peak_rps(times) == pytest.approx(2)


def test_the_peak_is_that_of_the_busiest_windows() -> None:
    busy = np.arange(1800, 2100, 0.1)
    times = np.sort(np.concatenate([np.arange(0, 3600, 1.0), busy]))
    assert peak_rps(times) == pytest.approx(11, rel=0.1)
    assert peak_rps(times, 3600) == pytest.approx(times.size / 3600, rel=0.05)


def test_a_short_window_of_a_long_time_is_looked_for_in_steps_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capacity.arrivals.MAX_BINS", 1000)
    times = np.arange(0, 3600, 0.5)
    assert windows(times, 1.0).size == 1000
    assert peak_rps(times, 1.0) == pytest.approx(2, rel=0.5)


def test_what_is_no_span_of_time_has_no_peak() -> None:
    assert peak_rps(np.array([5.0])) is None
    assert mean_rps(np.array([5.0, 5.0])) == 0


def test_poisson_arrivals_do_not_clump() -> None:
    assert dispersion(poisson(20, 100_000), 1.0) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("size", [4, 10])
def test_arrivals_in_groups_clump_as_large_as_the_groups(size: int) -> None:
    times = np.repeat(poisson(5, 20_000), size)
    assert dispersion(times, 2.0) == pytest.approx(size, rel=0.1)


def test_more_by_day_than_by_night_is_no_clump() -> None:
    times = np.concatenate(
        [hour * 3600 + poisson(2 + 20 * (hour % 2), 3600 * (2 + 20 * (hour % 2))) for hour in range(8)]
    )
    assert dispersion(np.sort(times), 1.0) == pytest.approx(1, abs=0.2)


def test_too_little_says_nothing_of_clumps() -> None:
    assert dispersion(np.array([0.0, 1.0]), 5.0) == 1
