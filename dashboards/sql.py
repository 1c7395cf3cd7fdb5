"""The overview's questions in SQL: over the collector's tables, as the data sources for PostgreSQL and SQLite take it.

Two dialects, of which little differs: how the time range is written and how a field of a JSON column is read. Every
query of a chart gives `time` (epoch seconds, ascending), `metric` (the name of the line) and `value`; one of a table
gives the columns that `Source` names. `value` is cast, for the SQLite plugin takes the type of a column from its first
row and would cut every later figure to a whole number.

All stands as `'*'` in a list of values: the model `*` where a table keeps the figure over all models, everything
elsewhere. Figures kept by step are read in buckets of the chart's own interval, and only in whole ones.
"""

# ruff: noqa: S608  these texts are for Grafana to send; nothing but our own names and checked names goes into them

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlalchemy import Table

from collector import schema
from dashboards.model import POSTGRES, Datasource, Marks, Query, Shape, Variable
from dashboards.promise import Limit, each, quantile_name
from dashboards.source import NOT_SPENT, STATES
from slo.objective import Spec
from slo.promql import OBJECTIVE_LABEL, TIER_LABEL
from slo.quantity import duration_text, plain
from slo.signals import (
    ALL_MODELS,
    CLASS,
    ENGINE_RUNNING,
    ENGINE_WAITING,
    ENVIRONMENT_LABEL,
    IN_FLIGHT,
    KV_OCCUPANCY,
    LABELS,
    LAST_TOKEN_AGE,
    MODEL_LABEL,
    OUTCOME,
    OVERDUE,
    REQUESTS,
    SERVICE_LABEL,
    SYNTHETIC_CLASS,
    UNKNOWN_MODEL,
    WAITING_FIRST_TOKEN,
    Metric,
)

EVERYTHING = f"'{ALL_MODELS}'"
COLUMNS: Mapping[str, str] = {
    "environment": ENVIRONMENT_LABEL,
    "service": SERVICE_LABEL,
    "model": MODEL_LABEL,
    "objective": OBJECTIVE_LABEL,
}
"""The dashboard's variable of each column."""
QUANTILES = {Decimal("0.5"): "p50", Decimal("0.9"): "p90", Decimal("0.95"): "p95", Decimal("0.99"): "p99",
             Decimal("0.999"): "p999"}  # fmt: skip
LATENCY_WINDOW_S = 300
BUCKET_S = "($__interval_ms / 1000)"
NUMBER = "DOUBLE PRECISION"

NAME = (
    "CASE environment WHEN '' THEN '' ELSE environment || ' ' END || service || ' ' || objective"
    f" || CASE model WHEN {EVERYTHING} THEN '' ELSE ' ' || model END"
)
SERVICE_NAME = "CASE environment WHEN '' THEN '' ELSE environment || ' ' END || service"
MODEL_NAME = f"{SERVICE_NAME} || ' ' || model"
TIME = f"CASE WHEN step_s > {BUCKET_S} THEN start_s ELSE start_s / {BUCKET_S} * {BUCKET_S} END"
SECONDS = f"CASE WHEN step_s > {BUCKET_S} THEN step_s ELSE {BUCKET_S} END"
WHOLE_BUCKETS = (
    f"start_s >= ($__from / 1000 / {BUCKET_S} + 1) * {BUCKET_S} AND start_s < $__to / 1000 / {BUCKET_S} * {BUCKET_S}"
)


def chosen(column: str) -> str:
    """The rows whose `column` is among the values chosen, or all rows."""
    values = f"${{{COLUMNS[column]}:sqlstring}}"
    return f"({EVERYTHING} IN ({values}) OR {column} IN ({values}))"


OF_SERVICE = f"{chosen('environment')} AND {chosen('service')}"
OF_MODEL = f"{OF_SERVICE} AND {chosen('model')}"
OF_ENGINE = f"{OF_SERVICE} AND ({chosen('model')} OR model = '{UNKNOWN_MODEL}')"
OF_PROMISE = f"{chosen('service')} AND {chosen('objective')}"
OF_OBJECTIVE = f"{OF_SERVICE} AND {chosen('objective')}"
TOGETHER = f"{OF_OBJECTIVE} AND model IN (${{{MODEL_LABEL}:sqlstring}})"
"""The figure over all models when All is chosen, else each chosen model's."""


