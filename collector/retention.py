"""How long what is kept, and at what resolution: bounded pieces of work that the store runs between commits.

Counts are folded into longer steps as they age and dropped once no window can reach them; figures of ticks keep one
row a minute for two days and one in ten minutes after that (within the minute that runs, `commit` keeps the latest
alone). A piece is one short write transaction and says whether more of the same is left, so intake never waits long.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Table, delete, func, select
from sqlalchemy.engine import Connection

from collector import commit, rows, schema, upsert
from collector.deltas import LatencyRow
from collector.histogram import merge
from collector.recall import steps
from collector.upsert import Upsert

_HOUR_S, _DAY_S = 3600, 86400
FOLDS = ((60, 2 * _HOUR_S), (600, 3 * _DAY_S), (3600, 14 * _DAY_S))
"""(step, age from which rows of shorter steps are folded into it), in seconds."""

BLOCK_S = 6 * _HOUR_S
FINE_FIGURES_S = 2 * _DAY_S
COARSE_FIGURE_S = 600
MOMENTS_A_PIECE = 360
_FIGURES = (schema.percentile, schema.burn_rate, schema.budget)
_STEPPED = (schema.rollup, schema.slo_count, schema.counter, schema.known, schema.gauge)

Piece = Callable[[Connection], bool]
"""One transaction's work; whether more of it is left."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Ages in seconds after which rows are dropped. `counts_s` must reach beyond the longest window."""

    counts_s: int
    gauges_s: int = 30 * _DAY_S
    figures_s: int = 90 * _DAY_S
    events_s: int = 400 * _DAY_S
    batches_s: int = _DAY_S
    streams_s: int = 2 * _DAY_S


def pieces(now_s: int, limits: Limits, *, whole: bool) -> Iterator[Piece]:
    """The pieces of one sweep. A `whole` one also looks at what earlier sweeps have seen, as the first of a process
    must; the others look back an hour only where looking costs."""
    for step_s, age_s in FOLDS:
        before_s = (now_s - age_s) // step_s * step_s
        for fold in _folds(step_s):
            yield partial(fold, step_s=step_s, before_s=before_s)
    for table in _FIGURES:
        before_s = now_s - FINE_FIGURES_S
        yield partial(_thin, table=table, since_s=0 if whole else before_s - _HOUR_S, before_s=before_s)
    for table in _STEPPED:
        age_s = limits.gauges_s if table is schema.gauge else limits.counts_s
        yield partial(_drop_steps, table=table, before_s=now_s - age_s)
    for column, age_s in _lifetimes(limits):
        yield partial(_drop, column=column, before_s=now_s - age_s)
    if whole:
        yield _drop_silent_series


def _lifetimes(limits: Limits) -> Iterator[tuple[ColumnElement[int], int]]:
    for table in _FIGURES:
        yield table.c.at_s, limits.figures_s
    yield schema.alert_event.c.at_s, limits.events_s
    yield schema.instance.c.last_s, limits.counts_s
    yield schema.batch.c.at_s, limits.batches_s
    yield schema.stream.c.at_s, limits.streams_s


def _drop(connection: Connection, *, column: Any, before_s: int) -> bool:
    connection.execute(delete(column.table).where(column < before_s))
    return False


def _drop_steps(connection: Connection, *, table: Table, before_s: int) -> bool:
    for step_s in steps(connection, table):
        connection.execute(delete(table).where(table.c.step_s == step_s, table.c.start_s < before_s))
    return False


def _drop_silent_series(connection: Connection) -> bool:
    """Series of instances that are gone, once their last row is."""
    connection.execute(delete(schema.series).where(schema.series.c.id.not_in(select(schema.rollup.c.series_id))))
    return False


def _thin(connection: Connection, *, table: Table, since_s: int, before_s: int) -> bool:
    """Keep the last row of each ten minutes, of those at least two days old."""
    at = table.c.at_s
    since_s -= since_s % COARSE_FIGURE_S
    moments = connection.scalars(select(at).where(at >= since_s, at < before_s).distinct().order_by(at)).all()
    extra = [now for now, after in pairwise(moments) if _same_coarse(now, after)]
    for moment in extra[:MOMENTS_A_PIECE]:
        connection.execute(delete(table).where(at == moment))
    return len(extra) > MOMENTS_A_PIECE


def _same_coarse(one_s: int, other_s: int) -> bool:
    return one_s // COARSE_FIGURE_S == other_s // COARSE_FIGURE_S


def _folds(step_s: int) -> Sequence[Callable[..., bool]]:
    """Known steps say which minutes count as covered, so they are never longer than a minute."""
    added = (upsert.SLO_COUNT, upsert.COUNTER, *((upsert.KNOWN,) if step_s <= 60 else ()))
    return (_fold_rollup, _fold_gauge, *(partial(_fold_added, into=one) for one in added))


def _block(connection: Connection, table: Table, *, step_s: int, before_s: int) -> list[ColumnElement[bool]] | None:
    """What picks the oldest block of rows to fold, all of one shorter step; None when there is none."""
    for shorter_s in steps(connection, table):
        if shorter_s >= step_s:
            break
        mine = table.c.step_s == shorter_s
        oldest_s = connection.scalar(select(func.min(table.c.start_s)).where(mine))
        if oldest_s is not None and oldest_s < before_s:
            end_s = min((oldest_s // BLOCK_S + 1) * BLOCK_S, before_s)
            return [mine, table.c.start_s >= oldest_s, table.c.start_s < end_s]
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
    series = {row.id: rows.series_key(row) for row in connection.execute(select(schema.series))}
    folded: dict[tuple[int, int], LatencyRow] = {}
    for stored in connection.execute(select(table).where(*block)):
        key = series[stored.series_id]
        start_s = stored.start_s // step_s * step_s
        one = rows.rollup_histogram(stored, key.layout)
        before = folded.get((start_s, stored.series_id))
        one = one if before is None else merge(before.histogram, one)
        folded[start_s, stored.series_id] = LatencyRow(key, start_s, one)
    connection.execute(delete(table).where(*block))
    commit.write_latencies(connection, list(folded.values()), step_s=step_s)
    return True
