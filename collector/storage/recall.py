"""Reads back what was committed: to fill the windows at the start, and to go on where the last process ended."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from sqlalchemy import Row, Select, Table, func, select, tuple_
from sqlalchemy.engine import Connection

from collector import schema
from collector.storage import rows
from collector.storage.file_engine import AnyConnection
from collector.storage.stacks import on_own_stack
from collector.values import bins
from collector.values.alerting import Alert, AlertKey
from collector.values.bins import Sheet
from collector.values.deltas import (
    CounterRow,
    Deltas,
    GaugeRow,
    InstanceRow,
    KnownRow,
    SeriesKey,
    SloRow,
    StreamRow,
)
from collector.values.histogram import Layout

ROWS_PER_PAGE = 5_000

Stored = Sequence[Row[Any]]


async def stored(connection: AnyConnection, *, oldest_s: int, latest_s: int) -> AsyncIterator[Deltas]:
    """Everything counted of a stretch of time but histograms, page by page; rows of a folded step keep its start."""
    readers: dict[Table, Callable[[Stored], Deltas]] = {
        schema.slo_count: lambda page: Deltas(slo=tuple(map(_slo, page))),
        schema.gauge: lambda page: Deltas(gauges=tuple(map(_gauge, page))),
        schema.counter: lambda page: Deltas(counters=tuple(map(_counter, page))),
        schema.known: lambda page: Deltas(known=tuple(map(_known, page))),
    }
    yield Deltas(instances=await connection.run_sync(_instances))
    for table, read in readers.items():
        question = select(table).where(table.c.start_s.between(oldest_s, latest_s)).limit(ROWS_PER_PAGE)
        async for page in _pages(connection, table, question):
            yield read(page)


async def sheets(connection: AnyConnection, *, oldest_s: int, latest_s: int) -> AsyncIterator[Sheet]:
    """Every histogram of a stretch of time. They are by far the most rows, so a page is read while the one before is
    made sense of beside the event loop."""
    series = await connection.run_sync(_series)
    reading: asyncio.Task[list[Sheet]] | None = None
    table = schema.rollup
    columns = (table.c.step_s, table.c.start_s, table.c.series_id, table.c.zero_count, table.c.bin_offset, table.c.bins)
    question = select(*columns).where(table.c.start_s.between(oldest_s, latest_s)).limit(ROWS_PER_PAGE)
    async for page in _pages(connection, table, question):
        made, reading = reading, asyncio.create_task(asyncio.to_thread(_sheets, page, series))
        for sheet in await made if made else ():
            yield sheet
    for sheet in await reading if reading else ():
        yield sheet


def _sheets(page: Stored, series: Mapping[int, SeriesKey]) -> list[Sheet]:
    """The histograms of a page, by layout."""
    _, starts, ids, zeros, offsets, texts = zip(*page, strict=True)
    known, of = np.unique(np.array(ids, dtype=np.int64), return_inverse=True)
    keys = [series[one] for one in known.tolist()]
    starts_s, zeros_of, offsets_of = (np.array(column, dtype=np.int64) for column in (starts, zeros, offsets))
    by_layout: defaultdict[Layout, list[int]] = defaultdict(list)
    for number, key in enumerate(keys):
        by_layout[key.layout].append(number)
    found = []
    for mine in by_layout.values():
        places = np.full(len(keys), -1)
        places[mine] = np.arange(len(mine))
        rows = np.flatnonzero(places[of] >= 0)
        read = bins.parsed([texts[row] for row in rows.tolist()], offsets_of[rows], zeros_of[rows])
        of_mine = [keys[number] for number in mine], known[mine].tolist()
        found.append(Sheet(*of_mine, places[of][rows], starts_s[rows], read))
    return found


async def _pages(connection: AnyConnection, table: Table, question: Select[Any]) -> AsyncIterator[Stored]:
    """The rows that a limited question asks for, in the order of the table's key."""
    key = tuple_(*table.primary_key)
    question = question.order_by(*table.primary_key)
    page = await connection.run_sync(_asked, question)
    while page:
        yield page
        last = tuple_(*(getattr(page[-1], column.name) for column in table.primary_key))
        page = await connection.run_sync(_asked, question.where(key > last))


