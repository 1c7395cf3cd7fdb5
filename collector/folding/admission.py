"""What is let in of rows that name something new: a limit on series, on services and on layouts of buckets.

A sender may name as many models as it likes; memory and tables must not follow. New series beyond the limit keep their
counts under model `other`. New services and new layouts beyond theirs are rejected by name: no sum could hold them; so
are series of `other` beyond their own. What a series of histograms takes in memory goes with its buckets: one layout
more is one series more, and one of thousands of buckets counts as several.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from typing import Protocol, TypeVar

from collector.values import deltas
from collector.values.deltas import (
    CounterRow,
    Deltas,
    GaugeRow,
    LatencyRows,
    SeriesKey,
    SloRow,
    latency_rows,
)
from collector.values.histogram import Layout
from collector.values.measurement import Tally
from collector.windowing.fleet import Service
from slo.signals import OTHER_MODEL

MAX_LAYOUTS = 64
MAX_SERVICES = 512
"""Services heard of: each has a memory of which minutes are known."""
BUCKETS_OF_ONE = 1024
"""A layout of so many buckets, or fewer, makes one series of what it holds; one of twice as many makes two."""
MAX_OTHERS = 4_096
"""Series of model `other`, by service and layout, beyond the series kept apart."""

TOO_MANY_SERVICES = f"more than {MAX_SERVICES} services"
TOO_MANY_OTHERS = "no room for more series: send fewer models, services or bucket layouts"
TOO_MANY_LAYOUTS = f"more than {MAX_LAYOUTS} different bucket layouts: use the same bounds"

Series = tuple[str, ...]
"""What tells a series apart, whatever the instance, and last its kind: latency, slo, gauge or counter."""


@dataclass(slots=True)
class Seen:
    """What has been let in so far; its length is the number of series. `size` is what those count for that are kept
    apart, and `others` what those of model `other` do."""

    series: set[Series] = field(default_factory=set)
    size: int = 0
    others: int = 0
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
        for name in _other_series(rows):
            self._let_in(name, 1)
        self.services.update((row.environment, row.service) for row in rows.known)

    def add_histograms(self, several: Iterable[SeriesKey]) -> None:
        """Remember series of histograms."""
        fresh = [one for one in several if one.id not in self._ids]
        for one in fresh:
            self._let_in(_of_series(one), _weight(one.layout))
        self.layouts.update(one.layout.text for one in fresh)
        self._ids.update(one.id for one in fresh)

    def _let_in(self, name: Series, weight: int) -> None:
        if name in self.series:
            return
        self.series.add(name)
        if _is_other(name):
            self.others += weight
        else:
            self.size += weight

    def fresh(self, rows: LatencyRows) -> list[SeriesKey]:
        """The series of histograms that have not been seen."""
        if self._ids.issuperset(rows.ids.tolist()):
            return []
        return [one for one in rows.series if one.id not in self._ids]


def admitted(rows: Deltas, *, seen: Seen, max_series: int) -> Deltas:
    """The same rows within the limits; `seen` is not changed: the caller adds the answer to it."""
    rows = _of_known_layouts(_of_known_services(rows, seen), seen)
    fresh = _fresh(rows, seen)
    beyond = _beyond({name: of for name, of in fresh.items() if not _is_other(name)}, max_series - seen.size)
    moved = _moved(rows, beyond) if beyond else rows
    found = _fresh(moved, seen) if beyond else fresh
    others = {name: of for name, of in found.items() if _is_other(name)}
    left = _without(moved, refused) if (refused := _beyond(others, MAX_OTHERS - seen.others)) else moved
    return _folded(left) if beyond else left


def _fresh(rows: Deltas, seen: Seen) -> dict[Series, int]:
    """The series that have not been seen, and for how many each counts."""
    found = {_of_series(one): _weight(one.layout) for one in seen.fresh(latency_rows(rows.latencies))}
    found |= dict.fromkeys(_other_series(rows), 1)
    return {name: found[name] for name in found.keys() - seen.series}


def _moved(rows: Deltas, beyond: frozenset[Series]) -> Deltas:
    """The rows, those of the series beyond under model `other`, not folded."""
    return replace(
        rows,
        latencies=_others_named(latency_rows(rows.latencies), beyond),
        slo=tuple(replace(row, model=OTHER_MODEL) if _slo(row) in beyond else row for row in rows.slo),
        gauges=tuple(replace(row, model=OTHER_MODEL) if _gauge(row) in beyond else row for row in rows.gauges),
        counters=tuple(
            replace(row, model=OTHER_MODEL, attributes=()) if _counter(row) in beyond else row for row in rows.counters
        ),
    )


def _folded(rows: Deltas) -> Deltas:
    return replace(
        rows,
        latencies=deltas.folded_latencies(latency_rows(rows.latencies)),
        slo=deltas.folded_slo(rows.slo),
        gauges=deltas.folded_gauges(rows.gauges),
        counters=deltas.folded_counters(rows.counters),
    )


def _without(rows: Deltas, refused: frozenset[Series]) -> Deltas:
    """The rows but for those of the series that are refused."""
    left = replace(
        rows,
        latencies=latency_rows(rows.latencies).where(lambda series: _of_series(series) not in refused),
        slo=tuple(row for row in rows.slo if _slo(row) not in refused),
        gauges=tuple(row for row in rows.gauges if _gauge(row) not in refused),
        counters=tuple(row for row in rows.counters if _counter(row) not in refused),
    )
    tally = Tally(TOO_MANY_OTHERS, _values(rows) - _values(left))
    return replace(left, rejected=deltas.tallied((*rows.rejected, tally)))


Name = TypeVar("Name", str, Service, Series)


def _beyond(fresh: Mapping[Name, int], room: int) -> frozenset[Name]:
    """The names for which there is no room, the last ones in their order; each counts for as many as it says."""
    names = sorted(fresh)
    reached = accumulate(fresh[name] for name in names)
    return frozenset(name for name, size in zip(names, reached, strict=True) if size > room)


def _of_known_layouts(rows: Deltas, seen: Seen) -> Deltas:
    held = latency_rows(rows.latencies)
    fresh = {layout.text for layout in held.histograms.used_layouts()} - seen.layouts
    beyond = _beyond(dict.fromkeys(fresh, 1), MAX_LAYOUTS - len(seen.layouts))
    if not beyond:
        return rows
    kept = held.where(lambda series: series.layout.text not in beyond)
    refused = Tally(TOO_MANY_LAYOUTS, len(held) - len(kept))
    return replace(rows, latencies=kept, rejected=deltas.tallied((*rows.rejected, refused)))


def _of_known_services(rows: Deltas, seen: Seen) -> Deltas:
    fresh = {(row.environment, row.service) for row in rows.known} - seen.services
    beyond = _beyond(dict.fromkeys(fresh, 1), MAX_SERVICES - len(seen.services))
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
    key, kind = series.latency, "wait" if series.censored else "latency"
    return key.environment, key.service, key.model, key.signal, key.source, series.layout.text, kind


def _weight(layout: Layout) -> int:
    """For how many series one of this layout counts."""
    return max(1, -(-len(layout.bounds) // BUCKETS_OF_ONE))


def _is_other(name: Series) -> bool:
    return name[2] == OTHER_MODEL


def _slo(row: SloRow) -> Series:
    return row.environment, row.service, row.model, row.objective, row.objective_hash, "slo"


def _gauge(row: GaugeRow) -> Series:
    return row.environment, row.service, row.model, row.name, row.attribute, "gauge"


def _counter(row: CounterRow) -> Series:
    return row.environment, row.service, row.model, row.name, repr(row.attributes), "counter"
