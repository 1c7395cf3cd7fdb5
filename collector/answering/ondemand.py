"""Percentiles of one instance over one window, read from the stored histograms when somebody asks (issue 4).

They are kept of no instance, for there may be thousands; but the rows are there, and put into a window of its own they
give the figures that the window of the whole service would: the same steps, the same buckets, the same errors.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from collector import schema
from collector.judging.percentiles import SHARES, PercentileRow
from collector.storage import recall, rows
from collector.storage.stacks import on_own_stack
from collector.values.deltas import LatencyKey, LatencyRow, SeriesKey
from collector.values.quantile import Censored, quantiles
from collector.windowing.coverage import Coverage, of_series
from collector.windowing.latencies import Latencies
from slo.quantity import MINUTE_S

STARTS_PER_QUESTION = 500


@dataclass(frozen=True, slots=True)
class OfInstance:
    """A latency of one instance."""

    latency: LatencyKey
    instance: str


@dataclass(frozen=True, slots=True)
class Window:
    """A window that ends at `now_s`, as a collector with this tick keeps it."""

    window_s: int
    now_s: int
    tick_s: int


def percentiles(connection: Connection, whose: OfInstance, window: Window) -> PercentileRow | None:
    """The percentiles of one instance; None when nothing of it is stored. `coverage` is that of the service, at most
    the age of the instance."""
    series = _series(connection, whose)
    if not series:
        return None
    stored = [row for part in _parts(connection, list(series), window) for row in part]
    heard = _heard(connection, whose, window)
    return on_own_stack(connection, lambda: _figures(_Stored(series, stored, heard), whose, window))


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is kept of one instance: the rows of its series, the steps that its service is known from, and its first
    moment."""

    series: Mapping[int, SeriesKey]
    rows: Sequence[rows.Stored]
    heard: tuple[Sequence[int], int | None]

    def latencies(self) -> Iterator[LatencyRow]:
        for row in self.rows:
            key = self.series[row.series_id]
            yield LatencyRow(key, row.start_s, rows.rollup_histogram(row, key.layout))


def _figures(stored: _Stored, whose: OfInstance, window: Window) -> PercentileRow:
    kept = (window.window_s,)
    latencies = Latencies(kept, tick_s=window.tick_s, now_s=window.now_s, kept_s=lambda _: kept)
    latencies.add(stored.latencies())
    values = latencies.values(whose.latency, window.window_s)
    censored = Censored(latencies.waits(whose.latency, window.window_s))
    found = quantiles(values, SHARES, censored=censored)
    p50, p90, p95, p99, p999, largest = (one.value for one in found)
    of = whose.latency
    return PercentileRow(
        window.now_s,
        of.environment,
        of.service,
        of.model,
        of.signal,
        of.source,
        window.window_s,
        sum(part.count for part in values),
        censored.count,
        p50,
        p90,
        p95,
        p99,
        p999,
        largest,
        next((one.at_least for one in found if one.value is None), None),
        max((one.rel_error for one in found if one.value is not None), default=None),
        _coverage(stored.heard, window),
    )


def _series(connection: Connection, whose: OfInstance) -> dict[int, SeriesKey]:
    table, of = schema.series.c, whose.latency
    mine = [table[name] == getattr(of, name) for name in of.__slots__]
    found = connection.execute(select(schema.series).where(*mine, table.instance == whose.instance))
    return {row.id: rows.series_key(row) for row in found}


def _parts(connection: Connection, ids: Sequence[int], window: Window) -> Iterator[Sequence[rows.Stored]]:
    """The rows that may lie in the window. The key of the table begins with step and start: naming every start finds
    the few rows of these series without a look at those of all others."""
    table = schema.rollup
    for step_s in recall.steps(connection, table):
        edges = select(func.min(table.c.start_s), func.max(table.c.start_s)).where(table.c.step_s == step_s)
        earliest_s, latest_s = connection.execute(edges).one()
        # A longer step that began before the window may be what the window holds of that time.
        first_s = max(window.now_s - window.window_s - 2 * step_s, earliest_s)
        starts = range(first_s - first_s % step_s, latest_s + 1, step_s)
        for place in range(0, len(starts), STARTS_PER_QUESTION):
            part = list(starts[place : place + STARTS_PER_QUESTION])
            mine = (table.c.step_s == step_s, table.c.start_s.in_(part), table.c.series_id.in_(ids))
            yield connection.execute(select(table).where(*mine)).all()


def _heard(connection: Connection, whose: OfInstance, window: Window) -> tuple[Sequence[int], int | None]:
    """The steps from which telemetry of the service is known, and when the instance was first heard."""
    of, table, sender = whose.latency, schema.known.c, schema.instance.c
    heard = (table.environment == of.environment, table.service == of.service)
    since_s = window.now_s - window.window_s - MINUTE_S
    starts_s = connection.scalars(select(table.start_s).where(table.start_s >= since_s, *heard)).all()
    mine = (sender.environment == of.environment, sender.service == of.service, sender.instance == whose.instance)
    return starts_s, connection.scalar(select(sender.first_s).where(*mine))


def _coverage(heard: tuple[Sequence[int], int | None], window: Window) -> float:
    starts_s, first_s = heard
    known = Coverage(tick_s=window.tick_s, horizon_s=window.window_s)
    for start_s in starts_s:
        known.add(start_s)
    age_s = 0 if first_s is None else window.now_s + window.tick_s - first_s
    share = known.share(window.window_s, now_s=window.now_s)
    return of_series(share, window_s=window.window_s, age_s=age_s)
