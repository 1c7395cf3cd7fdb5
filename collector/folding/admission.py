"""What is let in of rows that name something new: a limit on series, on services and on layouts of buckets.

A sender may name as many models as it likes; memory and tables must not follow. New series beyond the limit keep their
counts under model `other`. New services and new layouts beyond theirs are rejected by name: no sum could hold them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol, TypeVar

from collector.values import deltas
from collector.values.deltas import (
    CounterRow,
    Deltas,
    GaugeRow,
    LatencyKey,
    LatencyRows,
    SeriesKey,
    SloRow,
    latency_rows,
)
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
    _ids: set[int] = field(default_factory=set)
    """The numbers of the series of histograms that are among `series`: they come at every interval."""

    def __len__(self) -> int:
        return len(self.series)

    def add(self, rows: Deltas) -> None:
        """Remember what the rows name."""
        held = latency_rows(rows.latencies)
        if not self._ids.issuperset(held.ids.tolist()):
            self.add_histograms(held.series)
        self.series.update(_other_series(rows))
        self.services.update((row.environment, row.service) for row in rows.known)

    def add_histograms(self, several: Iterable[SeriesKey]) -> None:
        """Remember series of histograms."""
        fresh = [one for one in several if one.id not in self._ids]
        self.series.update(map(_of_series, fresh))
        self.layouts.update(one.layout.text for one in fresh)
        self._ids.update(one.id for one in fresh)

    def fresh(self, rows: LatencyRows) -> list[SeriesKey]:
        """The series of histograms that have not been seen."""
        if self._ids.issuperset(rows.ids.tolist()):
            return []
        return [one for one in rows.series if one.id not in self._ids]


def admitted(rows: Deltas, *, seen: Seen, max_series: int) -> Deltas:
    """The same rows within the limits; `seen` is not changed: the caller adds the answer to it."""
    rows = _of_known_layouts(_of_known_services(rows, seen), seen)
    named = (*map(_of_series, seen.fresh(latency_rows(rows.latencies))), *_other_series(rows))
    beyond = _beyond(named, seen.series, max_series)
    if not beyond:
        return rows
    return replace(
        rows,
        latencies=deltas.folded_latencies(_others_named(latency_rows(rows.latencies), beyond)),
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
    held = latency_rows(rows.latencies)
    beyond = _beyond((layout.text for layout in held.histograms.used_layouts()), seen.layouts, MAX_LAYOUTS)
    if not beyond:
        return rows
    kept = held.where(lambda series: series.layout.text not in beyond)
    refused = Tally(TOO_MANY_LAYOUTS, len(held) - len(kept))
    return replace(rows, latencies=kept, rejected=deltas.tallied((*rows.rejected, refused)))


def _of_known_services(rows: Deltas, seen: Seen) -> Deltas:
    beyond = _beyond(((row.environment, row.service) for row in rows.known), seen.services, MAX_SERVICES)
    if not beyond:
        return rows

    def kept(row: "_OfService") -> bool:
        return (row.environment, row.service) not in beyond

    left = replace(
        rows,
        latencies=latency_rows(rows.latencies).where(lambda series: kept(series.latency)),
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


def _other_series(rows: Deltas) -> Iterator[Series]:
    """The series of all that is no histogram."""
    yield from map(_slo, rows.slo)
    yield from map(_gauge, rows.gauges)
    yield from map(_counter, rows.counters)


def _others_named(rows: LatencyRows, beyond: frozenset[Series]) -> LatencyRows:
    """The rows, those of series for which there is no room under model `other`."""
    series = [_other(one) if _of_series(one) in beyond else one for one in rows.series]
    return deltas.rows_of(series, rows.starts_s, rows.histograms)


def _other(series: SeriesKey) -> SeriesKey:
    return replace(series, latency=replace(series.latency, model=OTHER_MODEL))


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
