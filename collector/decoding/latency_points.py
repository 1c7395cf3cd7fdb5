"""The histogram points of a body: the plain ones read side by side, all others one by one.

Both ways say the same (`point_columns` says what is plain, `distribution` whatever is wrong with the rest). Deltas of
which nothing need be remembered stay columns all the way; the others become objects here, for each has a past of its
own. What a point says in its attributes is read once and kept, for it says the same at every interval.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import attrgetter, itemgetter
from typing import cast

import numpy as np
from opentelemetry.proto.metrics.v1.metrics_pb2 import DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK

from collector.decoding import point_columns, sealed, wire
from collector.decoding.distribution import Distributions
from collector.decoding.intervals import Of, interval
from collector.decoding.point_columns import Read
from collector.values.histogram import Counts, Histogram
from collector.values.histograms import joined
from collector.values.measurement import (
    NO_DELTAS,
    DeltaColumns,
    Interval,
    LatencyPoint,
    LatencyPoints,
    RejectedError,
    Resource,
    Whose,
)
from slo.signals import (
    BY_NAME,
    CENSORED,
    CLASS,
    LATENCY_METRICS,
    PROMPT_TOKENS,
    SIGNAL,
    SYNTHETIC_CLASS,
    TTFT_BY_PROMPT,
    TTFT_STRATA,
    UNKNOWN_MODEL,
    Metric,
)

SPLIT: dict[str, tuple[str, dict[str, str]]] = {
    CENSORED.name: (SIGNAL, {metric.sql: metric.sql for metric in LATENCY_METRICS}),
    TTFT_BY_PROMPT.name: (PROMPT_TOKENS, TTFT_STRATA),
}
"""The metrics that hold several latencies: the attribute that tells them apart, and the signal of each value."""
MAX_KEPT = 16_384
"""Attributes of points of which is kept what they say, for they say it at every interval."""
NO_VALUE = "point without a recorded value"
SYNTHETIC = "latency of synthetic traffic"


def said_of(point: sealed.Point, ignored: wire.Reasons) -> wire.Said | None:
    """What a point says in its attributes; None, and counted, when it says that it has no value. Raises
    `RejectedError`."""
    if point.flags & DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK:
        ignored.add(NO_VALUE)
        return None
    if point.time_unix_nano == 0:
        raise RejectedError("a point without a time")
    return wire.said(point.attributes)


@dataclass(frozen=True, slots=True, eq=False)
class _Named:
    """What a point says in its attributes, and whose latency that makes it."""

    said: wire.Said
    whose: Whose


_UNREAD = _Named(wire.said(()), Whose(Resource("", "", "", ""), "", ""))
"""Stands for attributes that are not kept."""


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    """What names the latencies of a metric of a sender, beside their attributes, which are field `attributes`."""

    sender: wire.Sender
    metric: Metric
    attributes: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The points of one metric, sealed, the first of them number `first` of the body."""

    of: Of
    series: _Series
    octets: Sequence[bytes]
    first: int


@dataclass(slots=True)
class _Columns:
    """Which of the points of one shape stay columns: their rows there, their places in the body, whose they are, and
    who speaks."""

    rows: list[Counts] = field(default_factory=list)
    places: list[Counts] = field(default_factory=list)
    whose: list[Whose] = field(default_factory=list)
    resources: set[Resource] = field(default_factory=set)

    def add(self, named: Sequence[_Named | None], *, first: int, behind: int) -> None:
        """Take those that are plain of a sender's points from row `first` on, whose places are so much further."""
        rows = np.arange(first, first + len(named))
        if not all(named):
            rows, named = rows[[one is not None for one in named]], [one for one in named if one]
        self.rows.append(rows)
        self.places.append(rows + behind)
        if named:
            self.whose += map(_whose_of, named)
            self.resources.add(self.whose[-1].resource)

    def deltas(self, read: Read) -> DeltaColumns:
        """The columns."""
        rows, starts_ns, ends_ns, histograms = np.concatenate(self.rows), read.starts_ns, read.ends_ns, read.histograms
        if rows.size < ends_ns.size:
            starts_ns, ends_ns, histograms = starts_ns[rows], ends_ns[rows], histograms.chosen(rows)
        # A start beyond the end is a clock that was set, as in `interval`.
        times = np.minimum(starts_ns, ends_ns), ends_ns
        return DeltaColumns(self.whose, *times, histograms, tuple(self.resources))


