"""The tables as people read them: with timestamps in UTC, the labels of windows, and the latest figures alone.

The tables keep epoch seconds, which every database compares, groups and cuts into hours alike, whatever the time zone
of its session. A view adds the moment as PostgreSQL's `timestamptz`, and as ISO 8601 text in UTC on SQLite. Views hold
nothing: what they cost is the question they stand for, so a time range belongs on `at_s` or `start_s`, which are keys.
"""

from typing import Any

from sqlalchemy import ColumnElement, Table, Text, case, cast, exists, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import DateTime

from collector import schema
from collector.schema import View, view
from slo.quantity import DAY_S, HOUR_S, MINUTE_S

AT = "The same moment as a timestamp in UTC."


class moment(GenericFunction[Any]):  # noqa: N801  named as the function it stands for in SQL
    """Epoch seconds as a timestamp in UTC."""

    type = DateTime(timezone=True)
    inherit_cache = True


@compiles(moment, "postgresql")
def _to_timestamp(element: moment, compiler: SQLCompiler, **more: Any) -> str:
    return f"to_timestamp({compiler.process(element.clauses, **more)})"


@compiles(moment, "sqlite")
def _strftime(element: moment, compiler: SQLCompiler, **more: Any) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%SZ', {compiler.process(element.clauses, **more)}, 'unixepoch')"


def _label(seconds: ColumnElement[int]) -> ColumnElement[str]:
    """A length of time as the rest of the product writes it: 5m, 1h, 28d."""

    def counted(unit_s: int, unit: str) -> ColumnElement[str]:
        return cast(seconds // unit_s, Text) + literal(unit)

    parts = ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "m"))
    return case(
        *((seconds % unit_s == 0, counted(unit_s, unit)) for unit_s, unit in parts), else_=counted(1, "s")
    ).label("window_label")


def _latest(table: Table) -> ColumnElement[bool]:
    """The rows of the last evaluation."""
    return table.c.at_s == select(func.max(table.c.at_s)).scalar_subquery()


def _figures(name: str, table: Table, what: str) -> tuple[View, View]:
    """Figures with their timestamp, and those of the last evaluation alone."""
    comments = {"at": AT, "window_label": "The window as text: 5m, 1h, 3d."}
    windows = (_label(table.c.window_s),) if "window_s" in table.c else ()
    question = select(moment(table.c.at_s).label("at"), *windows, *table.c)
    return (
        view(name, f"{what}, with timestamps.", question, **comments),
        view(f"{name}_latest", f"{what}, of the last evaluation alone.", question.where(_latest(table)), **comments),
    )


def _stepped(name: str, table: Table, what: str) -> View:
    at = "The start of the step as a timestamp in UTC."
    return view(name, f"{what}, with timestamps.", select(moment(table.c.start_s).label("at"), *table.c), at=at)


def _alerts() -> View:
    table = schema.alert
    since, fired = moment(table.c.since_s).label("since"), moment(table.c.fired_s).label("fired")
    return view(
        "alerts",
        "The present state of each alert, with timestamps.",
        select(since, fired, *table.c),
        since="When it entered this state, as a timestamp in UTC.",
        fired="When the last firing began, as a timestamp in UTC; NULL when it never fired.",
    )


def _alert_events() -> View:
    table = schema.alert_event
    lasted = case((table.c.state == "resolved", table.c.at_s - table.c.fired_s)).label("lasted_s")
    return view(
        "alert_events",
        "Every transition of every alert, with timestamps and how long a firing lasted.",
        select(moment(table.c.at_s).label("at"), *table.c, lasted),
        at=AT,
        lasted_s="How long it fired; NULL unless a firing ended here.",
    )


def _alert_causes() -> View:
    table = schema.alert_cause
    since, at = moment(table.c.since_s).label("since"), moment(table.c.at_s).label("at")
    return view(
        "alert_causes",
        "Why each burn alert pended or fired, with timestamps.",
        select(since, at, *table.c),
        since="When the alert left ok, as a timestamp in UTC.",
        at="Moment that the evidence reaches to, as a timestamp in UTC.",
    )


def _capacity_results() -> tuple[View, View]:
    """Results without their JSON, and the last of each service, model and kind alone."""
    table, later = schema.capacity_result, schema.capacity_result.alias("later")
    comments = {"at": "When the run ended, as a timestamp in UTC."}
    question = select(moment(table.c.at_s).label("at"), *(column for column in table.c if column.name != "result"))
    same = (later.c[name] == table.c[name] for name in ("environment", "service", "model", "kind"))
    is_last = ~exists().where(*same, later.c.at_s > table.c.at_s)
    name, what = "capacity_results", "What firsttoken capacity found"
    return (
        view(name, f"{what}, with timestamps.", question, **comments),
        view(f"{name}_latest", f"{what} last of each service, model and kind.", question.where(is_last), **comments),
    )


def _drifts() -> View:
    table = schema.drift
    since, until = moment(table.c.since_s).label("since"), moment(table.c.until_s).label("until")
    return view(
        "drifts",
        "Latencies that shifted against their own past, with timestamps.",
        select(since, until, *table.c),
        since="When the shift began, as a timestamp in UTC.",
        until="When it had ended, as a timestamp in UTC; NULL while it lasts.",
    )


def _latencies() -> View:
    rollup, series = schema.rollup, schema.series
    mean = case((rollup.c["count"] > 0, rollup.c["sum"] / rollup.c["count"])).label("mean")
    of = [column for column in series.c if column.name not in ("id", "layout")]
    facts = [rollup.c[name] for name in ("count", "sum", "min", "max")]
    return view(
        "latencies",
        "Latency histograms by step with what they speak of, without their bins.",
        select(moment(rollup.c.start_s).label("at"), rollup.c.start_s, rollup.c.step_s, *of, *facts, mean).join(
            series, series.c.id == rollup.c.series_id
        ),
        at="The start of the step as a timestamp in UTC.",
        mean="Mean of the values in seconds; NULL when there are none.",
    )


def _instances() -> View:
    table = schema.instance
    first, last = moment(table.c.first_s).label("first"), moment(table.c.last_s).label("last")
    return view(
        "instances",
        "Every sender of telemetry, with timestamps.",
        select(first, last, *table.c),
        first="Event time of its first telemetry, as a timestamp in UTC.",
        last="Event time of its last telemetry, as a timestamp in UTC.",
    )


VIEWS: tuple[View, ...] = (
    *_figures("percentiles", schema.percentile, "Latency percentiles of rolling windows"),
    *_figures("burn_rates", schema.burn_rate, "Burn rates of the objectives"),
    *_figures("budgets", schema.budget, "Error budgets of the objectives"),
    _alerts(),
    _alert_events(),
    _alert_causes(),
    *_capacity_results(),
    _drifts(),
    _instances(),
    _latencies(),
    _stepped("slo_counts", schema.slo_count, "Good and bad events of each objective by step"),
    _stepped("gauges", schema.gauge, "Gauges of each instance by step"),
    _stepped("counters", schema.counter, "Increase of counters of each instance by step"),
)
