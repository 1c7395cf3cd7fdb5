"""What is let in of rows that name something new: a limit on series, on services and on layouts of buckets.

A sender may name as many models as it likes; memory and tables must not follow. New series beyond the limit keep their
counts under model `other`. New services and new layouts beyond theirs are rejected by name: no sum could hold them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol, TypeVar

from collector.values import deltas
from collector.values.deltas import CounterRow, Deltas, GaugeRow, LatencyKey, LatencyRow, SeriesKey, SloRow
from collector.values.measurement import Tally
from collector.windowing.fleet import Service
from slo.signals import OTHER_MODEL

MAX_LAYOUTS = 64
MAX_SERVICES = 512
"""Services heard of: each has a memory of which minutes are known."""

TOO_MANY_SERVICES = f"more than {MAX_SERVICES} services"
TOO_MANY_LAYOUTS = f"more than {MAX_LAYOUTS} different bucket layouts: use the same bounds"

Series = tuple[str, ...]
"""What tells a series apart, whatever the instance, and last its kind: latency, slo, gauge or counter."""


@dataclass(slots=True)
class Seen:
    """What has been let in so far; its length is the number of series."""

    series: set[Series] = field(default_factory=set)
    services: set[Service] = field(default_factory=set)
    layouts: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.series)

    def add(self, rows: Deltas) -> None:
        """Remember what the rows name."""
        self.series.update(_all_series(rows))
        self.services.update((row.environment, row.service) for row in rows.known)
        self.layouts.update(row.series.layout.text for row in rows.latencies)


def admitted(rows: Deltas, *, seen: Seen, max_series: int) -> Deltas:
    """The same rows within the limits; `seen` is not changed: the caller adds the answer to it."""
    rows = _of_known_layouts(_of_known_services(rows, seen), seen)
    beyond = _beyond(_all_series(rows), seen.series, max_series)
    if not beyond:
        return rows
    return replace(
        rows,
        latencies=deltas.folded_latencies(_other_latency(row, beyond) for row in rows.latencies),
        slo=deltas.folded_slo(replace(row, model=OTHER_MODEL) if _slo(row) in beyond else row for row in rows.slo),
        gauges=deltas.folded_gauges(
            replace(row, model=OTHER_MODEL) if _gauge(row) in beyond else row for row in rows.gauges
        ),
        counters=deltas.folded_counters(
            replace(row, model=OTHER_MODEL, attributes=()) if _counter(row) in beyond else row for row in rows.counters
        ),
    )


Name = TypeVar("Name", str, Service, Series)


def _beyond(named: Iterable[Name], seen: set[Name], limit: int) -> frozenset[Name]:
    """Of the names not seen yet those for which there is no room, the last ones in their order."""
    fresh = sorted(set(named) - seen)
    return frozenset(fresh[max(limit - len(seen), 0) :])


def _of_known_layouts(rows: Deltas, seen: Seen) -> Deltas:
    beyond = _beyond((row.series.layout.text for row in rows.latencies), seen.layouts, MAX_LAYOUTS)
    if not beyond:
        return rows
    kept = tuple(row for row in rows.latencies if row.series.layout.text not in beyond)
    refused = Tally(TOO_MANY_LAYOUTS, len(rows.latencies) - len(kept))
    return replace(rows, latencies=kept, rejected=deltas.tallied((*rows.rejected, refused)))


def _of_known_services(rows: Deltas, seen: Seen) -> Deltas:
    beyond = _beyond(((row.environment, row.service) for row in rows.known), seen.services, MAX_SERVICES)
    if not beyond:
        return rows

    def kept(row: "_OfService") -> bool:
        return (row.environment, row.service) not in beyond

    left = replace(
        rows,
        latencies=tuple(row for row in rows.latencies if kept(row.series.latency)),
        slo=tuple(filter(kept, rows.slo)),
        gauges=tuple(filter(kept, rows.gauges)),
        counters=tuple(filter(kept, rows.counters)),
        known=tuple(filter(kept, rows.known)),
        instances=tuple(filter(kept, rows.instances)),
    )
    refused = Tally(TOO_MANY_SERVICES, _values(rows) - _values(left))
    return replace(left, rejected=deltas.tallied((*rows.rejected, refused)))


class _OfService(Protocol):
    @property
    def environment(self) -> str: ...

    @property
    def service(self) -> str: ...


def _values(rows: Deltas) -> int:
    return len(rows.latencies) + len(rows.slo) + len(rows.gauges) + len(rows.counters)


def _all_series(rows: Deltas) -> Iterator[Series]:
    yield from (_of_series(row.series) for row in rows.latencies)
    yield from map(_slo, rows.slo)
    yield from map(_gauge, rows.gauges)
    yield from map(_counter, rows.counters)


def _other_latency(row: LatencyRow, beyond: frozenset[Series]) -> LatencyRow:
    key = row.series.latency
    if _latency(key) not in beyond:
        return row
    return replace(row, series=replace(row.series, latency=replace(key, model=OTHER_MODEL)))


@lru_cache(maxsize=16_384)
def _of_series(series: SeriesKey) -> Series:
    return _latency(series.latency)


def _latency(key: LatencyKey) -> Series:
    return key.environment, key.service, key.model, key.signal, key.source, "latency"


def _slo(row: SloRow) -> Series:
    return row.environment, row.service, row.model, row.objective, row.objective_hash, "slo"


def _gauge(row: GaugeRow) -> Series:
    return row.environment, row.service, row.model, row.name, row.attribute, "gauge"


def _counter(row: CounterRow) -> Series:
    return row.environment, row.service, row.model, row.name, repr(row.attributes), "counter"
