"""The SLO overview: are we keeping the contract, for how long, and what is wrong when we are not.

From top to bottom: how every objective stands, what burns and against which factor, what was counted, how long
requests took against what was promised, how full the engine is, and the contract itself in words. Everything keeps to
the variables on top, so that one page serves a sole service and ten of them alike; limits come from slo.yaml.
"""

from collections.abc import Sequence
from decimal import Decimal

from dashboards import promise
from dashboards.grid import Panel, Section
from dashboards.model import PROMETHEUS, About, Column, JsonObject, Query, Step, Word
from dashboards.panels import NO_TRAFFIC, Board, dashboard, stat, table, text, timeseries
from dashboards.promise import BurnView, Limit
from dashboards.source import NOT_SPENT, STATES, Source
from slo.objective import Spec
from slo.promql import OBJECTIVE_LABEL, OVERVIEW_UID, TIER_LABEL
from slo.quantity import duration_text
from slo.signals import (
    BAD,
    E2E,
    ENVIRONMENT_LABEL,
    GOOD,
    MODEL_LABEL,
    SERVICE_LABEL,
    TPOT,
    TTFT,
    Metric,
)

TAGS = ("firsttoken", "slo")
DAY_S = 86400
MAX_TABLE_HEIGHT = 14
TILES_A_LINE = 4

STATE_COLORS = ("text", "green", "orange", "red")
STATE_WORDS = tuple(Word(STATES.index(state), state, color) for state, color in zip(STATES, STATE_COLORS, strict=True))
STATE_STEPS = tuple(Step(color, Decimal(place)) for place, color in enumerate(STATE_COLORS))
LEFT_STEPS = (Step("red", Decimal(-1)), Step("orange", Decimal("0.0001")), Step("green", Decimal("0.25")))
ENDS_STEPS = (Step("red", Decimal(NOT_SPENT)), Step("orange", Decimal(DAY_S)), Step("green", Decimal(7 * DAY_S)))
ENDS_WORDS = (Word(NOT_SPENT, "not being spent", "green"),)
BURN_STEPS = (Step("green", Decimal(0)), Step("orange", Decimal(1)))

LATENCIES: Sequence[tuple[str, str, Metric]] = (
    ("ttft", "Time to first token", TTFT),
    ("tpot", "Time per output token", TPOT),
    ("e2e", "Request duration", E2E),
)


def slo_overview(source: Source, specs: tuple[Spec, ...], *, min_step_s: int) -> JsonObject:
    """The dashboard of all services of `specs`, over `source`. `min_step_s` is how often figures come in."""
    is_first = source.datasource is PROMETHEUS
    board = Board(
        uid=OVERVIEW_UID if is_first else f"{OVERVIEW_UID}-{source.datasource.name}",
        title="SLO overview" if is_first else f"SLO overview ({source.datasource.title})",
        description="Every objective of slo.yaml: its budget, its burn, and what stands behind them.",
        datasource=source.datasource,
        variables=source.variables(),
        marks=source.marks(),
        tags=TAGS,
        min_step_s=min_step_s,
    )
    sections = (
        Section("How the contract stands", _standing(source, specs)),
        Section("Burn and budget", _burn(source, specs)),
        Section("Events and requests", _events(source)),
        Section("Latency against the promise", _latency(source, specs)),
        Section("Engine", _engine(source, specs)),
        Section("The contract, as slo.yaml writes it", (_contract(specs),), is_open=False),
    )
    return dashboard(board, sections)


