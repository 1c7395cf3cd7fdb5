"""One body's measurements folded into rows to add, at the base step (DESIGN 4.4, 5).

The event time of a point is the end of its interval, and its step the one that holds that moment: late data goes to
its own time. Data older than the longest window, or more than five minutes in the future, is refused by name.
Cumulative points count from the last state of their stream (`streams`), and of a request that comes as a span and in a
histogram one counts (`precedence`): what both remember is given and handed back as rows, so that a store can commit all
of it together. Nothing here keeps anything, reads a clock or knows of a database.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.decoding.wire import FOREIGN_SOURCE
from collector.folding.precedence import Precedence
from collector.folding.streams import Value, increase
from collector.values import deltas
from collector.values.deltas import (
    CounterRow,
    Deltas,
    GaugeRow,
    InstanceRow,
    KnownRow,
    LatencyRow,
    SeriesKey,
    SloRow,
    StreamRow,
)
from collector.values.histogram import Counts, Floats, from_values
from collector.values.measurement import (
    NS,
    Batch,
    CounterPoint,
    DeltaColumns,
    EventPoint,
    GaugePoint,
    Interval,
    LatencyPoint,
    LatencyPoints,
    Resource,
    SpanLatencies,
    Tally,
)
from slo.signals import SERVICE_INSTANCE

FUTURE_S = 300
KNOWN_S = 300
"""The longest interval of one point that counts as known throughout; of a longer one only its end does."""
MAX_STREAMS = 100_000

TOO_OLD = "older than the longest window"
TOO_NEW = f"more than {FUTURE_S // 60} minutes in the future: set the sender's clock"
REPEATED = "cumulative point already counted"
MIXED = f"cumulative points that fall again and again: give each sender its own {SERVICE_INSTANCE}"
REPEATED_DELTA = "delta point of an interval already counted"
TOO_MANY_STREAMS = f"more than {MAX_STREAMS} cumulative streams: send deltas"
BASELINE = "first point of a cumulative stream older than this store"
SPAN_IN_HISTOGRAM = "span of a request that a histogram counts"
HISTOGRAM_IN_SPANS = "histogram of requests that were counted by their spans"


@dataclass(frozen=True, slots=True)
class Intake:
    """The moment of an intake: now, the base step, the oldest event time still taken, and since when this store keeps
    data (`streams`). Whole epoch seconds; `tick_s` divides 60."""

    now_s: int
    tick_s: int
    oldest_s: int
    since_s: int


def fold(batch: Batch, *, intake: Intake, streams: Mapping[str, StreamRow]) -> Deltas:
    """The rows that a body adds, as `added` says them, folded."""
    return deltas.concat([added(batch, intake=intake, streams=streams)])


def added(batch: Batch, *, intake: Intake, streams: Mapping[str, StreamRow]) -> Deltas:
    """What a body adds, several rows of one key and step among it, in no order: it is folded with that of others by
    `concat`. `streams` holds the last state of each cumulative stream; it is not changed: the new states are among the
    rows."""
    folding = _Folding(intake, streams)
    latencies = deltas.joined_latencies((*folding.latencies(batch.latencies), folding.spans(batch.spans)))
    events, gauges = tuple(folding.events(batch.events)), tuple(folding.gauges(batch.gauges))
    counters = tuple(folding.counters(batch.counters))
    return Deltas(
        latencies,
        events,
        gauges,
        counters,
        tuple(folding.known()),
        tuple(folding.instances()),
        tuple(folding.moved.values()),
        deltas.tallied((*batch.rejected, *folding.rejected())),
        deltas.tallied((*batch.ignored, *folding.ignored())),
    )


class _Folding:
    """The state of one fold: moved streams, who spoke when, and what was refused."""

    def __init__(self, intake: Intake, streams: Mapping[str, StreamRow]) -> None:
        self._intake = intake
        self._streams = streams
        self._oldest_ns = intake.oldest_s * NS
        self._beyond_ns = (intake.now_s + FUTURE_S + 1) * NS
        self._spoke: defaultdict[tuple[Resource, bool], set[tuple[int, int]]] = defaultdict(set)
        self._rejected: Counter[str] = Counter()
        self._ignored: Counter[str] = Counter()
        self._precedence = Precedence(self._recall, self._remember)
        self._speaker: tuple[Resource | None, set[tuple[int, int]]] = (None, set())
        self.moved: dict[str, StreamRow] = {}

    def latencies(self, points: Sequence[LatencyPoint]) -> Iterator[Iterable[LatencyRow]]:
        found = points if isinstance(points, LatencyPoints) else LatencyPoints(others=tuple(points))
        if any(resource.source == FOREIGN_SOURCE for resource in found.deltas.resources):
            yield self._points(found)  # each of them may be in spans
            return
        if found.deltas.whose:
            yield self._deltas(found.deltas)
        yield self._points(found.others)

    def _deltas(self, columns: DeltaColumns) -> Iterable[LatencyRow]:
        """Deltas of which nothing is remembered, all at once."""
        old, new = columns.ends_ns < self._oldest_ns, columns.ends_ns >= self._beyond_ns
        if old.any() or new.any():
            self._refuse(old, new)
            columns = columns.chosen(np.flatnonzero(~(old | new)))
        ends_s = columns.ends_ns // NS
        for resource, start_ns, end_ns in _spoken(columns):
            self._hear(resource, start_ns, end_ns)
        return deltas.rows_of(_series(columns), ends_s - ends_s % self._intake.tick_s, columns.histograms)

    def _points(self, points: Iterable[LatencyPoint]) -> Iterator[LatencyRow]:
        for point in points:
            one, end_ns = point.resource, point.interval.end_ns
            added = self._added(one, point.interval, point.histogram)
            if added is None:
                continue
            start_ns, histogram = added
            if histogram is None:
                continue
            if one.source == FOREIGN_SOURCE and not point.censored and not self._wins(point, start_ns):
                self._ignored[HISTOGRAM_IN_SPANS] += 1
                continue
            series = deltas.series_of(one, point.model, point.signal, histogram.layout, censored=point.censored)
            yield LatencyRow(series, self._step(end_ns), histogram)

    def spans(self, columns: tuple[SpanLatencies, ...]) -> Iterator[LatencyRow]:
        heard_ns: Counts | None = None
        for column in columns:
            one, (ends_ns, values_s) = column.resource, self._spans_taken(column)
            if not ends_ns.size:
                continue
            self._precedence.spans_counted(one, column.model, column.signal, end_ns=int(ends_ns.max()))
            if ends_ns is not heard_ns:  # the latencies of the same requests often share a column of times
                self._hear_spans(one, ends_ns)
                heard_ns = ends_ns
            for start_s, some in self._by_step(ends_ns, values_s):
                histogram = from_values(some)
                series = deltas.series_of(one, column.model, column.signal, histogram.layout)
                yield LatencyRow(series, start_s, histogram)

    def events(self, points: tuple[EventPoint, ...]) -> Iterator[SloRow]:
        for point in points:
            added = self._added(point.resource, point.interval, point.value)
            if added is not None:
                count = round(added[1] or 0.0)
                who = point.resource.environment, point.resource.service, point.model
                good, bad = (count, 0) if point.good else (0, count)
                yield SloRow(*who, point.objective, point.objective_hash, self._step(point.interval.end_ns), good, bad)

    def counters(self, points: tuple[CounterPoint, ...]) -> Iterator[CounterRow]:
        for point in points:
            added = self._added(point.resource, point.interval, point.value)
            if added is not None:
                one, start_s = point.resource, self._step(point.interval.end_ns)
                who = one.environment, one.service, point.model, one.instance, one.source
                yield CounterRow(*who, point.name, point.attributes, start_s, added[1] or 0.0)

    def gauges(self, points: tuple[GaugePoint, ...]) -> Iterator[GaugeRow]:
        for point in points:
            if self._in_time(point.at_ns):
                self._hear(point.resource, point.at_ns, point.at_ns)
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

    def _wins(self, point: LatencyPoint, start_ns: int) -> bool:
        """Whether a foreign histogram counts, and not the spans of its requests."""
        return self._precedence.histogram_counts(
            point.resource, point.model, point.signal, start_ns=start_ns, end_ns=point.interval.end_ns
        )

    def _in_time(self, at_ns: int) -> bool:
        if self._oldest_ns <= at_ns < self._beyond_ns:
            return True
        self._rejected[TOO_OLD if at_ns < self._oldest_ns else TOO_NEW] += 1
        return False

    def _refuse(self, old: NDArray[np.bool_], new: NDArray[np.bool_]) -> None:
        self._rejected[TOO_OLD] += int(old.sum())
        self._rejected[TOO_NEW] += int(new.sum())

    def _hear(self, resource: Resource, start_ns: int, end_ns: int) -> None:
        """A sender of points spoke of an interval. Points of one sender come together."""
        last, intervals = self._speaker
        if resource is not last:
            intervals = self._spoke[resource, True]
            self._speaker = resource, intervals
        intervals.add((start_ns, end_ns))

    def _hear_spans(self, resource: Resource, ends_ns: Counts) -> None:
        """A sender of spans spoke: of its first, its last, and one moment in each step."""
        moments = np.sort(ends_ns)
        steps = (moments - 1) // (NS * self._intake.tick_s)
        told = (*moments[np.flatnonzero(np.diff(steps, prepend=-1))].tolist(), int(moments[-1]))
        self._spoke[resource, False].update((at_ns, at_ns) for at_ns in told)

    def _by_step(self, ends_ns: Counts, values_s: Floats) -> Iterator[tuple[int, Floats]]:
        """Each step, and the values that end in it."""
        first_s, last_s = self._step(int(ends_ns.min())), self._step(int(ends_ns.max()))
        if first_s == last_s:
            yield first_s, values_s
            return
        tick_s = self._intake.tick_s
        steps = ends_ns // (NS * tick_s) * tick_s
        for start_s in np.unique(steps).tolist():
            yield start_s, values_s[steps == start_s]

    def _spans_taken(self, column: SpanLatencies) -> tuple[Counts, Floats]:
        """When those of the spans ended that count, and their values; the others are refused or ignored by name."""
        old, new = column.ends_ns < self._oldest_ns, column.ends_ns >= self._beyond_ns
        self._refuse(old, new)
        taken: NDArray[np.bool_] = ~(old | new)
        until_ns = self._precedence.spans_end_ns(column.resource, column.model, column.signal)
        if until_ns is not None:
            late = taken & (column.ends_ns > until_ns)
            self._ignored[SPAN_IN_HISTOGRAM] += int(late.sum())
            taken &= ~late
        if taken.all():
            return column.ends_ns, column.values_s
        return column.ends_ns[taken], column.values_s[taken]

    def _added(self, resource: Resource, interval: Interval, value: Value) -> tuple[int, Value | None] | None:
        """Since when a point counts and what it adds; value None when it only begins a stream; None when it adds
        nothing. Remembers that the resource spoke, and the stream's new state."""
        if not self._in_time(interval.end_ns):
            return None
        if not interval.stream:
            if interval.place and self._came_before(interval):
                self._ignored[REPEATED_DELTA] += 1
                return None
            self._hear(resource, interval.start_ns, interval.end_ns)
            return interval.start_ns, value
        last = self._recall(interval.stream)
        if last is None and interval.unstarted:
            last = self._begun(interval)
        if last is None and not self._room():
            self._rejected[TOO_MANY_STREAMS] += 1
            return None
        grown = increase(interval, value, last=last, since_ns=self._intake.since_s * NS)
        if grown is None:
            self._ignored[REPEATED] += 1
            return None
        self._remember(grown.state)
        if grown.mixed:
            self._rejected[MIXED] += 1
            return None
        if grown.value is None:
            self._ignored[BASELINE] += 1
            self._hear(resource, interval.end_ns, interval.end_ns)
            return interval.end_ns, None
        self._hear(resource, grown.start_ns, interval.end_ns)
        return grown.start_ns, grown.value

    def _came_before(self, interval: Interval) -> bool:
        """Whether the interval of a delta was counted already; remembers it, if there is room."""
        last = self._recall(interval.place)
        if last is not None and (last.start_ns, last.end_ns) == (interval.start_ns, interval.end_ns):
            return True
        if (last is not None and last.end_ns < interval.end_ns) or (last is None and self._room()):
            self._remember(StreamRow(interval.place, interval.start_ns, interval.end_ns, 0.0))
        return False

    def _begun(self, interval: Interval) -> StreamRow | None:
        """The last point of the stream from before its sender knew when it started, if it counts from that one."""
        before = self._recall(interval.unstarted)
        return before if before is not None and before.end_ns == interval.start_ns else None

    def _recall(self, stream: str) -> StreamRow | None:
        return self.moved.get(stream) or self._streams.get(stream)

    def _remember(self, row: StreamRow) -> None:
        self.moved[row.stream] = row

    def _room(self) -> bool:
        """Whether there is room for what is not remembered yet."""
        return len(self._streams) + len(self.moved) < MAX_STREAMS