def _asked(connection: Connection, question: Select[Any]) -> Stored:
    return connection.execute(question).all()


def _series(connection: Connection) -> dict[int, SeriesKey]:
    found = connection.execute(select(schema.series)).all()
    return on_own_stack(connection, lambda: {row.id: rows.series_key(row) for row in found})


def _instances(connection: Connection) -> tuple[InstanceRow, ...]:
    return tuple(map(_instance, connection.execute(select(schema.instance))))


def steps(connection: Connection, table: Table) -> list[int]:
    """The lengths of step that the table holds, ascending, by one look into its key for each."""
    found: list[int] = []
    longer = 0
    while (step_s := connection.scalar(select(func.min(table.c.step_s)).where(table.c.step_s > longer))) is not None:
        found.append(step_s)
        longer = step_s
    return found


def ahead_s(connection: Connection, *, latest_s: int) -> int | None:
    """The earliest moment after `latest_s` at which anything was counted."""
    found: list[int | None] = []
    for table in (schema.slo_count, schema.gauge, schema.counter, schema.known, schema.rollup):
        for step_s in steps(connection, table):
            ahead = select(func.min(table.c.start_s)).where(table.c.step_s == step_s, table.c.start_s > latest_s)
            found.append(connection.scalar(ahead))
    return min((one for one in found if one is not None), default=None)


def streams(connection: Connection) -> dict[str, StreamRow]:
    """The last point of each cumulative stream."""
    found = connection.execute(select(schema.stream)).all()
    return on_own_stack(connection, lambda: {row.stream: rows.stream_row(row) for row in found})


def since_s(connection: Connection) -> int | None:
    """The earliest step from which telemetry is known; None in an empty database."""
    found: int | None = connection.scalar(select(func.min(schema.known.c.start_s)))
    return found


def alerts(connection: Connection) -> dict[AlertKey, Alert]:
    """The state of each alert, resolved ones included."""
    found = (rows.alert_of(row) for row in connection.execute(select(schema.alert)))
    return {one.key: one for one in found}


def ended(connection: Connection, *, since_s: int) -> dict[AlertKey, Alert]:
    """Alerts that fired and ended since then, each as it ended last. (`alert` may already say that one looms again.)"""
    table = schema.alert_event
    over = (table.c.state == "resolved", table.c.fired_s.is_not(None), table.c.at_s >= since_s)
    found = map(rows.alert_of, connection.execute(select(table).where(*over).order_by(table.c.at_s)))
    return {one.key: one for one in found}


def _slo(row: Any) -> SloRow:
    key = (row.environment, row.service, row.model, row.objective, row.objective_hash)
    return SloRow(*key, row.start_s, row.good, row.bad)


def _gauge(row: Any) -> GaugeRow:
    key = (row.environment, row.service, row.model, row.instance, row.name, row.attribute)
    return GaugeRow(
        *key,
        start_s=row.start_s,
        min=row.min,
        max=row.max,
        sum=row.mean * row.samples,
        samples=row.samples,
        last=row.last,
        last_ns=row.last_ns,
    )


def _counter(row: Any) -> CounterRow:
    key = (row.environment, row.service, row.model, row.instance, row.source, row.name)
    return CounterRow(*key, tuple(sorted(orjson.loads(row.attributes).items())), row.start_s, row.value)


def _known(row: Any) -> KnownRow:
    return KnownRow(row.environment, row.service, row.start_s)


def _instance(row: Any) -> InstanceRow:
    key = (row.environment, row.service, row.instance, row.source)
    return InstanceRow(*key, row.first_s, row.last_s, bool(row.periodic))
