"""Variables, marks and limits of the dashboards over the collector's tables."""

# ruff: noqa: S608  these texts are for Grafana to send; nothing but our own names and checked names goes into them

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Table

from collector import schema
from dashboards.model import Marks, Query, Variable
from dashboards.promise import Limit
from dashboards.questions import Events
from dashboards.sql.dialect import FROM_S, TO_S, Dialect
from dashboards.sql.pieces import NUMBER, SERVICE_NAME
from dashboards.sql.selection import COLUMNS, EVERYTHING, GPU_LABEL, Selection
from slo.promql import INSTANCE_LABEL, OBJECTIVE_LABEL
from slo.quantity import plain
from slo.signals import ENVIRONMENT_LABEL, GPU_MEMORY_LIMIT, MODEL_LABEL, SERVICE_LABEL


@dataclass(frozen=True, slots=True)
class SqlFrame:
    """What stands around the panels of the dashboard that has the variables of `selection`."""

    dialect: Dialect
    selection: Selection

    def variables(self) -> tuple[Variable, ...]:
        sender, judged, of = schema.instance, schema.budget, self.selection
        now = f"at_s = (SELECT MAX(at_s) FROM {judged.name})"
        gpus = f"name = '{GPU_MEMORY_LIMIT.sql}' AND {of.of_service}"
        known = (
            _variable(ENVIRONMENT_LABEL, "Environment", sender, "environment <> ''"),
            _variable(SERVICE_LABEL, "Service", sender, of.chosen(ENVIRONMENT_LABEL)),
            _variable(MODEL_LABEL, "Model", judged, f"{now} AND model <> {EVERYTHING} AND {of.of_service}"),
            _variable(OBJECTIVE_LABEL, "Objective", judged, f"{now} AND {of.of_service}"),
            _variable(INSTANCE_LABEL, "Instance", sender, of.of_service),
            _variable(GPU_LABEL, "GPU", schema.gauge, gpus, column="attribute"),
        )
        return tuple(variable for variable in known if variable.name in of.variables)

    def marks(self, *events: Events) -> tuple[Marks, ...]:
        """The tables do not know when a contract was changed."""
        known = {"alerts": self._alerts, "drift": self._drift, "starts": self._starts}
        return tuple(known[event]() for event in events if event in known)

    def _alerts(self) -> Marks:
        fired = schema.alert_event.name
        shown = f"name || ' ' || {SERVICE_NAME} || ' ' || objective || ' ' || model"
        text = (
            f"SELECT fired_s AS time, COALESCE(MAX(CASE state WHEN 'resolved' THEN at_s END), {TO_S}) AS timeend,\n"
            f"  {shown} AS text, tier AS tags\nFROM {fired}\n"
            f"WHERE fired_s IS NOT NULL AND at_s >= {FROM_S} AND fired_s <= {TO_S} AND {self.selection.of_alert}\n"
            "GROUP BY 1, 3, 4\nORDER BY 1"
        )
        return Marks("Firing alerts", text, "red")

    def _drift(self) -> Marks:
        text = (
            f"SELECT since_s AS time, COALESCE(until_s, {TO_S}) AS timeend,\n"
            f"  {SERVICE_NAME} || ' ' || model || ' ' || signal AS text, kind AS tags\nFROM {schema.drift.name}\n"
            f"WHERE since_s <= {TO_S} AND COALESCE(until_s, {TO_S}) >= {FROM_S} AND {self.selection.of_model}\n"
            "ORDER BY 1"
        )
        return Marks("Drift", text, "orange")

    def _starts(self) -> Marks:
        text = (
            f"SELECT first_s AS time, {SERVICE_NAME} || ' ' || instance AS text, source AS tags\n"
            f"FROM {schema.instance.name}\nWHERE {self.dialect.in_range('first_s')} AND {self.selection.of_service}\n"
            "ORDER BY 1"
        )
        return Marks("Starts", text, "blue")

    def limits(self, limits: Sequence[Limit]) -> Query:
        rows = " UNION ALL ".join(
            f"SELECT '{limit.service}' AS service, '{limit.objective}' AS objective,"
            f" '{limit.text}' AS metric, {plain(round(limit.value, 10))} AS value"
            for limit in limits
        )
        ends = f"SELECT {FROM_S} AS time UNION ALL SELECT {TO_S}"
        text = (
            f"SELECT DISTINCT time, metric, CAST(value AS {NUMBER}) AS value\n"
            f"FROM ({rows}) AS promised, ({ends}) AS ends\nWHERE {self.selection.of_promise}\nORDER BY time"
        )
        return Query(self.dialect.datasource, text, ("slo.yaml",), ref="limit", look="limit")


def _variable(label: str, title: str, table: Table, where: str, *, column: str = "") -> Variable:
    of = column or COLUMNS[label]
    query = f"SELECT DISTINCT {of} FROM {table.name} WHERE {where} ORDER BY 1"
    return Variable(label, title, query, EVERYTHING, f"Column {of} of {table.name}.")
