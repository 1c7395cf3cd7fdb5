"""One replica as a replay sees it: so many places, each held for as long as a request stays.

How long a request stays at the certified rate L is measured. The places are as few as keep the objectives when requests
come at L as from many independent users, which is how L was certified; and stays are then stretched until L is just
the most that is kept. So the model holds what was measured and no more: L under Poisson arrivals, and nothing of what a
real server might take in beyond that by working slower.

Each objective becomes the longest wait that it allows: its threshold less what a request takes that is alone. For the
time of each output token that is the slack of a token times the tokens of a mean answer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from capacity.errors import WorkloadError
from capacity.sizing.demand import Demand
from capacity.sizing.measured import Alone, Measured
from capacity.sizing.replay import is_kept
from slo.objective import Objective

Floats = NDArray[np.float64]
CALIBRATION = 40_000
STRETCHES = 14
MOST_STRETCH = 0.999


@dataclass(frozen=True, slots=True)
class Allowed:
    """What an objective asks of waiting: at most `budget` of the requests longer than `wait_s`."""

    name: str
    wait_s: float
    budget: float


@dataclass(frozen=True, slots=True)
class Replica:
    """`stay_s` is that of a request of one unit of work."""

    places: int
    stay_s: float
    allowed: tuple[Allowed, ...]

    def keeps(self, times_s: Floats, works: Floats, replicas: int) -> bool:
        """Whether so many replicas keep every objective."""
        limits = [(one.wait_s, one.budget) for one in self.allowed]
        return is_kept(times_s, self.stay_s * works, replicas * self.places, limits)


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds that a mean request takes alone: to its first token, and from there on."""

    first_s: float
    further_s: float


def works(demand: Demand, known: Measured) -> Floats:
    """How much work each request is, in units of a mean request of those that the replica was certified with; of the
    demand's own where that is not known. Raises WorkloadError where all of it is no work."""
    of = known.mean_tokens or demand.mean_tokens
    if of is None or not demand.tokens:
        return np.ones(demand.times_s.size)
    part = parts(known.alone, of[1])
    tokens = np.array(demand.tokens, dtype=np.float64)
    whole = part.first_s + part.further_s
    first_s, further_s = part.first_s * _times(tokens[:, 0], of[0]), part.further_s * _times(tokens[:, 1], of[1])
    found: Floats = (first_s + further_s) / whole
    if not found.any():
        raise WorkloadError(f"--trace {demand.source}: its requests have no tokens, and so say nothing of their work")
    return found


def _times(tokens: Floats, mean: float) -> Floats:
    """Tokens as multiples of a mean; all are the mean where it is 0."""
    found: Floats = tokens / mean if mean else np.ones(tokens.size)
    return found


def parts(alone: Alone, tokens_out: float | None) -> Parts:
    """The parts of a mean request, as far as they are known."""
    first_s = alone.ttft or 0.0
    if alone.tpot is not None and tokens_out is not None:
        further_s = alone.tpot * max(tokens_out - 1, 0.0)
    else:
        further_s = max((alone.e2e or first_s) - first_s, 0.0)
    if first_s + further_s <= 0:
        raise WorkloadError(
            "nothing says how long a request takes: give --capacity the result of certify, or a ttft or e2e objective"
        )
    return Parts(first_s, further_s)


def allowed(objectives: Sequence[Objective], alone: Alone, tokens_out: float | None) -> tuple[Allowed, ...]:
    """The waits that the objectives allow; one whose wait is not known is left out."""
    found = []
    for one in objectives:
        takes_s = {"ttft": alone.ttft, "tpot": alone.tpot, "e2e": alone.e2e}.get(one.signal)
        if takes_s is None or one.threshold is None or (one.signal == "tpot" and tokens_out is None):
            continue
        slack_s = max(float(one.threshold) - takes_s, 0.0)
        if one.signal == "tpot":
            slack_s *= max((tokens_out or 0.0) - 1, 0.0)
        found.append(Allowed(one.name, slack_s, float(one.allowed_bad)))
    return tuple(found)


def replica(known: Measured, objectives: Sequence[Objective], demand: Demand, seed: int) -> Replica:
    """The replica, for requests whose work varies as that of the demand. Raises WorkloadError."""
    tokens_out = (known.mean_tokens or demand.mean_tokens or (0.0, None))[1]
    waits = allowed(objectives, known.alone, tokens_out)
    if not waits:
        raise WorkloadError("no objective says how long a request may wait: give the spec one of ttft, tpot or e2e")
    part = parts(known.alone, tokens_out)
    stay_s = part.first_s + part.further_s if known.stay_s is None else known.stay_s
    chance = np.random.default_rng(seed)
    gaps = chance.exponential(1 / known.certified_rps, CALIBRATION)
    drawn = chance.choice(works(demand, known), CALIBRATION)
    return _calibrated(Replica(1, stay_s, waits), np.cumsum(gaps), drawn / drawn.mean(), known.certified_rps)


def _calibrated(one: Replica, times_s: Floats, works: Floats, rate_rps: float) -> Replica:
    least = max(math.ceil(rate_rps * one.stay_s), 1)
    places = first_that(lambda n: replace(one, places=n).keeps(times_s, works, 1), least)
    one = replace(one, places=places)
    low, high = one.stay_s, max(MOST_STRETCH * places / rate_rps, one.stay_s)
    for _ in range(STRETCHES):
        middle = (low + high) / 2
        if replace(one, stay_s=middle).keeps(times_s, works, 1):
            low = middle
        else:
            high = middle
    return replace(one, stay_s=low)


def first_that(holds: Callable[[int], bool], least: int) -> int:
    """The least whole number from `least` on that something holds for, which then holds for all above."""
    below, step = least - 1, 1
    while not holds(below + step):
        below, step = below + step, 2 * step
    above = below + step
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above
