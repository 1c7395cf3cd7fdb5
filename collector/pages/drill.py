"""What the page about one objective says beyond its card: each alert tier with both of its windows, the chart at large,
its own alerts, what another target would have cost, and its worst requests. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collector.pages import alert_lines, pictures, view, whatif_lines
from collector.pages.alert_lines import Line
from collector.pages.charts import MAX_POINTS_LARGE
from collector.pages.history import Ended
from collector.pages.pictures import Picture
from collector.pages.standing import Facts, Tone
from collector.pages.view import Card, Page, Seen
from collector.pages.whatif_lines import Answer, Form
from collector.replaying.whatif import WhatIf
from collector.values import words
from collector.values.measurement import FAILED, Request
from slo import burn
from slo.objective import Objective
from slo.quantity import duration_text, percent_text
from slo.signals import SIGNALS

MAX_WORST = 10
"""Requests told on the page."""
MAX_SAMPLES = 12
"""Values of the chart that stand beside it as a table."""
_STATES: dict[str, tuple[Tone, str]] = {
    "firing": ("bad", "firing"),
    "pending": ("warn", "the long window burns, a shorter one not yet or no longer"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is read for one objective alone. `trouble` is why there is no answer to what was asked."""

    ended: Sequence[Ended] = ()
    worst: Sequence[Request] = ()
    worst_since_s: int = 0
    percentile: str = ""
    threshold: str = ""
    whatif: WhatIf | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class TierLine:
    """One burn alert: its windows as (label, burn, tone), and when it fires."""

    name: str
    does: str
    long: tuple[str, str, Tone]
    short: tuple[str, str, Tone]
    factor: str
    coverage: str
    tone: Tone
    state: str


@dataclass(frozen=True, slots=True)
class WorstLine:
    """One of the worst requests. `tone` is bad when it broke the promise."""

    value: str
    tone: Tone
    when: str
    outcome: str
    model: str
    tokens: str
    whole: str
    instance: str
    trace_id: str


@dataclass(frozen=True, slots=True)
class Drill:
    """The page about one objective."""

    card: Card
    said: str
    tiers: Sequence[TierLine]
    never: Sequence[str]
    picture: Picture
    error: str
    top: str
    start: str
    end: str
    samples: Sequence[tuple[str, str]]
    active: Sequence[Line]
    ended: Sequence[Line]
    worst: Sequence[WorstLine]
    worst_by: str
    worst_of: str
    form: Form
    answer: Answer | None


def drill(seen: Seen, page: Page, card: Card, asked: Asked) -> Drill:
    """All of it. The card is one of the page."""
    key, now_s = (card.environment, card.service), page.at_s or seen.history.until_s
    objective = next(
        one for spec in seen.specs if spec.service == card.service for one in spec.objectives if one.name == card.name
    )
    rows = [
        row
        for row in seen.status["objectives"]
        if (row["environment"], row["service"], row["objective"]) == (*key, card.name)
    ]
    large = pictures.picture(seen.history, objective, rows[: view.MAX_MODELS], key=key, points=MAX_POINTS_LARGE)
    mine = [
        alert
        for alert in seen.alerts
        if (alert.key.environment, alert.key.service, alert.key.objective) == (*key, card.name)
    ]
    return Drill(
        card=card,
        said=_said(card),
        tiers=[_tier(tier, rows[0], now_s=now_s) for tier in burn.tiers(objective)],
        never=[_never(tier) for tier in burn.left_out(objective)],
        picture=large,
        error=_error(card, rows),
        top=_value(large.chart.top, large.unit),
        start=_time(large.chart.start_s),
        end=_time(large.chart.end_s),
        samples=_samples(seen, card, objective, rows),
        active=alert_lines.active(mine, now_s=now_s),
        ended=alert_lines.ended(asked.ended),
        worst=[_worst(one, objective) for one in ranked(asked.worst, objective)],
        worst_by=_worst_by(objective),
        worst_of=_worst_of(asked.worst_since_s, now_s),
        form=whatif_lines.form(objective, percentile=asked.percentile, threshold=asked.threshold),
        answer=_answer(asked),
    )


def ranks(objective: Objective) -> tuple[str, ...]:
    """What the worst requests of an objective rank by; nothing where its events are no requests."""
    if SIGNALS[objective.signal].threshold == "duration":
        return objective.signal, FAILED
    return (FAILED,) if objective.signal == "availability" else ()


def _worst_by(objective: Objective) -> str:
    """What the column of their values is called; empty where an objective speaks of no requests."""
    asked = ranks(objective)
    return SIGNALS[objective.signal].title if objective.signal in asked else "failed after" if asked else ""


