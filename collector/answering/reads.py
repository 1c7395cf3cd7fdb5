"""Questions about the stored figures and alerts: what was asked, as SQL, and the rows that answer it.

The tables are ordered by time first. So the moments are found by stepping through that order, one look a moment, and
the rows of each moment by its key; a filter that names environment, service and model reads little else. An answer
is one page; `next` names the row it ended with, so that the page after it starts there however much was written since.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from sqlalchemy import CTE, ColumnElement, FromClause, Select, Table, func, literal, select, tuple_
from sqlalchemy.engine import Connection

from collector import schema
from collector.answering import ondemand
from collector.answering.asked import AlertsAsked, BudgetAsked, BurnAsked, PercentilesAsked, Whose, cursor
from collector.storage import causes
from slo.quantity import duration_text

MAX_PRESENT = 5_000
USUAL_HISTORY_S = 86400
_WHOSE = ("environment", "service", "model")
_FIGURE_KEYS = {
    schema.percentile.name: ("at_s", *_WHOSE, "signal", "source", "window_s"),
    schema.burn_rate.name: ("at_s", *_WHOSE, "objective", "window_s"),
    schema.budget.name: ("at_s", *_WHOSE, "objective"),
}
_WHOLE = frozenset(("at_s", "window_s"))
_EVENT_KEY = ("at_s", "environment", "service", "name", "model", "objective", "tier", "state")

Row = dict[str, Any]
_Asked = PercentilesAsked | BurnAsked | BudgetAsked


@dataclass(frozen=True, slots=True)
class Found:
    """One page of rows, and how to ask for the next; None after the last."""

    rows: Sequence[Row]
    next: str | None


def percentiles(connection: Connection, asked: PercentilesAsked, *, now_s: int, tick_s: int) -> Found:
    """Percentiles as they were stored; those of one instance are made now (`ondemand`). Raises `RefusedError`, as do
    the other questions."""
    if asked.instance is not None:
        window = ondemand.Window(asked.window_s or 0, now_s - now_s % tick_s, tick_s)
        found = ondemand.percentiles(connection, asked.of_instance(), window)
        return Found([] if found is None else [_figure(asdict(found))], None)
    return _figures(connection, schema.percentile, asked, now_s=now_s, window_s=asked.window_s)


def burns(connection: Connection, asked: BurnAsked, *, now_s: int) -> Found:
    """Burn rates as they were stored."""
    return _figures(connection, schema.burn_rate, asked, now_s=now_s, window_s=asked.window_s)


def budgets(connection: Connection, asked: BudgetAsked, *, now_s: int) -> Found:
    """Budgets as they were stored."""
    return _figures(connection, schema.budget, asked, now_s=now_s, window_s=None)


def present(connection: Connection, asked: AlertsAsked) -> list[Row]:
    """The alerts that are pending or firing, sorted, each with its cause where one was sought."""
    table = schema.alert
    mine = (table.c.state != "resolved", *_equal(table, asked))
    question = select(table).where(*mine).order_by(*table.primary_key).limit(MAX_PRESENT)
    return causes.told([_told(row) for row in _rows(connection, question)], causes.latest(connection))


def transitions(connection: Connection, asked: AlertsAsked, *, now_s: int) -> Found:
    """What happened to alerts in the stretch asked for, else within the last day; the latest first."""
    table = schema.alert_event
    first_s, last_s = asked.span(now_s)
    if asked.is_latest:
        first_s = now_s - USUAL_HISTORY_S
    key = [table.c[name] for name in _EVENT_KEY]
    mine = [table.c.at_s >= first_s, table.c.at_s <= last_s, *_equal(table, asked)]
    before = asked.after(_kinds(_EVENT_KEY))
    if before is not None:
        mine.append(tuple_(*key) < tuple_(*map(literal, before)))
    question = select(table).where(*mine).order_by(*(column.desc() for column in key)).limit(asked.limit + 1)
    return _page([_told(row) for row in _rows(connection, question)], _EVENT_KEY, asked.limit)


def _figures(connection: Connection, table: Table, asked: _Asked, *, now_s: int, window_s: int | None) -> Found:
    names = _FIGURE_KEYS[table.name]
    key = [table.c[name] for name in names]
    after = asked.after(_kinds(names))
    mine = [*_equal(table, asked), table.c.at_s.in_(_moments(table, asked, now_s=now_s, after=after))]
    if window_s is not None:
        mine.append(table.c.window_s == window_s)
    if after is not None:
        # The latest figures may be later ones by now: go on among those, after the same key.
        first = 1 if asked.is_latest else 0
        mine.append(tuple_(*key[first:]) > tuple_(*map(literal, after[first:])))
    question = select(table).where(*mine).order_by(*key).limit(asked.limit + 1)
    return _page([_figure(row) for row in _rows(connection, question)], names, asked.limit)


def _moments(table: Table, asked: _Asked, *, now_s: int, after: Sequence[Any] | None) -> Select[tuple[int]]:
    """The moments to read: the latest, each that is kept, or the last of each step."""
    at = table.alias("kept").c.at_s  # by another name, or the database would take it for the row being looked at
    first_s, last_s = asked.span(now_s)
    if asked.is_latest:
        return select(func.max(at).label("at_s"))
    start_s = first_s if after is None else max(first_s, after[0])
    if asked.step_s is None:
        walk = _walk(at, start_s=start_s, last_s=last_s)
        return select(walk.c.at_s).where(walk.c.at_s.is_not(None))
    steps = _steps(start_s - start_s % asked.step_s, last_s=last_s, step_s=asked.step_s)
    inside = (at >= steps.c.start_s, at < steps.c.start_s + asked.step_s, at >= first_s, at <= last_s)
    last = select(func.max(at)).where(*inside).scalar_subquery()
    found = select(last.label("at_s")).select_from(steps).subquery()
    return select(found.c.at_s).where(found.c.at_s.is_not(None))


def _walk(at: ColumnElement[int], *, start_s: int, last_s: int) -> CTE:
    """Every moment from the start on, each found from the one before; ends with a NULL."""
    walk = select(func.min(at).label("at_s")).where(at >= start_s, at <= last_s).cte("moment", recursive=True)
    later = select(func.min(at)).where(at > walk.c.at_s, at <= last_s).scalar_subquery()
    return walk.union_all(select(later).where(walk.c.at_s.is_not(None)))


def _steps(start_s: int, *, last_s: int, step_s: int) -> CTE:
    steps = select(literal(start_s).label("start_s")).cte("step", recursive=True)
    return steps.union_all(select(steps.c.start_s + step_s).where(steps.c.start_s + step_s <= last_s))


def _equal(table: FromClause, asked: Whose) -> list[ColumnElement[bool]]:
    return [table.c[name] == value for name, value in asked.filters().items() if name in table.c]


def _rows(connection: Connection, question: Select[Any]) -> list[Row]:
    names = [str(column.name) for column in question.selected_columns]
    return [dict(zip(names, row, strict=True)) for row in connection.execute(question)]


def _kinds(names: Iterable[str]) -> list[type]:
    return [int if name in _WHOLE else str for name in names]


def _page(rows: Sequence[Row], key: Sequence[str], limit: int) -> Found:
    """The rows, of which one more was asked for than fit."""
    if len(rows) <= limit:
        return Found(rows, None)
    return Found(rows[:limit], cursor([rows[limit - 1][name] for name in key]))


def _figure(row: Row) -> Row:
    return row | {"window": duration_text(row["window_s"])} if "window_s" in row else row


def _told(row: Row) -> Row:
    """An alert, its labels and words unpacked. A transition's urgency is only among its labels."""
    labels = orjson.loads(row["labels"])
    said = {"labels": labels, "annotations": orjson.loads(row["annotations"])}
    return {"severity": labels.get("severity", ""), "notify": labels.get("notify", "")} | row | said