_whose_of = attrgetter("whose")


class LatencyReading:
    """The histogram points of one body: `add` those of each metric, then have them all read, with those of other bodies
    (`read_together`). What is refused is counted in `rejected` and `ignored`."""

    def __init__(self, rejected: wire.Reasons, ignored: wire.Reasons) -> None:
        self._rejected = rejected
        self._ignored = ignored
        self._added = 0
        self._waiting: dict[str, list[_Waiting]] = {shape: [] for shape in point_columns.SHAPES}
        self._deltas: list[tuple[Counts, DeltaColumns]] = []
        self._others: list[tuple[int, LatencyPoint]] = []
        self._alone: list[tuple[int, Of, Whose, Interval]] = []
        self._distributions = Distributions()

    def add(self, of: Of, shape: str, data: sealed.Data) -> None:
        """Take the points of a metric of that shape."""
        series = _series(of.sender, of.metric.name, point_columns.SHAPES[shape].attributes)
        octets = cast("Sequence[bytes]", data.data_points)
        self._waiting[shape].append(_Waiting(of, series, octets, self._added))
        self._added += len(octets)

    def octets(self, shape: str) -> list[bytes]:
        """The points of that shape, as bytes."""
        return [one for metric in self._waiting[shape] for one in metric.octets]

    def points(self) -> LatencyPoints:
        """All that could be read; what is no column in the order it came in."""
        others = sorted([*self._others, *self._read_alone()], key=itemgetter(0))
        return LatencyPoints(_joined(self._deltas), tuple(point for _, point in others))

    def take(self, shape: str, read: Read) -> None:
        """Take what is plain of the points of that shape, and put the rest by."""
        found = _Columns()
        until = 0
        for metric in self._waiting[shape]:
            first, until = until, until + len(metric.octets)
            named = _names(metric.series, read, first, until)
            for place in [] if all(named) else [place for place, one in enumerate(named) if one is None]:
                self._put_by(metric, place)
            if metric.of.is_plain:
                found.add(named, first=first, behind=metric.first - first)
            else:
                self._take(metric, read, first, named)
        if found.whose:
            self._deltas.append((np.concatenate(found.places), found.deltas(read)))

    def _take(self, metric: _Waiting, read: Read, first: int, named: Sequence[_Named | None]) -> None:
        """Take points of whose stream or interval something is remembered."""
        places = np.flatnonzero([one is not None for one in named])
        chosen, of = read.histograms.chosen(first + places), metric.of
        if of.cumulative:  # it speaks of its whole life
            chosen = chosen.without_extremes()
        times = zip(read.starts_ns[first + places].tolist(), read.ends_ns[first + places].tolist(), strict=True)
        for place, (start_ns, end_ns), histogram in zip(places.tolist(), times, chosen.apart(), strict=True):
            one = named[place]
            assert one is not None, "these are chosen"
            found = _point(one.whose, interval(of, start_ns, end_ns, one.said), histogram)
            self._others.append((metric.first + place, found))

    def _put_by(self, metric: _Waiting, place: int) -> None:
        """Have a point read alone, or refuse it."""
        of, is_explicit = metric.of, metric.series.attributes == point_columns.SHAPES["histogram"].attributes
        opened = sealed.explicit_point if is_explicit else sealed.exponential_point
        try:
            point = opened(metric.octets[place])
            said = said_of(point, self._ignored)
            if said is None:
                return
            if said.texts.get(CLASS) == SYNTHETIC_CLASS:
                self._ignored.add(SYNTHETIC)
                return
            whose = _whose(metric.series, said)
            when = interval(of, point.start_time_unix_nano, point.time_unix_nano, said)
        except RejectedError as error:
            self._rejected.add(f"{of.metric.name}: {error}")
            return
        self._alone.append((metric.first + place, of, whose, when))
        if is_explicit:
            self._distributions.add_explicit(cast("sealed.ExplicitPoint", point), cumulative=of.cumulative)
        else:
            self._distributions.add_exponential(cast("sealed.ExponentialPoint", point), cumulative=of.cumulative)

    def _read_alone(self) -> Iterator[tuple[int, LatencyPoint]]:
        for (place, of, whose, when), histogram in zip(self._alone, self._distributions.read(), strict=True):
            if isinstance(histogram, str):
                self._rejected.add(f"{of.metric.name}: {histogram}")
            else:
                yield place, _point(whose, when, histogram)


