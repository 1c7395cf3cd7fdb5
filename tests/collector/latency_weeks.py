"""Weeks of a latency, a value a minute: a daily season, noise that remembers, and a shift where one is wanted."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from collector.judging.drift import Detector, Drift, Minute

MINUTES_A_DAY = 1440
RHO, SIGMA, SEASON = 0.6, 0.06, 0.10


def minutes(seed: int, *, days: int, shift: tuple[int, int, float] | None = None, window: int = 1) -> Sequence[float]:
    """The p95 in seconds of each minute; `shift` is (first minute, minutes, factor). Over a `window` of several minutes
    each value is the mean of the last ones."""
    random, count = np.random.default_rng(seed), days * MINUTES_A_DAY
    steps = random.normal(0, SIGMA * math.sqrt(1 - RHO**2), count)
    noise = np.convolve(steps, RHO ** np.arange(40))[:count]
    levels = math.log(0.4) + noise + SEASON * np.sin(2 * np.pi * np.arange(count) / MINUTES_A_DAY)
    if shift is not None:
        first, length, factor = shift
        levels[first : first + length] += math.log(factor)
    if window > 1:
        levels = np.convolve(np.pad(levels, (window - 1, 0), mode="edge"), np.ones(window) / window, mode="valid")
    found: list[float] = np.exp(levels).tolist()
    return found


def watched(detector: Detector, values: Iterable[float], *, first: int = 1, count: int = 120) -> list[Drift | None]:
    """What the detector says after each of the minutes."""
    return [detector.watch(Minute(60 * (first + number), value, count)) for number, value in enumerate(values)]


def alarms(found: Sequence[Drift | None]) -> list[int]:
    """The minutes at which a drift was told of."""
    before = [None, *found[:-1]]
    return [number for number, (was, now) in enumerate(zip(before, found, strict=True)) if now and not was]


def learnt(*, days: int = 7, seed: int = 1000, window: int = 1, series: int = 1) -> Detector:
    """A detector that knows some days, and the minute after them."""
    detector = Detector(series=series)
    for number, value in enumerate(minutes(seed, days=days, window=window), 1):
        detector.learn(Minute(60 * number, value, 120))
    return detector