def ranked(requests: Sequence[Request], objective: Objective) -> list[Request]:
    """The worst of those that the objective speaks of, each once, those without a value first. How long its prompt was
    no span tells."""
    match = objective.match
    mine = {
        (one.trace_id, one.span_id): one
        for one in requests
        if match.holds_model(one.model) and match.class_ in (None, one.class_)
    }
    ordered = sorted(mine.values(), key=lambda one: _took(one, objective), reverse=True)
    if objective.threshold is None:
        return ordered[:MAX_WORST]
    # Those that waited in vain are the worst, but ten timeouts say no more than a few.
    slow = [one for one in ordered if objective.signal in one.latencies]
    vain = [one for one in ordered if objective.signal not in one.latencies]
    vain = vain[: max(MAX_WORST // 2, MAX_WORST - len(slow))]
    return [*vain, *slow[: MAX_WORST - len(vain)]]


def _took(request: Request, objective: Objective) -> float:
    return request.latencies.get(objective.signal, request.took_s)


def _said(card: Card) -> str:
    """The state in a sentence."""
    whole = card.whole
    if whole.tone == "none":
        return "Nothing was heard of it yet, so nothing is judged."
    left = f"{whole.remaining} of the budget is left" if whole.state != "budget spent" else "The budget is spent"
    lasts = f"; at the last hour's rate it {whole.lasts}" if whole.lasts.startswith("lasts") else ""
    known = f" Telemetry is known for {whole.coverage} of the period." if whole.coverage != "100 %" else ""
    return f"{left}{lasts}: {whole.bad} bad events, where {whole.allowance} are allowed.{known}"


def _tier(tier: burn.Tier, row: Facts, *, now_s: int) -> TierLine:
    windows = {window["window_s"]: window for window in row["windows"]}
    alert = next((one for one in row["alerts"] if one["tier"] == tier.name and one["state"] in _STATES), None)
    tone, state = _STATES[alert["state"]] if alert else _still(tier, windows)
    if alert and alert["state"] == "firing":
        state = f"firing for {words.duration(max(now_s - alert['since_s'], 0))}"
    known = windows.get(tier.long_s)
    spent, long = percent_text(round(tier.budget_spent, 3)), duration_text(tier.long_s)
    return TierLine(
        name=tier.name,
        does=f"{alert_lines.DOES[tier.notify]} at {spent} of the budget in {long}",
        long=_rate(windows.get(tier.long_s), tier, tier.long_s),
        short=_rate(windows.get(tier.short_s), tier, tier.short_s),
        factor=words.burn(float(tier.factor)),
        coverage=words.share(known["coverage"]) if known else words.UNKNOWN,
        tone=tone,
        state=state,
    )


def _still(tier: burn.Tier, windows: Mapping[int, Facts]) -> tuple[Tone, str]:
    """What a tier that does not fire waits for, where its long window burns."""
    window = windows.get(tier.long_s)
    rate = window["burn"] if window else None
    if window is None or rate is None or rate <= tier.factor:
        return "good", "quiet"
    if rate * window["coverage"] <= tier.factor:
        known = words.duration(window["coverage"] * tier.long_s)
        return "warn", f"held back: {known} of {words.duration(tier.long_s)} are known, too little to be sure"
    return "warn", "held back: too few bad events, or too close together"


def _rate(window: Facts | None, tier: burn.Tier, window_s: int) -> tuple[str, str, Tone]:
    rate = window["burn"] if window else None
    tone: Tone = "none" if rate is None else "bad" if rate > tier.factor else "good"
    return duration_text(window_s), words.burn(rate), tone


def _never(tier: burn.Tier) -> str:
    return f"{tier.name} is left out: at this target no share of bad events could make it fire"


def _error(card: Card, rows: Sequence[Facts]) -> str:
    """How far off the percentiles may be, at most."""
    known = [
        figures["rel_error"]
        for row in rows
        for figures in row["percentiles"].values()
        if figures["rel_error"] is not None
    ]
    return f"±{words.share(max(known))}" if known and card.picture.unit == "s" else ""


def _time(at_s: int) -> str:
    """The time of day of a moment; charts show hours."""
    return alert_lines.clock(at_s).partition(" ")[2]


def _value(figure: float | None, unit: str) -> str:
    return words.burn(figure) if unit == "×" else words.value(figure, unit)


def _samples(seen: Seen, card: Card, objective: Objective, rows: Sequence[Facts]) -> list[tuple[str, str]]:
    """Values of the chart, evenly spread, the latest first."""
    points = pictures.points(seen.history, objective, rows[: view.MAX_MODELS], key=(card.environment, card.service))
    step = max(math.ceil(len(points) / MAX_SAMPLES), 1)
    unit = card.picture.unit
    return [
        (alert_lines.clock(at_s), _value(value, unit)) for at_s, value in list(reversed(points))[::step][:MAX_SAMPLES]
    ]


def _worst(request: Request, objective: Objective) -> WorstLine:
    value, limit = request.latencies.get(objective.signal), objective.threshold
    is_bad = request.has_failed or (value is not None and limit is not None and value > limit)
    tokens = (
        f"{words.count(number)} {what}"
        for number, what in ((request.input_tokens, "in"), (request.output_tokens, "out"))
        if number is not None
    )
    return WorstLine(
        value=_value_told(request, objective),
        tone="bad" if is_bad else "none",
        when=alert_lines.clock(request.end_s),
        outcome=request.outcome or ("error" if request.has_failed else words.UNKNOWN),
        model=request.model,
        tokens=", ".join(tokens) or words.UNKNOWN,
        whole=words.latency(request.took_s),
        instance=request.resource.instance,
        trace_id=request.trace_id,
    )


def _value_told(request: Request, objective: Objective) -> str:
    value = request.latencies.get(objective.signal)
    if value is not None:
        return words.latency(value)
    took = words.latency(request.took_s)
    return took if objective.threshold is None else f"none in {took}"


def _worst_of(since_s: int, now_s: int) -> str:
    since = words.duration(max(now_s - since_s, 0))
    return f"of the spans sent to this collector since it started {since} ago, and of the last day at most"


def _answer(asked: Asked) -> Answer | None:
    if asked.trouble:
        return Answer(trouble=asked.trouble)
    return None if asked.whatif is None else whatif_lines.answer(asked.whatif)
