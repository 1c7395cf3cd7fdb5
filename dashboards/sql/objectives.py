"""How the objectives stand, in SQL. What the tables do not hold, the targets, is written into the queries."""

# ruff: noqa: S608  these texts are for Grafana to send; nothing but our own names and checked names goes into them

from collections.abc import Sequence
from dataclasses import dataclass, replace

from collector import schema
from dashboards import promise
from dashboards.model import Query, Shape
from dashboards.questions import NOT_SPENT, STATES
from dashboards.sql.dialect import Dialect
from dashboards.sql.figures import SqlFigures
from dashboards.sql.pieces import NUMBER, OBJECTIVE_NAME, SECONDS, SERVICE_NAME, TIME, WHOLE_BUCKETS, chart
from dashboards.sql.selection import COLUMNS, EVERYTHING, Selection
from dashboards.subjects import NEVER_JUDGED_OUTCOMES
from slo.objective import Spec
from slo.promql import VERDICT_KEY
from slo.quantity import duration_text, plain
from slo.signals import LABELS, MODEL_LABEL, OUTCOME, REQUESTS, SERVICE_LABEL

VERDICT_COLUMNS = tuple(COLUMNS[label] for label in VERDICT_KEY)
STATE = (
    f"CASE WHEN good + bad = 0 THEN {STATES.index('no data')} WHEN remaining <= 0 THEN {STATES.index('spent')}\n"
    f"    WHEN EXISTS (SELECT 1 FROM {schema.alert.name} AS a WHERE a.state = 'firing' AND a.tier <> '' AND "
    + " AND ".join(f"a.{column} = budget.{column}" for column in VERDICT_COLUMNS)
    + f") THEN {STATES.index('burning')}\n    ELSE {STATES.index('kept')} END"
)
"""The place in `STATES` of a row of the budget: spent before burning, as everywhere."""
JUDGED_READS = (schema.slo_count.name, schema.counter.name)


