"""How many replicas a demand needs, by replay, by its peak, and as Poisson would have it.

By replay: as few as keep every objective when the recorded requests, grown by what is expected, come as they came, and
no fewer than by Poisson, for what a replica does that is loaded beyond L for long nobody has measured.
By peak: the rate that 99 % of windows of the lead time stay within, over L (1 - h). The headroom h is the larger of
two: how little is known of the capacity, 1 - L/H; and what bursts within a window take, for which there must be places
for A + 1.645 sqrt(I A) requests, A being those in the system at the peak and I the index of dispersion of arrivals over
one stay. The larger number of replicas is needed, and spare ones come on top, for one that fails or is restarted.

By Poisson: the rate of the busiest hour over L, for L was certified with Poisson arrivals. Where that is fewer than by
replay, requests come in bursts, and it would have been wrong.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from capacity.arrivals import dispersion, peak_rps
from capacity.errors import WorkloadError
from capacity.sizing.demand import Demand
from capacity.sizing.measured import Measured
from capacity.sizing.replay import late_shares
from capacity.sizing.replica import Replica, first_that, works
from slo.quantity import DAY_S, HOUR_S

Floats = NDArray[np.float64]
UNKNOWN_UNCERTAINTY = 0.20
"""Held back where nothing says how sure the capacity is."""
Z_95 = 1.645
LEAST_POISSON, MOST_POISSON = 20_000, 100_000
SHOWN = 12
MILLION = 1e6
MOST_REPLICAS = 100_000

Progress = Callable[[str], None]
Requests = tuple[Floats, Floats]
"""When each comes, and how much work it is."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is wanted beyond the demand itself: `headroom` is reckoned where it is None, and `gpus` are those of one
    replica."""

    growth: float = 1.0
    spare: int = 1
    lead_s: float = 300.0
    headroom: float | None = None
    gpus: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A number of replicas, and the share of requests that miss each objective with it."""

    replicas: int
    replay: tuple[float, ...]
    poisson: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Peak:
    """The demand at its worst: rates, requests in the system, bursts, and what is held back for each reason."""

    mean_rps: float
    busiest_rps: float
    peak_rps: float
    at_once: float
    dispersion: float
    burst: float
    uncertainty: float
    headroom: float


@dataclass(frozen=True, slots=True)
class Sized:
    """The answer. `binding` is the objective that one replica fewer in the replay would miss first."""

    replicas: int
    by_replay: int
    by_peak: int
    by_poisson: int
    binding: str
    peak: Peak
    candidates: tuple[Candidate, ...]

    @property
    def needed(self) -> int:
        """Without the spare ones."""
        return max(self.by_replay, self.by_peak)


def sized(demand: Demand, known: Measured, one: Replica, terms: Terms, tell: Progress = lambda _: None) -> Sized:
    """Size for the demand, grown. Raises WorkloadError where no fleet is as large as that."""
    grown, work = demand.grown(terms.growth), works(demand, known)
    unit = float(work.mean())
    peak = at_peak(grown, known, one, unit, terms)
    by_poisson = _whole(peak.busiest_rps * unit / known.certified_rps)
    by_peak = _whole(peak.peak_rps * unit / (known.certified_rps * (1 - peak.headroom)))
    if max(by_poisson, by_peak) > MOST_REPLICAS:
        raise WorkloadError(
            f"--trace {demand.source} asks for {peak.peak_rps:.3g} requests/s and one replica takes "
            f"{known.certified_rps:.3g}: that is more than {MOST_REPLICAS:,} replicas; see whether one of both is wrong"
        )
    tell("the demand as it was recorded")
    by_replay = first_that(lambda n: one.keeps(grown.times_s, work, n), by_poisson)
    replicas = max(by_replay, by_peak) + terms.spare
    tell("what fewer and more replicas would do")
    chance = np.random.default_rng(terms.seed)
    count = min(max(work.size, LEAST_POISSON), MOST_POISSON)
    poisson = np.cumsum(chance.exponential(1 / peak.busiest_rps, count)), chance.choice(work, count)
    missed = partial(_missed, one, (grown.times_s, work), poisson)
    candidates = tuple(missed(n) for n in _shown(by_poisson, by_replay, replicas))
    fewer = missed(max(by_replay - 1, 1)).replay
    _, binding = max((share / one.budget, one.name) for share, one in zip(fewer, one.allowed, strict=True))
    return Sized(replicas, by_replay, by_peak, by_poisson, binding, peak, candidates)


def _missed(one: Replica, replay: Requests, poisson: Requests, replicas: int) -> Candidate:
    waits = [allowed.wait_s for allowed in one.allowed]

    def shares(times_s: Floats, work: Floats) -> tuple[float, ...]:
        return late_shares(times_s, one.stay_s * work, replicas * one.places, waits)

    return Candidate(replicas, shares(*replay), shares(*poisson))


def _whole(replicas: float) -> int:
    """Whole replicas: at least one, and not one more for the last digit of a quotient."""
    return max(math.ceil(round(replicas, 9)), 1)


def at_peak(demand: Demand, known: Measured, one: Replica, work: float, terms: Terms) -> Peak:
    """The demand at its worst, with the headroom that it asks for."""
    rate_rps = peak_rps(demand.times_s, terms.lead_s) or demand.mean_rps
    stay_s = one.stay_s * work
    at_once = rate_rps * stay_s
    index = dispersion(demand.times_s, stay_s, terms.lead_s)
    for_bursts = (at_once + Z_95 * math.sqrt(index * at_once)) / one.places
    burst = max(1 - rate_rps * work / (known.certified_rps * for_bursts), 0.0)
    refuted = known.refuted_rps
    uncertainty = UNKNOWN_UNCERTAINTY if refuted is None else max(1 - known.certified_rps / refuted, 0.0)
    headroom = max(uncertainty, burst) if terms.headroom is None else terms.headroom
    busiest_rps = peak_rps(demand.times_s, HOUR_S) or demand.mean_rps
    return Peak(demand.mean_rps, busiest_rps, rate_rps, at_once, index, burst, uncertainty, headroom)


def gpu_hours(found: Sized, demand: Demand, terms: Terms) -> dict[str, float]:
    """GPU-hours of a day, those that were sized by Poisson alone, and for a million tokens out where they are known."""
    day = DAY_S / HOUR_S * terms.gpus
    hours = {"a_day": found.replicas * day, "a_day_by_poisson": (found.by_poisson + terms.spare) * day}
    if demand.mean_tokens is not None and demand.mean_tokens[1] > 0:
        tokens_per_s = found.peak.mean_rps * demand.mean_tokens[1]
        hours["a_million_output_tokens"] = found.replicas * terms.gpus * MILLION / tokens_per_s / HOUR_S
    return hours


def _shown(*wanted: int) -> Iterator[int]:
    """Numbers of replicas to show: those wanted, and others from one to a few more."""
    most = max(wanted) + max(max(wanted) // 5, 1)
    others = np.unique(np.linspace(1, most, SHOWN).round().astype(int)).tolist()
    yield from sorted({*wanted, *others})
