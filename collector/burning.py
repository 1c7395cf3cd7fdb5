"""One objective of one model judged: burn of every window, budget, and the alerts these ask for.

Takes the tracks of the objective (one a hash that is exported now) and speaks for the worst: the highest burn, the
lowest budget, the furthest alert. The arithmetic is `slo.burn`'s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collector import alerting
from collector.alerting import Alert, AlertKey, Wanted
from collector.coverage import of_series
from collector.events import Held
from collector.track import Track
from collector.windows import Windows
from slo import burn
from slo.burn import Tier, WindowCounts
from slo.quantity import duration_text, percent_text, plain
from slo.signals import OTHER_MODEL, SIGNALS

HOUR_S = 3600
BUDGET_EXHAUSTED = "LLMBudgetExhausted"
FURTHER = {"ok": 0, "pending": 1, "firing": 2}


@dataclass(frozen=True, slots=True)
class BurnRow:
    """Burn of one objective over one window; the columns of table `burn_rate`. `basis` is `counts` (exact) or
    `histogram`; `unsure` events of the latter lie in a bucket that the threshold cuts."""

    at_s: int
    environment: str
    service: str
    model: str
    objective: str
    window_s: int
    good: int
    bad: int
    burn: float | None
    coverage: float
    basis: str
    unsure: int


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """Budget of one objective over its period; the columns of table `budget`."""

    at_s: int
    environment: str
    service: str
    model: str
    objective: str
    good: int
    bad: int
    allowance: float
    remaining: float
    exhausted_in_s: float | None
    coverage: float
    basis: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be said of one objective and model now."""

    burns: tuple[BurnRow, ...]
    budget: BudgetRow
    wanted: tuple[Wanted, ...]


def judge(
    windows: Windows, found: Sequence[Track], *, tiers: Sequence[Tier], alerts: Mapping[AlertKey, Alert]
) -> Judgement:
    """Judge one objective and model from its tracks, by the objective's tiers. `alerts` are those pending or firing: a
    tier that fires ends by other rules than it starts by."""
    judged = [_Judged(windows, track) for track in found]
    objective = found[0].objective
    burns = tuple(_worst_burn([one.burn(window_s) for one in judged]) for window_s in burn.windows_s(objective))
    budget = min((one.budget() for one in judged), key=lambda row: row.remaining)
    wanted = [_tier(judged, tier, alerts=alerts, budget=budget) for tier in tiers]
    wanted.append(_exhausted(found[0], budget))
    return Judgement(burns, budget, tuple(one for one in wanted if one is not None))


class _Judged:
    """One track with its figures."""

    def __init__(self, windows: Windows, track: Track) -> None:
        self.track = track
        self._windows = windows
        self._service = track.environment, track.spec.service
        first_s = windows.events.first_s(track.keys)
        self._held: dict[int, Held] = {}
        self._age_s = 0 if first_s is None else windows.now_s + windows.plan.tick_s - first_s

    def _coverage(self, window_s: int) -> float:
        return of_series(self._windows.coverage(self._service, window_s), window_s=window_s, age_s=self._age_s)

    def held(self, window_s: int) -> Held:
        """The events of a window."""
        if window_s not in self._held:
            self._held[window_s] = self._windows.events.held(self.track.keys, window_s)
        return self._held[window_s]

    def _who(self) -> tuple[int, str, str, str, str]:
        track = self.track
        return self._windows.now_s, track.environment, track.spec.service, track.model, track.objective.name

    def burn(self, window_s: int) -> BurnRow:
        held = self.held(window_s)
        rate = burn.burn_rate(held.bad, held.good + held.bad, self.track.objective.allowed_bad)
        coverage = self._coverage(window_s)
        return BurnRow(*self._who(), window_s, held.good, held.bad, rate, coverage, self.track.basis, held.unsure)

    def budget(self) -> BudgetRow:
        objective, tick_s = self.track.objective, self._windows.plan.tick_s
        held, hour = self.held(objective.window), self.held(HOUR_S)
        age = min(max(self._age_s, tick_s) / objective.window, 1.0)
        left = burn.budget(objective, good=held.good, bad=held.bad, age=age, bad_per_s=hour.bad / HOUR_S)
        figures = float(left.allowance), left.remaining, left.exhausted_in_s
        coverage = self._coverage(objective.window)
        return BudgetRow(*self._who(), held.good, held.bad, *figures, coverage, self.track.basis)

    def counts(self, tier: Tier, window_s: int) -> WindowCounts:
        held = self.held(window_s)
        spans = self._windows.events.bad_spans(self.track.keys, window_s, spread_s=tier.spread_s)
        return WindowCounts(held.good, held.bad, self._coverage(window_s), spans)


