"""Telemetry health: whether the other dashboards can be believed.

When a panel elsewhere is empty, this page says why: nobody was heard, nothing could be exported, read or stored, or
nothing is evaluated. What sidecars and collectors say of themselves is on their pages, so with Prometheus; the tables
know who was heard, when, and how good the figures are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from dashboards.boards.parts import SINCE, WHO, chart
from dashboards.boards.plan import Given, Plan
from dashboards.grafana.grid import COLUMNS, Panel, Section
from dashboards.grafana.panels import stat, table, timeseries
from dashboards.model import SHARE, YES_NO, About, Column, Step
from dashboards.questions import Source
from dashboards.subjects import subject
from slo import signals
from slo.promql import INSTANCE_LABEL, JOB_LABEL, SERVICE_KEY
from slo.signals import LABELS, Metric

BY_INSTANCE = (*SERVICE_KEY, INSTANCE_LABEL)
BY_REASON = (*SERVICE_KEY, LABELS[signals.REASON])
BY_SIGNAL_AND_REASON = (*SERVICE_KEY, LABELS[signals.SIGNAL], LABELS[signals.REASON])
COLLECTOR = (JOB_LABEL, INSTANCE_LABEL)
NONE = "None so far"
RECEIVER = "receiver"
TELLERS = (signals.HEARTBEAT, signals.TICKS)
"""What sidecars and collectors count from their start on."""
AGE_STEPS = (Step("green", Decimal(0)), Step("orange", Decimal(60)), Step("red", Decimal(300)))
SILENT_STEPS = (Step("green", Decimal(0)), Step("orange", Decimal(120)), Step("red", Decimal(300)))


def sections(source: Source, _: Given) -> tuple[Section, ...]:
    """Everything on the page; slo.yaml says nothing of it."""
    return (
        Section("Is anybody heard, and is anything evaluated", _heard(source)),
        Section("How good figures are", _quality(source)),
        Section("Sidecars", tuple(panel for of in SIDECARS for panel in _figure(source, of))),
        Section("Collectors", tuple(panel for of in COLLECTORS for panel in _figure(source, of))),
        Section("Database and rules", _behind(source)),
    )


PLAN = Plan(
    "telemetry-health",
    "Telemetry health",
    "Whether the figures of the other dashboards can be relied on: who is heard, what was lost, what is late.",
    (*SERVICE_KEY, INSTANCE_LABEL),
    sections,
    ("starts",),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart of one metric of theirs: its labels, its unit, and what to say of no data."""

    title: str
    metric: Metric
    by: Sequence[str]
    unit: str
    empty: str


SIDECARS: Sequence[Figure] = (
    Figure("Seconds lived per second", signals.HEARTBEAT, BY_INSTANCE, "none", "No sidecar is heard"),
    Figure("Telemetry faults", signals.TELEMETRY_FAULTS, BY_REASON, "eps", NONE),
    Figure("Answers that could not be read", signals.UNPARSED, (*SERVICE_KEY, LABELS[signals.DIALECT]), "eps", NONE),
    Figure("Exports that are tried again", signals.EXPORT_FAILED, BY_SIGNAL_AND_REASON, "eps", NONE),
    Figure("Given up before delivery", signals.EXPORT_DROPPED, BY_SIGNAL_AND_REASON, "eps", NONE),
    Figure("Polls of the engine that failed", signals.SCRAPES_FAILED, BY_REASON, "eps", NONE),
    Figure("Requests also asked for token counts", signals.USAGE_ASKED, BY_REASON, "reqps", NONE),
    Figure("Last slo.yaml could be loaded", signals.CONFIG_RELOAD_OK, BY_INSTANCE, YES_NO, "No sidecar is heard"),
    Figure("Versions of slo.yaml in force", signals.SPEC_INFO, (*SERVICE_KEY, "hash"), "short", "No sidecar is heard"),
    Figure("GPUs are read", signals.GPU_COLLECTOR_UP, BY_INSTANCE, YES_NO, "No sidecar is heard"),
    Figure("Workers at work", signals.WORKERS, BY_INSTANCE, "short", "Sidecars have no workers"),
    Figure("Workers that died", signals.WORKER_DEATHS, BY_INSTANCE, "eps", "Sidecars have no workers"),
)
NO_COLLECTOR = "No collector is scraped"
NOBODY = "The collector notifies nobody"
COLLECTORS: Sequence[Figure] = (
    Figure("OTLP bodies taken in", signals.INTAKE_BODIES, COLLECTOR, "ops", NO_COLLECTOR),
    Figure("Data points counted", signals.INTAKE_POINTS, COLLECTOR, "ops", NO_COLLECTOR),
    Figure("Latencies read from spans", signals.INTAKE_SPANS, COLLECTOR, "ops", NO_COLLECTOR),
    Figure("Bodies that came again", signals.INTAKE_REPEATED, COLLECTOR, "ops", NO_COLLECTOR),
    Figure("Points and spans not counted", signals.INTAKE_DROPPED, (*COLLECTOR, LABELS[signals.REASON]), "eps", NONE),
    Figure("Bodies refused", signals.INTAKE_REFUSED, (*COLLECTOR, LABELS[signals.REASON]), "eps", NONE),
    Figure("Bodies not yet committed", signals.INTAKE_WAITING, COLLECTOR, "short", NO_COLLECTOR),
    Figure("Age of the newest event", signals.INTAKE_LAG, COLLECTOR, "s", "Nothing has come in"),
    Figure("Length of an evaluation", signals.TICK_DURATION, COLLECTOR, "s", NO_COLLECTOR),
    Figure("Evaluations", signals.TICKS, COLLECTOR, "ops", NO_COLLECTOR),
    Figure("Evaluations that failed", signals.TICK_FAILURES, COLLECTOR, "eps", NO_COLLECTOR),
    Figure("Evaluations not saved", signals.TICK_UNSAVED, COLLECTOR, "eps", NO_COLLECTOR),
    Figure("Which collector evaluates", signals.LEADER, COLLECTOR, YES_NO, NO_COLLECTOR),
    Figure("Receivers that listen", signals.RECEIVER_UP, (*COLLECTOR, RECEIVER), YES_NO, NOBODY),
    Figure("Alerts delivered", signals.NOTIFIED, (*COLLECTOR, RECEIVER), "ops", NO_COLLECTOR),
    Figure("Deliveries that failed", signals.NOTIFY_FAILURES, (*COLLECTOR, RECEIVER), "eps", NO_COLLECTOR),
)


