"""Rows to add to what is kept: the values between `rollup`, the store and `windows`.

Each row speaks of one base step, the evaluation's tick, that begins at `start_s` (integer epoch seconds). There is
one row per key and step, and rows are sorted by key, so that a store can upsert them in this order (PostgreSQL refuses
a repeated key in one statement and deadlocks on opposite orders).
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar, cast, overload

import numpy as np

from collector.values.histogram import Counts, Histogram, Layout
from collector.values.histograms import Histograms, joined, side_by_side, summed
from collector.values.measurement import Resource, Tally, Whose

MAX_KEPT = 16_384
"""Series of which the key is kept, for those that come at every interval."""

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, order=True)
class LatencyKey:
    """Whose latency: the key of a percentile. Two sources are two series, never added into one."""

    environment: str
    service: str
    model: str
    signal: str
    source: str


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """A stored series of histograms: all its rows share one layout, so they merge by adding counts.

    `censored` series hold how long requests had waited that ended past a deadline without a value.
    """

    latency: LatencyKey
    instance: str
    layout: Layout
    censored: bool = False
    id: int = field(init=False, repr=False, compare=False, default=0)
    """Made from the key alone, so that every writer of every database gives a series the same number."""

    def __post_init__(self) -> None:
        of = self.latency
        names = of.environment, of.service, of.model, of.signal, of.source, self.instance
        text = "\0".join((*names, self.layout.text, str(self.censored)))
        number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], signed=True)
        object.__setattr__(self, "id", number)

    def __hash__(self) -> int:
        # The key of much, at every interval.
        return self.id


@lru_cache(maxsize=MAX_KEPT)
def series_of(who: Resource, model: str, signal: str, layout: Layout, *, censored: bool = False) -> SeriesKey:
    """The series of one latency of a sender. The same ones come at every interval, so their keys are kept."""
    latency = LatencyKey(who.environment, who.service, model, signal, who.source)
    return SeriesKey(latency, who.instance, layout, censored)


def series_at(several: Sequence[Whose], layout: Layout) -> list[SeriesKey]:
    """The same of all those whose latencies they are."""
    kept = _kept_at(layout)
    known = list(map(kept.get, several))
    if all(known):
        return cast("list[SeriesKey]", known)
    found = [series_of(of.resource, of.model, of.signal, layout, censored=of.censored) for of in several]
    if len(kept) + len(found) > MAX_KEPT:  # senders come and go
        kept.clear()
    kept.update(islice(zip(several, found, strict=True), MAX_KEPT))
    return found


@lru_cache(maxsize=64)
def _kept_at(_layout: Layout) -> dict[Whose, SeriesKey]:
    """The series of a layout that came lately."""
    return {}


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """Values of one series in one step; sorted by step and number of the series, as its table is."""

    series: SeriesKey
    start_s: int
    histogram: Histogram


@dataclass(frozen=True, slots=True, eq=False)
class LatencyRows(Sequence[LatencyRow]):
    """Rows of latencies as columns: row k says that `histograms[k]` is of `series[k]` in the step `starts_s[k]`. A row
    is made when somebody asks for it."""

    series: Sequence[SeriesKey]
    starts_s: Counts
    histograms: Histograms
    ids: Counts
    """The number of each row's series."""

    def __len__(self) -> int:
        return len(self.series)

    def __iter__(self) -> Iterator[LatencyRow]:
        return map(LatencyRow, self.series, self.starts_s.tolist(), self.histograms)

    @overload
    def __getitem__(self, place: int) -> LatencyRow: ...
    @overload
    def __getitem__(self, place: slice) -> "LatencyRows": ...
    def __getitem__(self, place: int | slice) -> "LatencyRow | LatencyRows":
        if isinstance(place, slice):
            return LatencyRows(self.series[place], self.starts_s[place], self.histograms.chosen(place), self.ids[place])
        return LatencyRow(self.series[place], int(self.starts_s[place]), self.histograms[place])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LatencyRows | tuple):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # columns are no key of anything

    def chosen(self, places: Counts) -> "LatencyRows":
        """Some of the rows, in the order of the places."""
        series = [self.series[place] for place in places.tolist()]
        return LatencyRows(series, self.starts_s[places], self.histograms.chosen(places), self.ids[places])

    def order(self) -> Counts | None:
        """The places of the rows as their table has them, by step and number of the series; None when they stand so."""
        ids, starts_s = self.ids, self.starts_s
        if np.array_equal(starts_s[1:], starts_s[:-1]):
            return None if (ids[1:] >= ids[:-1]).all() else np.argsort(ids, kind="stable")
        return np.lexsort((ids, starts_s))

    def where(self, is_kept: Callable[[SeriesKey], bool]) -> "LatencyRows":
        """The rows of some series."""
        return self.chosen(np.flatnonzero([is_kept(one) for one in self.series]))


