"""What counters and gauges did in the last minutes, where: what the alerts on requests, engines and GPUs ask.

Takes the rows that were committed, live or read back at a start, and keeps a trail of each part of each place: of a
service as a whole its requests by what became of them, of an instance what its engine and its GPUs say. Models are
added up, since none of these alerts speaks of one. It knows which places moved lately, so that a tick asks about those
alone. What is older than `KEPT_S` is not taken, and is dropped in a sweep.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from collector.values.deltas import CounterRow, GaugeRow
from collector.windowing.fleet import Service
from collector.windowing.trail import Trail
from slo.signals import (
    ABANDONED,
    BROKEN_STREAMS,
    CLASS,
    ENGINE_PREEMPTIONS,
    ENGINE_WAITING,
    ERROR_TYPE,
    GPU_ERRORS,
    GPU_LOST,
    GPU_REMAP_FAILED,
    GPU_REMAP_PENDING,
    GPU_THROTTLE,
    HW_ID,
    HW_NAME,
    KV_OCCUPANCY,
    LABELS,
    OLDEST_AGE,
    OUTCOME,
    REASON,
    REQUESTS,
    SYNTHETIC_CLASS,
    TTFT_PREDICTED,
)
from slo.trouble import GPU_ERROR_TYPES, NO_LOAD, SHARES, THROTTLE_REASONS

KEPT_S = 1200
"""Longer than any window that is asked for, and the time that its alert looks back on it."""
SWEEP_S = 300
MAX_TRAILS = 20_000
"""What moves beyond so many is not kept until a sweep has made room."""

ENDED = "ended"
"""Requests that ended, of an instance: of every class, whatever became of them."""
SYNTHETIC = "synthetic"
"""Those of them that were synthetic."""
DEVICE_GAUGES = frozenset(metric.sql for metric in (GPU_LOST, GPU_REMAP_FAILED, GPU_REMAP_PENDING))
GAUGES = DEVICE_GAUGES | {ENGINE_WAITING.sql, KV_OCCUPANCY.sql, OLDEST_AGE.sql, TTFT_PREDICTED.sql}
COUNTERS = frozenset(
    metric.sql for metric in (REQUESTS, ABANDONED, BROKEN_STREAMS, ENGINE_PREEMPTIONS, GPU_THROTTLE, GPU_ERRORS)
)
_OF_DEVICES = frozenset((GPU_THROTTLE.sql, GPU_ERRORS.sql))
_EVEN_AT_ZERO = frozenset((ENDED, ENGINE_WAITING.sql, KV_OCCUPANCY.sql))
"""What says something where it is 0; of everything else a trail begins with the first value that is not."""
_OUTCOMES = frozenset((*NO_LOAD, *(share.outcome for share in SHARES if share.outcome is not None)))
_CLASS, _OUTCOME, _REASON, _ERROR_TYPE = (LABELS[key] for key in (CLASS, OUTCOME, REASON, ERROR_TYPE))
_ID, _NAME = LABELS[HW_ID], LABELS[HW_NAME]

Place = tuple[Service, str]
"""A service and one of its instances; '' for all of them together."""
Part = tuple[str, ...]
"""What of a place: () all of it, (outcome,) requests, (device, reason) throttling, (device,) other words of a GPU,
(model, rank) other gauges."""


@dataclass(slots=True)
class _Kind:
    """The trails of one kind of thing, and when each place of it was last anything but 0."""

    trails: dict[Place, dict[Part, Trail]] = field(default_factory=dict)
    moved_s: dict[Place, int] = field(default_factory=dict)


class Recent:
    """The last minutes of many places."""

    def __init__(self, *, now_s: int) -> None:
        self._now_s = self._swept_s = now_s
        self._kinds: defaultdict[str, _Kind] = defaultdict(_Kind)
        self._trails = 0
        self._devices: dict[tuple[Place, str], str] = {}

    def add(self, counters: Iterable[CounterRow], gauges: Iterable[GaugeRow]) -> None:
        """Take in committed rows, of any age and in any order."""
        oldest_s = self._now_s - KEPT_S
        for row in counters:
            if row.start_s > oldest_s and row.name in COUNTERS:
                self._count(row)
        for gauge in gauges:
            if gauge.start_s > oldest_s and gauge.name in GAUGES:
                place = (gauge.environment, gauge.service), gauge.instance
                part = (gauge.attribute,) if gauge.name in DEVICE_GAUGES else (gauge.model, gauge.attribute)
                trail = self._moved(gauge.name, place, part, start_s=gauge.start_s, value=gauge.last)
                if trail is not None:
                    trail.put(gauge.start_s, gauge.last)

    def _count(self, row: CounterRow) -> None:
        for name, place, part in self._counted(row):
            trail = self._moved(name, place, part, start_s=row.start_s, value=row.value)
            if trail is not None:
                trail.add(row.start_s, row.value)

    def _counted(self, row: CounterRow) -> Iterator[tuple[str, Place, Part]]:
        """Everything that a counter is counted in; where it did not grow, only what says something at 0."""
        service = row.environment, row.service
        whole, own = (service, ""), (service, row.instance)
        if row.name == REQUESTS.sql:
            yield ENDED, own, ()
        if not row.value and row.name not in _OF_DEVICES:
            return
        said = dict(row.attributes)
        if row.name in _OF_DEVICES:
            yield from self._counted_of_device(row, own, said)
        elif row.name == ENGINE_PREEMPTIONS.sql:
            yield row.name, own, ()
        elif said.get(_CLASS) == SYNTHETIC_CLASS:
            yield SYNTHETIC, own, ()
        else:
            yield row.name, whole, ()
            if said.get(_OUTCOME) in _OUTCOMES:
                yield row.name, whole, (said[_OUTCOME],)

    def _counted_of_device(
        self, row: CounterRow, own: Place, said: Mapping[str, str]
    ) -> Iterator[tuple[str, Place, Part]]:
        device = said.get(_ID, "")
        self._devices[own, device] = said.get(_NAME, "")
        if row.name == GPU_THROTTLE.sql and said.get(_REASON) in THROTTLE_REASONS:
            yield row.name, own, (device, said[_REASON])
        elif row.name == GPU_ERRORS.sql and said.get(_ERROR_TYPE) in GPU_ERROR_TYPES:
            yield row.name, own, (device,)

    def _moved(self, name: str, place: Place, part: Part, *, start_s: int, value: float) -> Trail | None:
        """The trail that a value belongs to; None when it says nothing, or there is no room."""
        kind = self._kinds[name]
        if value:
            kind.moved_s[place] = max(start_s, kind.moved_s.get(place, start_s))
        trail = kind.trails.get(place, {}).get(part)
        if trail is None and (value or name in _EVEN_AT_ZERO) and self._trails < MAX_TRAILS:
            trail = kind.trails.setdefault(place, {})[part] = Trail()
            self._trails += 1
        return trail

    def advance(self, now_s: int) -> None:
        """Move on to now, and let go now and then of what is past."""
        self._now_s = max(self._now_s, now_s)
        if self._now_s - self._swept_s >= SWEEP_S:
            self._swept_s = self._now_s
            self._sweep(self._now_s - KEPT_S)

    def _sweep(self, until_s: int) -> None:
        left = 0
        for kind in self._kinds.values():
            for place, parts in list(kind.trails.items()):
                kind.trails[place] = {part: one for part, one in parts.items() if one.forget(until_s=until_s)}
                left += len(kind.trails[place])
            kind.trails = {place: parts for place, parts in kind.trails.items() if parts}
            kind.moved_s = {place: at_s for place, at_s in kind.moved_s.items() if at_s > until_s}
        self._trails = left
        if len(self._devices) > MAX_TRAILS:  # instances come and go
            self._devices.clear()

    def moving(self, name: str) -> Iterable[Place]:
        """The places where the thing was lately anything but 0, and hardly any other."""
        return self._kinds[name].moved_s if name in self._kinds else ()

    def trails(self, name: str, place: Place) -> Mapping[Part, Trail]:
        """What is kept of a thing at a place."""
        return self._kinds[name].trails.get(place, {}) if name in self._kinds else {}

    def device_name(self, place: Place, device: str) -> str:
        """What a GPU is called; '' when it has not said."""
        return self._devices.get((place, device), "")
