"""What to compare a burn with: the stretch of time before it in which nothing burned. Pure.

A burn is told late on purpose, so the time right before its short window may burn as well, and a figure compared with
itself shows nothing. Sought is the latest stretch of the same length, not later than `until_s`, whose bad share is at
most half of what the objective allows; where there is none the calmest. What is bad at a deadline went wrong a
threshold before it, so a stretch ends that much before what came after it.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from slo.objective import Objective
from slo.signals import SIGNALS

CALM = 0.5
"""Of the share that the objective allows."""
LONGEST_LAG_S = 600
UNKNOWN_SHARE = 2.0
"""Of a stretch without events: any other is better to compare with."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `first_s` to before `until_s`."""

    first_s: int
    until_s: int

    @property
    def length_s(self) -> int:
        return self.until_s - self.first_s


@dataclass(frozen=True, slots=True)
class Step:
    """The events of one step."""

    start_s: int
    good: int
    bad: int


def lag_s(objective: Objective) -> int:
    """How long before its bad event a request may have gone wrong."""
    if SIGNALS[objective.signal].threshold == "duration" and objective.threshold is not None:
        return min(-(-int(objective.threshold * 1000) // 1000), LONGEST_LAG_S)
    return 0


def quiet(steps: Iterable[Step], objective: Objective, *, length_s: int, until_s: int) -> Stretch:
    """The stretch to compare with, from the events of the time before `until_s`, in any order. Without events it is the
    stretch right before."""
    lag, allowed = lag_s(objective), float(objective.allowed_bad) * CALM
    held = sorted((step for step in steps if step.start_s < until_s), key=lambda step: step.start_s)
    starts = [step.start_s for step in held]
    good = list(accumulate((step.good for step in held), initial=0))
    bad = list(accumulate((step.bad for step in held), initial=0))
    calmest = UNKNOWN_SHARE, Stretch(until_s - lag - length_s, until_s - lag)
    for end, end_s in reversed(list(enumerate([*starts, until_s]))):
        first = bisect_left(starts, end_s - lag - length_s)
        events = good[end] - good[first] + bad[end] - bad[first]
        share = (bad[end] - bad[first]) / events if events else UNKNOWN_SHARE
        found = share, Stretch(end_s - lag - length_s, end_s - lag)
        if share <= allowed:
            return found[1]
        calmest = min(calmest, found, key=lambda one: one[0])
    return calmest[1]