def rows_of(series: Sequence[SeriesKey], starts_s: Counts, histograms: Histograms) -> LatencyRows:
    """The rows of series, each in a step and with a histogram."""
    return LatencyRows(series, starts_s, histograms, np.array([one.id for one in series], dtype=np.int64))


_NO_ROWS = rows_of((), np.zeros(0, dtype=np.int64), side_by_side(()))


def latency_rows(rows: Iterable[LatencyRow]) -> LatencyRows:
    """The rows as columns."""
    if isinstance(rows, LatencyRows):
        return rows
    several = list(rows)
    if not several:
        return _NO_ROWS
    starts_s = np.array([row.start_s for row in several], dtype=np.int64)
    return rows_of([row.series for row in several], starts_s, side_by_side(row.histogram for row in several))


def joined_latencies(parts: Iterable[Iterable[LatencyRow]]) -> LatencyRows:
    """The rows of all parts, one part's behind another's."""
    several = [part for part in map(latency_rows, parts) if len(part)]
    if len(several) <= 1:
        return several[0] if several else _NO_ROWS
    starts_s = np.concatenate([part.starts_s for part in several])
    series = [one for part in several for one in part.series]
    ids = np.concatenate([part.ids for part in several])
    return LatencyRows(series, starts_s, joined([part.histograms for part in several]), ids)


@dataclass(frozen=True, slots=True)
class SloRow:
    """Events of one objective in one step. A row of zeros is one too: it says that nothing happened."""

    environment: str
    service: str
    model: str
    objective: str
    objective_hash: str
    start_s: int
    good: int
    bad: int


@dataclass(frozen=True, slots=True)
class GaugeRow:
    """Values of one gauge in one step; the mean is sum / samples, `last` the one of the latest `last_ns`."""

    environment: str
    service: str
    model: str
    instance: str
    name: str
    attribute: str
    start_s: int
    min: float
    max: float
    sum: float
    samples: int
    last: float
    last_ns: int


@dataclass(frozen=True, slots=True)
class CounterRow:
    """Increase of a counter in one step; `attributes` are (label, value), sorted."""

    environment: str
    service: str
    model: str
    instance: str
    source: str
    name: str
    attributes: tuple[tuple[str, str], ...]
    start_s: int
    value: float


@dataclass(frozen=True, slots=True)
class KnownRow:
    """A step from which telemetry of the service is known."""

    environment: str
    service: str
    start_s: int


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """When an instance spoke: first and last event time. `periodic`: it sends without being asked, so that its
    silence means something; spans alone are not periodic."""

    environment: str
    service: str
    instance: str
    source: str
    first_s: int
    last_s: int
    periodic: bool


@dataclass(frozen=True, slots=True)
class StreamRow:
    """The last point of a cumulative stream: what its next one is counted from. Replaces the row before."""

    stream: str
    start_ns: int
    end_ns: int
    value: float | Histogram


@dataclass(frozen=True, slots=True)
class Deltas:
    """All that one body, or several, add; to be committed as one."""

    latencies: Sequence[LatencyRow] = ()
    slo: tuple[SloRow, ...] = ()
    gauges: tuple[GaugeRow, ...] = ()
    counters: tuple[CounterRow, ...] = ()
    known: tuple[KnownRow, ...] = ()
    instances: tuple[InstanceRow, ...] = ()
    streams: tuple[StreamRow, ...] = ()
    rejected: tuple[Tally, ...] = ()
    ignored: tuple[Tally, ...] = ()

    @property
    def rejected_count(self) -> int:
        """Points and spans refused: the number of OTLP's partial success."""
        return sum(tally.count for tally in self.rejected)

    @property
    def rejected_text(self) -> str:
        """Why, with counts: the message of OTLP's partial success."""
        return "; ".join(f"{tally.count}: {tally.reason}" for tally in self.rejected)


