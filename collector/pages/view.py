"""What the status page says, as values in words, made from one status and its history. Pure.

An objective is one card: over all its models first, and each model below when there are several.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from collector.pages import alert_lines, filters
from collector.pages.alert_lines import Line
from collector.pages.charts import Span, chart
from collector.pages.filters import Choices, Filters
from collector.pages.history import History
from collector.pages.pictures import Picture, picture
from collector.pages.standing import Facts, Latency, Standing, Tone, lasting, standing
from collector.telling.notice import objective_path
from collector.telling.notify import Deliveries
from collector.values import words
from collector.values.alerting import Alert
from slo import burn
from slo.objective import Objective, Spec
from slo.signals import ENGINE_RUNNING, ENGINE_WAITING, IN_FLIGHT, KV_OCCUPANCY, SIGNALS, Metric
from slo.words import counted

TROUBLES: tuple[tuple[str, Tone, str, str], ...] = (
    ("exhausted", "bad", "The contract is broken", "over budget"),
    ("burning", "warn", "The contract is at risk", "burning budget"),
)
LONG_LIST = 8
"""Objectives beyond which the page begins with all of them at a glance."""
MAX_NAMES = 5
"""Names in one sentence."""
MAX_ALERTS = 10
"""Alerts told on the page; the rest are counted."""
MAX_DRIFTS = 5
"""Latencies that shifted, of which the page tells; those that shifted most."""
MAX_MODELS = 30
"""Models of one objective that people can read; of more, those in trouble come first."""
TROUBLE_WORDS = ("budget spent", "burning", "no data")
EVERYTHING = Filters()
URGENCY = {"exhausted": 0, "burning": 1, "ok": 2, "no_data": 3}
ENGINE_GAUGES: tuple[tuple[Metric, str, str], ...] = (
    (KV_OCCUPANCY, "KV cache", "1"),
    (ENGINE_WAITING, "Waiting in the engine", ""),
    (ENGINE_RUNNING, "Running in the engine", ""),
    (IN_FLIGHT, "In flight at the sidecar", ""),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "are we keeping the contract, and for how long"."""

    tone: Tone
    title: str
    detail: str


@dataclass(frozen=True, slots=True)
class Card:
    """One objective of one service. `models` are those shown, `left_out` how many more there are."""

    anchor: str
    url: str
    service: str
    environment: str
    name: str
    owner: str
    promise: str
    period: str
    whole: Standing
    models: Sequence[Standing]
    left_out: int
    latencies: Sequence[Latency]
    corner: str
    picture: Picture


@dataclass(frozen=True, slots=True)
class Gauge:
    """One gauge of the engines of one service, the highest of them."""

    service: str
    picture: Picture


@dataclass(frozen=True, slots=True)
class Group:
    """The objectives of one service."""

    service: str
    environment: str
    cards: Sequence[Card]

    @property
    def told(self) -> str:
        """How many there are, and how many of them are in trouble."""
        states = (f"{sum(card.whole.state == word for card in self.cards)} {word}" for word in TROUBLE_WORDS)
        said = [text for text in states if not text.startswith("0 ")]
        return ", ".join([counted(len(self.cards), "objective"), *said])


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A service that is heard from, and of which no objective speaks."""

    service: str
    told: str


@dataclass(frozen=True, slots=True)
class Page:
    """Everything the page says."""

    at: str
    at_s: int | None
    tick_s: int
    services: Sequence[str]
    filters: Filters
    choices: Choices
    total: int
    verdict: Verdict
    cards: Sequence[Card]
    groups: Sequence[Group]
    unjudged: Sequence[Unjudged]
    gauges: Sequence[Gauge]
    unheard: Sequence[Line]
    drifts: Sequence[Line]
    active: Sequence[Line]
    ended: Sequence[Line]
    span: str

    @property
    def told(self) -> Sequence[Line]:
        """The alerts that are told in full, the most urgent."""
        return self.active[:MAX_ALERTS]

    @property
    def services_told(self) -> str:
        """The services in one line; of many only how many."""
        return f"{len(self.services)} services" if len(self.services) > MAX_NAMES else ", ".join(self.services)

    @property
    def states(self) -> Sequence[tuple[str, str]]:
        """The states to choose from, each with its word."""
        return list(filters.STATES.items())

    @property
    def is_filterable(self) -> bool:
        """Whether there is so much that people choose among it."""
        return self.total > LONG_LIST or len(self.choices.services) > 1 or self.filters.are_any

    @property
    def is_long(self) -> bool:
        """Whether there are more objectives than a look takes in."""
        return len(self.cards) > LONG_LIST


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page is made from: the status, its history, the alerts that are pending or firing, and what became of
    telling them."""

    specs: Sequence[Spec]
    status: Facts
    history: History
    alerts: Sequence[Alert]
    tick_s: int
    deliveries: Mapping[str, Deliveries] = field(default_factory=dict)
    filters: Filters = EVERYTHING


