"""What one write transaction does, on a synchronous connection: each function here leaves all of it or none.

PostgreSQL writers take one advisory lock for the length of a transaction: a histogram row is read, merged and written
back, and two collectors on one database must not do so with the same row at once. SQLite's BEGIN IMMEDIATE is the
same lock.
"""

from collections.abc import Collection, Iterable, Sequence, Set
from functools import partial
from typing import TypeVar

from sqlalchemy import Select, select, text
from sqlalchemy.engine import Connection

from collector import schema
from collector.storage import rows, upsert
from collector.storage.stacks import on_own_stack
from collector.values.alerting import Alert
from collector.values.deltas import Deltas, LatencyRow, latency_place
from collector.values.histogram import merge

KEYS_PER_QUESTION = 500
WRITE_LOCK = 4_318_002

T = TypeVar("T")


def take_turn(connection: Connection) -> None:
    """Wait until no other writer of this database is inside a transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})"))


def counted(connection: Connection, digests: Collection[bytes]) -> set[bytes]:
    """Those of the digests whose bodies are committed already."""
    found: set[bytes] = set()
    for part in _parts(sorted(digests)):
        question = select(schema.batch.c.digest).where(schema.batch.c.digest.in_(part))
        found.update(bytes(digest) for digest in connection.scalars(question))
    return found


def write_deltas(
    connection: Connection, deltas: Deltas, *, step_s: int, at_s: int, named: Set[int] = frozenset()
) -> None:
    """Add the deltas to what is there. `at_s` is now, for what is forgotten by age; `named` are numbers of series
    that the database knows already."""
    write_latencies(connection, deltas.latencies, step_s=step_s, named=named)
    upsert.SLO_COUNT.write(connection, (rows.slo_count(row, step_s=step_s) for row in deltas.slo))
    upsert.GAUGE.write(connection, (rows.gauge(row, step_s=step_s) for row in deltas.gauges))
    upsert.COUNTER.write(connection, (rows.counter(row, step_s=step_s) for row in deltas.counters))
    upsert.KNOWN.write(connection, (rows.known(row, step_s=step_s) for row in deltas.known))
    upsert.INSTANCE.write(connection, map(rows.instance, deltas.instances))
    streams = on_own_stack(connection, lambda: [rows.stream(row, at_s=at_s) for row in deltas.streams])
    upsert.STREAM.write(connection, streams)


def write_digests(connection: Connection, digests: Iterable[bytes], *, at_s: int) -> None:
    """Remember the bodies that this transaction counts."""
    upsert.BATCH.write(connection, ((digest, at_s) for digest in sorted(digests)))


def write_alerts(connection: Connection, alerts: Sequence[Alert], transitions: Sequence[Alert]) -> None:
    """Keep the state of each alert and every transition."""
    upsert.ALERT.write(connection, sorted(map(rows.alert, alerts)))
    upsert.ALERT_EVENT.write(connection, map(rows.alert_event, transitions))


def write_latencies(
    connection: Connection, latencies: Sequence[LatencyRow], *, step_s: int, named: Set[int] = frozenset()
) -> None:
    """Merge histograms into the rows of their series and step."""
    by_id = {row.series.id: row.series for row in latencies if row.series.id not in named}
    upsert.SERIES.write(connection, (rows.series(by_id[key]) for key in sorted(by_id)))
    ordered = sorted(latencies, key=latency_place)
    for part in _parts(ordered):
        stored = connection.execute(_stored(part, step_s=step_s)).all()
        upsert.ROLLUP.write(connection, on_own_stack(connection, partial(_merged, part, stored, step_s=step_s)))


def _merged(part: Sequence[LatencyRow], stored: Sequence[rows.Stored], *, step_s: int) -> list[upsert.Row]:
    """The rows as they stand once `part` is merged into those that are stored."""
    if not stored:
        return rows.rollups(part, step_s=step_s)
    held = {(row.start_s, row.series_id): row for row in stored}
    return rows.rollups([_grown(row, held.get(latency_place(row))) for row in part], step_s=step_s)


def _grown(row: LatencyRow, before: rows.Stored | None) -> LatencyRow:
    if before is None:
        return row
    one = rows.rollup_histogram(before, row.series.layout)
    return LatencyRow(row.series, row.start_s, merge(one, row.histogram))


def _stored(part: Sequence[LatencyRow], *, step_s: int) -> Select[tuple[object, ...]]:
    """The rows at the places of these, and more: each step of them with each series. SQLite finds these by its key,
    but reads the whole table for pairs."""
    starts, ids = sorted({row.start_s for row in part}), [row.series.id for row in part]
    table = schema.rollup
    return select(table).where(table.c.step_s == step_s, table.c.start_s.in_(starts), table.c.series_id.in_(ids))


def _parts(items: list[T]) -> Iterable[list[T]]:
    return (items[start : start + KEYS_PER_QUESTION] for start in range(0, len(items), KEYS_PER_QUESTION))
