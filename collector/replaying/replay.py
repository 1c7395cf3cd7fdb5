"""What a spec would have cost over the stored past: its budgets and its alerts, replayed step by step. Pure.

Takes the events of each objective and model as stored steps, gives reports. The rules are those of the evaluation
(`slo.burn`): the same windows, coverage, budgets and `next_state`, asked at the end of every stored step in order.

Old steps are long, and a window's edge may fall inside one. What a step holds is taken as spread evenly over it, so a
sum over any stretch of time is the difference of two values of one running total; at the edges of steps it is exact.
So the last hours are replayed to the tick, and the far past as finely as it is kept.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from collector.values.histogram import Counts, Floats
from collector.windowing.rolling import step_of
from slo import burn
from slo.burn import Tier, WindowCounts
from slo.objective import Objective
from slo.quantity import MINUTE_S
from slo.signals import OTHER_MODEL

SPANS = 2
Marks = NDArray[np.bool_]
"""Of each moment whether something holds."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Events by step, in no order; `unsure` lie in a bucket that the threshold cuts."""

    start_s: Counts
    step_s: Counts
    good: Counts
    bad: Counts
    unsure: Counts

    @property
    def end_s(self) -> Counts:
        ends: Counts = self.start_s + self.step_s
        return ends


@dataclass(frozen=True, slots=True)
class Known:
    """Steps from which telemetry of a service is known. `assumed`: its silence says nothing (DESIGN 5, coverage)."""

    start_s: Counts
    step_s: Counts
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """The events of one objective and model. `basis` says how they were judged."""

    environment: str
    service: str
    model: str
    objective: Objective
    basis: str
    steps: Steps
    known: Known

    @property
    def tick_s(self) -> int:
        """The finest step there is."""
        lengths = [int(some.min()) for some in (self.steps.step_s, self.known.step_s) if some.size]
        return min(lengths, default=MINUTE_S)

    def age_s(self, moments: Counts) -> Counts:
        """Since when there are events, to the end of the running tick."""
        first_s = int(self.steps.start_s.min()) if self.steps.start_s.size else 0
        ages: Counts = moments + self.tick_s - first_s
        return ages


@dataclass(frozen=True, slots=True)
class Firing:
    """A stretch in which a tier would have fired; `to_s` is None when it still does at the end."""

    from_s: int
    to_s: int | None


@dataclass(frozen=True, slots=True)
class TierReport:
    """What one tier would have done."""

    tier: Tier
    firings: tuple[Firing, ...]
    firing_s: int


@dataclass(frozen=True, slots=True)
class Report:
    """What one objective would have cost for one model. `good`, `bad` and `unsure` are events of the stretch; the
    budget is that of the objective's own period."""

    past: Past
    good: int
    bad: int
    unsure: int
    remaining: float
    lowest: float
    lowest_at_s: int
    tiers: tuple[TierReport, ...] = field(default=())

    @property
    def bad_share(self) -> float | None:
        total = self.good + self.bad
        return self.bad / total if total else None


def replayed(past: Past, moments: Counts, *, from_s: int, to_s: int) -> Report:
    """Replay one objective and model over `moments`, ascending; what lies before `from_s` only warms the windows."""
    steps = past.steps
    good, bad, unsure = (_running(steps.start_s, steps.step_s, some) for some in (steps.good, steps.bad, steps.unsure))
    remaining = _remaining(past, good, bad, moments)
    shown = np.flatnonzero((moments >= from_s) & (moments <= to_s))
    lowest = shown[np.argmin(remaining[shown])] if shown.size else None
    stretch = np.array([to_s]), np.array([from_s])
    return Report(
        past,
        good=int(_sums(good, *stretch)[0]),
        bad=int(_sums(bad, *stretch)[0]),
        unsure=int(_sums(unsure, *stretch)[0]),
        remaining=1.0 if lowest is None else float(remaining[shown[-1]]),
        lowest=1.0 if lowest is None else float(remaining[lowest]),
        lowest_at_s=to_s if lowest is None else int(moments[lowest]),
        tiers=tuple(_tiers(past, moments, from_s=from_s, to_s=to_s)),
    )


def moments(pasts: Iterable[Past], *, to_s: int) -> Counts:
    """When a replay looks: at the end of every step that holds or knows something."""
    ends = [np.zeros(0, dtype=np.int64)]
    for past in pasts:
        ends += [past.steps.end_s, past.known.start_s + past.known.step_s]
    every = np.unique(np.concatenate(ends))
    found: Counts = every[every <= to_s]
    return found


