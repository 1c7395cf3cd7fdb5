"""The SLO overview: are we keeping the contract, for how long, and what is wrong when we are not.

From top to bottom: how every objective stands, what burns and against which factor, what was counted and what no
objective sees, how long requests took against what was promised, how full the engine is, and the contract itself in
words. Everything keeps to the variables on top, so that one page serves a sole service and ten of them alike.
"""

from decimal import Decimal

from dashboards import promise
from dashboards.boards import parts
from dashboards.boards.parts import ENGINE_SILENT, HALF, LATENCIES, OUTCOME_COLORS, WHO, limited
from dashboards.boards.plan import OF_OBJECTIVES, Given, Plan
from dashboards.grafana.grid import COLUMNS, Panel, Section
from dashboards.grafana.panels import NO_TRAFFIC, stat, table, text, timeseries
from dashboards.model import SHARE, About, Column, Step, Word
from dashboards.promise import BurnView
from dashboards.questions import NOT_SPENT, STATES, Source
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY, SUBJECT_KEY
from slo.quantity import DAY_S, duration_text
from slo.signals import (
    BAD,
    ENGINE_RUNNING,
    ENGINE_WAITING,
    GOOD,
    IN_FLIGHT,
    KV_OCCUPANCY,
    LABELS,
    LAST_TOKEN_AGE,
    MODEL_LABEL,
    OUTCOME,
    OVERDUE,
    REQUESTS,
    SIGNAL,
    WAITING_FIRST_TOKEN,
)

MAX_TABLE_HEIGHT = 14
TILES_A_LINE = 4

STATE_COLORS = ("text", "green", "orange", "red")
STATE_WORDS = tuple(Word(STATES.index(state), state, color) for state, color in zip(STATES, STATE_COLORS, strict=True))
STATE_STEPS = tuple(Step(color, Decimal(place)) for place, color in enumerate(STATE_COLORS))
LEFT_STEPS = (Step("red", Decimal(-1)), Step("orange", Decimal("0.0001")), Step("green", Decimal("0.25")))
ENDS_STEPS = (Step("red", Decimal(NOT_SPENT)), Step("orange", Decimal(DAY_S)), Step("green", Decimal(7 * DAY_S)))
ENDS_WORDS = (Word(NOT_SPENT, "never", "green"),)
BURN_STEPS = (Step("green", Decimal(0)), Step("orange", Decimal(1)))


def sections(source: Source, given: Given) -> tuple[Section, ...]:
    """Everything on the page."""
    return (
        Section("How the contract stands", _standing(source, given)),
        Section("Burn and budget", _burn(source, given)),
        Section("Events and requests", (*_events(source), *_traffic(source), *_unjudged(source))),
        Section("Latency against the promise", tuple(parts.latency(source, given, *of) for of in LATENCIES)),
        Section("Engine", _engine(source, given)),
        Section("The contract, as slo.yaml writes it", (_contract(given),), is_open=False),
    )


PLAN = Plan(
    "slo-overview",
    "SLO overview",
    "Every objective of slo.yaml: its budget, its burn, and what stands behind them.",
    OF_OBJECTIVES,
    sections,
)


