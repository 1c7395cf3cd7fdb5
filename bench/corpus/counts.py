"""What the sidecar would have counted: events of every objective, step by step, through a month with one incident.

Three days that fill the windows, then thirty that are judged. Steps are minutes; around the incident they are ticks of
ten seconds, since that is how often a collector judges. Arrivals are Poisson, by hour of the day and day of the week;
fates are drawn exactly. Requests that fare well make their events at once: of a steady stream a delay changes nothing.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpus.incidents import DAY_S, HOUR_S, MINUTE_S, Incident, Phase
from corpus.service import OBJECTIVES, WELL, Condition, Fate, Floats, bad_share, fates
from slo.objective import Objective

Integers = NDArray[np.int64]
Placed = tuple[tuple[Condition, slice], ...]
"""Phases, each with the steps in which it holds."""

TICK_S = 10
WARM_S = 3 * DAY_S
JUDGED_S = 30 * DAY_S
EDGE_S = 2 * HOUR_S
"""How long after the incident every tick is looked at."""
SWING = 0.6
WEEKEND = 0.6


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of time, one after the other; `known` says of every minute whether telemetry came."""

    starts_s: Integers
    ends_s: Integers
    known: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Counts:
    """Good and bad events of one objective in each step."""

    good: Integers
    bad: Integers


@dataclass(frozen=True, slots=True)
class Month:
    """One service through one incident: `by_objective` is in the order of `OBJECTIVES`."""

    incident: Incident
    per_h: int
    seed: int
    begins_s: int
    steps: Steps
    by_objective: tuple[Counts, ...]

    @property
    def ends_s(self) -> int:
        return self.begins_s + self.incident.lasts_s


def month(incident: Incident, *, per_h: int, seed: int) -> Month:
    """The same month for the same arguments. The incident begins at any hour, days from either end."""
    random = np.random.default_rng([seed, per_h, *incident.name.encode()])
    begins_s = WARM_S + int(random.integers(2 * DAY_S, JUDGED_S - 5 * DAY_S)) // TICK_S * TICK_S
    steps = _steps(begins_s, incident)
    phases = tuple(_placed(incident.phases, steps, begins_s))
    came = random.poisson(_expected(steps, phases, per_h))
    hurt: Integers = np.zeros_like(came)
    for condition, here in phases:
        hurt[here] = random.binomial(came[here], 0.0 if condition == WELL else condition.share)
    counted = tuple(_counted(objective, came - hurt, hurt, phases, random) for objective in OBJECTIVES)
    return Month(incident, per_h, seed, begins_s, steps, counted)


def _expected(steps: Steps, phases: Placed, per_h: int) -> Floats:
    """How many requests are to be expected in each step."""
    expected: Floats = per_h / HOUR_S * (steps.ends_s - steps.starts_s) * season(steps.starts_s)
    for condition, here in phases:
        most = condition.arrivals_most_per_h / HOUR_S * TICK_S
        expected[here] = np.minimum(expected[here] * condition.arrivals, most)
    return expected


def _counted(
    objective: Objective, well: Integers, hurt: Integers, phases: Placed, random: np.random.Generator
) -> Counts:
    """The events of one objective, of those that fare well and of those hurt."""
    bad = random.binomial(well, bad_share(objective, WELL))
    counts = Counts(well - bad, bad)
    for condition, here in phases:
        _add(counts, fates(objective, condition), hurt, here, random)
    return counts


def season(at_s: Integers) -> Floats:
    """Times the usual traffic at a moment: the afternoon is four times the night, a weekend is quiet."""
    day = np.where(at_s // DAY_S % 7 >= 5, WEEKEND, 1.0)
    swing: Floats = day * (1 - SWING * np.cos(2 * math.pi * (at_s - 3 * HOUR_S) / DAY_S))
    return swing


def _steps(begins_s: int, incident: Incident) -> Steps:
    """Minutes, and ticks from the incident's first minute until well after its last."""
    fine_s = begins_s // MINUTE_S * MINUTE_S
    coarse_s = math.ceil((begins_s + incident.lasts_s + EDGE_S) / MINUTE_S) * MINUTE_S
    end_s = WARM_S + JUDGED_S
    starts_s = np.concatenate(
        (
            np.arange(0, fine_s, MINUTE_S),
            np.arange(fine_s, coarse_s, TICK_S),
            np.arange(coarse_s, end_s, MINUTE_S),
        )
    )
    known = np.ones(end_s // MINUTE_S, dtype=np.bool_)
    at_s = begins_s
    for phase in incident.phases:
        if not phase.condition.known:  # a minute of which a tick was heard is known
            known[math.ceil(at_s / MINUTE_S) : (at_s + phase.lasts_s) // MINUTE_S] = False
        at_s += phase.lasts_s
    return Steps(starts_s, np.append(starts_s[1:], end_s), known)


def _placed(phases: tuple[Phase, ...], steps: Steps, begins_s: int) -> Iterator[tuple[Condition, slice]]:
    """Every phase with its steps, which are ticks."""
    first = int(np.searchsorted(steps.starts_s, begins_s))
    for phase in phases:
        until = first + phase.lasts_s // TICK_S
        yield phase.condition, slice(first, until)
        first = until


def _add(counts: Counts, made: tuple[Fate, ...], hurt: Integers, here: slice, random: np.random.Generator) -> None:
    """Add the events of those hurt, each when it is judged."""
    if not hurt[here].any():
        return
    shares = [fate.share for fate in made]
    drawn = random.multinomial(hurt[here], [*shares, max(1 - sum(shares), 0.0)])
    for fate, some in zip(made, drawn.T, strict=False):
        ticks, rest_s = divmod(fate.after_s, TICK_S)
        later = random.binomial(some, rest_s / TICK_S)  # arrivals lie anywhere in their tick
        into = counts.bad if fate.bad else counts.good
        first, until = here.start + int(ticks), here.stop + int(ticks)
        into[first:until] += some - later
        into[first + 1 : until + 1] += later
