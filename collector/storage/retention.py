"""How long what is kept, and at what resolution: bounded pieces of work that the store runs between commits.

Counts are folded into longer steps as they age and dropped once no window can reach them; figures of ticks keep one
row a minute for two days and one in ten minutes after that (within the minute that runs, `figures` keeps the latest
alone). A piece is one short write transaction, of so many rows at most (or of one step, where that has more), and says
whether more of the same is left, so intake never waits long.

What is kept by time is dropped in the pieces that `partitions` cuts it into on PostgreSQL: hours, days and weeks, on
every database alike, once a piece is past as a whole. PostgreSQL drops its pieces as they are; row by row go the rows
of SQLite and, of PostgreSQL, those of odd times.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, MetaData, Table, and_, delete, exists, func, select
from sqlalchemy.engine import Connection

from collector import schema
from collector.storage import commit, figures, partitions, rows, upsert
from collector.storage.partitions import LONGEST_PIECE_S, piece_of
from collector.storage.recall import steps
from collector.storage.stacks import on_own_stack
from collector.storage.upsert import Upsert
from collector.values.deltas import LatencyRow, SeriesKey
from collector.values.histogram import merge
from slo.quantity import DAY_S, HOUR_S, MINUTE_S

FOLDS = ((MINUTE_S, 2 * HOUR_S), (600, 3 * DAY_S), (HOUR_S, 14 * DAY_S))
"""(step, age from which rows of shorter steps are folded into it), in seconds."""

FINE_FIGURES_S = 2 * DAY_S
COARSE_FIGURE_S = 600
ROWS_A_FOLD = 1_000
ROWS_A_DELETE = 10_000
BLOCKS_A_PIECE = 144
COUNTS = tuple(table for table in schema.metadata.sorted_tables if "step_s" in table.c)
"""The tables that are kept by step."""

Piece = Callable[[Connection], bool]
"""One transaction's work; whether more of it is left."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Ages in seconds after which rows are dropped. `counts_s` must reach beyond the longest window."""

    counts_s: int
    gauges_s: int = 30 * DAY_S
    figures_s: int = 90 * DAY_S
    events_s: int = 400 * DAY_S
    batches_s: int = DAY_S
    streams_s: int = 2 * DAY_S


def pieces(now_s: int, limits: Limits, *, whole: bool) -> Iterator[Piece]:
    """The pieces of one sweep. A `whole` one also looks at what earlier sweeps have seen, as the first of a process
    must; the others look back an hour only where looking costs."""
    yield partial(partitions.make_ahead, now_s=now_s)
    for step_s, age_s in FOLDS:
        before_s = (now_s - age_s) // step_s * step_s
        for fold in _folds(step_s):
            yield partial(fold, step_s=step_s, before_s=before_s)
    for table in figures.TABLES:
        before_s = (now_s - FINE_FIGURES_S) // COARSE_FIGURE_S * COARSE_FIGURE_S
        yield partial(partitions.rewrite, table=table, before_s=before_s, coarse_s=COARSE_FIGURE_S)
        yield _Thinning(table, 0 if whole else before_s - HOUR_S, before_s)
        yield from _dropping(table, now_s=now_s, before_s=now_s - limits.figures_s)
    for table in COUNTS:
        age_s = limits.gauges_s if table is schema.gauge else limits.counts_s
        yield from _dropping(table, now_s=now_s, before_s=now_s - age_s)
    for column, age_s in lifetimes(limits):
        yield partial(_drop, time=column, before_s=now_s - age_s)
    if whole:
        yield _drop_silent_series


def lifetimes(limits: Limits) -> Iterator[tuple[ColumnElement[int], int]]:
    """What is dropped by the moment. An instance is remembered until nothing of it is left in pieces that go whole."""
    yield schema.alert_event.c.at_s, limits.events_s
    yield schema.alert_cause.c.since_s, limits.events_s
    yield schema.drift.c.since_s, limits.events_s
    yield schema.instance.c.last_s, limits.counts_s + LONGEST_PIECE_S
    yield schema.batch.c.at_s, limits.batches_s
    yield schema.stream.c.at_s, limits.streams_s


