"""Every objective judged: burn of every window, budget, and the alerts these ask for.

Takes each objective of each model with its tracks (one a hash that is exported now) and speaks for the worst of them:
the highest burn, the lowest budget, the furthest alert. The arithmetic is `slo.burn`'s. What is asked of all, every
tick, is asked of arrays; a tier is only looked at closely where its alert fires already or its long window holds
enough bad events to start one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from collector.judging import burn_alert
from collector.judging.track import Track
from collector.judging.track_windows import TrackWindows
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.values.columns import Columns, columns, or_none, runs
from collector.values.histogram import Counts, Floats
from collector.values.verdicts import BudgetRow, BurnRow
from collector.windowing.windows import Windows
from slo import burn
from slo.burn import Tier, WindowCounts
from slo.objective import Objective
from slo.signals import OTHER_MODEL

FURTHER = {"ok": 0, "pending": 1, "firing": 2}
NEARLY = 1 - 1e-9
"""Floats may be off by their last digit: what comes this near to a tier's threshold is compared exactly."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One objective of one model, by its tracks; `tiers` and `windows_s` are the objective's, the same object for all
    its models."""

    tracks: Sequence[Track]
    tiers: Sequence[Tier]
    windows_s: Sequence[int]

    @property
    def objective(self) -> Objective:
        return self.tracks[0].objective


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be said of all of them now."""

    burns: Columns[BurnRow]
    budgets: Columns[BudgetRow]
    wanted: tuple[Wanted, ...]


def judge(
    windows: Windows, promises: Sequence[Promise], *, alerts: Mapping[AlertKey, Alert], ended: Iterable[Alert] = ()
) -> Judgement:
    """Judge the promises, those of one objective together. `alerts` are those pending or firing: a tier that fires ends
    by other rules than it starts by. `ended` are those that ended lately: what a page has told is no ticket."""
    if not promises:
        return Judgement(columns(BurnRow), columns(BudgetRow), ())
    court = _Court(windows, promises, fired=[*ended, *alerts.values()])
    budgets = list(court.budgets())
    pages_first = sorted(court.stirred(alerts), key=lambda one: one[1].notify != "page")
    wanted = [court.alert(number, tier, alerts=alerts, budget=budgets[number]) for number, tier in pages_first]
    spent = [
        burn_alert.exhausted(one.tracks[0], row)
        for one, row in zip(promises, budgets, strict=True)
        if row.remaining <= 0
    ]
    return Judgement(court.burns(), columns(BudgetRow, budgets), tuple(one for one in (*wanted, *spent) if one))