def _standing(source: Source, given: Given) -> tuple[Panel, ...]:
    height = 3 + min(2 * -(-given.objectives // TILES_A_LINE), 6)
    left = About(
        "Error budget left",
        "Share of the period's error budget that is left: 1 - bad / allowance. Below 0 it is overspent.",
        SHARE, height=height, empty=NO_TRAFFIC, least=None,
    )  # fmt: skip
    ends = About(
        "Budget exhausted in",
        "Time to the end of the error budget at the last hour's rate of bad events: 0 once it is spent, never without "
        "bad events.",
        "s", height=height, empty=NO_TRAFFIC, least=Decimal(NOT_SPENT),
    )  # fmt: skip
    state = About(
        "State",
        "Spent: no error budget is left. Burning: a burn alert fires. Kept: neither. No data: nothing was judged.",
        "none", height=height,
    )  # fmt: skip
    table_height = min(3 + 2 * given.objectives, MAX_TABLE_HEIGHT)
    return (
        stat(state, source.objectives.state(), steps=STATE_STEPS, words=STATE_WORDS),
        stat(left, source.objectives.budget_left(), steps=LEFT_STEPS),
        stat(ends, source.objectives.exhausted_in(), steps=ENDS_STEPS, words=ENDS_WORDS),
        _objectives(source, given, height=table_height),
        parts.alerts_now(source, height=6),
    )


def _objectives(source: Source, given: Given, *, height: int) -> Panel:
    windows_s = promise.burn_columns_s(given.specs)
    about = About(
        "Objectives",
        "Every objective, over all its models (model *) and for each of them; the least budget left comes first. "
        "Coverage is the share of the objective's period from which telemetry is known.",
        "short", width=COLUMNS, height=height, empty="No objective is judged", least=None,
    )  # fmt: skip
    burns = [
        Column(f"burn{duration_text(w)}", f"Burn {duration_text(w)}", "none", BURN_STEPS, cell="color-text")
        for w in windows_s
    ]
    columns = (
        Column("state", "State", "none", STATE_STEPS, STATE_WORDS, "color-text"),
        *WHO,
        Column(OBJECTIVE_LABEL, "Objective"),
        Column(MODEL_LABEL, "Model"),
        Column("left", "Budget left", SHARE, LEFT_STEPS, cell="gauge"),
        Column("ends", "Exhausted in", "s", ENDS_STEPS, ENDS_WORDS, "color-text"),
        *burns,
        Column("coverage", "Coverage", SHARE),
        Column("target", "Target", SHARE),
    )
    return table(about, source.objectives.standing(windows_s), columns=columns, sorted_by="Budget left")


def _burn(source: Source, given: Given) -> tuple[Panel, ...]:
    views = tuple(_burn_view(source, view) for view in promise.burn_views(given.specs))
    left = About(
        "Error budget left over time",
        "Share of the period's error budget that is left.",
        SHARE, width=HALF, empty=NO_TRAFFIC, least=None, most=Decimal(1),
    )  # fmt: skip
    coverage = About(
        "Coverage of the period",
        "Share of the objective's period from which telemetry is known; while it is low, burn alerts start later.",
        SHARE, width=HALF, most=Decimal(1),
    )  # fmt: skip
    return (
        *views,
        timeseries(left, (source.objectives.budget_over_time(),)),
        timeseries(coverage, (source.objectives.coverage(),)),
    )


def _burn_view(source: Source, view: BurnView) -> Panel:
    long, short = duration_text(view.long_s), duration_text(view.short_s)
    title = f"Burn over {long}" if view.long_s == view.short_s else f"Burn over {long} and {short}: {view.tier}"
    about = About(
        title,
        "Bad share over the window, over the share that may be bad: 1 spends the budget exactly over its period. "
        f"The tier fires when both windows burn above its factor.{promise.factors_in_words(view)}",
        "none", width=HALF, empty=NO_TRAFFIC,
    )  # fmt: skip
    return limited(about, source, source.objectives.burn(view.long_s, view.short_s), view.limits)


def _events(source: Source) -> tuple[Panel, ...]:
    good = About("Good events", "Good events per second, judged at the objective's own threshold.", "eps")
    bad = About(
        "Bad events",
        "Bad events per second. A request is bad when its deadline passes, whether or not it ends.",
        "eps",
    )
    return (
        timeseries(good, (source.objectives.events(GOOD),)),
        timeseries(bad, (source.objectives.events(BAD),)),
    )


def _traffic(source: Source) -> tuple[Panel, ...]:
    figures = source.figures
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
    waiting = figures.gauge(WAITING_FIRST_TOKEN, name="without a first token", ref="waiting")
    return (
        timeseries(outcomes, (figures.rate(REQUESTS, (LABELS[OUTCOME],)),), is_stacked=True, colors=OUTCOME_COLORS),
        timeseries(in_flight, (figures.gauge(IN_FLIGHT, name="in flight", ref="inflight"), waiting)),
        timeseries(overdue, (figures.gauge(OVERDUE, (*SERVICE_KEY, LABELS[SIGNAL])),)),
        timeseries(silence, (figures.gauge(LAST_TOKEN_AGE, fold="max"),)),
    )


def _unjudged(source: Source) -> tuple[Panel, ...]:
    judged = About(
        "Requests that each objective judges",
        "Events of the objective over requests that could make one: all but synthetic ones, client errors and quota. "
        "Requests are counted when they end, and may have been judged long before: more than all is shown as all.",
        SHARE, width=HALF, empty=NO_TRAFFIC, most=Decimal(1),
    )  # fmt: skip
    unjudged = About(
        "Requests that no objective judges",
        "At most this share of requests is seen by no objective, and no alert speaks of it: what the objective that "
        "judges most of a model's requests leaves out.",
        SHARE, width=HALF, empty=NO_TRAFFIC, most=Decimal(1),
    )  # fmt: skip
    return (
        timeseries(judged, (source.objectives.judged(),)),
        timeseries(unjudged, (source.objectives.unjudged(),)),
    )


def _engine(source: Source, given: Given) -> tuple[Panel, ...]:
    figures = source.figures
    occupancy = About(
        "KV-cache occupancy",
        "Share of the KV cache pinned by running requests, of the fullest instance and rank.",
        SHARE, width=HALF, empty=ENGINE_SILENT, most=Decimal(1),
    )  # fmt: skip
    requests = About(
        "Running and waiting in the engine",
        "Requests that engines run, and those they hold in their queues.",
        "short", width=HALF, empty=ENGINE_SILENT,
    )  # fmt: skip
    fullest = figures.gauge(KV_OCCUPANCY, SUBJECT_KEY, fold="max")
    running = figures.gauge(ENGINE_RUNNING, name="running", ref="running")
    waiting = figures.gauge(ENGINE_WAITING, name="waiting", ref="waiting")
    return (
        limited(occupancy, source, (fullest,), promise.thresholds(given.specs, "kv_occupancy")),
        limited(requests, source, (running, waiting), promise.thresholds(given.specs, "queue")),
    )


def _contract(given: Given) -> Panel:
    return text("The contract", promise.contract(given.specs), height=3 + given.objectives)
