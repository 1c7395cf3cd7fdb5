"""The collector's `/api/v1/status` as values; a field that is missing or not what it should be is absent, never 0."""

from collections.abc import Mapping
from dataclasses import dataclass

from firsttoken.errors import UnreachableError
from firsttoken.json_fields import Object, number_at, object_at, objects_at, text_at, whole_at
from slo.words import visible

TROUBLED = ("burning", "exhausted")
QUANTILES = {0.5: "p50", 0.9: "p90", 0.95: "p95", 0.99: "p99", 0.999: "p999"}


@dataclass(frozen=True, slots=True)
class WindowStatus:
    """Burn over one window, None without events; `coverage` is the share of it from which telemetry is known."""

    label: str
    burn: float | None = None
    window_s: float | None = None
    coverage: float | None = None


@dataclass(frozen=True, slots=True)
class QuantileStatus:
    """Seconds; a quantile is None when it is not known."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None
    p90: float | None = None
    p999: float | None = None
    at_least: float | None = None

    def of(self, share: float) -> float | None:
        """The quantile of a share such as 0.95, where it is one of those that are kept."""
        name = QUANTILES.get(share)
        return None if name is None else getattr(self, name)


@dataclass(frozen=True, slots=True)
class AlertStatus:
    """An alert: of an objective, or with `name` and whom it speaks of among those of the whole status."""

    tier: str
    state: str
    name: str = ""
    service: str = ""
    model: str = ""
    objective: str = ""
    notify: str = ""
    since_s: float | None = None
    text: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True)
class TierStatus:
    """A burn alert: it fires when both windows, named by their labels, burn above `factor`."""

    name: str
    long: str
    short: str
    factor: float | None


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
    tiers: tuple[TierStatus, ...] = ()
    environment: str = ""

    @property
    def is_troubled(self) -> bool:
        return self.state in TROUBLED

    @property
    def firing(self) -> tuple[str, ...]:
        """The burn tiers that fire; other alerts of the objective (a spent budget) have no tier."""
        return tuple(alert.tier for alert in self.alerts if alert.state == "firing" and alert.tier)

    @property
    def pending(self) -> tuple[str, ...]:
        """The burn tiers whose long window burns, a shorter one not yet or no longer."""
        return tuple(alert.tier for alert in self.alerts if alert.state == "pending" and alert.tier)

    def window(self, label: str) -> WindowStatus:
        """The window of that label; one of which nothing is told is empty."""
        return next((window for window in self.windows if window.label == label), WindowStatus(label))


@dataclass(frozen=True, slots=True)
class Status:
    at_s: float | None
    objectives: tuple[ObjectiveStatus, ...]
    alerts: tuple[AlertStatus, ...] = ()
    left_out: int = 0
    """Objectives that match and are not here."""

    @property
    def is_troubled(self) -> bool:
        return any(objective.is_troubled for objective in self.objectives)


def read(body: object) -> Status:
    """The status that a JSON answer is. Raises UnreachableError for an answer of another kind."""
    if not isinstance(body, Mapping) or not isinstance(body.get("objectives"), list):
        raise UnreachableError("the answer is not a collector's status: is this the collector's address?")
    objectives = tuple(_objective(item) for item in objects_at(body, "objectives"))
    alerts = tuple(_alert(item) for item in objects_at(body, "alerts"))
    return Status(number_at(body, "at_s"), objectives, alerts, max((whole_at(body, "total") or 0) - len(objectives), 0))


def _objective(item: Object) -> ObjectiveStatus:
    budget = object_at(item, "budget")
    percentiles = object_at(item, "percentiles")
    return ObjectiveStatus(
        service=text_at(item, "service"),
        model=visible(text_at(item, "model")),
        name=text_at(item, "objective"),
        signal=text_at(item, "signal"),
        target=number_at(item, "target"),
        threshold=number_at(item, "threshold"),
        unit=text_at(item, "unit"),
        state=text_at(item, "state") or "no_data",
        windows=tuple(_window(one) for one in objects_at(item, "windows")),
        budget_remaining=number_at(budget, "remaining"),
        exhausted_in_s=number_at(budget, "exhausted_in_s"),
        percentiles={str(label): _quantiles(object_at(percentiles, label)) for label in percentiles},
        alerts=tuple(_alert(alert) for alert in objects_at(item, "alerts")),
        tiers=tuple(_tier(tier) for tier in objects_at(item, "tiers")),
        environment=text_at(item, "environment"),
    )


def _window(item: Object) -> WindowStatus:
    return WindowStatus(
        text_at(item, "window"), number_at(item, "burn"), number_at(item, "window_s"), number_at(item, "coverage")
    )


def _alert(item: Object) -> AlertStatus:
    said = object_at(item, "annotations")
    return AlertStatus(
        tier=text_at(item, "tier"),
        state=text_at(item, "state"),
        name=text_at(item, "name"),
        service=text_at(item, "service"),
        model=visible(text_at(item, "model")),
        objective=text_at(item, "objective"),
        notify=text_at(item, "notify"),
        since_s=number_at(item, "since_s"),
        text=visible(text_at(said, "description") or text_at(said, "summary")),
        cause=visible(text_at(said, "cause")),
    )


def _tier(item: Object) -> TierStatus:
    return TierStatus(text_at(item, "name"), text_at(item, "long"), text_at(item, "short"), number_at(item, "factor"))


def _quantiles(item: Object) -> QuantileStatus:
    p50, p90, p95, p99, p999 = (number_at(item, name) for name in ("p50", "p90", "p95", "p99", "p999"))
    return QuantileStatus(whole_at(item, "count") or 0, p50, p95, p99, p90, p999, number_at(item, "at_least"))
