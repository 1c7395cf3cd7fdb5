"""When alerts fire over a month's counts: by our tiers, and by the set that everybody copies.

Ours are `slo.burn.tiers` and the verdict at every step is `slo.burn.next_state`'s. Steps at which its answer cannot
change are passed over: arrays say, with a margin for the last digit of a float, where a tier could start or could end;
there it is asked (a test walks random counts step by step and finds the same).

The classic set is that of the SRE Workbook, chapter 5: 14.4 over 1 h and 5 m and 6 over 6 h and 30 m page, 3 over 1 d
and 2 h and 1 over 3 d and 6 h are tickets, whatever the target, as long as both windows burn, with no other condition.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from corpus.counts import WARM_S, Counts, Integers, Steps
from corpus.incidents import DAY_S, HOUR_S, MINUTE_S
from corpus.service import Floats
from slo.burn import ENOUGH_GOOD, Tier, WindowCounts, next_state

MARGIN = 1e-9

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert from its start to its end; one that still fires at the end of the month ends there."""

    begins_s: int
    ends_s: int


@dataclass(frozen=True, slots=True)
class Classic:
    """One tier of the classic set."""

    name: str
    factor: Decimal
    long_s: int
    short_s: int
    notify: Literal["page", "ticket"]

    def can_fire(self, allowed_bad: Decimal) -> bool:
        """Whether any share of bad events reaches the factor."""
        return self.factor * allowed_bad < 1


CLASSIC = (
    Classic("fast", Decimal("14.4"), HOUR_S, 5 * MINUTE_S, "page"),
    Classic("medium", Decimal(6), 6 * HOUR_S, 30 * MINUTE_S, "page"),
    Classic("slow", Decimal(3), DAY_S, 2 * HOUR_S, "ticket"),
    Classic("long", Decimal(1), 3 * DAY_S, 6 * HOUR_S, "ticket"),
)


@dataclass(frozen=True, slots=True)
class Window:
    """What a window holds at the end of every step."""

    good: Integers
    bad: Integers
    coverage: Floats
    bad_spans: Integers

    def at(self, step: int) -> WindowCounts:
        good, bad = int(self.good[step]), int(self.bad[step])
        return WindowCounts(good, bad, float(self.coverage[step]), int(self.bad_spans[step]))

    def over(self, share: float) -> Flags:
        """Where the bad share, damped by coverage, is above a share or so near that a float cannot tell."""
        flags: Flags = self.bad * self.coverage > share * (self.good + self.bad) * (1 - MARGIN)
        return flags


class Counter:
    """The windows of one objective's counts."""

    def __init__(self, steps: Steps, counts: Counts, *, warm_s: int = WARM_S) -> None:
        self._steps = steps
        self._counts = counts
        self._good = np.concatenate(([0], np.cumsum(counts.good)))
        self._bad = np.concatenate(([0], np.cumsum(counts.bad)))
        self._known = np.concatenate(([0], np.cumsum(steps.known)))
        self._windows: dict[int, Window] = {}
        self.first = int(np.searchsorted(steps.ends_s, warm_s, side="right"))

    def window(self, window_s: int) -> Window:
        """A window holds the steps that start after now - w, as the collector's do."""
        if window_s not in self._windows:
            steps = self._steps
            begins = np.searchsorted(steps.starts_s, steps.ends_s - window_s, side="right")
            ends = np.arange(1, steps.ends_s.size + 1)
            minute = steps.ends_s // MINUTE_S
            known = self._known[minute] - self._known[np.maximum(minute - window_s // MINUTE_S, 0)]
            self._windows[window_s] = Window(
                self._good[ends] - self._good[begins],
                self._bad[ends] - self._bad[begins],
                known / (window_s // MINUTE_S),
                self._bad_spans(begins),
            )
        return self._windows[window_s]

    def _bad_spans(self, begins: Integers) -> Integers:
        """Whether a window's bad events lie in no minute, one, or more (2)."""
        bad = self._counts.bad > 0
        places = np.arange(bad.size)
        last = np.maximum.accumulate(np.where(bad, places, -1))
        upcoming = np.minimum.accumulate(np.where(bad, places, bad.size)[::-1])[::-1]
        first = upcoming[np.minimum(begins, bad.size - 1)]
        some = (last >= begins) & (first <= places)
        minutes = self._steps.starts_s // MINUTE_S
        several = some & (minutes[np.minimum(first, bad.size - 1)] < minutes[last])
        spans: Integers = some.astype(np.int64) + several
        return spans

    def end_s(self, step: int) -> int:
        """When a step was judged."""
        return int(self._steps.ends_s[min(step, self._steps.ends_s.size - 1)])


def fired(counter: Counter, tier: Tier) -> list[Firing]:
    """When a tier of ours fires, by `slo.burn.next_state`."""
    long, short = counter.window(tier.long_s), counter.window(tier.short_s)
    recent = None if tier.recent_s is None else counter.window(tier.recent_s)
    needed = float(tier.bad_share_needed)
    short_total, long_total = short.good + short.bad, long.good + long.bad
    starting = long.over(needed) & (long.bad >= tier.min_bad_events) & (long.bad_spans >= 2)
    starting &= (short_total > 0) & (short.bad > needed * short_total * (1 - MARGIN))
    if tier.looks_twice:
        starting &= long_total > short_total
    if recent is not None:
        starting &= recent.bad > needed * (recent.good + recent.bad) * (1 - MARGIN)
    chance, most = tier.chance_events, needed * (1 + MARGIN)
    all_good = (short.bad == 0) & ((short_total * long.bad >= chance * long_total) | (short_total >= ENOUGH_GOOD))
    ending = ((long.bad == 0) & (long_total > chance)) | (long.bad + chance <= most * long_total) | all_good
    ending |= short.bad + chance <= most * short_total
    ending &= short.bad <= most * short_total
    ending |= long_total == 0
    turns = {False: np.flatnonzero(starting), True: np.flatnonzero(ending)}
    found, firing, began, step = [], False, 0, counter.first
    while (place := int(np.searchsorted(turns[firing], step))) < turns[firing].size:
        at = int(turns[firing][place])
        held = None if recent is None else recent.at(at)
        now = next_state(tier, firing=firing, long=long.at(at), short=short.at(at), recent=held) == "firing"
        if now and not firing:
            began = at
        elif firing and not now:
            found.append(Firing(counter.end_s(began), counter.end_s(at)))
        firing, step = now, at + 1
    return [*found, Firing(counter.end_s(began), counter.end_s(-1))] if firing else found


def fired_classic(counter: Counter, tier: Classic, allowed_bad: Decimal) -> list[Firing]:
    """When a tier of the classic set fires: as long as both windows burn above its factor."""
    needed = float(tier.factor * allowed_bad)
    windows = counter.window(tier.long_s), counter.window(tier.short_s)
    burns = np.logical_and(*(window.bad > needed * (window.good + window.bad) for window in windows))
    burns[: counter.first] = False
    edges = np.flatnonzero(np.diff(np.concatenate(([False], burns, [False])).astype(np.int8)))
    return [Firing(counter.end_s(begin), counter.end_s(end)) for begin, end in edges.reshape(-1, 2).tolist()]
