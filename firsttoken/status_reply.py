"""The collector's `/api/v1/status` as values; a field that is missing or not what it should be is absent, never 0."""

from collections.abc import Mapping
from dataclasses import dataclass

from firsttoken.errors import UnreachableError
from firsttoken.json_fields import Object, number_at, object_at, objects_at, text_at, whole_at

TROUBLED = ("burning", "exhausted")


@dataclass(frozen=True, slots=True)
class WindowStatus:
    """Burn over one window; None without events."""

    label: str
    burn: float | None


@dataclass(frozen=True, slots=True)
class QuantileStatus:
    """Seconds; a quantile is None when it is not known."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class AlertStatus:
    tier: str
    state: str


@dataclass(frozen=True, slots=True)
class ObjectiveStatus:
    """One objective of one model."""

    service: str
    model: str
    name: str
    signal: str
    target: float | None
    threshold: float | None
    unit: str
    state: str
    windows: tuple[WindowStatus, ...]
    budget_remaining: float | None
    exhausted_in_s: float | None
    percentiles: Mapping[str, QuantileStatus]
    alerts: tuple[AlertStatus, ...]

    @property
    def is_troubled(self) -> bool:
        return self.state in TROUBLED

    @property
    def firing(self) -> tuple[str, ...]:
        """The burn tiers that fire; other alerts of the objective (a spent budget) have no tier."""
        return tuple(alert.tier for alert in self.alerts if alert.state == "firing" and alert.tier)

    def burn(self, label: str) -> float | None:
        """Burn over the window of that label."""
        return next((window.burn for window in self.windows if window.label == label), None)


@dataclass(frozen=True, slots=True)
class Status:
    at_s: float | None
    objectives: tuple[ObjectiveStatus, ...]

    @property
    def is_troubled(self) -> bool:
        return any(objective.is_troubled for objective in self.objectives)


def read(body: object) -> Status:
    """The status that a JSON answer is. Raises UnreachableError for an answer of another kind."""
    if not isinstance(body, Mapping) or not isinstance(body.get("objectives"), list):
        raise UnreachableError("the answer is not a collector's status: is this the collector's address?")
    return Status(number_at(body, "at_s"), tuple(_objective(item) for item in objects_at(body, "objectives")))


def _objective(item: Object) -> ObjectiveStatus:
    budget = object_at(item, "budget")
    percentiles = object_at(item, "percentiles")
    return ObjectiveStatus(
        service=text_at(item, "service"),
        model=text_at(item, "model"),
        name=text_at(item, "objective"),
        signal=text_at(item, "signal"),
        target=number_at(item, "target"),
        threshold=number_at(item, "threshold"),
        unit=text_at(item, "unit"),
        state=text_at(item, "state") or "no_data",
        windows=tuple(
            WindowStatus(text_at(one, "window"), number_at(one, "burn")) for one in objects_at(item, "windows")
        ),
        budget_remaining=number_at(budget, "remaining"),
        exhausted_in_s=number_at(budget, "exhausted_in_s"),
        percentiles={str(label): _quantiles(object_at(percentiles, label)) for label in percentiles},
        alerts=tuple(
            AlertStatus(text_at(alert, "tier"), text_at(alert, "state")) for alert in objects_at(item, "alerts")
        ),
    )


def _quantiles(item: Object) -> QuantileStatus:
    return QuantileStatus(
        whole_at(item, "count") or 0, number_at(item, "p50"), number_at(item, "p95"), number_at(item, "p99")
    )
