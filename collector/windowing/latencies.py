"""Rolling histograms of every latency, and the list of whom figures are wanted of.

Latencies are kept by (environment, service, model, signal, source), all instances together: a lane in the plane of
each layout that they come in, and another for the waits of requests that ended past a deadline without a value. So a
coarse histogram never spoils a fine one.

The *roster* names every line of figures: each latency seen, and where a service has several models, all of them
together (model `*`: their histograms are added, their percentiles are never averaged). It changes when something new
is heard of, and until then a tick reads it as it is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter

import numpy as np

from collector.values import bins
from collector.values.bins import Sheet
from collector.values.columns import Run, runs
from collector.values.deltas import LatencyKey, LatencyRow, SeriesKey
from collector.values.histogram import Counts, Layout
from collector.values.quantile import Buckets
from collector.windowing.fleet import Service
from collector.windowing.plane import Plane
from slo.signals import ALL_MODELS, TTFT_STRATA

STRATA = frozenset(TTFT_STRATA.values())
STRATUM_WINDOWS_S = (300, 1800, 86400)
"""The windows of a latency by prompt length: what `drift_watch` asks for, and no more."""
MAX_KEPT = 65_536
"""Series of which is kept where they belong: of more it is found anew."""
_STATIC = ("environment", "service", "model", "signal", "source")


@dataclass(slots=True)
class _Place:
    """Where a latency is kept: its lane by layout, of values and of waits; and since when it is seen."""

    first_s: int
    values: dict[Layout, int] = field(default_factory=dict)
    waits: dict[Layout, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Held:
    """The latencies that one plane holds something of, by their place among all, ascending; and the lane of each."""

    latencies: Counts
    lanes: Counts


@dataclass(frozen=True, slots=True)
class Lanes:
    """Where one plane holds the values of latencies, and where their waits."""

    values: Held
    waits: Held


@dataclass(frozen=True, slots=True)
class Together:
    """Lines over all models, and between which of some latencies each has its own."""

    lines: Counts
    edges: Counts

    def sums(self, rows: Counts) -> Counts:
        """The rows of the lines, from one row for each of the latencies."""
        if self.lines.size == 0:
            return rows[:0]
        # From each end to the next start there is a sum too, of latencies that are alone; it is passed over.
        sums: Counts = np.add.reduceat(rows, self.edges, axis=0)[::2]
        return sums


@dataclass(frozen=True)
class Roster:
    """Every line of figures, and what of it does not change from tick to tick.

    The lines are the latencies, and behind them those over all models: each adds the latencies from one of `starts` to
    one of `ends`. `segments` are the lines of each window. Rows of figures are sorted by line and window: `order`
    brings there what was found segment after segment.
    """

    lines: tuple[LatencyKey, ...]
    places: tuple[_Place, ...]
    starts: Counts
    ends: Counts
    lanes: Mapping[Layout, Lanes]
    segments: tuple[tuple[int, Counts], ...]

    def together(self, latencies: Counts) -> "Together":
        """The lines over all models to which some latencies belong."""
        starts, ends = np.searchsorted(latencies, self.starts), np.searchsorted(latencies, self.ends)
        some = np.flatnonzero(starts < ends)
        edges = np.stack((starts[some], ends[some]), axis=1).reshape(-1)
        return Together(some + len(self.places), edges[edges < latencies.size])

    def members(self, line: int) -> Sequence[LatencyKey]:
        """The latencies that a line speaks of."""
        first = line - len(self.places)
        if first < 0:
            return self.lines[line : line + 1]
        return self.lines[int(self.starts[first]) : int(self.ends[first])]

    def firsts_s(self) -> Counts:
        """The earliest step that each line is seen in."""
        own = np.array([place.first_s for place in self.places], dtype=np.int64)
        several = [own[start:end].min() for start, end in zip(self.starts, self.ends, strict=True)]
        return np.concatenate((own, np.array(several, dtype=np.int64)))

    @cached_property
    def services(self) -> tuple[tuple[Service, ...], Counts]:
        """The services, and which of them each line belongs to."""
        numbers: dict[Service, int] = {}
        of = [numbers.setdefault((line.environment, line.service), len(numbers)) for line in self.lines]
        return tuple(numbers), np.array(of, dtype=np.int64)

    @cached_property
    def order(self) -> Counts:
        """Which of the figures, segment after segment, stand in each row."""
        ranks = np.empty(len(self.lines), dtype=np.int64)
        ranks[sorted(range(len(self.lines)), key=self.lines.__getitem__)] = np.arange(len(self.lines))
        found: Counts = np.argsort(ranks[self._of_segments], kind="stable")
        return found

    @cached_property
    def columns(self) -> tuple[Sequence[str] | Sequence[int], ...]:
        """Environment, service, model, signal, source and window of every row."""
        of = self._of_segments[self.order].tolist()
        windows_s = np.concatenate([np.full(lines.size, window_s) for window_s, lines in self.segments])[self.order]
        texts = ([getattr(self.lines[line], name) for line in of] for name in _STATIC)
        return (*texts, windows_s.tolist())

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Of how many rows each line is, in the order of the rows."""
        of = self._of_segments[self.order]
        starts = np.concatenate(([0], np.flatnonzero(np.diff(of)) + 1, [of.size]))
        return runs(np.diff(starts).tolist())

    @property
    def _of_segments(self) -> Counts:
        """The line of each of the figures, segment after segment."""
        return np.concatenate([lines for _, lines in self.segments])