def _standing(source: Source, specs: Sequence[Spec]) -> tuple[Panel, ...]:
    count = sum(len(spec.objectives) for spec in specs)
    height = 3 + min(2 * -(-count // TILES_A_LINE), 6)
    left = About(
        "Error budget left",
        "Share of the period's error budget that is left: 1 - bad / allowance. Below 0 it is overspent.",
        "percentunit", height=height, empty=NO_TRAFFIC, least=None,
    )  # fmt: skip
    ends = About(
        "Budget exhausted in",
        "Time to the end of the error budget at the last hour's rate of bad events; 0 once it is spent.",
        "s", height=height, empty=NO_TRAFFIC, least=Decimal(NOT_SPENT),
    )  # fmt: skip
    state = About(
        "State",
        "Spent: no error budget is left. Burning: a burn alert fires. Kept: neither. No data: nothing was judged.",
        "none", height=height,
    )  # fmt: skip
    return (
        stat(state, source.state(), steps=STATE_STEPS, words=STATE_WORDS),
        stat(left, source.budget_left(), steps=LEFT_STEPS),
        stat(ends, source.exhausted_in(), steps=ENDS_STEPS, words=ENDS_WORDS),
        _objectives(source, specs, count),
        _alerts(source, count),
    )


def _table_height(objectives: int) -> int:
    return min(4 + objectives, MAX_TABLE_HEIGHT)


def _objectives(source: Source, specs: Sequence[Spec], count: int) -> Panel:
    windows_s = promise.burn_columns_s(specs)
    about = About(
        "Objectives",
        "Every objective, over all its models (model *) and for each of them; the least budget left comes first. "
        "Coverage is the share of the objective's period from which telemetry is known.",
        "short", width=16, height=_table_height(count), empty="No objective is judged", least=None,
    )  # fmt: skip
    burns = [
        Column(f"burn{duration_text(w)}", f"Burn {duration_text(w)}", "none", BURN_STEPS, cell="color-text")
        for w in windows_s
    ]
    columns = (
        Column("state", "State", "none", STATE_STEPS, STATE_WORDS, "color-text"),
        Column(ENVIRONMENT_LABEL, "Environment"),
        Column(SERVICE_LABEL, "Service"),
        Column(OBJECTIVE_LABEL, "Objective"),
        Column(MODEL_LABEL, "Model"),
        Column("left", "Budget left", "percentunit", LEFT_STEPS, cell="gauge"),
        Column("ends", "Exhausted in", "s", ENDS_STEPS, ENDS_WORDS, "color-text"),
        *burns,
        Column("coverage", "Coverage", "percentunit"),
        Column("target", "Target", "percentunit"),
    )
    return table(about, source.standing(windows_s), columns=columns, sorted_by="Budget left")


def _alerts(source: Source, count: int) -> Panel:
    about = About(
        "Alerts that fire",
        "Pages and tickets that fire now, the oldest first. Model * stands for all models of the objective.",
        "none", width=8, height=_table_height(count), empty="No alert fires",
    )  # fmt: skip
    columns = (
        Column("alertname", "Alert"),
        Column("severity", "Severity"),
        Column("notify", "Notify"),
        Column(ENVIRONMENT_LABEL, "Environment"),
        Column(SERVICE_LABEL, "Service"),
        Column(OBJECTIVE_LABEL, "Objective"),
        Column(MODEL_LABEL, "Model"),
        Column(TIER_LABEL, "Tier"),
        Column("since", "Since", "dateTimeFromNow"),
    )
    return table(about, (source.alerts(),), columns=columns, sorted_by="Since")


def _burn(source: Source, specs: Sequence[Spec]) -> tuple[Panel, ...]:
    views = tuple(_burn_view(source, view) for view in promise.burn_views(specs))
    left = About(
        "Error budget left over time",
        "Share of the period's error budget that is left.",
        "percentunit", width=12, empty=NO_TRAFFIC, least=None, most=Decimal(1),
    )  # fmt: skip
    coverage = About(
        "Coverage of the period",
        "Share of the objective's period from which telemetry is known; while it is low, burn alerts start later.",
        "percentunit", width=12, most=Decimal(1),
    )  # fmt: skip
    return (*views, timeseries(left, (source.budget_over_time(),)), timeseries(coverage, (source.coverage(),)))


def _burn_view(source: Source, view: BurnView) -> Panel:
    long, short = duration_text(view.long_s), duration_text(view.short_s)
    title = f"Burn over {long}" if view.long_s == view.short_s else f"Burn over {long} and {short}: {view.tier}"
    about = About(
        title,
        "Bad share over the window, over the share that may be bad: 1 spends the budget exactly over its period. "
        f"The tier fires when both windows burn above its factor.{promise.factors_in_words(view)}",
        "none", width=12, empty=NO_TRAFFIC,
    )  # fmt: skip
    return _limited(about, source, source.burn(view.long_s, view.short_s), view.limits)


def _events(source: Source) -> tuple[Panel, ...]:
    good = About("Good events", "Good events per second, judged at the objective's own threshold.", "eps")
    bad = About(
        "Bad events",
        "Bad events per second. A request is bad when its deadline passes, whether or not it ends.",
        "eps",
    )
    outcomes = About("Requests by outcome", "Admitted requests per second, each counted once when it ends.", "reqps")
    in_flight = About(
        "Requests in flight", "Requests admitted and not ended, and those without a first token.", "short"
    )
    overdue = About(
        "Overdue requests",
        "Requests past a deadline and still without a value: what percentiles cannot show yet.",
        "short",
    )
    silence = About(
        "Age of the last token",
        "Time since the last token of the instance that has been silent longest, while it has requests in flight.",
        "s",
    )
    return (
        timeseries(good, (source.events(GOOD),)),
        timeseries(bad, (source.events(BAD),)),
        timeseries(outcomes, (source.outcomes(),), is_stacked=True),
        timeseries(in_flight, source.in_flight()),
        timeseries(overdue, (source.overdue(),)),
        timeseries(silence, (source.silence(),)),
    )


def _latency(source: Source, specs: Sequence[Spec]) -> tuple[Panel, ...]:
    return tuple(
        _latency_view(source, specs, signal, title=title, metric=metric) for signal, title, metric in LATENCIES
    )


def _latency_view(source: Source, specs: Sequence[Spec], signal: str, *, title: str, metric: Metric) -> Panel:
    about = About(
        title,
        f"{metric.description} Percentiles of requests that have a value, from merged histograms; the threshold is "
        "that of slo.yaml.",
        "s", empty=NO_TRAFFIC,
    )  # fmt: skip
    queries = source.latency(metric, promise.quantiles(specs, signal))
    return _limited(about, source, queries, promise.thresholds(specs, signal))


def _engine(source: Source, specs: Sequence[Spec]) -> tuple[Panel, ...]:
    occupancy = About(
        "KV-cache occupancy",
        "Share of the KV cache pinned by running requests, of the fullest instance and rank.",
        "percentunit", width=12, empty="The engine does not tell", most=Decimal(1),
    )  # fmt: skip
    requests = About(
        "Running and waiting in the engine",
        "Requests that engines run, and those they hold in their queues.",
        "short", width=12, empty="The engine does not tell",
    )  # fmt: skip
    return (
        _limited(occupancy, source, (source.kv_occupancy(),), promise.thresholds(specs, "kv_occupancy")),
        _limited(requests, source, source.engine(), promise.thresholds(specs, "queue")),
    )


def _limited(about: About, source: Source, queries: Sequence[Query], limits: Sequence[Limit]) -> Panel:
    """A chart with its limits: drawn as they are when there is one value, else for the objectives chosen."""
    values = promise.values(limits)
    asked = (*queries, source.limits(limits)) if len(values) > 1 else queries
    return timeseries(about, asked, thresholds=values)


def _contract(specs: Sequence[Spec]) -> Panel:
    count = sum(len(spec.objectives) for spec in specs)
    return text("The contract", promise.contract(specs), height=3 + count)
