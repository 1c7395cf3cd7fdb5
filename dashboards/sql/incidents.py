"""What went wrong and what changed, in SQL: alerts as the collector judged them, drift, starts of instances."""

# ruff: noqa: S608  these texts are for Grafana to send; nothing but our own names and checked names goes into them

from dataclasses import dataclass

from collector import schema
from dashboards.model import Query, Shape
from dashboards.sql.dialect import FROM_S, TO_S, Dialect
from dashboards.sql.pieces import MODEL_NAME, NUMBER
from dashboards.sql.selection import COLUMNS, Selection
from slo.promql import COUNT_KEY, INSTANCE_LABEL, SERVICE_KEY, TIER_LABEL
from slo.quantity import HOUR_S
from slo.signals import BAD, GOOD, LABELS, MODEL_LABEL, RESULT, SERVICE_LABEL

WHOM = f"environment, service AS {SERVICE_LABEL}, model AS {MODEL_LABEL}, objective, tier AS {TIER_LABEL}"
ALERT_COLUMNS = "name, environment, service, model, objective, tier"


@dataclass(frozen=True, slots=True)
class SqlIncidents:
    """Incidents of what the variables of `selection` choose."""

    dialect: Dialect
    selection: Selection

    def alerts(self) -> Query:
        text = (
            f"SELECT name AS alertname, severity, notify, {WHOM},\n  fired_s * 1000 AS since\n"
            f"FROM {schema.alert.name}\nWHERE state = 'firing' AND {self.selection.of_alert}\nORDER BY fired_s"
        )
        return self._query(text, (schema.alert.name,), "table")

    def firing(self) -> Query:
        """Counted at each evaluation."""
        budget = schema.budget
        text = (
            f"SELECT moments.at_s AS time, COALESCE(notify, 'page') AS metric,"
            f" CAST(COUNT(fired_s) AS {NUMBER}) AS value\n"
            f"FROM (SELECT DISTINCT at_s FROM {budget.name} WHERE {self.dialect.in_range('at_s')}) AS moments\n"
            f"LEFT JOIN (\n  {self._firings()}\n) AS firings\n"
            "ON fired_s <= moments.at_s AND (ended_s IS NULL OR ended_s > moments.at_s)\nGROUP BY 1, 2\nORDER BY 1"
        )
        return self._query(text, (schema.alert_event.name, budget.name))

    def past(self) -> Query:
        text = (
            f"SELECT name AS alertname, severity, notify, {WHOM},\n  MAX(fired_s) * 1000 AS since\n"
            f"FROM (\n  {self._firings()}\n) AS firings\n"
            f"WHERE fired_s <= {TO_S} AND (ended_s IS NULL OR ended_s >= {FROM_S})\n"
            f"GROUP BY {ALERT_COLUMNS}, severity, notify\nORDER BY since"
        )
        return self._query(text, (schema.alert_event.name,), "table")

    def drift(self) -> Query:
        percentile, drift = schema.percentile, schema.drift
        text = (
            "SELECT moments.at_s AS time,\n"
            f"  {MODEL_NAME} || ' ' || signal || ' ' || source || ' ' || kind AS metric,\n"
            f"  CAST(MAX(effect) AS {NUMBER}) AS value\n"
            f"FROM (SELECT DISTINCT at_s FROM {percentile.name} WHERE {self.dialect.in_range('at_s')}) AS moments\n"
            f"JOIN {drift.name} ON since_s <= moments.at_s AND (until_s IS NULL OR until_s > moments.at_s)\n"
            f"WHERE {self.selection.of_model}\nGROUP BY 1, 2\nORDER BY 1"
        )
        return self._query(text, (drift.name, percentile.name))

    def starts(self) -> Query:
        key = _columns(*SERVICE_KEY, INSTANCE_LABEL)
        text = (
            f"SELECT {key}, first_s * 1000 AS since\nFROM {schema.instance.name}\n"
            f"WHERE {self.selection.of_service} AND {self.selection.chosen(INSTANCE_LABEL)}\nORDER BY first_s DESC"
        )
        return self._query(text, (schema.instance.name,), "table")

    def contracts(self) -> Query:
        """Over the last hour of the time range."""
        key, grouped = _columns(*COUNT_KEY), ", ".join(COLUMNS.get(label, label) for label in COUNT_KEY)
        when = f"start_s > {TO_S} - {HOUR_S} AND start_s <= {TO_S} AND {self.selection.of_objective}"
        of = f"{when} AND {self.selection.chosen(MODEL_LABEL)}"
        parts = (
            f"SELECT {key}, '{result}' AS {LABELS[RESULT]}, SUM({result}) / {HOUR_S}.0 AS events\n"
            f"FROM {schema.slo_count.name}\nWHERE {of}\nGROUP BY {grouped}"
            for result in (GOOD, BAD)
        )
        return self._query("\nUNION ALL\n".join(parts), (schema.slo_count.name,), "table")

    def _firings(self) -> str:
        """Each firing with its end, NULL while it lasts."""
        severity, notify = (self.dialect.field("labels", key) for key in ("severity", "notify"))
        told = f"MAX({severity}) AS severity, MAX({notify}) AS notify"
        ended = "MAX(CASE state WHEN 'resolved' THEN at_s END) AS ended_s"
        return (
            f"SELECT {ALERT_COLUMNS}, fired_s, {ended}, {told}\n"
            f"  FROM {schema.alert_event.name} WHERE fired_s IS NOT NULL AND {self.selection.of_alert}\n"
            f"  GROUP BY {ALERT_COLUMNS}, fired_s"
        )

    def _query(self, text: str, reads: tuple[str, ...], shape: Shape = "series") -> Query:
        return Query(self.dialect.datasource, text, reads, shape=shape)


def _columns(*labels: str) -> str:
    """Columns under the names of the labels."""
    return ", ".join(f"{COLUMNS.get(label, label)} AS {label}" for label in labels)
