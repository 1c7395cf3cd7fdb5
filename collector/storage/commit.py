"""What one write transaction does, on a synchronous connection: each function here leaves all of it or none.

PostgreSQL writers take one advisory lock for the length of a transaction: a histogram row is read, merged and written
back, and two collectors on one database must not do so with the same row at once. SQLite's BEGIN IMMEDIATE is the
same lock.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import repeat
from operator import lt
from typing import TypeVar

import numpy as np
import orjson
from sqlalchemy import BigInteger, Select, any_, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Connection

from collector import schema
from collector.storage import rows, upsert
from collector.storage.stacks import on_own_stack
from collector.values.alerting import Alert
from collector.values.deltas import Deltas, LatencyRow, LatencyRows, SeriesKey, latency_rows
from collector.values.histograms import joined, summed

NOTHING_KNOWN: Mapping[int, int] = {}
_ANY = 1 << 62
"""The latest step of a series of which nothing is known: it may be any."""
KEYS_PER_QUESTION = 500
ROWS_PER_QUESTION = 5_000
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
        question = _which_of(len(part), connection.dialect.name)
        found.update(bytes(digest) for (digest,) in connection.exec_driver_sql(question, tuple(part)))
    return found


@cache
def _which_of(digests: int, dialect: str) -> str:
    """The question which of so many digests are stored: asked of every group, it is no expression that is compiled."""
    mark = "${}" if dialect == "postgresql" else "?{}"
    marks = ", ".join(mark.format(number + 1) for number in range(digests))
    return f'SELECT digest FROM "{schema.batch.name}" WHERE digest IN ({marks})'  # noqa: S608  our own names alone


def write_deltas(
    connection: Connection, deltas: Deltas, *, step_s: int, at_s: int, latest_s: Mapping[int, int] = NOTHING_KNOWN
) -> None:
    """Add the deltas to what is there. `at_s` is now, for what is forgotten by age; `latest_s` is the latest step that
    the database has of series, by their numbers, as far as that is known."""
    write_latencies(connection, deltas.latencies, step_s=step_s, latest_s=latest_s)
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
    connection: Connection, latencies: Sequence[LatencyRow], *, step_s: int, latest_s: Mapping[int, int] = NOTHING_KNOWN
) -> None:
    """Merge histograms into the rows of their series and step. Those of later steps than `latest_s` meet none."""
    parts = on_own_stack(connection, lambda: list(_ordered(latency_rows(latencies), latest_s)))
    by_id = {one.id: one for part in parts for one in part.unknown}
    upsert.SERIES.write(connection, (rows.series(by_id[key]) for key in sorted(by_id)))
    for part in parts:
        stored = _stored(connection, part, step_s=step_s) if part.places else ()
        upsert.ROLLUP.write(connection, on_own_stack(connection, partial(_merged, part, stored, step_s=step_s)))


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows that are written at once; the places, step and number of the series, at which rows may be stored already,
    and the series that may have no name yet."""

    rows: LatencyRows
    places: Sequence[tuple[int, int]]
    unknown: Sequence[SeriesKey]


def _ordered(held: LatencyRows, latest_s: Mapping[int, int]) -> Iterator[_Part]:
    """The rows in the order of their table, in parts."""
    order = held.order()
    ordered = held if order is None else held.chosen(order)
    for start in range(0, len(ordered), ROWS_PER_QUESTION):
        part = ordered if len(ordered) <= ROWS_PER_QUESTION else ordered[start : start + ROWS_PER_QUESTION]
        ids, starts_s = part.ids.tolist(), part.starts_s.tolist()
        last_s = list(map(latest_s.get, ids, repeat(_ANY)))
        if all(map(lt, last_s, starts_s)):
            yield _Part(part, (), ())
            continue
        places = [
            (one_s, number) for one_s, number, held_s in zip(starts_s, ids, last_s, strict=True) if one_s <= held_s
        ]
        unknown = [one for one, held_s in zip(part.series, last_s, strict=True) if held_s == _ANY]
        yield _Part(part, places, unknown)


def _merged(part: _Part, stored: Sequence[upsert.Row], *, step_s: int) -> list[upsert.Row]:
    """The rows as they stand once `part` is merged into those that are stored."""
    new, held = part.rows, {row[1:3]: row for row in stored}
    before = list(map(held.get, zip(new.starts_s.tolist(), new.ids.tolist(), strict=True))) if held else []
    met = np.array([place for place, row in enumerate(before) if row is not None], dtype=np.int64)
    if not met.size:
        return rows.rollups(new, step_s=step_s)
    layouts, layout_of = new.histograms.layouts, new.histograms.layout_of[met]
    old = rows.rollup_histograms(filter(None, before), layouts, layout_of)
    into = np.concatenate((met, np.arange(len(new))))
    together = summed(joined([old, new.histograms]), into, len(new))
    return rows.rollups(replace(new, histograms=together), step_s=step_s)


def _stored(connection: Connection, part: _Part, *, step_s: int) -> list[upsert.Row]:
    """The rows at the places of these, and more: each step of them with each series. SQLite finds these by its key,
    but reads the whole table for pairs."""
    starts, ids = sorted({start_s for start_s, _ in part.places}), [number for _, number in part.places]
    is_shared = connection.dialect.name == "postgresql"
    listed = (starts, ids) if is_shared else (orjson.dumps(starts).decode(), orjson.dumps(ids).decode())
    question = _among_arrays() if is_shared else _among_json()
    found = connection.execute(question, {"step": step_s, "starts": listed[0], "ids": listed[1]})
    return list(map(tuple, found.all()))


@cache
def _among_arrays() -> Select[tuple[object, ...]]:
    """The rows of some steps and series, which come as arrays: made once, however many they are."""
    table, many = schema.rollup, ARRAY(BigInteger)
    is_step = table.c.start_s == any_(bindparam("starts", type_=many))
    is_series = table.c.series_id == any_(bindparam("ids", type_=many))
    return select(table).where(table.c.step_s == bindparam("step"), is_step, is_series)


@cache
def _among_json() -> Select[tuple[object, ...]]:
    """The same, which come as lists in JSON: SQLite has no arrays."""
    table = schema.rollup
    starts, ids = (select(func.json_each(bindparam(name)).table_valued("value").c.value) for name in ("starts", "ids"))
    return select(table).where(
        table.c.step_s == bindparam("step"), table.c.start_s.in_(starts), table.c.series_id.in_(ids)
    )


def _parts(items: list[T]) -> Iterable[list[T]]:
    return (items[start : start + KEYS_PER_QUESTION] for start in range(0, len(items), KEYS_PER_QUESTION))
