"""Who is alive, and what each instance said last: instances of services and their latest gauges.

An instance is new at each start of its process, so one that fell silent may have been replaced: losses are counted
against births. An instance that only sends spans is silent whenever it is idle, so its silence means nothing.
What is older than an hour is forgotten, but for when each service spoke last; the rest is bounded by `MAX_INSTANCES`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from collector.values.deltas import GaugeRow, InstanceRow, folded_instances
from collector.values.measurement import NS

FRESH_S = 60
"""How long a gauge says something about now after it was sent: several export intervals."""
KEEP_S = 3600
MAX_INSTANCES = 10_000

Service = tuple[str, str]
"""(environment, service)."""


@dataclass(frozen=True, slots=True)
class Life:
    """A service's periodic senders: when any was first and last heard, and those heard in the last hour."""

    first_s: int
    last_s: int
    instances: tuple[InstanceRow, ...]

    def lost(self, *, now_s: int, silent_s: int) -> int:
        """Instances that fell silent in the last hour and that no newer one replaced."""
        silent = [one for one in self.instances if now_s - one.last_s >= silent_s]
        if not silent:
            return 0
        since_s = min(one.last_s for one in silent) - silent_s
        born = sum(1 for one in self.instances if one.first_s >= since_s)
        return max(len(silent) - born, 0)


@dataclass(frozen=True, slots=True)
class Reading:
    """The latest value of one gauge of one instance, no older than `FRESH_S`."""

    instance: str
    model: str
    attribute: str
    value: float


class Fleet:
    """Instances and their latest gauges, by service."""

    def __init__(self) -> None:
        self._instances: dict[Service, dict[tuple[str, str], InstanceRow]] = {}
        self._heard: dict[Service, tuple[int, int]] = {}
        self._gauges: dict[tuple[Service, str], dict[tuple[str, str, str], GaugeRow]] = {}

    def add(self, instances: Iterable[InstanceRow], gauges: Iterable[GaugeRow]) -> None:
        """Take in who spoke and what it said, in any order."""
        for row in instances:
            service = row.environment, row.service
            held = self._instances.setdefault(service, {})
            at = row.instance, row.source
            held[at] = folded_instances((held[at], row))[0] if at in held else row
            if row.periodic:
                first_s, last_s = self._heard.get(service, (row.first_s, row.last_s))
                self._heard[service] = min(first_s, row.first_s), max(last_s, row.last_s)
        for gauge in gauges:
            values = self._gauges.setdefault(((gauge.environment, gauge.service), gauge.name), {})
            key = gauge.instance, gauge.model, gauge.attribute
            if key not in values or values[key].last_ns <= gauge.last_ns:
                values[key] = gauge

    def forget(self, now_s: int) -> None:
        """Drop instances and gauges not heard of for an hour, and the longest silent beyond the limit."""
        for service, held in self._instances.items():
            recent = sorted(held.items(), key=lambda item: item[1].last_s)[-MAX_INSTANCES:]
            self._instances[service] = {at: row for at, row in recent if now_s - row.last_s <= KEEP_S}
        for key, values in self._gauges.items():
            self._gauges[key] = {at: row for at, row in values.items() if now_s - row.last_ns // NS <= FRESH_S}

    def services(self) -> frozenset[Service]:
        """Every service ever heard of."""
        return frozenset(self._instances)

    def life(self, service: Service) -> Life | None:
        """The service's periodic senders; None when it has none."""
        if service not in self._heard:
            return None
        instances = tuple(row for row in self._instances[service].values() if row.periodic)
        return Life(*self._heard[service], instances)

    def readings(self, service: Service, name: str, *, now_s: int) -> tuple[Reading, ...]:
        """The latest values of a gauge, one an instance, model and attribute."""
        return tuple(
            Reading(row.instance, row.model, row.attribute, row.last)
            for row in self._gauges.get((service, name), {}).values()
            if now_s - row.last_ns // NS <= FRESH_S
        )