@dataclass(frozen=True, slots=True)
class SqlObjectives:
    """Objectives that the variables of `selection` choose."""

    dialect: Dialect
    selection: Selection
    specs: tuple[Spec, ...]

    def budget_left(self) -> Query:
        return self._budget("remaining", "latest")

    def budget_over_time(self) -> Query:
        return self._budget("remaining", "series")

    def coverage(self) -> Query:
        return self._budget("coverage", "series")

    def exhausted_in(self) -> Query:
        return self._budget(f"COALESCE(exhausted_in_s, {NOT_SPENT})", "latest", "good + bad > 0")

    def state(self) -> Query:
        return self._budget(STATE, "latest")

    def standing(self, windows_s: Sequence[int]) -> tuple[Query, ...]:
        budget = schema.budget
        burns = "".join(f'  {self._burn(window_s)} AS "burn{duration_text(window_s)}",\n' for window_s in windows_s)
        chosen = f"{self.selection.of_objective} AND {self.selection.chosen(MODEL_LABEL)}"
        text = (
            f"SELECT environment, service AS {SERVICE_LABEL}, objective, model AS {MODEL_LABEL},\n"
            f'  {STATE} AS "state",\n  remaining AS "left",\n'
            f'  CASE WHEN good + bad > 0 THEN COALESCE(exhausted_in_s, {NOT_SPENT}) END AS "ends",\n{burns}'
            f'  coverage AS "coverage",\n  {self._target()} AS "target"\n'
            f"FROM {budget.name}\nWHERE at_s = {self.dialect.latest(budget)} AND {chosen}\nORDER BY remaining"
        )
        reads = (budget.name, schema.burn_rate.name, schema.alert.name)
        return (self._query(text, reads, shape="table"),)

    def burn(self, long_s: int, short_s: int) -> tuple[Query, ...]:
        refs = {short_s: "short", long_s: "long"}
        when = f"{self.dialect.in_range('at_s')} AND burn IS NOT NULL AND {self.selection.together}"
        asked = (
            self._query(
                chart(
                    schema.burn_rate,
                    "at_s",
                    metric=f"{OBJECTIVE_NAME} || ' {duration_text(window_s)}'",
                    value="MAX(burn)",
                    where=f"{when} AND window_s = {window_s}",
                ),
                (schema.burn_rate.name,),
                ref=ref,
            )
            for window_s, ref in sorted(refs.items(), reverse=True)
        )
        return tuple(replace(query, look="thin") if query.ref == "short" else query for query in asked)

    def events(self, result: str) -> Query:
        text = chart(
            schema.slo_count,
            TIME,
            metric=f"{SERVICE_NAME} || ' ' || objective",
            value=f"SUM({result} * 1.0 / {SECONDS})",
            where=f"{self._counted()} AND {self.selection.of_objective}",
        )
        return self._query(text, (schema.slo_count.name,))

    def judged(self) -> Query:
        events = (
            f"SELECT {TIME} AS time, {SERVICE_NAME} AS service, objective, SUM(good + bad) AS n\n"
            f"  FROM {schema.slo_count.name} WHERE {self._counted(requests=True)} GROUP BY 1, 2, 3"
        )
        asked = (
            f"SELECT {TIME} AS time, {SERVICE_NAME} AS service, SUM(value) AS n\n  {self._judgeable()} GROUP BY 1, 2"
        )
        share = "CASE WHEN events.n < asked.n THEN events.n / asked.n ELSE 1 END"
        text = (
            f"SELECT events.time AS time, events.service || ' ' || events.objective AS metric,\n"
            f"  CAST({share} AS {NUMBER}) AS value\nFROM (\n  {events}\n) AS events JOIN (\n  {asked}\n"
            ") AS asked ON asked.time = events.time AND asked.service = events.service AND asked.n > 0\nORDER BY 1"
        )
        return self._query(text, JUDGED_READS)

    def unjudged(self) -> Query:
        """Of each model the objective that judges most of its requests counts; whether another judges the rest, counts
        do not tell."""
        events = (
            f"SELECT {TIME} AS time, {SERVICE_NAME} AS service, model, objective, SUM(good + bad) AS n\n"
            f"    FROM {schema.slo_count.name} WHERE {self._counted(requests=True)} GROUP BY 1, 2, 3, 4"
        )
        most = f"SELECT time, service, model, MAX(n) AS n FROM (\n    {events}\n  ) AS each_one GROUP BY 1, 2, 3"
        asked = (
            f"SELECT {TIME} AS time, {SERVICE_NAME} AS service, model, SUM(value) AS n\n  {self._judgeable()}"
            " GROUP BY 1, 2, 3"
        )
        share = "1 - SUM(COALESCE(judged.n, 0)) / SUM(asked.n)"
        same = " AND ".join(f"judged.{column} = asked.{column}" for column in ("time", "service", "model"))
        text = (
            f"SELECT asked.time AS time, asked.service AS metric,\n"
            f"  CAST(CASE WHEN {share} > 0 THEN {share} ELSE 0 END AS {NUMBER}) AS value\n"
            f"FROM (\n  {asked}\n) AS asked LEFT JOIN (\n  {most}\n) AS judged ON {same}\n"
            "GROUP BY 1, 2 HAVING SUM(asked.n) > 0\nORDER BY 1"
        )
        return self._query(text, JUDGED_READS)

    def _counted(self, *, requests: bool = False) -> str:
        """Rows of counts of each model; of requests without objectives that judge time."""
        names = promise.of_time(self.specs) if requests else ()
        listed = ", ".join(f"'{name}'" for name in names)
        untold = f" AND objective NOT IN ({listed})" if names else ""
        return f"{WHOLE_BUCKETS} AND {self.selection.of_model} AND model <> {EVERYTHING}{untold}"

    def _judgeable(self) -> str:
        """Where requests are counted that an objective could judge."""
        outcome = self.dialect.field("attributes", LABELS[OUTCOME])
        never = ", ".join(f"'{name}'" for name in NEVER_JUDGED_OUTCOMES)
        counted = SqlFigures(self.dialect, self.selection).counted(REQUESTS)
        return f"FROM {schema.counter.name} WHERE {WHOLE_BUCKETS} AND {counted} AND {outcome} NOT IN ({never})"

    def _budget(self, value: str, shape: Shape, where: str = "") -> Query:
        budget = schema.budget
        when = self.dialect.in_range("at_s") if shape == "series" else f"at_s = {self.dialect.latest(budget)}"
        chosen = " AND ".join(part for part in (when, self.selection.together, where) if part)
        text = chart(budget, "at_s", metric=OBJECTIVE_NAME, value=f"MAX({value})", where=chosen)
        reads = (budget.name, schema.alert.name) if value == STATE else (budget.name,)
        return self._query(text, reads, shape=shape)

    def _target(self) -> str:
        """The target of a row of the budget, from the specs."""
        rows = " UNION ALL ".join(
            f"SELECT '{spec.service}' AS service, '{objective.name}' AS objective, {plain(objective.goal)} AS target"
            for spec, objective in promise.each(self.specs)
        )
        same = "p.service = budget.service AND p.objective = budget.objective"
        return f"(SELECT p.target FROM ({rows}) AS p WHERE {same})"

    def _burn(self, window_s: int) -> str:
        """The burn of a row of the budget over a window."""
        key = " AND ".join(f"b.{column} = budget.{column}" for column in VERDICT_COLUMNS)
        when = f"b.at_s = {self.dialect.latest(schema.burn_rate)} AND b.window_s = {window_s}"
        return f"(SELECT b.burn FROM {schema.burn_rate.name} AS b WHERE {when} AND {key})"

    def _query(self, text: str, reads: tuple[str, ...], *, ref: str = "A", shape: Shape = "series") -> Query:
        return Query(self.dialect.datasource, text, reads, ref, shape=shape)