def page(seen: Seen) -> Page:
    """The whole front page."""
    at_s, rows = seen.status["at_s"], seen.filters.chosen(seen.status["objectives"])
    cards = list(_cards(seen, rows))
    return Page(
        at=alert_lines.clock(at_s) if at_s else words.UNKNOWN,
        at_s=at_s,
        tick_s=seen.tick_s,
        services=[spec.service for spec in seen.specs],
        filters=seen.filters,
        choices=filters.choices(seen.status["objectives"]),
        total=len({(row["environment"], row["service"], row["objective"]) for row in seen.status["objectives"]}),
        verdict=verdict(rows, are_chosen=seen.filters.are_any),
        cards=cards,
        groups=[Group(service, environment, list(some)) for (environment, service), some in groupby(cards, key=_whose)],
        unjudged=[] if seen.filters.are_any else list(_unjudged(seen)),
        gauges=list(_gauges(seen)),
        unheard=alert_lines.unheard(seen.deliveries),
        drifts=alert_lines.drifts(seen.status["drifts"])[:MAX_DRIFTS],
        active=alert_lines.active(_of_chosen(seen), now_s=at_s or seen.history.until_s),
        ended=alert_lines.ended(one for one in seen.history.ended if seen.filters.service in ("", one.service)),
        span=words.duration(seen.history.until_s - seen.history.since_s),
    )


def verdict(objectives: Sequence[Facts], *, are_chosen: bool = False) -> Verdict:
    """One sentence over all objectives, the worst first, and how long the tightest budget lasts. Of those that were
    chosen there may be none."""
    if are_chosen and not objectives:
        return Verdict("none", "Nothing matches", "No objective is of that service, model and state.")
    named = _names(objectives)
    known = [one for one in objectives if one["state"] != "no_data"]
    if not known:
        detail = "No telemetry has come for any objective: point OTLP over HTTP at this address."
        return Verdict("none", "Nothing heard yet", detail)
    for state, tone, title, doing in TROUBLES:
        names = list(dict.fromkeys(named(one) for one in known if one["state"] == state))
        if names:
            told_of = f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {doing}. "
            is_said = state == "exhausted" and len(names) == 1
            return Verdict(tone, title, ("" if is_said else told_of) + _outlook(known, named))
    silent = list(dict.fromkeys(named(one) for one in objectives if one["state"] == "no_data"))
    return Verdict(
        "good", "The contract is kept", _outlook(known, named) + (f" No data of {_listed(silent)}." if silent else "")
    )


def _names(objectives: Sequence[Facts]) -> Callable[[Facts], str]:
    """How an objective is called: with its service, where there are several."""
    if len({one["service"] for one in objectives}) > 1:
        return lambda one: f"{one['service']} {one['objective']}"
    return lambda one: str(one["objective"])


