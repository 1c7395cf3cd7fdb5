"""How much is asked of a service, and how much it is known to bear, in SQL."""

from collections.abc import Sequence
from dataclasses import dataclass

from collector import schema
from dashboards.model import Query
from dashboards.promise import Limit
from dashboards.sql.dialect import Dialect
from dashboards.sql.figures import SqlFigures
from dashboards.sql.latencies import BY_SIDECARS
from dashboards.sql.pieces import NUMBER, SECONDS, SERVICE_NAME, TIME, WHOLE_BUCKETS, chart
from dashboards.sql.selection import Selection
from dashboards.subjects import REFUSED_OUTCOMES
from slo.quantity import plain
from slo.signals import E2E, ENGINE_RUNNING, IN_FLIGHT, LABELS, OUTCOME, REQUESTS, TOKEN_TYPE, TOKENS

COUNTED = (schema.counter.name,)


@dataclass(frozen=True, slots=True)
class SqlLoad:
    """The load on what the variables of `selection` choose."""

    dialect: Dialect
    selection: Selection

    def offered(self) -> Query:
        return self._figures.rate(REQUESTS)

    def peak(self) -> Query:
        text = (
            f"SELECT MAX(time) AS time, metric, MAX(value) AS value\nFROM (\n{self.offered().text}\n) AS offered\n"
            "GROUP BY metric\nORDER BY 1"
        )
        return self._query(text, COUNTED, ref="A")

    def headroom(self, certified: Sequence[Limit]) -> Query:
        known = " UNION ALL ".join(
            f"SELECT '{limit.service}' AS of_service, {plain(round(limit.value, 10))} AS bears" for limit in certified
        )
        text = chart(
            f"{schema.counter.name} JOIN ({known}) AS certified ON of_service = service",
            TIME,
            metric=SERVICE_NAME,
            value=f"1 - SUM(value / {SECONDS}) / MAX(bears)",
            where=f"{WHOLE_BUCKETS} AND {self._figures.counted(REQUESTS)}",
        )
        return self._query(text, COUNTED)

    def concurrency(self) -> tuple[Query, ...]:
        """By Little's law the requests in flight are the arrivals per second times the mean time in the service: the
        seconds spent in it per second."""
        of = f"signal = '{E2E.sql}' AND {BY_SIDECARS} AND censored = 0 AND {self.selection.of_model}"
        text = chart(
            "rollup JOIN series ON series.id = rollup.series_id",
            TIME,
            metric=f"{SERVICE_NAME} || ' by Little''s law'",
            value=f'SUM("sum" / {SECONDS})',
            where=f"{WHOLE_BUCKETS} AND {of}",
        )
        return (
            self._figures.gauge(IN_FLIGHT, name="counted", ref="counted"),
            self._query(text, (schema.rollup.name, schema.series.name), ref="little"),
        )

    def refused(self) -> Query:
        outcome = self.dialect.field("attributes", LABELS[OUTCOME])
        refused = ", ".join(f"'{name}'" for name in REFUSED_OUTCOMES)
        text = chart(
            schema.counter,
            TIME,
            metric=SERVICE_NAME,
            value=f"SUM(CASE WHEN {outcome} IN ({refused}) THEN value ELSE 0 END) / SUM(value)",
            where=f"{WHOLE_BUCKETS} AND {self._figures.counted(REQUESTS)}",
        )
        return self._query(text.replace("\nORDER BY", " HAVING SUM(value) > 0\nORDER BY"), COUNTED)

    def speed(self) -> Query:
        running = self._figures.gauge(ENGINE_RUNNING).text
        kind = self.dialect.field("attributes", LABELS[TOKEN_TYPE])
        written = chart(
            schema.counter,
            TIME,
            metric=SERVICE_NAME,
            value=f"SUM(value / {SECONDS})",
            where=f"{WHOLE_BUCKETS} AND {self._figures.counted(TOKENS)} AND {kind} = 'output'",
        )
        text = (
            f"SELECT written.time AS time, written.metric AS metric,\n"
            f"  CAST(written.value / running.value AS {NUMBER}) AS value\n"
            f"FROM (\n{written}\n) AS written JOIN (\n{running}\n) AS running\n"
            "ON running.time = written.time AND running.metric = written.metric AND running.value > 0\nORDER BY 1"
        )
        return self._query(text, (schema.counter.name, schema.gauge.name))

    @property
    def _figures(self) -> SqlFigures:
        return SqlFigures(self.dialect, self.selection)

    def _query(self, text: str, reads: tuple[str, ...], *, ref: str = "A") -> Query:
        return Query(self.dialect.datasource, text, reads, ref)