class _Court:
    """Promises with the figures of their tracks; those of one promise lie from `_firsts` of it on."""

    def __init__(self, windows: Windows, promises: Sequence[Promise], *, fired: Iterable[Alert]) -> None:
        self._windows = windows
        self._promises = promises
        self._tracks = TrackWindows(windows, [track for one in promises for track in one.tracks])
        sizes = [len(one.tracks) for one in promises]
        self._firsts: Counts = np.cumsum([0, *sizes])[:-1]
        self._basis = [track.basis for track in self._tracks.tracks]
        self._several = [number for number, size in enumerate(sizes) if size > 1]
        allowed = {id(one.tiers): float(one.objective.allowed_bad) for one in promises}
        self._rated: dict[int, Floats] = {}
        self._spoken: dict[int, Counts] = {}
        self._fired_s = _fired_s(fired, now_s=windows.now_s)
        self._allowed = np.array([allowed[id(one.tiers)] for one in promises for _ in one.tracks])

    def _of(self, number: int) -> range:
        """The tracks of a promise."""
        first = int(self._firsts[number])
        return range(first, first + len(self._promises[number].tracks))

    def _rates(self, window_s: int) -> Floats:
        """Burn of each track, NaN without events."""
        if window_s not in self._rated:
            good, bad, _ = self._tracks.events(window_s).T
            with np.errstate(divide="ignore", invalid="ignore"):
                self._rated[window_s] = bad / (good + bad) / self._allowed
        return self._rated[window_s]

    def _worst(self, window_s: int) -> Counts:
        """The track of each promise that burns most, the first of equals."""
        if window_s not in self._spoken:
            rates, worst = self._rates(window_s), self._firsts.copy()
            for number in self._several:
                tracks = self._of(number)
                worst[number] = max(tracks, key=lambda track: -1.0 if np.isnan(rates[track]) else rates[track])
            self._spoken[window_s] = worst
        return self._spoken[window_s]

    def burns(self) -> Columns[BurnRow]:
        """Every window of every promise: those of one promise together, the windows ascending."""
        found: list[list[object]] = [[] for _ in range(12)]
        sizes = [len(one.windows_s) for one in self._promises]
        first = 0
        for windows_s, some in groupby(self._promises, key=lambda one: one.windows_s):
            until = first + len(list(some))
            for column, more in zip(found, self._burns(first, until, windows_s), strict=True):
                column.extend(more)
            first = until
        return Columns(BurnRow, tuple(found), runs(sizes))

    def _burns(self, first: int, until: int, windows_s: Sequence[int]) -> Iterator[Sequence[object]]:
        """The columns of a stretch of promises that all have these windows."""
        rates = [self._rates(window_s) for window_s in windows_s]
        speaks = [self._worst(window_s)[first:until] for window_s in windows_s]
        events = [self._tracks.events(window_s)[who] for window_s, who in zip(windows_s, speaks, strict=True)]
        coverage = [self._tracks.coverage(window_s)[who] for window_s, who in zip(windows_s, speaks, strict=True)]
        good, bad, unsure = np.stack(events, axis=1).reshape(-1, 3).T.tolist()
        tracks = [one.tracks[0] for one in self._promises[first:until] for _ in windows_s]
        yield [self._windows.now_s] * len(tracks)
        yield [track.environment for track in tracks]
        yield [track.spec.service for track in tracks]
        yield [track.model for track in tracks]
        yield [track.objective.name for track in tracks]
        yield [*windows_s] * (until - first)
        yield good
        yield bad
        yield or_none(np.stack([of[who] for of, who in zip(rates, speaks, strict=True)], axis=1).reshape(-1))
        yield np.stack(coverage, axis=1).reshape(-1).tolist()
        yield [self._basis[track] for track in np.stack(speaks, axis=1).reshape(-1).tolist()]
        yield unsure

    def budgets(self) -> Iterator[BudgetRow]:
        """The lowest budget of each promise."""
        for number in range(len(self._promises)):
            yield min((self._budget(track) for track in self._of(number)), key=lambda row: row.remaining)

    def _budget(self, number: int) -> BudgetRow:
        track, tick_s = self._tracks.tracks[number], self._windows.plan.tick_s
        objective = track.objective
        held = self._tracks.held(number, objective.window)
        age_s = max(self._tracks.age_s(number), tick_s)
        lately = self._tracks.held(number, burn.pace_window_s(objective))
        left = burn.budget(objective, good=held.good, bad=held.bad, age_s=age_s, lately_bad=lately.bad)
        who = self._windows.now_s, track.environment, track.spec.service, track.model, objective.name
        figures = float(left.allowance), left.remaining, left.exhausted_in_s
        coverage = self._tracks.covered(number, objective.window)
        return BudgetRow(*who, held.good, held.bad, *figures, coverage, self._basis[number])

    def stirred(self, alerts: Mapping[AlertKey, Alert]) -> set[tuple[int, Tier]]:
        """The tiers of promises that may be anything but ok."""
        return {*self._starting(), *self._going_on(alerts)}

    def _starting(self) -> Iterator[tuple[int, Tier]]:
        """Those whose long window may ask for an alert."""
        tracks: defaultdict[int, list[int]] = defaultdict(list)
        tiers: defaultdict[int, list[Tier]] = defaultdict(list)
        first = 0
        for _, some in groupby(self._promises, key=lambda one: id(one.tiers)):
            held = list(some)
            until = first + sum(len(one.tracks) for one in held)
            for tier in held[0].tiers:
                tracks[tier.long_s].extend(range(first, until))
                tiers[tier.long_s].extend([tier] * (until - first))
            first = until
        for long_s, of in tracks.items():
            good, bad, _ = self._tracks.events(long_s)[of].T
            alike = {id(tier): tier for tier in tiers[long_s]}  # equal tiers of two objectives are two objects
            needed = {number: float(tier.bad_share_needed) for number, tier in alike.items()}
            asked = np.array([needed[id(tier)] for tier in tiers[long_s]])
            counts = np.array([tier.min_bad_events for tier in tiers[long_s]])
            near = bad * self._tracks.coverage(long_s)[of] >= asked * (good + bad) * NEARLY
            for place in np.flatnonzero(near & (bad >= counts)).tolist():
                yield int(np.searchsorted(self._firsts, of[place], side="right")) - 1, tiers[long_s][place]

    def _going_on(self, alerts: Mapping[AlertKey, Alert]) -> Iterator[tuple[int, Tier]]:
        """Those that fire already."""
        firing = {key for key, alert in alerts.items() if alert.state == "firing" and key.tier}
        whose = {(key.environment, key.service, key.model, key.objective) for key in firing}
        for number, one in enumerate(self._promises if whose else ()):
            track = one.tracks[0]
            if (track.environment, track.spec.service, track.model, track.objective.name) in whose:
                yield from ((number, tier) for tier in one.tiers if burn_alert.key(track, tier) in firing)

    def alert(self, number: int, tier: Tier, *, alerts: Mapping[AlertKey, Alert], budget: BudgetRow) -> Wanted | None:
        """The tier's alert, when it should pend or fire. Pages are to be asked for before tickets."""
        track = self._promises[number].tracks[0]
        if track.model == OTHER_MODEL and tier.notify == "page":
            return None  # what was asked for beyond the known names counts in `*`, and pages nobody alone
        before = alerts.get(burn_alert.key(track, tier))
        firing = before is not None and before.state == "firing"
        states = [
            burn.next_state(
                tier,
                firing=firing,
                long=self._counts(one, tier, tier.long_s),
                short=self._counts(one, tier, tier.short_s),
                recent=None if tier.recent_s is None else self._counts(one, tier, tier.recent_s),
            )
            for one in self._of(number)
        ]
        state = max(states, key=FURTHER.__getitem__)
        if state == "firing" and not firing and self._is_paged(number, tier):
            state = "pending"
        if state == "firing":
            self._fired_s[replace(burn_alert.key(track, tier), model="")] = self._windows.now_s
        if state == "ok":
            return None
        rates = self._rates(tier.long_s)
        worst = int(self._worst(tier.long_s)[number])
        held = self._tracks.held(worst, tier.long_s)
        return burn_alert.burning(
            track, tier, state, figures=burn_alert.Figures(held, float(np.nan_to_num(rates[worst])), budget)
        )

    def _is_paged(self, number: int, tier: Tier) -> bool:
        """Whether a ticket has to wait: a page of the objective fires, or did in the tier's short window, of any model.
        What burned then has been told, and is no second incident."""
        if tier.notify != "ticket":
            return False
        key = burn_alert.key(self._promises[number].tracks[0], tier)
        since_s = self._windows.now_s - tier.short_s
        pages = (one for one in self._promises[number].tiers if one.notify == "page")
        return any(self._fired_s.get(replace(key, model="", tier=one.name), since_s) > since_s for one in pages)

    def _counts(self, number: int, tier: Tier, window_s: int) -> WindowCounts:
        held = self._tracks.held(number, window_s)
        spans = self._tracks.bad_spans(number, window_s, spread_s=tier.spread_s)
        return WindowCounts(held.good, held.bad, self._tracks.covered(number, window_s), spans)


def _fired_s(alerts: Iterable[Alert], *, now_s: int) -> dict[AlertKey, int]:
    """When an alert of each tier last fired, of any model."""
    found: dict[AlertKey, int] = {}
    for alert in alerts:
        if alert.key.tier and alert.state != "pending":
            of, last_s = replace(alert.key, model=""), now_s if alert.state == "firing" else alert.since_s
            found[of] = max(last_s, found.get(of, last_s))
    return found