def _worst_burn(rows: Sequence[BurnRow]) -> BurnRow:
    return max(rows, key=lambda row: -1.0 if row.burn is None else row.burn)


def _tier(
    judged: Sequence[_Judged], tier: Tier, *, alerts: Mapping[AlertKey, Alert], budget: BudgetRow
) -> Wanted | None:
    """The tier's alert, when it should pend or fire."""
    track = judged[0].track
    if track.model == OTHER_MODEL and tier.notify == "page":
        return None  # what was asked for beyond the known names counts in `*`, and pages nobody alone
    name = SIGNALS[track.objective.signal].alert
    key = AlertKey(name, track.environment, track.spec.service, track.model, track.objective.name, tier.name)
    before = alerts.get(key)
    firing = before is not None and before.state == "firing"
    states = [
        burn.next_state(tier, firing=firing, long=one.counts(tier, tier.long_s), short=one.counts(tier, tier.short_s))
        for one in judged
    ]
    state = max(states, key=FURTHER.__getitem__)
    if state == "ok":
        return None
    worst = _worst_burn([one.burn(tier.long_s) for one in judged])
    return Wanted(key, state, _labels(track, key, tier), _burn_annotations(track, key, tier, worst, budget))


def _exhausted(track: Track, budget: BudgetRow) -> Wanted | None:
    """The ticket for a spent budget; none while too little of the period is known."""
    if budget.remaining > 0 or budget.coverage < burn.MIN_COVERAGE_EXHAUSTED:
        return None
    key = AlertKey(BUDGET_EXHAUSTED, track.environment, track.spec.service, track.model, track.objective.name)
    window = duration_text(track.objective.window)
    return Wanted(
        key,
        "firing",
        _labels(track, key, None),
        alerting.annotations(
            summary=f"Objective {track.objective.name} of {track.spec.service} has spent its error budget.",
            description=(
                f"{_subject(track)}: {budget.bad} of {budget.good + budget.bad} events of the last {window} were bad "
                f"({_promise(track)}); {budget.allowance:.0f} may be. Budget left: {_share(budget.remaining)}."
            ),
            runbook_url=track.objective.runbook_url or alerting.runbook(key.name),
        ),
    )


def _labels(track: Track, key: AlertKey, tier: Tier | None) -> alerting.Pairs:
    routed: dict[str, str | None] = {"severity": "warning", "notify": "ticket"}
    if tier is not None:
        routed = {"severity": tier.severity, "notify": tier.notify}
        routed |= {"long_window": duration_text(tier.long_s), "short_window": duration_text(tier.short_s)}
    return alerting.labels(key, {**track.objective.labels, **routed, "owner": track.objective.owner})


def _burn_annotations(track: Track, key: AlertKey, tier: Tier, worst: BurnRow, budget: BudgetRow) -> alerting.Pairs:
    long, rate = duration_text(tier.long_s), worst.burn or 0.0
    ends = "no bad event came in the last hour"
    if budget.exhausted_in_s is not None:
        ends = "it is spent" if budget.exhausted_in_s == 0 else f"it ends in {_span(budget.exhausted_in_s)}"
    return alerting.annotations(
        summary=(
            f"Objective {track.objective.name} of {track.spec.service} burns its error budget too fast "
            f"(tier {tier.name}, over {long})."
        ),
        description=(
            f"{_subject(track)}: {worst.bad} of {worst.good + worst.bad} events of the last {long} were bad "
            f"({_promise(track)}; {percent_text(track.objective.allowed_bad)} may be). Burn {rate:.2f}, alert above "
            f"{burn.factor_text(tier)}. Budget left: {_share(budget.remaining)}; {ends}."
        ),
        runbook_url=track.objective.runbook_url or alerting.runbook(key.name),
    )


def _subject(track: Track) -> str:
    environment = f" in {track.environment}" if track.environment else ""
    return f"{track.spec.service}{environment}, model {track.model}"


def _promise(track: Track) -> str:
    """What a bad event is, in words."""
    signal, threshold = SIGNALS[track.objective.signal], track.objective.threshold
    if threshold is None:
        return f"{signal.title}: no answer"
    texts = {"duration": duration_text(threshold), "share": percent_text(threshold)}
    return f"{signal.title} over {texts.get(signal.threshold, plain(threshold))}"


def _share(fraction: float) -> str:
    return f"{100 * fraction:.1f}%"


def _span(seconds: float) -> str:
    """A time as people say it, to two units."""
    minutes = int(seconds // 60)
    for unit, size, below in (("d", 1440, "h"), ("h", 60, "m")):
        if minutes >= size:
            return f"{minutes // size}{unit} {minutes % size // (60 if below == 'h' else 1)}{below}"
    return f"{minutes}m" if minutes else f"{seconds:.0f}s"
