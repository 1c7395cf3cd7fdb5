"""Panels that several dashboards have, and short ways to make the simplest ones."""

from collections.abc import Sequence
from decimal import Decimal

from dashboards import promise
from dashboards.boards.plan import Given
from dashboards.grafana.grid import COLUMNS, Panel
from dashboards.grafana.panels import NO_TRAFFIC, table, timeseries
from dashboards.model import About, Column, Query, Step
from dashboards.promise import Limit
from dashboards.questions import Source
from slo.promql import OBJECTIVE_LABEL, TIER_LABEL
from slo.signals import E2E, ENVIRONMENT_LABEL, MODEL_LABEL, SERVICE_LABEL, TPOT, TTFT, Metric

HALF, THIRD = 12, 8
OUTCOME_COLORS = {
    "ok": "green", "no_output": "yellow", "cancelled": "blue", "client_error": "purple",
    "quota": "super-light-orange", "rejected": "orange", "timeout": "dark-red", "error": "red",
}  # fmt: skip
"""Of the eight outcomes: green is what was asked for, red and orange are the service's own failures."""
GOOD_STEPS = (Step("green", Decimal(0)),)
ENGINE_SILENT = "The engine does not tell"
LATENCIES: Sequence[tuple[str, str, Metric]] = (
    ("ttft", "Time to first token", TTFT),
    ("tpot", "Time per output token", TPOT),
    ("e2e", "Request duration", E2E),
)
"""Signal, title and metric of each."""
WHO = (Column(ENVIRONMENT_LABEL, "Environment"), Column(SERVICE_LABEL, "Service"))
SINCE = "dateTimeFromNow"


def limited(about: About, source: Source, queries: Sequence[Query], limits: Sequence[Limit]) -> Panel:
    """A chart with its limits: drawn as they are when there is one value, else for what is chosen."""
    values = promise.values(limits)
    asked = (*queries, source.frame.limits(limits)) if len(values) > 1 else queries
    return timeseries(about, asked, thresholds=values)


def chart(about: About, queries: Sequence[Query]) -> tuple[Panel, ...]:
    """A chart, or none where the datasource has nothing to draw."""
    return (timeseries(about, queries),) if queries else ()


def latency(source: Source, given: Given, signal: str, title: str, metric: Metric) -> Panel:
    """Percentiles of a latency against what is promised of it."""
    about = About(
        title,
        f"{metric.description} Percentiles of requests that have a value, from merged histograms; the threshold is "
        "that of slo.yaml.",
        "s", empty=NO_TRAFFIC,
    )  # fmt: skip
    queries = source.latencies.percentiles(metric, promise.quantiles(given.specs, signal))
    return limited(about, source, queries, promise.thresholds(given.specs, signal))


def alerts(about: About, query: Query, *, since: str) -> Panel:
    """A row an alert."""
    columns = (
        Column("alertname", "Alert"),
        Column("severity", "Severity"),
        Column("notify", "Notify"),
        *WHO,
        Column(OBJECTIVE_LABEL, "Objective"),
        Column(MODEL_LABEL, "Model"),
        Column(TIER_LABEL, "Tier"),
        Column("since", since, SINCE),
    )
    return table(about, (query,), columns=columns, sorted_by=since)


def alerts_now(source: Source, *, height: int) -> Panel:
    """What fires now."""
    about = About(
        "Alerts that fire",
        "Pages and tickets that fire now, the oldest first. Model * stands for all models of the objective.",
        "none", width=COLUMNS, height=height, empty="No alert fires",
    )  # fmt: skip
    return alerts(about, source.incidents.alerts(), since="Since")