def _figure(source: Source, of: Figure) -> tuple[Panel, ...]:
    """A chart, per second where the metric is a counter; none where the datasource does not keep it."""
    metric = of.metric
    if not source.figures.keeps(metric):
        return ()
    if metric.kind == "counter":
        query = source.figures.rate(metric, of.by, alive=_teller(of))
    else:
        query = source.figures.gauge(metric, of.by, fold="sum" if metric is signals.SPEC_INFO else "max")
    about = About(of.title, metric.description + (" Per second." if metric.kind == "counter" else ""), of.unit,
                  empty=of.empty, most=Decimal(1) if of.unit == YES_NO else None)  # fmt: skip
    return (timeseries(about, (query,)),)


def _teller(of: Figure) -> Metric | None:
    """What shows that a counter without a sample is 0."""
    if of.metric in TELLERS:
        return None
    return TELLERS[0] if subject(of.metric) == "instance" else TELLERS[1]


def _heard(source: Source) -> tuple[Panel, ...]:
    age = About(
        "Age of the last evaluation", "Time since a collector last evaluated the objectives.",
        "s", width=5, empty="No collector has evaluated",
    )  # fmt: skip
    heard = About(
        "Time that is known",
        "Share of each service's time in which its telemetry was heard, over an hour or the step of the chart.",
        SHARE, width=11, empty="No sidecar is heard", most=Decimal(1),
    )  # fmt: skip
    answers = About(
        "Targets that answer", "Whether Prometheus could scrape each sidecar and collector.", YES_NO, width=8,
        empty="Nothing is scraped", most=Decimal(1),
    )  # fmt: skip
    return (
        stat(age, source.health.evaluation_age(), steps=AGE_STEPS),
        timeseries(heard, (source.health.heard(),)),
        *chart(answers, source.health.scrapes()),
        _instances(source),
    )


def _instances(source: Source) -> Panel:
    about = About(
        "Instances", "Every sidecar, when it was last heard and when it started; the longest silent comes last.",
        "none", width=COLUMNS, height=6, empty="No sidecar is heard",
    )  # fmt: skip
    columns = (
        *WHO,
        Column(INSTANCE_LABEL, "Instance"),
        Column("silent", "Silent for", "s", SILENT_STEPS, cell="color-text"),
        Column("since", "Started", SINCE),
    )
    return table(about, source.health.instances(), columns=columns, sorted_by="Silent for")


def _quality(source: Source) -> tuple[Panel, ...]:
    error = About(
        "Error of percentiles",
        "Greatest relative error of the percentiles: about 1% of sidecars' own, more of an engine's coarse buckets.",
        SHARE, empty="No percentile is known",
    )  # fmt: skip
    bodies = About("OTLP bodies kept in mind", "Bodies per second that were taken in and are known again.", "ops")
    return (*chart(error, source.health.errors_of_quantiles()), *chart(bodies, source.health.intake()))


def _behind(source: Source) -> tuple[Panel, ...]:
    commit = About("Length of a commit", "Mean length of a write transaction of a collector.", "s", empty=NO_COLLECTOR)
    rules = About(
        "Rules that fail or are late",
        "Evaluations of our rule groups that failed or were missed, where Prometheus scrapes itself.",
        "eps", empty="Prometheus does not scrape itself",
    )  # fmt: skip
    sizes = (
        Figure("Size of the database", signals.DATABASE_SIZE, COLLECTOR, "bytes", NO_COLLECTOR),
        Figure(
            "Size of SQLite's write-ahead log", signals.DATABASE_WAL, COLLECTOR, "bytes", "The database is no SQLite"
        ),
        Figure("Commits", signals.COMMITS, COLLECTOR, "ops", NO_COLLECTOR),
        Figure("Commits that failed", signals.COMMIT_FAILURES, COLLECTOR, "eps", NO_COLLECTOR),
    )
    return (
        *(panel for of in sizes for panel in _figure(source, of)),
        *chart(commit, source.health.commit_time()),
        *chart(rules, source.health.rule_failures()),
    )
