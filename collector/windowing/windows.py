"""Rolling windows over event time: the collector's memory of all that its evaluation asks (DESIGN 5, 6).

Takes the rows that were committed (`Deltas`), live or read back at start; both are the same act. Gives, for the
windows that end now: the buckets of each latency, the good and bad events of each objective, coverage, who is alive,
and what counters and gauges did lately. It keeps latencies by (environment, service, model, signal, source), all
instances together, and one plane of rolling sums a layout of buckets, so that coarse histograms never spoil fine ones.

An objective on a latency whose series have no events judged at their source is read from its histograms at the
threshold as they come (`EventKey.basis` names the source). This needs the objectives, so a reload builds new windows
from the stored rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from collector.values import bins
from collector.values.bins import Sheet
from collector.values.deltas import Deltas, LatencyKey, SeriesKey, SloRow
from collector.values.quantile import splits_at
from collector.windowing.coverage import Coverage
from collector.windowing.events import EventKey, EventRow, Events
from collector.windowing.fleet import Fleet, Service
from collector.windowing.latencies import MAX_KEPT, Latencies
from collector.windowing.recent import Recent
from slo.burn import STANDARD_WINDOWS_S, tiers, windows_s
from slo.objective import Objective, Spec
from slo.quantity import duration_text
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


def too_short(plan: Plan) -> Iterator[str]:
    """The short windows that hold fewer than two ticks: a sender that is late once empties such a window, and its alert
    ends or does not begin."""
    tick, two_ticks_s = duration_text(plan.tick_s), 2 * plan.tick_s
    for spec in plan.specs:
        for objective in spec.objectives:
            for tier in tiers(objective):
                short = duration_text(tier.short_s)
                if tier.short_s < two_ticks_s:
                    yield (
                        f"tier {tier.name} of {spec.service}/{objective.name} looks back {short}, "
                        f"under two ticks of {tick}: give a shorter --tick, or short: {duration_text(two_ticks_s)}"
                    )


@dataclass(frozen=True, slots=True)
class _Told:
    """An objective that a histogram can answer for: its events as their sender judges them, and as they are read."""

    judged: EventKey
    read: EventKey
    threshold_s: float


class Windows:
    """Everything of the windows that end at `now_s`."""

    def __init__(self, plan: Plan, *, now_s: int) -> None:
        self.plan = plan
        self.now_s = now_s
        self.began_s = now_s
        self.events = Events(plan.windows_s, tick_s=plan.tick_s, now_s=now_s)
        self.fleet = Fleet()
        self.recent = Recent(now_s=now_s)
        self.latencies = Latencies(plan.windows_s, tick_s=plan.tick_s, now_s=now_s, kept_s=plan.service_windows_s)
        self._coverage: dict[Service, Coverage] = {}
        self._shares: dict[tuple[Service, int], float] = {}
        self._tells: dict[int, tuple[_Told, ...]] = {}

    def add(self, rows: Deltas) -> None:
        """Take in committed rows, of any age and in any order."""
        self._shares.clear()
        self.events.add(_judged(row) for row in rows.slo)
        for sheet in bins.sheets(rows.latencies):
            self.add_sheet(sheet)
        for row in rows.known:
            self._known((row.environment, row.service)).add(row.start_s)
        self.fleet.add(rows.instances, rows.gauges)
        self.recent.add(rows.counters, rows.gauges)

    def add_sheet(self, sheet: Sheet) -> None:
        """Take in histograms, of any age and in any order; events that their senders judged come before."""
        self.latencies.add_sheet(sheet)
        self.events.add(self._read(sheet))

    def follow(self, plan: Plan) -> None:
        """Judge by `plan` from now on: it keeps the same windows and judges by the same rules, or some of them."""
        self.plan = plan
        self._tells.clear()

    def advance(self, now_s: int) -> None:
        """Move the end of every window to now. A clock that went back moves nothing."""
        self.now_s = max(self.now_s, now_s)
        self._shares.clear()
        self.latencies.advance(now_s)
        self.events.advance(now_s)
        self.fleet.forget(self.now_s)
        self.recent.advance(self.now_s)

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

    def _read(self, sheet: Sheet) -> Iterator[EventRow]:
        """The events of objectives that histograms tell, for models whose events nobody judges at the source."""
        known = list(map(self._tells.get, sheet.ids))
        if not any(known) and None not in known:
            return
        telling = [(number, told) for number, series in enumerate(sheet.series) for told in self._told(series)]
        order = np.argsort(sheet.of, kind="stable")
        edges = np.searchsorted(sheet.of[order], np.arange(len(sheet.series) + 1)).tolist()
        starts_s, rows = sheet.starts_s.tolist(), order.tolist()
        latest_s = np.maximum.reduceat(sheet.starts_s[order], edges[:-1]).tolist()
        splits: dict[float, tuple[list[int], ...]] = {}
        for number, told in telling:
            if self.events.spoken(told.judged, latest_s[number]):
                continue
            for row in rows[edges[number] : edges[number + 1]]:
                if self.events.spoken(told.judged, starts_s[row]):
                    continue
                if told.threshold_s not in splits:
                    found = splits_at(sheet.series[number].layout, sheet.bins, told.threshold_s)
                    splits[told.threshold_s] = tuple(column.tolist() for column in found)
                below, above, unsure = splits[told.threshold_s]
                yield EventRow(told.read, starts_s[row], below[row], above[row], unsure[row])

    def _told(self, series: SeriesKey) -> tuple[_Told, ...]:
        """What the histograms of a series may tell."""
        found = self._tells.get(series.id)
        if found is None:
            if len(self._tells) >= MAX_KEPT:  # instances come and go
                self._tells.clear()
            found = self._tells[series.id] = tuple(self._answers(series))
        return found

    def _answers(self, series: SeriesKey) -> Iterator[_Told]:
        key, spec = series.latency, self.plan.spec(series.latency.service)
        if spec is None or series.censored or spec.environment not in ("", key.environment):
            return
        for objective in spec.objectives:
            if _readable(objective, key):
                assert objective.threshold is not None, "a latency objective has a threshold"
                who = key.environment, key.service, key.model, objective.name, objective.hash
                yield _Told(EventKey(*who), EventKey(*who, key.source), float(objective.threshold))


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
