"""One body's measurements folded into rows to add, at the base step (DESIGN 4.4, 5).

The event time of a point is the end of its interval, and its step the one that holds that moment: late data goes to
its own time. Data older than the longest window, or more than five minutes in the future, is refused by name.
Cumulative points count from the last state of their stream (`streams`), which is given and handed back as rows, so
that a store can commit both together. Nothing here keeps anything, reads a clock or knows of a database.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from collector import deltas
from collector.deltas import (
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
from collector.histogram import Layout, from_values
from collector.measurement import (
    Batch,
    CounterPoint,
    EventPoint,
    GaugePoint,
    Interval,
    LatencyPoint,
    Resource,
    SpanLatency,
    Tally,
)
from collector.streams import Value, increase
from slo.signals import OTHER_MODEL

NS = 10**9
FUTURE_S = 300
KNOWN_S = 300
"""The longest interval of one point that counts as known throughout; of a longer one only its end does."""

MAX_STREAMS = 100_000
MAX_LAYOUTS = 64
MAX_SERVICES = 512
"""Services heard of: each has a memory of which minutes are known."""

TOO_OLD = "older than the longest window"
TOO_NEW = f"more than {FUTURE_S // 60} minutes in the future: set the sender's clock"
REPEATED = "cumulative point already counted"
TOO_MANY_STREAMS = f"more than {MAX_STREAMS} cumulative streams: send deltas"
TOO_MANY_SERVICES = f"more than {MAX_SERVICES} services"
TOO_MANY_LAYOUTS = f"more than {MAX_LAYOUTS} different bucket layouts: use the same bounds"
BASELINE = "first point of a cumulative stream older than this store"


@dataclass(frozen=True, slots=True)
class Intake:
    """The moment of an intake: now, the base step, the oldest event time still taken, and since when this store keeps
    data (`streams`). Whole epoch seconds; `tick_s` divides 60."""

    now_s: int
    tick_s: int
    oldest_s: int
    since_s: int


def fold(batch: Batch, *, intake: Intake, streams: Mapping[str, StreamRow]) -> Deltas:
    """The rows that a body adds. `streams` holds the last state of each cumulative stream; it is not changed: the new
    states are among the rows."""
    folding = _Folding(intake, streams)
    latencies = (*folding.latencies(batch.latencies), *folding.spans(batch.spans))
    events, gauges = tuple(folding.events(batch.events)), tuple(folding.gauges(batch.gauges))
    counters = tuple(folding.counters(batch.counters))
    return Deltas(
        deltas.folded_latencies(latencies),
        deltas.folded_slo(events),
        deltas.folded_gauges(gauges),
        deltas.folded_counters(counters),
        deltas.folded_known(folding.known()),
        deltas.folded_instances(folding.instances()),
        deltas.folded_streams(folding.moved.values()),
        deltas.tallied((*batch.rejected, *folding.rejected())),
        deltas.tallied((*batch.ignored, *folding.ignored())),
    )


def identities(rows: Deltas) -> frozenset[tuple[str, ...]]:
    """What counts against the limit of series: each latency, objective, gauge and counter of a model, whatever its
    instance; and each service and layout of buckets."""
    latencies = (_latency_identity(row.series.latency) for row in rows.latencies)
    others = *map(_slo_identity, rows.slo), *map(_gauge_identity, rows.gauges), *map(_counter_identity, rows.counters)
    services = (_service_identity(row) for row in rows.known)
    return frozenset((*latencies, *others, *services, *(_layout_identity(row) for row in rows.latencies)))


def cap_series(rows: Deltas, *, seen: Set[tuple[str, ...]], max_series: int) -> Deltas:
    """The same rows, those of new series beyond the limit under model `other`: their counts stay in the totals.
    Histograms of new layouts beyond `MAX_LAYOUTS` are rejected, since no sum could hold them, and so is what comes from
    new services beyond `MAX_SERVICES`.

    `seen` are the `identities` admitted so far; the caller adds those of the answer to it.
    """
    rows = _cap_layouts(_cap_services(rows, seen), seen)
    fresh = sorted(identity for identity in identities(rows) - seen if _is_series(identity))
    room = max_series - sum(1 for identity in seen if _is_series(identity)) if fresh else 0
    beyond = frozenset(fresh[max(room, 0) :])
    if not beyond:
        return rows
    return replace(
        rows,
        latencies=deltas.folded_latencies(_other_latency(row, beyond) for row in rows.latencies),
        slo=deltas.folded_slo(
            replace(row, model=OTHER_MODEL) if _slo_identity(row) in beyond else row for row in rows.slo
        ),
        gauges=deltas.folded_gauges(
            replace(row, model=OTHER_MODEL) if _gauge_identity(row) in beyond else row for row in rows.gauges
        ),
        counters=deltas.folded_counters(
            replace(row, model=OTHER_MODEL, attributes=()) if _counter_identity(row) in beyond else row
            for row in rows.counters
        ),
    )


def _cap_layouts(rows: Deltas, seen: Set[tuple[str, ...]]) -> Deltas:
    fresh = sorted({_layout_identity(row) for row in rows.latencies} - seen)
    if not fresh:
        return rows
    room = MAX_LAYOUTS - sum(1 for identity in seen if _is_layout(identity))
    beyond = frozenset(fresh[max(room, 0) :])
    kept = tuple(row for row in rows.latencies if _layout_identity(row) not in beyond)
    if len(kept) == len(rows.latencies):
        return rows
    refused = Tally(TOO_MANY_LAYOUTS, len(rows.latencies) - len(kept))
    return replace(rows, latencies=kept, rejected=deltas.tallied((*rows.rejected, refused)))


def _cap_services(rows: Deltas, seen: Set[tuple[str, ...]]) -> Deltas:
    fresh = sorted({_service_identity(row) for row in rows.known} - seen)
    room = MAX_SERVICES - sum(1 for identity in seen if _is_service(identity)) if fresh else 0
    beyond = {(environment, service) for _, environment, service in fresh[max(room, 0) :]}
    if not beyond:
        return rows

    def kept(row: SloRow | GaugeRow | CounterRow | KnownRow | InstanceRow | LatencyKey) -> bool:
        return (row.environment, row.service) not in beyond

    latencies = tuple(row for row in rows.latencies if kept(row.series.latency))
    slo, gauges = tuple(filter(kept, rows.slo)), tuple(filter(kept, rows.gauges))
    counters, instances = tuple(filter(kept, rows.counters)), tuple(filter(kept, rows.instances))
    lost = len(rows.latencies) - len(latencies) + len(rows.slo) - len(slo)
    lost += len(rows.gauges) - len(gauges) + len(rows.counters) - len(counters)
    return replace(
        rows,
        latencies=latencies,
        slo=slo,
        gauges=gauges,
        counters=counters,
        known=tuple(filter(kept, rows.known)),
        instances=instances,
        rejected=deltas.tallied((*rows.rejected, Tally(TOO_MANY_SERVICES, lost))),
    )


def _layout_identity(row: LatencyRow) -> tuple[str, ...]:
    return "layout", row.series.layout.text


def _service_identity(row: KnownRow) -> tuple[str, str, str]:
    return "service", row.environment, row.service


def _is_layout(identity: tuple[str, ...]) -> bool:
    """Two words are a layout, three a service; every other identity has five or more, whatever its names."""
    return len(identity) == 2


def _is_service(identity: tuple[str, ...]) -> bool:
    return len(identity) == 3


def _is_series(identity: tuple[str, ...]) -> bool:
    return len(identity) > 3


def _other_latency(row: LatencyRow, beyond: frozenset[tuple[str, ...]]) -> LatencyRow:
    key = row.series.latency
    if _latency_identity(key) not in beyond:
        return row
    return replace(row, series=replace(row.series, latency=replace(key, model=OTHER_MODEL)))


def _latency_identity(key: LatencyKey) -> tuple[str, ...]:
    return key.environment, key.service, key.model, key.signal, key.source


def _slo_identity(row: SloRow) -> tuple[str, ...]:
    return row.environment, row.service, row.model, row.objective, row.objective_hash


def _counter_identity(row: CounterRow) -> tuple[str, ...]:
    return row.environment, row.service, row.model, row.name, repr(row.attributes), "counter"


def _gauge_identity(row: GaugeRow) -> tuple[str, ...]:
    return row.environment, row.service, row.model, row.name, row.attribute, "gauge"


class _Folding:
    """The state of one fold: moved streams, who spoke when, and what was refused."""

    def __init__(self, intake: Intake, streams: Mapping[str, StreamRow]) -> None:
        self._intake = intake
        self._streams = streams
        self._spoke: defaultdict[tuple[Resource, bool], set[tuple[int, int]]] = defaultdict(set)
        self._rejected: Counter[str] = Counter()
        self._ignored: Counter[str] = Counter()
        self.moved: dict[str, StreamRow] = {}

    def latencies(self, points: tuple[LatencyPoint, ...]) -> Iterator[LatencyRow]:
        for point in points:
            grown = self._increase(point.resource, point.interval, point.histogram)
            if grown is not None and grown[1] is not None:
                series = _series(point.resource, point.model, point.signal, grown[1].layout)
                yield LatencyRow(replace(series, censored=point.censored), grown[0], grown[1])

    def spans(self, spans: tuple[SpanLatency, ...]) -> Iterator[LatencyRow]:
        together: defaultdict[tuple[Resource, str, str, int], list[float]] = defaultdict(list)
        for span in spans:
            if self._in_time(span.at_ns):
                self._spoke[span.resource, False].add((span.at_ns, span.at_ns))
                together[span.resource, span.model, span.signal, self._step(span.at_ns)].append(span.value_s)
        for (resource, model, signal, start_s), values in together.items():
            histogram = from_values(values)
            yield LatencyRow(_series(resource, model, signal, histogram.layout), start_s, histogram)

    def events(self, points: tuple[EventPoint, ...]) -> Iterator[SloRow]:
        for point in points:
            grown = self._increase(point.resource, point.interval, point.value)
            if grown is not None:
                start_s, value = grown
                count = round(value or 0.0)
                who = point.resource.environment, point.resource.service, point.model
                good, bad = (count, 0) if point.good else (0, count)
                yield SloRow(*who, point.objective, point.objective_hash, start_s, good, bad)

    def counters(self, points: tuple[CounterPoint, ...]) -> Iterator[CounterRow]:
        for point in points:
            grown = self._increase(point.resource, point.interval, point.value)
            if grown is not None:
                start_s, value = grown
                one = point.resource
                who = one.environment, one.service, point.model, one.instance, one.source
                yield CounterRow(*who, point.name, point.attributes, start_s, value or 0.0)

    def gauges(self, points: tuple[GaugePoint, ...]) -> Iterator[GaugeRow]:
        for point in points:
            if self._in_time(point.at_ns):
                self._spoke[point.resource, True].add((point.at_ns, point.at_ns))
                one, value = point.resource, point.value
                who = one.environment, one.service, point.model, one.instance, point.name, point.attribute
                yield GaugeRow(*who, self._step(point.at_ns), value, value, value, 1, value, point.at_ns)

    def known(self) -> Iterator[KnownRow]:
        known: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        for (resource, _), intervals in self._spoke.items():
            steps = known[resource.environment, resource.service]
            for start_ns, end_ns in intervals:
                first = min(start_ns, end_ns - 1) if end_ns - start_ns <= KNOWN_S * NS else end_ns - 1
                steps.update(range(self._step(first), self._step(end_ns - 1) + 1, self._intake.tick_s))
        return (KnownRow(*service, start_s) for service, steps in known.items() for start_s in steps)

    def instances(self) -> Iterator[InstanceRow]:
        for (resource, periodic), intervals in self._spoke.items():
            ends = [end_ns // NS for _, end_ns in intervals]
            who = resource.environment, resource.service, resource.instance, resource.source
            yield InstanceRow(*who, min(ends), max(ends), periodic)

    def rejected(self) -> Iterator[Tally]:
        return (Tally(reason, count) for reason, count in self._rejected.items())

    def ignored(self) -> Iterator[Tally]:
        return (Tally(reason, count) for reason, count in self._ignored.items())

    def _step(self, at_ns: int) -> int:
        at_s = at_ns // NS
        return at_s - at_s % self._intake.tick_s

    def _in_time(self, at_ns: int) -> bool:
        reason = self._refusal(at_ns // NS)
        if reason is not None:
            self._rejected[reason] += 1
        return reason is None

    def _refusal(self, at_s: int) -> str | None:
        if at_s < self._intake.oldest_s:
            return TOO_OLD
        return TOO_NEW if at_s > self._intake.now_s + FUTURE_S else None

    def _increase(self, resource: Resource, interval: Interval, value: Value) -> tuple[int, Value | None] | None:
        """The step and the value that a point adds; value None when it only begins a stream; None when it adds
        nothing. Remembers that the resource spoke, and the stream's new state."""
        if not self._in_time(interval.end_ns):
            return None
        start_ns, added = interval.start_ns, value
        if interval.stream:
            last = self.moved.get(interval.stream) or self._streams.get(interval.stream)
            if last is None and len(self._streams) + len(self.moved) >= MAX_STREAMS:
                self._rejected[TOO_MANY_STREAMS] += 1
                return None
            grown = increase(interval, value, last=last, since_ns=self._intake.since_s * NS)
            if grown is None:
                self._ignored[REPEATED] += 1
                return None
            self.moved[interval.stream] = StreamRow(interval.stream, interval.start_ns, interval.end_ns, value)
            if grown.value is None:
                self._ignored[BASELINE] += 1
                self._spoke[resource, True].add((interval.end_ns, interval.end_ns))
                return self._step(interval.end_ns), None
            start_ns, added = grown.start_ns, grown.value
        self._spoke[resource, True].add((start_ns, interval.end_ns))
        return self._step(interval.end_ns), added


def _series(resource: Resource, model: str, signal: str, layout: Layout) -> SeriesKey:
    key = LatencyKey(resource.environment, resource.service, model, signal, resource.source)
    return SeriesKey(key, resource.instance, layout)
