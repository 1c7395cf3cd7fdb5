"""What one write transaction does, on a synchronous connection: each function here leaves all of it or none.

PostgreSQL writers take one advisory lock for the length of a transaction: a histogram row is read, merged and written
back, and two collectors on one database must not do so with the same row at once. SQLite's BEGIN IMMEDIATE is the
same lock.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from sqlalchemy import Select, select, text
from sqlalchemy.engine import Connection

from collector import rows, schema, upsert
from collector.deltas import Deltas, LatencyRow
from collector.evaluate import Alert
from collector.histogram import merge

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


def write_deltas(connection: Connection, deltas: Deltas, *, step_s: int, at_s: int) -> None:
    """Add the deltas to what is there. `at_s` is now, for what is forgotten by age."""
    write_latencies(connection, deltas.latencies, step_s=step_s)
    upsert.SLO_COUNT.write(connection, (rows.slo_count(row, step_s=step_s) for row in deltas.slo))
    upsert.GAUGE.write(connection, (rows.gauge(row, step_s=step_s) for row in deltas.gauges))
    upsert.COUNTER.write(connection, (rows.counter(row, step_s=step_s) for row in deltas.counters))
    upsert.KNOWN.write(connection, (rows.known(row, step_s=step_s) for row in deltas.known))
    upsert.INSTANCE.write(connection, map(rows.instance, deltas.instances))
    upsert.STREAM.write(connection, (rows.stream(row, at_s=at_s) for row in deltas.streams))


def write_digests(connection: Connection, digests: Iterable[bytes], *, at_s: int) -> None:
    """Remember the bodies that this transaction counts."""
    upsert.BATCH.write(connection, ((digest, at_s) for digest in sorted(digests)))


def write_alerts(connection: Connection, alerts: Sequence[Alert], transitions: Sequence[Alert]) -> None:
    """Keep the state of each alert and every transition."""
    upsert.ALERT.write(connection, sorted(map(rows.alert, alerts)))
    upsert.ALERT_EVENT.write(connection, map(rows.alert_event, transitions))


def write_latencies(connection: Connection, latencies: Sequence[LatencyRow], *, step_s: int) -> None:
    """Merge histograms into the rows of their series and step."""
    by_id = {rows.series_id(row.series): row.series for row in latencies}
    upsert.SERIES.write(connection, (rows.series(by_id[key]) for key in sorted(by_id)))
    ordered = sorted(latencies, key=_place)
    merged = [row for part in _parts(ordered) for row in _merged(connection, part, step_s=step_s)]
    upsert.ROLLUP.write(connection, merged)


def _place(row: LatencyRow) -> tuple[int, int]:
    return row.start_s, rows.series_id(row.series)


def _merged(connection: Connection, part: list[LatencyRow], *, step_s: int) -> list[upsert.Row]:
    """The rows as they stand once `part` is merged into those that are stored."""
    places = [_place(row) for row in part]
    stored = {(row.start_s, row.series_id): row for row in connection.execute(_stored(places, step_s=step_s))}
    new = []
    for place, row in zip(places, part, strict=True):
        if place in stored:
            before = rows.rollup_histogram(stored[place], row.series.layout)
            row = LatencyRow(row.series, row.start_s, merge(before, row.histogram))  # noqa: PLW2901  the same row, grown
        new.append(rows.rollup(row, step_s=step_s))
    return new


def _stored(places: list[tuple[int, int]], *, step_s: int) -> Select[tuple[object, ...]]:
    """The rows at the places, and more: each step of them with each series. SQLite finds these by its key, but reads
    the whole table for pairs."""
    starts, ids = sorted({start_s for start_s, _ in places}), sorted({series_id for _, series_id in places})
    table = schema.rollup
    return select(table).where(table.c.step_s == step_s, table.c.start_s.in_(starts), table.c.series_id.in_(ids))


def _parts(items: list[T]) -> Iterable[list[T]]:
    return (items[start : start + KEYS_PER_QUESTION] for start in range(0, len(items), KEYS_PER_QUESTION))
