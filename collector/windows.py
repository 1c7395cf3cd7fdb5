"""Rolling windows over event time: the collector's memory of all that its evaluation asks (DESIGN 5, 6).

Takes the rows that were committed (`Deltas`), live or read back at start; both are the same act. Gives, for the
windows that end now: the buckets of each latency, the good and bad events of each objective, coverage, and who is
alive. It keeps latencies by (environment, service, model, signal, source), all instances together, and one plane of
rolling sums a layout of buckets, so that coarse histograms never spoil fine ones.

An objective on a latency whose series have no events judged at their source is read from its histograms at the
threshold as they come (`EventKey.basis` names the source). This needs the objectives, so a reload builds new windows
from the stored rows.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from collector.coverage import Coverage
from collector.deltas import Deltas, LatencyKey, LatencyRow, SloRow
from collector.events import EventKey, EventRow, Events
from collector.fleet import Fleet, Service
from collector.histogram import Layout
from collector.plane import Plane, Table
from collector.quantile import Buckets, split_at
from slo.burn import STANDARD_WINDOWS_S, windows_s
from slo.objective import Objective, Spec
from slo.signals import LATENCY_METRICS

LATENCY_SIGNALS = frozenset(metric.sql for metric in LATENCY_METRICS)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be kept: the specs, the tick (it divides 60 s), every window, and the longest of them."""

    specs: tuple[Spec, ...]
    tick_s: int
    windows_s: tuple[int, ...]

    @property
    def horizon_s(self) -> int:
        """How far back anything is kept."""
        return self.windows_s[-1]

    def spec(self, service: str) -> Spec | None:
        return next((spec for spec in self.specs if spec.service == service), None)

    def service_windows_s(self, service: str) -> tuple[int, ...]:
        """The windows of a service's percentiles: the standard ones and those of its objectives."""
        spec = self.spec(service)
        own = (windows_s(objective) for objective in spec.objectives) if spec else ()
        return tuple(sorted({*STANDARD_WINDOWS_S, *(window for some in own for window in some)}))


