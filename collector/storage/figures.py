"""Writes what a tick found: the rows of `percentile`, `burn_rate` and `budget`.

One evaluator writes them, a whole tick at a time, and the latest tick of each minute is kept: so a tick takes out what
its minute held and adds its own, and no row meets another. Rows of one key over several windows stand together and are
added by one statement that names the key once: that is a third off the time of a tick with thousands of rows. So is
named once what all of them say alike, which is a seventh more.

A tick of very many rows would hold up who commits what was sent, so it is kept once a minute only: `is_due` says when.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from sqlalchemy import Table
from sqlalchemy.engine import Connection

from collector import schema
from collector.judging.evaluate import Evaluation
from collector.values.columns import Columns
from slo.quantity import MINUTE_S

MAX_EVERY_TICK = 20_000
"""Rows of a tick beyond which only the first tick of each minute is kept."""
ROWS_PER_STATEMENT = 5_000
TABLES = (schema.percentile, schema.burn_rate, schema.budget)
WINDOW = "window_s"


def is_due(evaluation: Evaluation, kept_s: int | None) -> bool:
    """Whether the figures are to be kept, when those of `kept_s` were the last that were."""
    rows = len(evaluation.percentiles) + len(evaluation.burns) + len(evaluation.budgets)
    return rows <= MAX_EVERY_TICK or kept_s is None or evaluation.at_s // MINUTE_S != kept_s // MINUTE_S


def write(connection: Connection, evaluation: Evaluation) -> None:
    """Keep the figures of a tick: they replace those of every tick of the same minute."""
    minute_s = evaluation.at_s - evaluation.at_s % MINUTE_S
    found: tuple[Columns[Any], ...] = (evaluation.percentiles, evaluation.burns, evaluation.budgets)
    for table, rows in zip(TABLES, found, strict=True):
        connection.exec_driver_sql(_without(table, connection.dialect.name), [(minute_s, minute_s + MINUTE_S)])
        _insert(connection, table, rows)


def forget(connection: Connection, *, after_s: int) -> None:
    """Take out the figures of later ticks than that, for a clock that was wrong."""
    for table in TABLES:
        connection.execute(table.delete().where(table.c.at_s > after_s))


def _insert(connection: Connection, table: Table, rows: Columns[Any]) -> None:
    """Add the rows, of which those of one key but for their windows stand together."""
    names = tuple(column.name for column in table.columns)
    key = names.index(WINDOW) if WINDOW in names else 0
    for run in rows.runs:
        held = [column[run.first : run.until] for column in rows.held]
        shared = tuple(place for place, column in enumerate(held) if place < key or _is_one(column))
        text = _text(table, shared, run.several, connection.dialect.name)
        waiting = _together(held, run.several, shared=shared)
        while part := list(islice(waiting, max(ROWS_PER_STATEMENT // run.several, 1))):
            connection.exec_driver_sql(text, part)


def _is_one(column: Sequence[Any]) -> bool:
    """Whether all rows say the same, as mostly of requests without a value: there are none."""
    return column[0] == column[-1] and column.count(column[0]) == len(column)


def _together(held: Sequence[Sequence[Any]], several: int, *, shared: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """The rows that belong together as one tuple: what they share, then the rest of each."""
    own = [column for place, column in enumerate(held) if place not in shared]
    once = (held[place][::several] for place in shared)
    rest = (column[number::several] for number in range(several) for column in own)
    return zip(*once, *rest, strict=True)


@cache
def _without(table: Table, dialect: str) -> str:
    """The statement that takes out the figures from one moment up to another."""
    first, until = ("$1", "$2") if dialect == "postgresql" else ("?1", "?2")
    return f'DELETE FROM "{table.name}" WHERE at_s >= {first} AND at_s < {until}'  # noqa: S608  our own names alone


@lru_cache(maxsize=256)
def _text(table: Table, shared: tuple[int, ...], several: int, dialect: str) -> str:
    """The statement for so many rows that share some columns."""
    mark = "${}" if dialect == "postgresql" else "?{}"
    own = [place for place in range(len(table.columns)) if place not in shared]
    rows = []
    for number in range(several):
        first = len(shared) + number * len(own)
        numbers = {place: bound for bound, place in enumerate(shared)}
        numbers |= {place: bound for bound, place in enumerate(own, first)}
        rows.append(f"({', '.join(mark.format(numbers[place] + 1) for place in range(len(numbers)))})")
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    # A tick that fails is undone whole: no statement of it need be made ready to be undone alone.
    verb = "INSERT" if dialect == "postgresql" else "INSERT OR FAIL"
    return f'{verb} INTO "{table.name}" ({names}) VALUES {", ".join(rows)}'