def together(firings: Iterable[Firing], *, to_s: int, apart_s: int) -> int:
    """How many incidents the firings make: those that overlap, or follow within `apart_s`, are one."""
    count, reach_s = 0, -1
    for one in sorted(firings, key=lambda one: one.from_s):
        if one.from_s > reach_s + apart_s or count == 0:
            count += 1
        reach_s = max(reach_s, to_s if one.to_s is None else one.to_s)
    return count


_Total = tuple[Floats, Floats]
"""Moments, and the running total at each; straight in between."""


def _running(start_s: Counts, step_s: Counts, counts: Counts) -> _Total:
    if counts.size == 0:
        return np.zeros(1), np.zeros(1)
    rate = counts / step_s
    edges, changes = np.concatenate((start_s, start_s + step_s)), np.concatenate((rate, -rate))
    order = np.argsort(edges, kind="stable")
    edges = edges[order].astype(np.float64)
    grown = np.cumsum(changes[order])[:-1] * np.diff(edges)
    return edges, np.concatenate((np.zeros(1), np.cumsum(grown)))


def _sums(total: _Total, ends_s: Counts, begins_s: Counts) -> Counts:
    """What came between these moments, rounded to whole events."""
    edges, reached = total
    held = np.interp(ends_s, edges, reached) - np.interp(begins_s, edges, reached)
    whole: Counts = np.rint(held).astype(np.int64)
    return whole