def read_together(several: Sequence[LatencyReading]) -> list[LatencyPoints]:
    """The points of several bodies: as many bodies as there are, the steps of numpy are the same ones."""
    for shape, of in point_columns.SHAPES.items():
        octets = [one.octets(shape) for one in several]
        if not any(octets):
            continue
        read = of.read(octets[0] if len(octets) == 1 else list(chain.from_iterable(octets)))
        until = 0
        for one, some in zip(several, octets, strict=True):
            first, until = until, until + len(some)
            if some:
                one.take(shape, read.part(first, until))
    return [one.points() for one in several]


def _names(series: _Series, read: Read, first: int, until: int) -> list[_Named | None]:
    """What the points say in their attributes; None of those that are not plain."""
    attributes, plain = read.attributes[first:until], read.plain[first:until]
    found = list(map(_kept.get, zip(repeat(series), attributes), repeat(_UNREAD)))
    if _UNREAD in found:
        found = [_named(series, raw) for raw in attributes]
    if plain.all():
        return found
    return [one if is_plain else None for one, is_plain in zip(found, plain.tolist(), strict=True)]


def _point(whose: Whose, when: Interval, histogram: Histogram) -> LatencyPoint:
    return LatencyPoint(whose.resource, whose.model, whose.signal, when, histogram, whose.censored)


def _joined(parts: Sequence[tuple[Counts, DeltaColumns]]) -> DeltaColumns:
    """The columns of both shapes, in the order in which they came."""
    if len(parts) <= 1:
        return parts[0][1] if parts else NO_DELTAS
    columns = [part for _, part in parts]
    together = DeltaColumns(
        [one for part in columns for one in part.whose],
        np.concatenate([part.starts_ns for part in columns]),
        np.concatenate([part.ends_ns for part in columns]),
        joined([part.histograms for part in columns]),
        tuple({resource for part in columns for resource in part.resources}),
    )
    return together.chosen(np.argsort(np.concatenate([places for places, _ in parts])))


@functools.lru_cache(maxsize=1_024)
def _series(sender: wire.Sender, metric: str, attributes: int) -> _Series:
    return _Series(sender, BY_NAME[metric], attributes)


_kept: dict[tuple[_Series, bytes], _Named | None] = {}
"""What attributes said that came lately."""


def _named(series: _Series, raw: bytes) -> _Named | None:
    """What attributes say; None when the point is to be read alone, or not at all."""
    if len(raw) > wire.MAX_KEPT_BYTES:
        return None
    found = _kept.get((series, raw), _UNREAD)
    if found is _UNREAD:
        found = _read_name(series, raw)
        if len(_kept) >= MAX_KEPT:  # senders come and go
            _kept.clear()
        _kept[series, raw] = found
    return found


def _read_name(series: _Series, raw: bytes) -> _Named | None:
    try:
        said = wire.said(sealed.repeated(raw, series.attributes))
        if said.texts.get(CLASS) == SYNTHETIC_CLASS:
            return None
        return _Named(said, _whose(series, said))
    except RejectedError:
        return None


def _whose(series: _Series, said: wire.Said) -> Whose:
    """Whose latency a point is. Raises `RejectedError`."""
    metric = series.metric
    return Whose(series.sender.resource, said.model or UNKNOWN_MODEL, _signal(metric, said), metric is CENSORED)


def _signal(metric: Metric, said: wire.Said) -> str:
    """The signal of a latency, as SQL has it."""
    key, signals = SPLIT.get(metric.name, ("", {}))
    if not key:
        return metric.sql
    found = said.texts.get(key, "")
    if found not in signals:
        raise RejectedError(f"{key} is {found!r}: use one of {', '.join(sorted(signals))}")
    return signals[found]
