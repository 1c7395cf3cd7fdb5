"""Burn arithmetic: tiers as data, factors derived from the target, budgets from counts (DESIGN 5).

With target T, B = 1 - T is the share of events that may be bad. Over a window w, burn(w) = (bad/total)/B: 1 spends
the budget exactly over the period P. A tier spends share s of the budget within its long window L, so its factor is
f = s*P/L. Two bounds make it useful for any target: a floor keeps it from firing at a burn that is no trouble, and a
cap c keeps it reachable, since bad/total <= 1 means burn <= 1/B: f = min(max(s*P/L, floor), c/B). (A stock factor of
14.4 needs 72 % bad events on a 95 % target and can never fire on a 90 % one.) Below a target of 90 % the cap would take
f under 1, where an alert rings though the promise is kept: the factors stay what they are at 90 %, and a default tier
that no share of bad events can reach by then is left out (`left_out`).

Chance decides nothing. A tier starts when both windows burn, and the short one holds more than two bad events beyond
those that the promise allows (B of all), or nothing but bad ones, and so many that a service within its promise would
hardly have them in a row: a straggler does not ring for a burn that is over. It ends when the short window burns no
more and would not if two more of its events were bad; or when it holds no bad one, where two were to be expected at the
long one's share, or among ten; or when the long window holds no bad one, or two fewer than would burn: a few good
answers in a quiet night are no recovery. A service with many events does not notice; one with few is paged once.
And a long window of ten minutes or more must hold more than the short one does: what an idle hour leaves in both is one
look, not two, so a cold start does not page for the minute that it takes. Nor does it start on what it remembers: hours
after an incident the long window still burns, and a few bad events in the short one, as they always come, would ring
for it again; so a window between the two (`Tier.recent_s`) must burn as well. Trouble that lasts burns in it first.

At a constant bad share x from a clean start a tier is detected after L*f*B/x, has then spent f*L/P of the budget,
and its short window S resets it S*(1 - f*B/x) after the trouble ends (Google SRE Workbook, ch. 5, and its algebra).

Counts are integers and targets are Decimal; a comparison never passes through a float.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from slo.objective import Notify, Objective, TierSpec
from slo.quantity import HOUR_S, plain
from slo.signals import SIGNALS

STANDARD_WINDOWS_S = (300, 1800, 3600, 7200, 21600, 86400, 259200)
MIN_BAD_EVENTS = 5
MIN_BAD_EVENTS_LOW_FACTOR = 10
LOW_FACTOR = 6
CHANCE_EVENTS = 2
"""So many bad events more or less neither start a tier nor end it."""
RARE = Decimal("0.05")
"""What a service within its promise would see no more often than so is not put down to chance."""
ENOUGH_GOOD = 10
"""So many events in the short window, and none of them bad, end a tier whatever burned: of a tight target that burns
slowly two bad ones are to be expected among hundreds."""
LOOSEST = Decimal("0.1")
"""What may be bad at most for the caps to lower a factor further: that of a 90 % target."""
MIN_COVERAGE_EXHAUSTED = Decimal("0.10")
FINE_WINDOW_S = 600
"""Below this a window is looked at tick by tick, from here on minute by minute (DESIGN 5)."""

Severity = Literal["critical", "warning", "info"]


def severity(notify: Notify) -> Severity:
    """The `severity` label of an alert, from who is told of it."""
    severities: dict[Notify, Severity] = {"page": "critical", "ticket": "warning", "none": "info"}
    return severities[notify]


@dataclass(frozen=True, slots=True)
class _Default:
    name: str
    budget: Decimal
    long_s: int
    notify: Literal["page", "ticket"]
    floor: Decimal
    cap: Decimal


DEFAULT_TIERS = (
    _Default("fast", Decimal("0.02"), 3600, "page", Decimal(6), Decimal("0.25")),
    _Default("medium", Decimal("0.05"), 21600, "page", Decimal(3), Decimal("0.15")),
    _Default("slow", Decimal("0.10"), 86400, "ticket", Decimal("1.2"), Decimal("0.12")),
    _Default("long", Decimal("0.10"), 259200, "ticket", Decimal(1), Decimal("0.10")),
)


@dataclass(frozen=True, slots=True)
class Tier:
    """One burn alert of one objective."""

    name: str
    budget: Decimal
    long_s: int
    short_s: int
    notify: Notify
    factor: Decimal
    min_bad_events: int
    allowed_bad: Decimal
    period_s: int

    @property
    def bad_share_needed(self) -> Decimal:
        """Share of bad events in the long window above which the tier fires."""
        return self.factor * self.allowed_bad

    @property
    def budget_spent(self) -> Decimal:
        """Share of the period's budget that is gone when it fires."""
        return self.factor * self.long_s / self.period_s

    @property
    def chance_events(self) -> int:
        """Bad events in the short window that may be chance; fewer where fewer are asked for in the long one."""
        return min(CHANCE_EVENTS, self.min_bad_events - 1)

    @property
    def bad_in_a_row(self) -> int:
        """So many events of the short window, and all of them bad, a service within its promise would hardly have."""
        return math.ceil(round(RARE.ln() / self.allowed_bad.ln(), 9))

    @property
    def looks_twice(self) -> bool:
        """Whether its windows are two looks at the past: minutes against hours, not ticks against minutes."""
        return self.short_s < self.long_s and self.long_s >= FINE_WINDOW_S

    @property
    def recent_s(self) -> int | None:
        """The window that must burn too, so that a trouble which is over starts nothing: of those kept anyway the
        longest that is no more than half the long one. None: there is none between the two."""
        between = (window for window in STANDARD_WINDOWS_S if self.short_s < window <= self.long_s // 2)
        return max(between, default=None)

    @property
    def severity(self) -> Severity:
        return severity(self.notify)

    @property
    def spread_s(self) -> int | None:
        """Bad events must lie in two different spans of this length: a minute, or None for a tick."""
        return 60 if self.long_s >= FINE_WINDOW_S else None

    def detection_s(self, bad_share: Decimal) -> Decimal | None:
        """Seconds from a clean start to firing at a constant share of bad events; None when it never fires."""
        if bad_share <= self.bad_share_needed:
            return None
        return self.long_s * self.bad_share_needed / bad_share

    def reset_s(self, bad_share: Decimal) -> Decimal | None:
        """Seconds from the end of the trouble to the end of the alert; None when it never fired."""
        if bad_share <= self.bad_share_needed:
            return None
        return self.short_s * (1 - self.bad_share_needed / bad_share)


def tiers(objective: Objective) -> tuple[Tier, ...]:
    """The objective's burn alerts: those set by hand, else the defaults that fit its period and can be reached."""
    if objective.alerts.tiers is not None:
        return tuple(_by_hand(objective, spec) for spec in objective.alerts.tiers)
    return tuple(tier for tier in _defaults(objective) if tier.bad_share_needed < 1)


def left_out(objective: Objective) -> tuple[Tier, ...]:
    """The default tiers that fit the period, and that no share of bad events could make fire."""
    if objective.alerts.tiers is not None:
        return ()
    return tuple(tier for tier in _defaults(objective) if tier.bad_share_needed >= 1)


def windows_s(objective: Objective) -> tuple[int, ...]:
    """Every window that is kept for an objective: the standard ones, its tiers' and its period, ascending."""
    own = {window for tier in tiers(objective) for window in (tier.long_s, tier.short_s)}
    return tuple(sorted({*STANDARD_WINDOWS_S, *own, objective.window}))


def burn_rate(bad: int, total: int, allowed_bad: Decimal) -> float | None:
    """Burn over a window from its counts; None without events."""
    return None if total <= 0 else bad / total / float(allowed_bad)


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """What one window holds: events, and whether its bad ones lie in at least two spans (see `Tier.spread_s`)."""

    good: int
    bad: int
    coverage: float = 1.0
    bad_spans: int = 2

    @property
    def total(self) -> int:
        return self.good + self.bad


def long_burns(tier: Tier, window: WindowCounts) -> bool:
    """Whether the long window alone asks for the alert: burn * coverage > f, enough bad events, in two spans."""
    return (
        window.total > 0
        and Decimal(window.bad) * Decimal(window.coverage) > tier.bad_share_needed * window.total
        and window.bad >= tier.min_bad_events
        and window.bad_spans >= 2
    )


def burns(tier: Tier, window: WindowCounts, *, more: int = 0) -> bool:
    """Whether a window burns above the factor, or would if so many `more` of its events were bad."""
    return window.bad + more > tier.bad_share_needed * window.total


def starts(tier: Tier, long: WindowCounts, short: WindowCounts, recent: WindowCounts | None) -> bool:
    """Whether a tier that does not fire starts to."""
    apart = not tier.looks_twice or long.total > short.total
    lasts = recent is None or burns(tier, recent)
    return long_burns(tier, long) and burns(tier, short) and _is_beyond_chance(tier, short) and apart and lasts


def _is_beyond_chance(tier: Tier, short: WindowCounts) -> bool:
    """Whether a service within its promise would hardly have so many bad events in the short window."""
    in_a_row = short.good == 0 and short.bad >= tier.bad_in_a_row
    return in_a_row or short.bad - tier.allowed_bad * short.total > tier.chance_events


def ends(tier: Tier, long: WindowCounts, short: WindowCounts) -> bool:
    """Whether a tier that fires ends: on good events, or when the long window holds no event any more. Silence alone
    is no recovery, and coverage damps starting only."""
    if long.total == 0:
        return True
    if burns(tier, short):
        return False
    all_good = long.bad == 0 and long.total > tier.chance_events
    is_over = all_good or not burns(tier, long, more=tier.chance_events)
    return is_over or (short.total > 0 and _has_recovered(tier, long, short))


def _has_recovered(tier: Tier, long: WindowCounts, short: WindowCounts) -> bool:
    """Whether so few bad events in the short window are no chance, if what burned in the long one burned on."""
    to_be_expected = short.total * long.bad >= tier.chance_events * long.total
    all_good = short.bad == 0 and (to_be_expected or short.total >= ENOUGH_GOOD)
    return all_good or not burns(tier, short, more=tier.chance_events)


def next_state(
    tier: Tier, *, firing: bool, long: WindowCounts, short: WindowCounts, recent: WindowCounts | None = None
) -> Literal["ok", "pending", "firing"]:
    """The tier's state now, by what its windows hold: `recent` that of `Tier.recent_s`, None where there is none."""
    if firing:
        return "ok" if ends(tier, long, short) else "firing"
    if not long_burns(tier, long):
        return "ok"
    return "firing" if starts(tier, long, short, recent) else "pending"


@dataclass(frozen=True, slots=True)
class Budget:
    """The error budget of one period so far."""

    good: int
    bad: int
    allowance: Decimal
    remaining: float
    exhausted_in_s: float | None


def pace_window_s(objective: Objective) -> int:
    """The window whose bad events tell how fast the budget goes: the last hour, or the period where it is shorter."""
    return min(HOUR_S, objective.window)


def budget(objective: Objective, *, good: int, bad: int, age_s: float, lately_bad: int) -> Budget:
    """The budget from the period's counts.

    `age_s` (> 0) is the time since the earliest event held, at most the period: a young service gets the allowance of a
    whole period at the traffic seen so far. `lately_bad` are the bad events of `pace_window_s`: over that or over the
    age, whichever is less, for a service of five minutes has had no hour to spread them over.
    """
    total = good + bad
    if total == 0:
        return Budget(good, bad, Decimal(0), 1.0, None)
    age_s = min(age_s, objective.window)
    allowance = objective.allowed_bad * total * objective.window / Decimal(str(age_s))
    left = allowance - bad
    if left <= 0:
        exhausted_in_s: float | None = 0.0
    else:
        pace = lately_bad / min(age_s, pace_window_s(objective))
        exhausted_in_s = float(left) / pace if pace else None
    return Budget(good, bad, allowance, float(left / allowance), exhausted_in_s)


def _minimum(objective: Objective, *, notify: Notify, factor: Decimal) -> int:
    if objective.alerts.min_bad_events is not None:
        return objective.alerts.min_bad_events
    return MIN_BAD_EVENTS_LOW_FACTOR if notify == "page" and factor < LOW_FACTOR else MIN_BAD_EVENTS


def _defaults(objective: Objective) -> Iterator[Tier]:
    """The default tiers that fit the objective's period, reachable or not."""
    for tier in DEFAULT_TIERS:
        if tier.long_s <= objective.window:
            yield _default(objective, tier)


def _default(objective: Objective, tier: _Default) -> Tier:
    factor = max(tier.budget * objective.window / tier.long_s, tier.floor)
    factor = min(factor, tier.cap / min(objective.allowed_bad, LOOSEST))
    notify = tier.notify if SIGNALS[objective.signal].notify == "page" else "ticket"
    return Tier(
        tier.name,
        tier.budget,
        tier.long_s,
        tier.long_s // 12,
        notify,
        factor,
        _minimum(objective, notify=notify, factor=factor),
        objective.allowed_bad,
        objective.window,
    )


def _by_hand(objective: Objective, spec: TierSpec) -> Tier:
    factor = spec.budget * objective.window / spec.long
    return Tier(
        spec.name,
        spec.budget,
        spec.long,
        spec.short if spec.short is not None else max(spec.long // 12, 1),
        spec.notify,
        factor,
        _minimum(objective, notify=spec.notify, factor=factor),
        objective.allowed_bad,
        objective.window,
    )


def factor_text(tier: Tier) -> str:
    """The factor to at most two decimals, for people."""
    return plain(tier.factor.quantize(Decimal("0.01")))
