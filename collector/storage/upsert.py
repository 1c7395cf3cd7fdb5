"""Bulk writes that meet rows already there: one statement per table, the same on SQLite and PostgreSQL.

Rows are tuples in the order of the table's columns. PostgreSQL refuses a key repeated within one statement and
deadlocks when two writers meet keys in opposite order, so callers fold and sort first. SQLite is given many rows with
each run of the statement: to begin and end a run costs as much as two thirds of a row.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from sqlalchemy import ColumnElement, Table, case
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Dialect

from collector import schema

ROWS_PER_STATEMENT = 5_000
ROWS_PER_RUN = 64
"""Rows that SQLite is given at once, of no table more than the 999 values that one before 3.32 takes. PostgreSQL's
driver sends each row by itself, all in one go."""

Row = tuple[Any, ...]
Cells = Mapping[str, ColumnElement[Any]]
"""One row, by the names of its columns."""
Merge = Callable[[Cells, Cells, str], ColumnElement[Any]]
"""What becomes of one column, from the row that is stored and the new one of the same key."""


def add(stored: Cells, new: Cells, name: str) -> ColumnElement[Any]:
    """What is stored and what is new, together."""
    return stored[name] + new[name]


def replace(_stored: Cells, new: Cells, name: str) -> ColumnElement[Any]:
    """What is new."""
    return new[name]


def least(stored: Cells, new: Cells, name: str) -> ColumnElement[Any]:
    """The lesser, on every database: the functions for it have other names and other rules for NULL on each."""
    return case((stored[name] <= new[name], stored[name]), else_=new[name])


def greatest(stored: Cells, new: Cells, name: str) -> ColumnElement[Any]:
    """The greater, likewise."""
    return case((stored[name] >= new[name], stored[name]), else_=new[name])


def _weighted_mean(stored: Cells, new: Cells, name: str) -> ColumnElement[Any]:
    values = stored[name] * stored["samples"] + new[name] * new["samples"]
    return values / (stored["samples"] + new["samples"])


def _of_the_later(stored: Cells, new: Cells, name: str) -> ColumnElement[Any]:
    return case((new["last_ns"] >= stored["last_ns"], new[name]), else_=stored[name])


@dataclass(frozen=True)
class Upsert:
    """How rows of `table` meet rows of the same key: `merge` by column; without one, the stored row stays."""

    table: Table
    merge: Mapping[str, Merge] = field(default_factory=dict)

    def write(self, connection: Connection, rows: Iterable[Row]) -> int:
        """Write the rows, whose keys differ; their count."""
        written, waiting = 0, iter(rows)
        while part := list(islice(waiting, ROWS_PER_STATEMENT)):
            for several, runs in _runs(part, connection.dialect):
                connection.exec_driver_sql(_text(self, connection.dialect, several), runs)
            written += len(part)
        return written


def _runs(rows: Sequence[Row], dialect: Dialect) -> Iterator[tuple[int, Sequence[Row]]]:
    """How many rows each run of a statement takes, and the values of each run; then the same of the rows left over."""
    whole = 0 if dialect.name == "postgresql" else len(rows) - len(rows) % ROWS_PER_RUN
    if whole:
        firsts = range(0, whole, ROWS_PER_RUN)
        yield ROWS_PER_RUN, [tuple(chain.from_iterable(rows[first : first + ROWS_PER_RUN])) for first in firsts]
    if whole < len(rows):
        yield 1, rows[whole:]


def _everything_else(table: Table) -> dict[str, Merge]:
    return {column.name: replace for column in table.columns if not column.primary_key}


def _merge(names: Sequence[str], merge: Merge) -> dict[str, Merge]:
    return dict.fromkeys(names, merge)


ALERT = Upsert(schema.alert, _everything_else(schema.alert))
ALERT_EVENT = Upsert(schema.alert_event)
DRIFT = Upsert(schema.drift, _everything_else(schema.drift))
GAUGE = Upsert(
    schema.gauge,
    {
        "min": least,
        "max": greatest,
        "mean": _weighted_mean,
        "last": _of_the_later,
        "last_ns": greatest,
        "samples": add,
    },
)
COUNTER = Upsert(schema.counter, {"value": add})
SERIES = Upsert(schema.series)
ROLLUP = Upsert(schema.rollup, _everything_else(schema.rollup))
SLO_COUNT = Upsert(schema.slo_count, _merge(("good", "bad"), add))
KNOWN = Upsert(schema.known)
INSTANCE = Upsert(schema.instance, {"source": replace, "first_s": least, "last_s": greatest, "periodic": greatest})
BATCH = Upsert(schema.batch)
STREAM = Upsert(schema.stream, _everything_else(schema.stream))
NOTIFICATION = Upsert(schema.notification, _everything_else(schema.notification))

_texts: dict[tuple[str, str, str, int], str] = {}


def _text(upsert: Upsert, dialect: Dialect, several: int) -> str:
    """The statement for so many rows as the driver takes it, made once."""
    key = (dialect.name, dialect.paramstyle, upsert.table.name, several)
    if key not in _texts:
        _texts[key] = _compiled(upsert, dialect, several)
    return _texts[key]


def _compiled(upsert: Upsert, dialect: Dialect, several: int) -> str:
    table = upsert.table
    statement = (postgresql.insert if dialect.name == "postgresql" else sqlite.insert)(table)
    if several > 1:
        statement = statement.values([dict.fromkeys(table.columns.keys())] * several)
    key = list(table.primary_key)
    if upsert.merge:
        merged = {name: merge(dict(table.c), dict(statement.excluded), name) for name, merge in upsert.merge.items()}
        statement = statement.on_conflict_do_update(index_elements=key, set_=merged)
    else:
        statement = statement.on_conflict_do_nothing(index_elements=key)
    return str(statement.inline().compile(dialect=dialect, column_keys=[column.name for column in table.columns]))