def concat(many: Iterable[Deltas]) -> Deltas:
    """Several as one, for a commit of several bodies: rows of one key and step folded, of a stream the latest kept."""
    parts = tuple(many)
    return Deltas(
        folded_latencies(joined_latencies(part.latencies for part in parts)),
        folded_slo(row for part in parts for row in part.slo),
        folded_gauges(row for part in parts for row in part.gauges),
        folded_counters(row for part in parts for row in part.counters),
        folded_known(row for part in parts for row in part.known),
        folded_instances(row for part in parts for row in part.instances),
        folded_streams(row for part in parts for row in part.streams),
        tallied(tally for part in parts for tally in part.rejected),
        tallied(tally for part in parts for tally in part.ignored),
    )


def folded_latencies(rows: Iterable[LatencyRow]) -> LatencyRows:
    found = latency_rows(rows)
    if len(found) <= 1:
        return found
    order, ids, starts_s = found.order(), found.ids, found.starts_s
    if order is not None:
        ids, starts_s = ids[order], starts_s[order]
    again = (ids[1:] == ids[:-1]) & (starts_s[1:] == starts_s[:-1])
    if not again.any():
        return found if order is None else found.chosen(order)
    ordered = found if order is None else found.chosen(order)
    is_first = np.concatenate(([True], ~again))
    firsts = ordered.chosen(np.flatnonzero(is_first))
    return replace(firsts, histograms=summed(ordered.histograms, np.cumsum(is_first) - 1, len(firsts)))


def folded_slo(rows: Iterable[SloRow]) -> tuple[SloRow, ...]:
    def add(a: SloRow, b: SloRow) -> SloRow:
        return replace(a, good=a.good + b.good, bad=a.bad + b.bad)

    return _folded(rows, _slo_key, add)


def folded_gauges(rows: Iterable[GaugeRow]) -> tuple[GaugeRow, ...]:
    def add(a: GaugeRow, b: GaugeRow) -> GaugeRow:
        last = max(a, b, key=lambda row: (row.last_ns, row.last))
        low, high, total, samples = min(a.min, b.min), max(a.max, b.max), a.sum + b.sum, a.samples + b.samples
        return replace(last, min=low, max=high, sum=total, samples=samples)

    return _folded(rows, _gauge_key, add)


def folded_counters(rows: Iterable[CounterRow]) -> tuple[CounterRow, ...]:
    def add(a: CounterRow, b: CounterRow) -> CounterRow:
        return replace(a, value=a.value + b.value)

    return _folded(rows, _counter_key, add)


def folded_known(rows: Iterable[KnownRow]) -> tuple[KnownRow, ...]:
    return _folded(rows, attrgetter("environment", "service", "start_s"), lambda a, _: a)


def folded_instances(rows: Iterable[InstanceRow]) -> tuple[InstanceRow, ...]:
    def add(a: InstanceRow, b: InstanceRow) -> InstanceRow:
        first_s, last_s = min(a.first_s, b.first_s), max(a.last_s, b.last_s)
        return replace(a, first_s=first_s, last_s=last_s, periodic=a.periodic or b.periodic)

    return _folded(rows, _instance_key, add)


def folded_streams(rows: Iterable[StreamRow]) -> tuple[StreamRow, ...]:
    return _folded(rows, attrgetter("stream"), lambda a, b: max(a, b, key=attrgetter("end_ns")))


def tallied(tallies: Iterable[Tally]) -> tuple[Tally, ...]:
    """One tally a reason, sorted by it."""
    counts: Counter[str] = Counter()
    for tally in tallies:
        counts[tally.reason] += tally.count
    return tuple(Tally(reason, count) for reason, count in sorted(counts.items()) if count)


_slo_key = attrgetter("environment", "service", "model", "objective", "objective_hash", "start_s")
_gauge_key = attrgetter("environment", "service", "model", "instance", "name", "attribute", "start_s")
_counter_key = attrgetter("environment", "service", "model", "instance", "source", "name", "attributes", "start_s")
_instance_key = attrgetter("environment", "service", "instance", "source")


def _folded(rows: Iterable[Row], key: Callable[[Row], Any], add: Callable[[Row, Row], Row]) -> tuple[Row, ...]:
    found: dict[Any, Row] = {}
    for row in rows:
        at = key(row)
        held = found.get(at)
        found[at] = row if held is None else add(held, row)
    return tuple(found[at] for at in sorted(found))
