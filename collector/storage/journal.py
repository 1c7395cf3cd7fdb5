"""The journal of a shared database: what each group commit added, so that every collector's memory holds it all.

Collectors on one PostgreSQL commit one at a time (`commit.take_turn`), and each commit appends one row under that
lock: the numbers of the rows are the order of the commits and have no gaps. A collector that reads the rows after the
last it took in, before it folds anything itself, has the windows, the cumulative streams and the series of them all:
its ledger is a replica, whoever a load balancer sends the next point to.

The newest row is never pruned, so a reader can tell that nothing followed from that it was away too long. Each row
bears a random stamp: after a restore or a failover that lost the latest commits the numbers come again, the stamps
do not. Either is a `GapError`, and the reader reads the tables anew.

The payload is JSON: a list of rows for each field of `Deltas`, each row a list of the values of its fields.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

import orjson
from sqlalchemy import case, delete, func, insert, select
from sqlalchemy.engine import Connection

from collector import schema
from collector.errors import GapError
from collector.storage.stacks import on_own_stack
from collector.values.deltas import (
    CounterRow,
    Deltas,
    GaugeRow,
    InstanceRow,
    KnownRow,
    LatencyKey,
    LatencyRow,
    SeriesKey,
    SloRow,
    StreamRow,
)
from collector.values.histogram import Histogram, of_plain, plain

ENTRIES_PER_PAGE = 200
KEPT_S = 900
"""How long a row stays: longer than reading everything anew takes, or whoever did could not go on from there."""

Value = Any
"""What JSON knows."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the journal: the last commit taken in."""

    seq: int
    stamp: int


START = Mark(0, 0)
"""The place before the first commit: the end of an empty journal."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit: what it added, and the place after it."""

    mark: Mark
    deltas: Deltas


def end(connection: Connection) -> Mark:
    """The place after the latest commit."""
    table = schema.journal.c
    row = connection.execute(select(table.seq, table.stamp).order_by(table.seq.desc()).limit(1)).first()
    return START if row is None else Mark(row.seq, row.stamp)


def after(connection: Connection, mark: Mark) -> list[Entry]:
    """The commits that follow, in their order, up to a page of them. Raises `GapError` when the journal does not go on
    from there."""
    table = schema.journal.c
    payload = case((table.seq > mark.seq, table.payload)).label("payload")
    question = select(table.seq, table.stamp, payload).where(table.seq >= mark.seq).order_by(table.seq)
    found = list(connection.execute(question.limit(ENTRIES_PER_PAGE + 1)))
    if mark.seq:
        if not found or (found[0].seq, found[0].stamp) != (mark.seq, mark.stamp):
            raise GapError(f"the journal no longer holds commit {mark.seq}")
        found = found[1:]
    elif found and found[0].seq != 1:
        raise GapError(f"the journal begins at commit {found[0].seq}")
    page = found[:ENTRIES_PER_PAGE]
    read = on_own_stack(connection, lambda: [decoded(row.payload) for row in page])
    return [Entry(Mark(row.seq, row.stamp), deltas) for row, deltas in zip(page, read, strict=True)]


def append(connection: Connection, entry: Entry, *, at_s: int) -> None:
    """Write what this transaction adds."""
    mark, payload = entry.mark, on_own_stack(connection, lambda: encoded(entry.deltas))
    row = {"seq": mark.seq, "stamp": mark.stamp, "at_s": at_s, "payload": payload}
    connection.execute(insert(schema.journal), row)


def prune(connection: Connection, *, before_s: int) -> None:
    """Drop rows of before then, but never the newest."""
    table = schema.journal.c
    newest = select(func.max(table.seq)).scalar_subquery()
    connection.execute(delete(schema.journal).where(table.at_s < before_s, table.seq < newest))


def encoded(deltas: Deltas) -> bytes:
    """The rows of a commit as bytes; what it refused and ignored is nobody else's business."""
    return orjson.dumps({name: list(map(write, getattr(deltas, name))) for name, write in _WRITERS.items()})


def decoded(payload: bytes) -> Deltas:
    """The rows of a commit."""
    found: Mapping[str, list[Value]] = orjson.loads(payload)
    return Deltas(**{name: tuple(map(read, found[name])) for name, read in _READERS.items()})


def _values(kind: type[Any]) -> Callable[[Any], Value]:
    """The fields of a row, in their order."""
    return attrgetter(*(field.name for field in fields(kind)))


_of_latency = _values(LatencyKey)


def _write_latency(row: LatencyRow) -> Value:
    series = row.series
    return (
        *_of_latency(series.latency),
        series.instance,
        series.censored,
        row.start_s,
        plain(row.histogram),
    )


def _read_latency(values: Sequence[Value]) -> LatencyRow:
    *of, instance, censored, start_s, one = values
    found = of_plain(one)
    return LatencyRow(SeriesKey(LatencyKey(*of), instance, found.layout, censored), start_s, found)


def _write_stream(row: StreamRow) -> Value:
    value = plain(row.value) if isinstance(row.value, Histogram) else row.value
    return row.stream, row.start_ns, row.end_ns, value


def _read_stream(values: Sequence[Value]) -> StreamRow:
    stream, start_ns, end_ns, value = values
    return StreamRow(stream, start_ns, end_ns, of_plain(value) if isinstance(value, list) else value)


def _read_counter(values: Sequence[Value]) -> CounterRow:
    environment, service, model, instance, source, name, attributes, start_s, value = values
    pairs = tuple((label, text) for label, text in attributes)
    return CounterRow(environment, service, model, instance, source, name, pairs, start_s, value)


_WRITERS: dict[str, Callable[[Any], Value]] = {
    "latencies": _write_latency,
    "slo": _values(SloRow),
    "gauges": _values(GaugeRow),
    "counters": _values(CounterRow),
    "known": _values(KnownRow),
    "instances": _values(InstanceRow),
    "streams": _write_stream,
}
FIELDS = tuple(_WRITERS)
"""The fields of `Deltas` that a journal holds."""
_READERS: dict[str, Callable[[Sequence[Value]], Any]] = {
    "latencies": _read_latency,
    "slo": lambda values: SloRow(*values),
    "gauges": lambda values: GaugeRow(*values),
    "counters": _read_counter,
    "known": lambda values: KnownRow(*values),
    "instances": lambda values: InstanceRow(*values),
    "streams": _read_stream,
}
