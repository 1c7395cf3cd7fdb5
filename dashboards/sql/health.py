"""Whether the figures themselves can be relied on, in SQL: what the tables know of that."""

from dataclasses import dataclass

from collector import schema
from dashboards.model import Query, Shape
from dashboards.sql.dialect import TO_S, Dialect
from dashboards.sql.latencies import WINDOW_S
from dashboards.sql.pieces import BUCKET_S, NUMBER, SECONDS, SERVICE_NAME, TIME, WHOLE_BUCKETS, chart
from dashboards.sql.selection import COLUMNS, Selection
from slo.promql import INSTANCE_LABEL, SERVICE_KEY


@dataclass(frozen=True, slots=True)
class SqlHealth:
    """Health of the telemetry of what the variables of `selection` choose."""

    dialect: Dialect
    selection: Selection

    def heard(self) -> Query:
        text = chart(
            schema.known,
            TIME,
            metric=SERVICE_NAME,
            value=f"SUM(step_s * 1.0 / {SECONDS})",
            where=f"{WHOLE_BUCKETS} AND {self.selection.of_service}",
        )
        return self._query(text, (schema.known.name,))

    def instances(self) -> tuple[Query, ...]:
        key = ", ".join(f"{COLUMNS[label]} AS {label}" for label in (*SERVICE_KEY, INSTANCE_LABEL))
        text = (
            f"SELECT {key}, {TO_S} - last_s AS silent, first_s * 1000 AS since\nFROM {schema.instance.name}\n"
            f"WHERE {self.selection.of_service} AND {self.selection.chosen(INSTANCE_LABEL)}\nORDER BY silent"
        )
        return (self._query(text, (schema.instance.name,), shape="table"),)

    def evaluation_age(self) -> Query:
        """An evaluation writes percentiles whether or not there are objectives."""
        percentile = schema.percentile.name
        text = (
            f"SELECT {TO_S} AS time, 'collectors' AS metric, CAST({TO_S} - MAX(at_s) AS {NUMBER}) AS value\n"
            f"FROM {percentile}\nHAVING MAX(at_s) IS NOT NULL"
        )
        return self._query(text, (percentile,), shape="latest")

    def scrapes(self) -> tuple[Query, ...]:
        return ()

    def rule_failures(self) -> tuple[Query, ...]:
        return ()

    def commit_time(self) -> tuple[Query, ...]:
        return ()

    def errors_of_quantiles(self) -> tuple[Query, ...]:
        text = chart(
            schema.percentile,
            "at_s",
            metric="signal || ' ' || source",
            value="MAX(rel_error)",
            where=f"{self.dialect.in_range('at_s')} AND window_s = {WINDOW_S} AND rel_error IS NOT NULL"
            f" AND {self.selection.of_service}",
        )
        return (self._query(text, (schema.percentile.name,)),)

    def intake(self) -> tuple[Query, ...]:
        when = WHOLE_BUCKETS.replace("start_s", "at_s")
        text = chart(
            schema.batch,
            f"at_s / {BUCKET_S} * {BUCKET_S}",
            metric="'all collectors'",
            value=f"COUNT(*) * 1.0 / {BUCKET_S}",
            where=when,
        )
        return (self._query(text, (schema.batch.name,)),)

    def _query(self, text: str, reads: tuple[str, ...], *, shape: Shape = "series") -> Query:
        return Query(self.dialect.datasource, text, reads, shape=shape)