def _begins(moments: Counts, length_s: int, tick_s: int) -> Counts:
    """Where the windows begin that end at these moments: at the first whole step inside, as `rolling` has it."""
    step_s = step_of(length_s, tick_s)
    begins: Counts = ((moments - length_s) // step_s + 1) * step_s
    return begins


def _remaining(past: Past, good: _Total, bad: _Total, moments: Counts) -> Floats:
    """Budget left at each moment: as `slo.burn.budget` has it, of many moments at once."""
    objective = past.objective
    begins = _begins(moments, objective.window, past.tick_s)
    spent = _sums(bad, moments, begins)
    total = spent + _sums(good, moments, begins)
    age = np.clip(past.age_s(moments) / objective.window, 1e-9, 1.0)
    allowance = float(objective.allowed_bad) * total / age
    left: Floats = np.where(total > 0, 1 - spent / np.maximum(allowance, 1e-300), 1.0)
    return left


def _tiers(past: Past, moments: Counts, *, from_s: int, to_s: int) -> Iterator[TierReport]:
    tiers = [tier for tier in burn.tiers(past.objective) if past.model != OTHER_MODEL or tier.notify != "page"]
    # Model `other` has no pages: the evaluation pages nobody for it alone either.
    of = {tier.name: list(_firings(past, tier, moments)) for tier in tiers if tier.notify == "page"}
    pages = [one for firings in of.values() for one in firings]
    for tier in tiers:
        firings = of.get(tier.name) or _firings(past, tier, moments, pages)
        fired = tuple(one for one in firings if one.from_s <= to_s and (one.to_s is None or one.to_s > from_s))
        spans = (min(one.to_s or to_s, to_s) - max(one.from_s, from_s) for one in fired)
        yield TierReport(tier, fired, sum(spans))


def _firings(past: Past, tier: Tier, moments: Counts, pages: Sequence[Firing] = ()) -> Iterator[Firing]:
    """The stretches in which the tier fires, a ticket with these `pages` before it. Only moments at which it may begin,
    or end, are asked about."""
    long, short = _Window(past, tier, moments, tier.long_s), _Window(past, tier, moments, tier.short_s)
    recent = None if tier.recent_s is None else _Window(past, tier, moments, tier.recent_s)
    waits = _waits(pages, moments, after_s=tier.short_s)
    may_begin = np.flatnonzero(_may_begin(tier, long, short) & ~waits)
    may_end = np.flatnonzero(_may_end(tier, long, short))
    place, began_s = 0, None
    while True:
        at = may_begin if began_s is None else may_end
        later = at[np.searchsorted(at, place) :]
        if later.size == 0:
            break
        place, firing = int(later[0]), began_s is not None
        state = burn.next_state(
            tier,
            firing=firing,
            long=long.counts(place),
            short=short.counts(place),
            recent=None if recent is None else recent.counts(place),
        )
        if state == "firing" and began_s is None:
            began_s = int(moments[place])
        elif state == "ok" and began_s is not None:
            yield Firing(began_s, int(moments[place]))
            began_s = None
        place += 1
    if began_s is not None:
        yield Firing(began_s, None)


def _waits(pages: Sequence[Firing], moments: Counts, *, after_s: int) -> Marks:
    """The moments at which a ticket does not begin: a page of the same model fires, or did so long before."""
    found: Marks = np.zeros(moments.size, dtype=np.bool_)
    for one in pages:
        ends_s = np.inf if one.to_s is None else one.to_s + after_s
        found |= (moments >= one.from_s) & (moments < ends_s)
    return found


CLOSE = 1e-9
"""So near to a factor only exact numbers can tell: such moments are asked about."""


def _may_begin(tier: Tier, long: "_Window", short: "_Window") -> Marks:
    """The moments at which both windows burn, or nearly so."""
    needed = float(tier.bad_share_needed) * (1 - CLOSE)
    enough: Marks = long.bad >= tier.min_bad_events
    return enough & (long.bad * long.coverage >= needed * long.total) & (short.bad >= needed * short.total)


def _may_end(tier: Tier, long: "_Window", short: "_Window") -> Marks:
    """The moments at which the short window does not burn, or hardly, or there is nothing in the long one."""
    needed = float(tier.bad_share_needed) * (1 + CLOSE)
    quiet: Marks = (short.bad <= needed * short.total) | (long.total == 0)
    return quiet


class _Window:
    """One window of one tier, at every moment."""

    def __init__(self, past: Past, tier: Tier, moments: Counts, length_s: int) -> None:
        steps, begins = past.steps, _begins(moments, length_s, past.tick_s)
        self.good = _sums(_running(steps.start_s, steps.step_s, steps.good), moments, begins)
        self.bad = _sums(_running(steps.start_s, steps.step_s, steps.bad), moments, begins)
        self.total = self.good + self.bad
        self.coverage = _coverage(past, moments, length_s)
        self._spans = _bad_spans(steps, moments, length_s, spread_s=tier.spread_s)

    def counts(self, place: int) -> WindowCounts:
        figures = int(self.good[place]), int(self.bad[place]), float(self.coverage[place])
        return WindowCounts(*figures, min(int(self._spans[place]), SPANS))


def _coverage(past: Past, moments: Counts, length_s: int) -> Floats:
    """The share of each window from which telemetry is known, at most the series' own age; `coverage` has the rules."""
    known, fine = past.known, length_s < burn.FINE_WINDOW_S
    age: Floats = np.clip(past.age_s(moments) / length_s, 0.0, 1.0)
    if known.start_s.size == 0:
        return np.zeros(moments.size)
    ends, starts, lengths = moments, known.start_s, known.step_s
    if not fine:  # a minute counts whole, whatever ticks of it are known, and the running one not at all
        ends = moments - moments % MINUTE_S
        starts, lengths = starts - starts % MINUTE_S, np.maximum(lengths, MINUTE_S)
    if known.assumed:
        heard: Floats = np.clip((ends - starts.min()) / length_s, 0.0, 1.0)
        return np.minimum(heard, age)
    starts, places = np.unique(starts, return_index=True)
    lengths = lengths[places]
    share = _sums(_running(starts, lengths, lengths), ends, ends - length_s) / length_s
    return np.minimum(np.clip(share, 0.0, 1.0), age)


def _bad_spans(steps: Steps, moments: Counts, length_s: int, *, spread_s: int | None) -> Counts:
    """In how many spans the bad events of each window lie. A step longer than a span may hold several of them; how its
    events lie within it is not known, and two are taken to be apart."""
    span_s, bad = spread_s or 1, steps.bad > 0
    starts = np.sort(steps.start_s[bad])
    order = np.argsort(steps.start_s[bad], kind="stable")
    held = np.where(steps.step_s[bad] > MINUTE_S, np.minimum(steps.bad[bad], SPANS), 1)[order]
    _, firsts = np.unique(starts // span_s, return_index=True)
    if firsts.size == 0:
        return np.zeros(moments.size, dtype=np.int64)
    lasts = np.concatenate((firsts[1:], [starts.size])) - 1
    reached = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(np.maximum.reduceat(held, firsts))))
    ends = np.searchsorted(starts[firsts], moments, side="left")
    begins = np.searchsorted(starts[lasts], moments - length_s, side="right")
    found: Counts = reached[ends] - reached[np.minimum(begins, ends)]
    return found