STATE = (
    f"CASE WHEN good + bad = 0 THEN {STATES.index('no data')} WHEN remaining <= 0 THEN {STATES.index('spent')}\n"
    f"    WHEN EXISTS (SELECT 1 FROM {schema.alert.name} AS a WHERE a.state = 'firing' AND a.tier <> '' AND "
    + " AND ".join(f"a.{column} = budget.{column}" for column in COLUMNS)
    + f") THEN {STATES.index('burning')}\n    ELSE {STATES.index('kept')} END"
)
"""The place in `STATES` of a row of the budget: spent before burning, as everywhere."""


@dataclass(frozen=True, slots=True)
class SqlSource:
    """Figures from the tables of a collector. What the tables do not hold, the targets, is written into the queries
    from the specs."""

    datasource: Datasource
    specs: tuple[Spec, ...]

    def variables(self) -> tuple[Variable, ...]:
        sender, budget = schema.instance, schema.budget
        now = f"at_s = (SELECT MAX(at_s) FROM {budget.name})"
        return (
            _variable("environment", "Environment", sender, "environment <> ''"),
            _variable("service", "Service", sender, chosen("environment")),
            _variable("model", "Model", budget, f"{now} AND model <> {EVERYTHING} AND {OF_SERVICE}"),
            _variable("objective", "Objective", budget, f"{now} AND {OF_SERVICE}"),
        )

    def marks(self) -> tuple[Marks, ...]:
        return ()

    def budget_left(self) -> Query:
        return self._budget("remaining", "latest")

    def budget_over_time(self) -> Query:
        return self._budget("remaining", "series")

    def coverage(self) -> Query:
        return self._budget("coverage", "series")

    def exhausted_in(self) -> Query:
        return self._budget(f"COALESCE(exhausted_in_s, {NOT_SPENT})", "latest", f"{TOGETHER} AND good + bad > 0")

    def state(self) -> Query:
        return self._budget(STATE, "latest")

    def standing(self, windows_s: Sequence[int]) -> tuple[Query, ...]:
        budget = schema.budget
        burns = "".join(f'  {self._burn(window_s)} AS "burn{duration_text(window_s)}",\n' for window_s in windows_s)
        text = (
            f"SELECT environment, service AS {SERVICE_LABEL}, objective, model AS {MODEL_LABEL},\n"
            f'  {STATE} AS "state",\n  remaining AS "left",\n'
            f'  CASE WHEN good + bad > 0 THEN COALESCE(exhausted_in_s, {NOT_SPENT}) END AS "ends",\n{burns}'
            f'  coverage AS "coverage",\n  {self._target()} AS "target"\n'
            f"FROM {budget.name}\nWHERE at_s = {self._latest(budget)} AND {OF_OBJECTIVE} AND {chosen('model')}\n"
            "ORDER BY remaining"
        )
        reads = (budget.name, schema.burn_rate.name, schema.alert.name)
        return (Query(self.datasource, text, reads, shape="table"),)

    def alerts(self) -> Query:
        text = (
            "SELECT name AS alertname, severity, notify, environment,\n"
            f"  service AS {SERVICE_LABEL}, model AS {MODEL_LABEL}, objective, tier AS {TIER_LABEL},\n"
            f"  fired_s * 1000 AS since\nFROM {schema.alert.name}\nWHERE state = 'firing' AND {OF_SERVICE}\n"
            f"  AND (model IN ('', {EVERYTHING}) OR {chosen('model')}) AND (objective = '' OR {chosen('objective')})\n"
            "ORDER BY fired_s"
        )
        return Query(self.datasource, text, (schema.alert.name,), shape="table")

    def burn(self, long_s: int, short_s: int) -> tuple[Query, ...]:
        refs = {short_s: "short", long_s: "long"}
        asked = (
            self._ask(
                schema.burn_rate,
                metric=f"{NAME} || ' {duration_text(window_s)}'",
                value="MAX(burn)",
                where=f"{self._in_range('at_s')} AND window_s = {window_s} AND burn IS NOT NULL AND {TOGETHER}",
                ref=ref,
            )
            for window_s, ref in sorted(refs.items(), reverse=True)
        )
        return tuple(replace(query, look="thin") if query.ref == "short" else query for query in asked)

    def limits(self, limits: Sequence[Limit]) -> Query:
        rows = " UNION ALL ".join(
            f"SELECT '{limit.service}' AS service, '{limit.objective}' AS objective,"
            f" '{limit.text}' AS metric, {plain(round(limit.value, 10))} AS value"
            for limit in limits
        )
        ends = "SELECT $__from / 1000 AS time UNION ALL SELECT $__to / 1000"
        text = (
            f"SELECT DISTINCT time, metric, CAST(value AS {NUMBER}) AS value\n"
            f"FROM ({rows}) AS promised, ({ends}) AS ends\nWHERE {OF_PROMISE}\nORDER BY time"
        )
        return Query(self.datasource, text, ("slo.yaml",), ref="limit", look="limit")

    def events(self, result: str) -> Query:
        text = _chart(
            schema.slo_count,
            TIME,
            metric=f"{SERVICE_NAME} || ' ' || objective",
            value=f"SUM({result} * 1.0 / {SECONDS})",
            where=f"{WHOLE_BUCKETS} AND {OF_OBJECTIVE} AND {chosen('model')} AND model <> {EVERYTHING}",
        )
        return Query(self.datasource, text, (schema.slo_count.name,))

    def outcomes(self) -> Query:
        real = f"COALESCE({self._field('attributes', LABELS[CLASS])}, '') <> '{SYNTHETIC_CLASS}'"
        text = _chart(
            schema.counter,
            TIME,
            metric=self._field("attributes", LABELS[OUTCOME]),
            value=f"SUM(value / {SECONDS})",
            where=f"{WHOLE_BUCKETS} AND name = '{REQUESTS.sql}' AND {real} AND {OF_MODEL}",
        )
        return Query(self.datasource, text, (schema.counter.name,))

    def in_flight(self) -> tuple[Query, ...]:
        return (
            self._sum(IN_FLIGHT, OF_MODEL, f"{SERVICE_NAME} || ' in flight'", ref="inflight"),
            self._sum(WAITING_FIRST_TOKEN, OF_MODEL, f"{SERVICE_NAME} || ' without a first token'", ref="waiting"),
        )

    def overdue(self) -> Query:
        return self._sum(OVERDUE, OF_MODEL, f"{SERVICE_NAME} || ' ' || attribute")

    def silence(self) -> Query:
        return self._most(LAST_TOKEN_AGE, OF_SERVICE, SERVICE_NAME)

    def latency(self, metric: Metric, quantiles: Sequence[Decimal]) -> tuple[Query, ...]:
        """A percentile that falls among requests still without a value is drawn at what it is known to exceed; one that
        is promised but is none of the table's columns has no line."""
        columns = {quantile: QUANTILES[quantile] for quantile in quantiles if quantile in QUANTILES}
        of = f"signal = '{metric.sql}' AND source <> 'engine' AND window_s = {LATENCY_WINDOW_S}"
        return tuple(
            self._ask(
                schema.percentile,
                metric=f"{MODEL_NAME} || ' {quantile_name(quantile)}'",
                value=f"MAX(COALESCE({column}, at_least))",
                where=f"{self._in_range('at_s')} AND {of} AND COALESCE({column}, at_least) IS NOT NULL AND {OF_MODEL}",
                ref=quantile_name(quantile),
            )
            for quantile, column in columns.items()
        )

    def kv_occupancy(self) -> Query:
        return self._most(KV_OCCUPANCY, OF_ENGINE, MODEL_NAME)

    def engine(self) -> tuple[Query, ...]:
        return (
            self._sum(ENGINE_RUNNING, OF_ENGINE, f"{SERVICE_NAME} || ' running'", ref="running"),
            self._sum(ENGINE_WAITING, OF_ENGINE, f"{SERVICE_NAME} || ' waiting'", ref="waiting"),
        )

    def _ask(self, table: Table, *, metric: str, value: str, where: str, ref: str = "A") -> Query:
        """A chart of rows that stand for moments; rows of one name and moment are folded by `value`."""
        return Query(
            self.datasource, _chart(table, "at_s", metric=metric, value=value, where=where), (table.name,), ref
        )

    def _budget(self, value: str, shape: Shape, where: str = TOGETHER) -> Query:
        budget = schema.budget
        when = self._in_range("at_s") if shape == "series" else f"at_s = {self._latest(budget)}"
        text = _chart(budget, "at_s", metric=NAME, value=f"MAX({value})", where=f"{when} AND {where}")
        reads = (budget.name, schema.alert.name) if value == STATE else (budget.name,)
        return Query(self.datasource, text, reads, shape=shape)

    def _sum(self, metric: Metric, where: str, name: str, *, ref: str = "A") -> Query:
        return self._gauge(metric, where, name, folds=("AVG(mean)", "SUM(value)"), ref=ref)

    def _most(self, metric: Metric, where: str, name: str) -> Query:
        return self._gauge(metric, where, name, folds=('MAX("max")', "MAX(value)"))

    def _gauge(self, metric: Metric, where: str, name: str, *, folds: tuple[str, str], ref: str = "A") -> Query:
        """A gauge, folded first over the steps of a bucket, then over instances."""
        inner, outer = folds
        text = (
            f"SELECT time, metric, CAST({outer} AS {NUMBER}) AS value\nFROM (\n"
            f"  SELECT {TIME} AS time, {name} AS metric, {inner} AS value\n  FROM {schema.gauge.name}\n"
            f"  WHERE {WHOLE_BUCKETS} AND name = '{metric.sql}' AND {where}\n"
            "  GROUP BY 1, 2, instance, model, attribute\n) AS seen\nGROUP BY time, metric\nORDER BY time"
        )
        return Query(self.datasource, text, (schema.gauge.name,), ref)

    def _target(self) -> str:
        """The target of a row of the budget, from the specs."""
        rows = " UNION ALL ".join(
            f"SELECT '{spec.service}' AS service, '{objective.name}' AS objective, {plain(objective.goal)} AS target"
            for spec, objective in each(self.specs)
        )
        same = "p.service = budget.service AND p.objective = budget.objective"
        return f"(SELECT p.target FROM ({rows}) AS p WHERE {same})"

    def _burn(self, window_s: int) -> str:
        """The burn of a row of the budget over a window."""
        key = " AND ".join(f"b.{column} = budget.{column}" for column in COLUMNS)
        when = f"b.at_s = {self._latest(schema.burn_rate)} AND b.window_s = {window_s}"
        return f"(SELECT b.burn FROM {schema.burn_rate.name} AS b WHERE {when} AND {key})"

    def _in_range(self, column: str) -> str:
        if self.datasource is POSTGRES:
            return f"$__unixEpochFilter({column})"
        return f"{column} BETWEEN $__from / 1000 AND $__to / 1000"

    def _latest(self, table: Table) -> str:
        return f"(SELECT MAX(at_s) FROM {table.name} WHERE {self._in_range('at_s')})"

    def _field(self, column: str, key: str) -> str:
        """A text inside a column of JSON."""
        if self.datasource is POSTGRES:
            return f"CAST({column} AS json) ->> '{key}'"
        return f"json_extract({column}, '$.{key}')"


def _chart(table: Table, time: str, *, metric: str, value: str, where: str) -> str:
    return (
        f"SELECT {time} AS time, {metric} AS metric, CAST({value} AS {NUMBER}) AS value\n"
        f"FROM {table.name}\nWHERE {where}\nGROUP BY 1, 2\nORDER BY 1"
    )


def _variable(column: str, title: str, table: Table, where: str) -> Variable:
    query = f"SELECT DISTINCT {column} FROM {table.name} WHERE {where} ORDER BY 1"
    return Variable(COLUMNS[column], title, query, EVERYTHING, f"Column {column} of {table.name}.")