class Latencies:
    """The rolling histograms of the windows that end now."""

    def __init__(
        self, windows_s: Sequence[int], *, tick_s: int, now_s: int, kept_s: Callable[[str], Sequence[int]]
    ) -> None:
        """`kept_s` gives the windows that a service's percentiles are kept for; all of them among `windows_s`."""
        self._windows_s = windows_s
        self._tick_s = tick_s
        self._now_s = now_s
        self._kept_s = kept_s
        self._places: dict[LatencyKey, _Place] = {}
        self._lanes: dict[int, int] = {}
        self._settled_s = 0
        """No latency is seen for the first time later than then: what is no older changes nothing of that."""
        self._roster: Roster | None = None
        self.planes: dict[Layout, Plane] = {}

    def add(self, rows: Iterable[LatencyRow]) -> None:
        """Take in rows, of any age and in any order."""
        for sheet in bins.sheets(rows):
            self.add_sheet(sheet)

    def add_sheet(self, sheet: Sheet) -> None:
        """Take in histograms, of any age and in any order."""
        held = list(map(self._lanes.get, sheet.ids))
        if None in held or sheet.starts_s.min(initial=self._settled_s) < self._settled_s:
            firsts_s = np.full(len(sheet.series), np.iinfo(np.int64).max)
            np.minimum.at(firsts_s, sheet.of, sheet.starts_s)
            held = list(map(self._lane, sheet.series, firsts_s.tolist()))
        plane = self.planes[sheet.series[0].layout]
        plane.add(np.array(held, dtype=np.int64)[sheet.of], sheet.starts_s, sheet.bins)

    def advance(self, now_s: int) -> None:
        """Move the end of every window to now. A clock that went back moves nothing."""
        self._now_s = max(self._now_s, now_s)
        for plane in self.planes.values():
            plane.advance(now_s)

    def seen(self) -> list[LatencyKey]:
        """Every latency seen, sorted."""
        return sorted(self._places)

    def first_s(self, key: LatencyKey) -> int:
        """The earliest step a latency is seen in."""
        return self._places[key].first_s

    def values(self, key: LatencyKey, window_s: int) -> list[Buckets]:
        """The values of a latency over a window, one `Buckets` a layout."""
        place = self._places.get(key)
        return self._read(place.values, window_s) if place else []

    def waits(self, key: LatencyKey, window_s: int) -> list[Buckets]:
        """How long the window's requests had waited that ended past a deadline without a value."""
        place = self._places.get(key)
        return self._read(place.waits, window_s) if place else []

    def roster(self) -> Roster:
        """Every line of figures as it stands."""
        if self._roster is None:
            self._roster = self._listed()
        return self._roster

    def _read(self, lanes: Mapping[Layout, int], window_s: int) -> list[Buckets]:
        return [self.planes[layout].buckets(lane, window_s) for layout, lane in lanes.items()]

    def _lane(self, series: SeriesKey, first_s: int) -> int:
        """The lane of a series that is heard of from then on."""
        place = self._places.get(series.latency)
        if place is None:
            place = self._places[series.latency] = _Place(first_s)
        place.first_s = min(place.first_s, first_s)
        self._settled_s = max(self._settled_s, place.first_s)
        lanes = place.waits if series.censored else place.values
        lane = lanes.get(series.layout)
        if lane is None:
            if series.layout not in self.planes:
                plane = Plane(series.layout, self._windows_s, tick_s=self._tick_s, now_s=self._now_s)
                self.planes[series.layout] = plane
            lane = lanes[series.layout] = self.planes[series.layout].new_lane()
            self._roster = None
        if len(self._lanes) >= MAX_KEPT:  # instances come and go
            self._lanes.clear()
        self._lanes[series.id] = lane
        return lane

    def _listed(self) -> Roster:
        keys = sorted(self._places, key=attrgetter("environment", "service", "signal", "source", "model"))
        together: dict[LatencyKey, tuple[int, int]] = {}
        for line, some in groupby(enumerate(keys), key=lambda item: replace(item[1], model=ALL_MODELS)):
            places = [place for place, _ in some]
            if len(places) > 1 and line.signal not in STRATA:
                together[line] = places[0], places[-1] + 1
        lines = (*keys, *together)
        starts, ends = np.array(list(together.values()), dtype=np.int64).reshape(-1, 2).T
        kept_s = {service: set(self._kept_s(service)) for service in {line.service for line in lines}}
        segments = []
        for window_s in self._windows_s:
            of_strata = window_s in STRATUM_WINDOWS_S
            kept = [window_s in kept_s[line.service] and (of_strata or line.signal not in STRATA) for line in lines]
            mine = [number for number, is_kept in enumerate(kept) if is_kept]
            segments.append((window_s, np.array(mine, dtype=np.int64)))
        held = tuple(self._places[key] for key in keys)
        lanes = {layout: _lanes(held, layout) for layout in self.planes}
        return Roster(lines, held, starts, ends, lanes, tuple(segments))


def _lanes(places: Sequence[_Place], layout: Layout) -> Lanes:
    return Lanes(
        _held([place.values.get(layout) for place in places]), _held([place.waits.get(layout) for place in places])
    )


def _held(lanes: Sequence[int | None]) -> Held:
    found = [(latency, lane) for latency, lane in enumerate(lanes) if lane is not None]
    return Held(*np.array(found, dtype=np.int64).reshape(-1, 2).T.copy())
