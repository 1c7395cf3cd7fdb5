"""How the requests of one chat service fare: a stated model of latencies, and the events that DESIGN 5 makes of them.

Every request streams. TTFT is lognormal, median 130 ms, sigma 0.55 (prompts differ); TPOT is lognormal, median 30 ms,
sigma 0.2; an answer has a lognormal number of tokens, median 250, sigma 0.7; e2e = TTFT + tokens * TPOT. Two requests
in ten thousand fail by themselves. So a healthy service spends 14 % to half of each of its budgets (`ALL` below).

A `Condition` changes that for a share of the requests. Its `Fate`s say what events a request that arrives now makes,
and when: the bad ones at the deadline, not at the end.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slo.objective import Objective

Floats = NDArray[np.float64]

TTFT_S, TTFT_SIGMA = 0.130, 0.55
TPOT_S, TPOT_SIGMA = 0.030, 0.2
TOKENS, TOKENS_SIGMA = 250, 0.7
ERRORS = 0.0002
PATIENCE_S = 30.0
STALL_S = 10.0
SAMPLE = 20_000

# The last one is looser than any target that the classic set can page on: its smallest page factor, 6, asks for 120 %.
OBJECTIVES = tuple(
    Objective.model_validate(fields)
    for fields in (
        {"name": "ttft-p95", "signal": "ttft", "percentile": "95", "threshold": "500ms"},
        {"name": "ttft-p99", "signal": "ttft", "percentile": "99", "threshold": "600ms"},
        {"name": "tpot-p99", "signal": "tpot", "percentile": "99", "threshold": "50ms"},
        {"name": "answered", "signal": "availability", "target": "99.9%"},
        {"name": "e2e-p95", "signal": "e2e", "percentile": "95", "threshold": "40s"},
        {"name": "e2e-p80", "signal": "e2e", "percentile": "80", "threshold": "20s"},
    )
)


@dataclass(frozen=True, slots=True)
class Condition:
    """What requests meet that arrive now. As it stands all is well."""

    share: float = 1.0
    """Of the requests that meet it: one replica of four is 0.25. The others fare well."""
    arrivals: float = 1.0
    """Times the usual traffic."""
    arrivals_most_per_h: float = math.inf
    ttft_times: float = 1.0
    ttft_plus_s: float = 0.0
    tpot_times: float = 1.0
    tpot_plus_s: float = 0.0
    refused: float = 0.0
    """Share that ends at once in an error."""
    unanswered: float = 0.0
    """Share, of those not refused, that never gets a token."""
    stalled: float = 0.0
    """Share of the streams that fall silent for good after their first token."""
    known: bool = True
    """Whether telemetry comes."""


WELL = Condition()


@dataclass(frozen=True, slots=True)
class Fate:
    """What a share of the requests makes of an objective: a good or bad event, so long after it arrived."""

    share: float
    bad: bool
    after_s: float


def fates(objective: Objective, condition: Condition) -> tuple[Fate, ...]:
    """The events of requests under a condition. Shares add up to 1 at most: some make none."""
    return _fates(objective.signal, float(objective.threshold or 0), condition)


@lru_cache(maxsize=1024)
def _fates(signal: str, threshold_s: float, condition: Condition) -> tuple[Fate, ...]:
    refused = 1 - (1 - condition.refused) * (1 - ERRORS)
    served = (1 - refused) * (1 - condition.unanswered)
    lost = 1 - refused - served
    ended_s = typical_e2e_s(condition)
    match signal:
        case "tpot":
            late = tpot_over(condition, threshold_s)
            streaming = served * (1 - condition.stalled)
            made = (
                Fate(served * condition.stalled, True, _ttft_s(condition) + STALL_S),
                Fate(streaming * late, True, ended_s),
                Fate(streaming * (1 - late), False, ended_s),
            )
        case "availability":
            late = ttft_over(condition, PATIENCE_S)
            made = (
                Fate(refused, True, 0.0),
                Fate(lost + served * late, True, PATIENCE_S),
                Fate(served * (1 - late) * (1 - condition.stalled), False, ended_s),
            )
        case _:
            over = ttft_over if signal == "ttft" else e2e_over
            good_s = min(_ttft_s(condition) if signal == "ttft" else ended_s, threshold_s)
            late = over(condition, threshold_s)
            made = (
                Fate(refused, True, 0.0),
                Fate(lost + served * late, True, threshold_s),
                Fate(served * (1 - late), False, good_s),
            )
    return tuple(fate for fate in made if fate.share > 0)


def bad_share(objective: Objective, condition: Condition) -> float:
    """The share of an objective's events that is bad under a condition that lasts; NaN where there are none."""
    made = fates(objective, condition)
    total = sum(fate.share for fate in made)
    return sum(fate.share for fate in made if fate.bad) / total if total else math.nan


def ttft_over(condition: Condition, threshold_s: float) -> float:
    """The share of first tokens that come later than the threshold."""
    return _tail(threshold_s - condition.ttft_plus_s, TTFT_S * condition.ttft_times, TTFT_SIGMA)


def tpot_over(condition: Condition, threshold_s: float) -> float:
    """The share of streams slower than the threshold."""
    return _tail(threshold_s - condition.tpot_plus_s, TPOT_S * condition.tpot_times, TPOT_SIGMA)


def e2e_over(condition: Condition, threshold_s: float) -> float:
    """The share of answers that end later than the threshold, or never."""
    ttft_s, tpot_s, tokens = _sample()
    took_s = ttft_s * condition.ttft_times + condition.ttft_plus_s
    took_s = took_s + tokens * (tpot_s * condition.tpot_times + condition.tpot_plus_s)
    late = float(np.count_nonzero(took_s > threshold_s)) / SAMPLE
    return condition.stalled + (1 - condition.stalled) * late


def typical_e2e_s(condition: Condition) -> float:
    """The median length of an answer, near enough."""
    return _ttft_s(condition) + TOKENS * (TPOT_S * condition.tpot_times + condition.tpot_plus_s)


def _ttft_s(condition: Condition) -> float:
    return TTFT_S * condition.ttft_times + condition.ttft_plus_s


def _tail(over_s: float, median_s: float, sigma: float) -> float:
    """The share of a lognormal above a value."""
    return 1.0 if over_s <= 0 else math.erfc(math.log(over_s / median_s) / sigma / math.sqrt(2)) / 2


@lru_cache(maxsize=1)
def _sample() -> tuple[Floats, Floats, Floats]:
    """TTFT, TPOT and tokens of the same requests on every run: a sum of lognormals has no closed form."""
    drawn = np.random.default_rng(1).standard_normal((3, SAMPLE))
    return (
        TTFT_S * np.exp(TTFT_SIGMA * drawn[0]),
        TPOT_S * np.exp(TPOT_SIGMA * drawn[1]),
        TOKENS * np.exp(TOKENS_SIGMA * drawn[2]),
    )