def plan(specs: Sequence[Spec], *, tick_s: int) -> Plan:
    """What the specs ask to be kept. Raises ValueError when the tick is no divisor of a minute."""
    if tick_s < 1 or 60 % tick_s:
        raise ValueError(f"tick {tick_s} s: use a divisor of a minute, as 1s, 2s, 5s, 10s, 15s, 20s, 30s or 60s")
    own = (windows_s(objective) for spec in specs for objective in spec.objectives)
    return Plan(tuple(specs), tick_s, tuple(sorted({*STANDARD_WINDOWS_S, *(w for some in own for w in some)})))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a series of histograms is kept."""

    plane: Plane
    lane: int


class Windows:
    """Everything of the windows that end at `now_s`."""

    def __init__(self, plan: Plan, *, now_s: int) -> None:
        self.plan = plan
        self.now_s = now_s
        self.began_s = now_s
        self.events = Events(plan.windows_s, tick_s=plan.tick_s, now_s=now_s)
        self.fleet = Fleet()
        self._planes: dict[Layout, Plane] = {}
        self._lanes: dict[Layout, int] = defaultdict(int)
        self._places: dict[tuple[LatencyKey, bool], dict[Layout, _Place]] = defaultdict(dict)
        self._first_s: dict[LatencyKey, int] = {}
        self._coverage: dict[Service, Coverage] = {}
        self._shares: dict[tuple[Service, int], float] = {}

    def add(self, rows: Deltas) -> None:
        """Take in committed rows, of any age and in any order."""
        self._shares.clear()
        self._add_latencies(rows.latencies)
        self.events.add(_judged(row) for row in rows.slo)
        self.events.add(event for row in rows.latencies for event in self._read(row))
        for row in rows.known:
            self._known((row.environment, row.service)).add(row.start_s)
        self.fleet.add(rows.instances, rows.gauges)

    def advance(self, now_s: int) -> None:
        """Move the end of every window to now. A clock that went back moves nothing."""
        self.now_s = max(self.now_s, now_s)
        self._shares.clear()
        for plane in self._planes.values():
            plane.rolling.advance(now_s)
        self.events.advance(now_s)
        self.fleet.forget(self.now_s)

    def latency_keys(self) -> list[LatencyKey]:
        """Every latency seen, sorted."""
        return sorted(self._first_s)

    def tables(self, window_s: int, shares: Sequence[float]) -> dict[LatencyKey, tuple[Table, int]]:
        """The quantiles of every latency that one layout holds alone and that has no waits: all lanes of a plane at
        once, and the lane of each key."""
        read = {layout: plane.table(window_s, shares) for layout, plane in self._planes.items()}
        alone: dict[LatencyKey, tuple[Table, int]] = {}
        for (key, censored), places in self._places.items():
            if not censored and len(places) == 1 and (key, True) not in self._places:
                ((layout, place),) = places.items()
                alone[key] = read[layout], place.lane
        return alone

    def latency(self, key: LatencyKey, window_s: int) -> list[Buckets]:
        """The values of a latency over a window, one `Buckets` a layout."""
        places = self._places.get((key, False), {})
        return [place.plane.buckets(place.lane, window_s) for place in places.values()]

    def waited(self, key: LatencyKey, window_s: int) -> list[Buckets]:
        """How long the window's requests had waited that ended past a deadline without a value."""
        places = self._places.get((key, True), {})
        return [place.plane.buckets(place.lane, window_s) for place in places.values()]

    def age_s(self, key: LatencyKey) -> int:
        """Since when a latency is seen, to the end of the running tick."""
        return self.now_s + self.plan.tick_s - self._first_s[key]

    def services(self) -> list[Service]:
        """Every (environment, service) heard of, sorted."""
        return sorted(self._coverage)

    def environments(self, spec: Spec) -> list[str]:
        """The environments that a spec's objectives are judged in: its own, or for one that names none all those its
        service is heard from."""
        heard = {environment for environment, service in self._coverage if service == spec.service}
        return [spec.environment] if spec.environment or not heard else sorted(heard)

    def coverage(self, service: Service, window_s: int) -> float:
        """The share of a window from which telemetry of a service is known."""
        at, known = (service, window_s), self._coverage.get(service)
        if known is None:
            return 0.0
        if at not in self._shares:
            self._shares[at] = known.share(window_s, now_s=self.now_s, assumed=self.assumed(service))
        return self._shares[at]

    def assumed(self, service: Service) -> bool:
        """Whether the service's silence says nothing: it is elastic, or it sends nothing on its own."""
        spec = self.plan.spec(service[1])
        return (spec is not None and spec.elastic) or self.fleet.life(service) is None

    def _known(self, service: Service) -> Coverage:
        if service not in self._coverage:
            self._coverage[service] = Coverage(tick_s=self.plan.tick_s, horizon_s=self.plan.horizon_s)
        return self._coverage[service]

    def _add_latencies(self, rows: Iterable[LatencyRow]) -> None:
        by_plane: defaultdict[Layout, list[tuple[int, LatencyRow]]] = defaultdict(list)
        for row in rows:
            series = row.series
            self._first_s[series.latency] = min(self._first_s.get(series.latency, row.start_s), row.start_s)
            place = self._place(series.latency, series.censored, series.layout)
            by_plane[series.layout].append((place.lane, row))
        for layout, held in by_plane.items():
            plane = self._planes[layout]
            cells = [plane.cells(row.histogram) for _, row in held]
            sizes = [columns.size for columns, _ in cells]
            starts = np.repeat(np.array([row.start_s for _, row in held], dtype=np.int64), sizes)
            lanes = np.repeat(np.array([lane for lane, _ in held], dtype=np.int64), sizes)
            columns = np.concatenate([one for one, _ in cells])
            plane.rolling.add(starts, (lanes, columns), np.concatenate([counts for _, counts in cells]))

    def _place(self, key: LatencyKey, censored: bool, layout: Layout) -> _Place:
        places = self._places[key, censored]
        if layout not in places:
            if layout not in self._planes:
                plan = self.plan
                self._planes[layout] = Plane(layout, plan.windows_s, tick_s=plan.tick_s, now_s=self.now_s)
            places[layout] = _Place(self._planes[layout], self._lanes[layout])
            self._planes[layout].rolling.reserve(self._lanes[layout])
            self._lanes[layout] += 1
        return places[layout]

    def _read(self, row: LatencyRow) -> Iterator[EventRow]:
        """The events of objectives that a histogram tells, for a model whose events nobody judges at the source."""
        key, spec = row.series.latency, self.plan.spec(row.series.latency.service)
        if spec is None or row.series.censored or spec.environment not in ("", key.environment):
            return
        for objective in spec.objectives:
            if not _readable(objective, key):
                continue
            assert objective.threshold is not None, "a latency objective has a threshold"
            who = key.environment, key.service, key.model, objective.name, objective.hash
            if not self.events.has(EventKey(*who)):
                split = split_at(row.histogram, float(objective.threshold))
                yield EventRow(EventKey(*who, key.source), row.start_s, split.below, split.above, split.unsure)


def _judged(row: SloRow) -> EventRow:
    key = EventKey(row.environment, row.service, row.model, row.objective, row.objective_hash)
    return EventRow(key, row.start_s, row.good, row.bad)


def _readable(objective: Objective, key: LatencyKey) -> bool:
    """Whether a histogram can answer for an objective: classes and prompt sizes are not in it."""
    match = objective.match
    return (
        objective.signal == key.signal
        and objective.signal in LATENCY_SIGNALS
        and match.class_ is None
        and match.prompt_bytes is None
        and match.holds_model(key.model)
    )
