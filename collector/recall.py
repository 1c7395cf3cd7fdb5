"""Reads back what was committed: to fill the windows at the start, and to go on where the last process ended."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
from sqlalchemy import Row, Table, func, select, tuple_
from sqlalchemy.engine import Connection

from collector import rows, schema, webhook
from collector.deltas import (
    CounterRow,
    Deltas,
    GaugeRow,
    InstanceRow,
    KnownRow,
    LatencyRow,
    SeriesKey,
    SloRow,
    StreamRow,
)
from collector.evaluate import Alert, AlertKey

ROWS_PER_PAGE = 5_000

Stored = Sequence[Row[Any]]


def stored_deltas(connection: Connection, *, oldest_s: int) -> Iterator[Deltas]:
    """Everything counted from `oldest_s` on, page by page; rows of a folded step keep its start."""
    series = {row.id: rows.series_key(row) for row in connection.execute(select(schema.series))}
    readers: dict[Table, Callable[[Stored], Deltas]] = {
        schema.rollup: lambda page: Deltas(latencies=tuple(_latency(row, series) for row in page)),
        schema.slo_count: lambda page: Deltas(slo=tuple(map(_slo, page))),
        schema.gauge: lambda page: Deltas(gauges=tuple(map(_gauge, page))),
        schema.counter: lambda page: Deltas(counters=tuple(map(_counter, page))),
        schema.known: lambda page: Deltas(known=tuple(map(_known, page))),
    }
    yield Deltas(instances=tuple(map(_instance, connection.execute(select(schema.instance)))))
    for table, read in readers.items():
        for page in pages(connection, table, oldest_s=oldest_s):
            yield read(page)


def pages(connection: Connection, table: Table, *, oldest_s: int) -> Iterator[Stored]:
    """Rows that start at `oldest_s` or later, in the order of the table's key."""
    key = tuple_(*table.primary_key)
    question = select(table).where(table.c.start_s >= oldest_s).order_by(*table.primary_key).limit(ROWS_PER_PAGE)
    page = connection.execute(question).all()
    while page:
        yield page
        last = [page[-1]._mapping[column.name] for column in table.primary_key]  # noqa: SLF001  SQLAlchemy's public view
        page = connection.execute(question.where(key > tuple_(*last))).all()


def steps(connection: Connection, table: Table) -> list[int]:
    """The lengths of step that the table holds, ascending, by one look into its key for each."""
    found: list[int] = []
    longer = 0
    while (step_s := connection.scalar(select(func.min(table.c.step_s)).where(table.c.step_s > longer))) is not None:
        found.append(step_s)
        longer = step_s
    return found


def streams(connection: Connection) -> dict[str, StreamRow]:
    """The last point of each cumulative stream."""
    return {row.stream: rows.stream_row(row) for row in connection.execute(select(schema.stream))}


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


def notifications(connection: Connection) -> dict[tuple[str, str], webhook.Status]:
    """What each receiver was last told of each group."""
    return {(row.receiver, row.group_key): row.status for row in connection.execute(select(schema.notification))}


def _latency(row: Any, series: dict[int, SeriesKey]) -> LatencyRow:
    key = series[row.series_id]
    return LatencyRow(key, row.start_s, rows.rollup_histogram(row, key.layout))


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
