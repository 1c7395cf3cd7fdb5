"""When each request of a load is due, and what it asks for: decided before the first byte is sent.

An open-loop load sends by the clock, whatever the server does. Its schedule is therefore a plain tuple, made here from
a seeded source of chance, and the same seed gives the same load. Times are seconds from the start of the load.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, repeat, takewhile
from random import Random

from capacity.errors import WorkloadError

MAX_ARRIVALS = 1_000_000
MAX_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class Span:
    """A whole number drawn evenly from `low` to `high`, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high <= MAX_TOKENS:
            raise WorkloadError(
                f"{self.low}-{self.high} is no span of tokens: write N or LOW-HIGH, from 1 to {MAX_TOKENS}"
            )

    def draw(self, chance: Random) -> int:
        return chance.randint(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Workload:
    """What requests ask for: models with their weights, prompt length in words, output length in tokens."""

    models: tuple[tuple[str, float], ...]
    input_words: Span
    output_tokens: Span

    def __post_init__(self) -> None:
        if not self.models:
            raise WorkloadError("a load needs at least one model")
        for name, weight in self.models:
            if not (math.isfinite(weight) and weight > 0):
                raise WorkloadError(f"model {name} has weight {weight:g}: it must be above 0")


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request that is due `at_s` seconds after the start."""

    at_s: float
    model: str
    input_words: int
    output_tokens: int


def poisson(rate_rps: float, seconds: float, chance: Random) -> Iterator[float]:
    """Times of a Poisson process: independent exponential gaps, so bursts come as they do from many users."""
    _check(rate_rps, seconds)
    at_s = accumulate(chance.expovariate(rate_rps) for _ in repeat(None))
    return takewhile(lambda one_s: one_s < seconds, at_s)


def fixed(rate_rps: float, seconds: float) -> Iterator[float]:
    """Times an even gap apart, the first at 0."""
    _check(rate_rps, seconds)
    return (index / rate_rps for index in range(math.ceil(rate_rps * seconds)))


def arrivals(times: Iterable[float], workload: Workload, chance: Random) -> tuple[Arrival, ...]:
    """A request for each time, drawn from the workload."""
    names = [name for name, _ in workload.models]
    weights = [weight for _, weight in workload.models]
    return tuple(
        Arrival(
            at_s,
            chance.choices(names, weights)[0],
            workload.input_words.draw(chance),
            workload.output_tokens.draw(chance),
        )
        for at_s in times
    )


def _check(rate_rps: float, seconds: float) -> None:
    for what, value in (("rate", rate_rps), ("seconds", seconds)):
        if not (math.isfinite(value) and value > 0):
            raise WorkloadError(f"--{what} {value:g}: must be above 0")
    if rate_rps * seconds > MAX_ARRIVALS:
        raise WorkloadError(f"{rate_rps:g} requests/s for {seconds:g} s is more than {MAX_ARRIVALS} requests: use less")