def _dropping(table: Table, *, now_s: int, before_s: int) -> Iterator[Piece]:
    yield partial(partitions.drop_past, table=table, before_s=before_s, now_s=now_s)
    if "step_s" in table.c:
        yield partial(_drop_steps, table=table, before_s=before_s)
    else:
        yield partial(_drop, time=table.c.at_s, before_s=before_s // DAY_S * DAY_S)


def _drop_steps(connection: Connection, *, table: Table, before_s: int) -> bool:
    def drop(step_s: int) -> bool:
        whole_s = before_s // piece_of(step_s) * piece_of(step_s)
        return _drop(connection, time=table.c.start_s, before_s=whole_s, of=(table.c.step_s == step_s,))

    return any(drop(step_s) for step_s in steps(connection, table))


def _drop(connection: Connection, *, time: Any, before_s: int, of: Sequence[ColumnElement[bool]] = ()) -> bool:
    """Delete the oldest rows from before then, about as many as a piece may."""
    old = (time < before_s, *of)
    last_s = connection.scalar(select(time).where(*old).order_by(time).limit(1).offset(ROWS_A_DELETE))
    if last_s is not None:
        old = (time <= last_s, *of)
    connection.execute(delete(time.table).where(*old))
    return last_s is not None


def _drop_silent_series(connection: Connection) -> bool:
    """Series of instances that are gone: no row of theirs is left, for an instance outlives its rows."""
    series, sender = schema.series.c, schema.instance.c
    same = (getattr(sender, name) == getattr(series, name) for name in ("environment", "service", "instance"))
    connection.execute(delete(schema.series).where(~exists().where(and_(*same))))
    return False


@dataclass(slots=True)
class _Thinning:
    """Keeps the last moment of each ten minutes, of those at least two days old, from `_at_s` on."""

    table: Table
    _at_s: int
    before_s: int

    def __call__(self, connection: Connection) -> bool:
        """One transaction's work; whether there is more of it."""
        table = _by_row(connection, self.table)
        at = table.c.at_s
        deleted = 0
        for _ in range(BLOCKS_A_PIECE):
            first_s = connection.scalar(select(func.min(at)).where(at >= self._at_s, at < self.before_s))
            if first_s is None or deleted >= ROWS_A_DELETE:
                return first_s is not None
            end_s = first_s // COARSE_FIGURE_S * COARSE_FIGURE_S + COARSE_FIGURE_S
            last_s = select(func.max(at)).where(at >= first_s, at < end_s).scalar_subquery()
            deleted += connection.execute(delete(table).where(at >= first_s, at < last_s)).rowcount
            self._at_s = end_s
        return True


def _by_row(connection: Connection, table: Table) -> Table:
    """What of a table of figures is thinned by deleting rows: all of it, but on PostgreSQL the rest alone."""
    if connection.dialect.name != "postgresql":
        return table
    (branch,) = partitions.branches(table)
    return table.to_metadata(MetaData(), name=branch.rest)


def _folds(step_s: int) -> Sequence[Callable[..., bool]]:
    """Known steps say which minutes count as covered, so they are never longer than a minute."""
    added = (upsert.SLO_COUNT, upsert.COUNTER, *((upsert.KNOWN,) if step_s <= MINUTE_S else ()))
    return (_fold_rollup, _fold_gauge, *(partial(_fold_added, into=one) for one in added))


def _block(connection: Connection, table: Table, *, step_s: int, before_s: int) -> list[ColumnElement[bool]] | None:
    """What picks the oldest block of rows to fold, all of one shorter step; None when there is none. It ends with a
    whole longer step if it can: what is folded in parts is merged all the same."""
    start = table.c.start_s
    for shorter_s in steps(connection, table):
        if shorter_s >= step_s:
            break
        mine = table.c.step_s == shorter_s
        first_s = connection.scalar(select(func.min(start)).where(mine, start < before_s))
        if first_s is None:
            continue
        old = select(start).where(mine, start >= first_s, start < before_s)
        more_s = connection.scalar(old.order_by(start).limit(1).offset(ROWS_A_FOLD))
        end_s = before_s if more_s is None else more_s // step_s * step_s
        if end_s <= first_s:
            end_s = max(more_s or 0, first_s + shorter_s)
        return [mine, start >= first_s, start < end_s]
    return None


def _start(table: Table, step_s: int) -> ColumnElement[int]:
    return (table.c.start_s - table.c.start_s % step_s).label("start_s")


def _fold_added(connection: Connection, *, into: Upsert, step_s: int, before_s: int) -> bool:
    """Fold rows whose values add up."""
    table = into.table
    block = _block(connection, table, step_s=step_s, before_s=before_s)
    if block is None:
        return False
    keys = [column for column in table.primary_key if column.name not in ("step_s", "start_s")]
    sums = [func.sum(column).label(column.name) for column in table.columns if not column.primary_key]
    start = _start(table, step_s)
    folded = connection.execute(select(start, *keys, *sums).where(*block).group_by(start, *keys)).all()
    connection.execute(delete(table).where(*block))
    whole = {column.name for column in table.columns if column.type.python_type is int}
    into.write(connection, sorted((step_s, *_typed(row._mapping, whole)) for row in folded))  # noqa: SLF001
    return True


def _typed(mapping: Any, whole: set[str]) -> tuple[Any, ...]:
    """PostgreSQL sums whole numbers into decimals."""
    return tuple(int(value) if name in whole else value for name, value in mapping.items())


def _fold_gauge(connection: Connection, *, step_s: int, before_s: int) -> bool:
    table = schema.gauge
    block = _block(connection, table, step_s=step_s, before_s=before_s)
    if block is None:
        return False
    stored = connection.execute(select(table).where(*block)).all()
    connection.execute(delete(table).where(*block))
    upsert.GAUGE.write(connection, sorted((step_s, row.start_s // step_s * step_s, *row[2:]) for row in stored))
    return True


def _fold_rollup(connection: Connection, *, step_s: int, before_s: int) -> bool:
    table = schema.rollup
    block = _block(connection, table, step_s=step_s, before_s=before_s)
    if block is None:
        return False
    stored = connection.execute(select(table).where(*block)).all()
    series = _series(connection, {row.series_id for row in stored})
    folded = on_own_stack(connection, partial(_folded, stored, series, step_s=step_s))
    connection.execute(delete(table).where(*block))
    commit.write_latencies(connection, folded, step_s=step_s)
    return True


def _folded(stored: Sequence[rows.Stored], series: Mapping[int, SeriesKey], *, step_s: int) -> list[LatencyRow]:
    """The rows of each longer step as one."""
    folded: dict[tuple[int, int], LatencyRow] = {}
    for row in stored:
        key = series[row.series_id]
        start_s = row.start_s // step_s * step_s
        one = rows.rollup_histogram(row, key.layout)
        before = folded.get((start_s, row.series_id))
        one = one if before is None else merge(before.histogram, one)
        folded[start_s, row.series_id] = LatencyRow(key, start_s, one)
    return list(folded.values())


def _series(connection: Connection, ids: set[int]) -> dict[int, SeriesKey]:
    question = select(schema.series).where(schema.series.c.id.in_(sorted(ids)))
    return {row.id: rows.series_key(row) for row in connection.execute(question)}