def _listed(names: Sequence[str]) -> str:
    if len(names) > MAX_NAMES:
        names = [*names[: MAX_NAMES - 1], f"{len(names) - MAX_NAMES + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _outlook(known: Sequence[Facts], named: Callable[[Facts], str]) -> str:
    """How long it lasts: of the budget that ends first."""
    spent = [one for one in known if one["budget"]["remaining"] <= 0]
    if spent:
        worst = min(spent, key=lambda one: one["budget"]["remaining"])
        return f"{named(worst)} has used {words.share(1 - worst['budget']['remaining'])} of its budget."
    ending = [one for one in known if one["budget"]["exhausted_in_s"] is not None]
    if not ending:
        return "No budget is being spent at the moment."
    first = min(ending, key=lambda one: one["budget"]["exhausted_in_s"])
    left, ends_s = words.share(first["budget"]["remaining"]), first["budget"]["exhausted_in_s"]
    lasts = lasting(ends_s, first["period_s"])
    return f"The tightest budget, {named(first)} with {left} left, lasts {lasts} at the last hour's rate."


def _of_chosen(seen: Seen) -> list[Alert]:
    return [alert for alert in seen.alerts if seen.filters.service in ("", alert.key.service)]


def _whose(card: Card) -> tuple[str, str]:
    return card.environment, card.service


def _unjudged(seen: Seen) -> Iterator[Unjudged]:
    """What is known of them: from latencies, or from the gauges of an engine alone."""
    promised = {spec.service for spec in seen.specs}
    known: dict[str, str] = {}
    for one in seen.status["unjudged"]:
        names, more = one["models"], one["models_count"] - len(one["models"])
        models = _listed(names) + (f" and {more} more" if more else "")
        signals = _listed([signal for signal in one["signals"] if signal in SIGNALS] or one["signals"])
        known[one["service"]] = f"sends {signals} of {models}" if names else f"sends {signals}"
    for service, _ in seen.history.gauges:
        if service not in promised:
            known.setdefault(service, "sends figures of its engine")
    for service, told in sorted(known.items()):
        yield Unjudged(service, told)


def _cards(seen: Seen, chosen: Sequence[Facts]) -> Iterator[Card]:
    objectives = {(spec.service, one.name): one for spec in seen.specs for one in spec.objectives}

    def promised(one: Facts) -> tuple[str, str, str]:
        return one["environment"], one["service"], one["objective"]

    for (environment, service, name), rows in groupby(chosen, key=promised):
        yield _card(seen, objectives[service, name], list(rows), environment=environment)


def _card(seen: Seen, objective: Objective, rows: Sequence[Facts], *, environment: str) -> Card:
    service = rows[0]["service"]
    shortest_s, tiers = seen.history.window_s, burn.tiers(objective)
    first, *others = rows
    shown = _readable(others)
    whole, *models = (standing(objective, row, shortest_s=shortest_s, tiers=tiers) for row in (first, *shown))
    return Card(
        anchor=f"{service}-{objective.name}",
        url=objective_path(service, objective.name, environment),
        service=service,
        environment=environment,
        name=objective.name,
        owner=objective.owner or "",
        promise=words.promise(objective),
        period=words.period(objective),
        whole=whole,
        models=models if len(models) > 1 else (),
        left_out=len(others) - len(shown),
        latencies=whole.latencies or _by_model(models),
        corner="" if whole.latencies else _window_shown(models),
        picture=picture(seen.history, objective, (first, *shown), key=(environment, service)),
    )


def _readable(rows: Sequence[Facts]) -> Sequence[Facts]:
    """The models to show: all, or as many as people can read, those in trouble first."""
    return rows if len(rows) <= MAX_MODELS else sorted(rows, key=lambda row: URGENCY[row["state"]])[:MAX_MODELS]


def _by_model(models: Sequence[Standing]) -> list[Latency]:
    """Percentiles do not add up over models: each has its own line, all over the same window."""
    window = _window_shown(models)
    return [replace(line, window=one.model) for one in models for line in one.latencies if line.window == window]


def _window_shown(models: Sequence[Standing]) -> str:
    """The shortest window in which any model has a value."""
    lines = [line for one in models for line in one.latencies]
    return next((line.window for line in lines if line.has_values), lines[0].window if lines else "")


def _gauges(seen: Seen) -> Iterator[Gauge]:
    history = seen.history
    span = Span(history.since_s, history.until_s)
    for spec in seen.specs:
        if seen.filters.service not in ("", spec.service):
            continue
        for metric, title, unit in ENGINE_GAUGES:
            points = history.gauges.get((spec.service, metric.sql), ())
            if points:
                limit = _limit(spec, metric)
                drawn = chart({title: points}, span=span, threshold=limit)
                shown = "" if limit is None else words.value(limit, unit)
                yield Gauge(spec.service, Picture(drawn, title, words.value(points[-1][1], unit), shown, unit))


def _limit(spec: Spec, metric: Metric) -> float | None:
    """The threshold of the objective that speaks of the gauge."""
    limits = [
        float(objective.threshold)
        for objective in spec.objectives
        if SIGNALS[objective.signal].metric is metric and objective.threshold is not None
    ]
    return min(limits, default=None)