def _spoken(columns: DeltaColumns) -> Iterable[tuple[Resource, int, int]]:
    """Who spoke of which interval, each once. Mostly all of a body speak of the same one."""
    starts_ns, ends_ns = columns.starts_ns, columns.ends_ns
    if columns.whose and (starts_ns == starts_ns[0]).all() and (ends_ns == ends_ns[0]).all():
        return [(one, int(starts_ns[0]), int(ends_ns[0])) for one in columns.resources]
    senders = [one.resource for one in columns.whose]
    spoken = zip(map(id, senders), starts_ns.tolist(), ends_ns.tolist(), strict=True)
    return [(one, *of[1:]) for of, one in dict(zip(spoken, senders, strict=True)).items()]


def _series(columns: DeltaColumns) -> list[SeriesKey]:
    """The series of each of the latencies."""
    layouts, layout_of = columns.histograms.layouts, columns.histograms.layout_of
    if len(layouts) == 1:
        return deltas.series_at(columns.whose, layouts[0])
    found: dict[int, SeriesKey] = {}
    for number, layout in enumerate(layouts):
        places = np.flatnonzero(layout_of == number).tolist()
        found.update(zip(places, deltas.series_at([columns.whose[place] for place in places], layout), strict=True))
    return [found[place] for place in range(len(columns.whose))]
