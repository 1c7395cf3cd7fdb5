"""The collector's `/api/v1/status` as values; a field that is missing or not what it should be is absent, never 0."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from firsttoken.errors import UnreachableError

TROUBLED = ("burning", "exhausted")


@dataclass(frozen=True, slots=True)
class WindowStatus:
    """Events of one window; `burn` is None without events."""

    label: str
    window_s: float | None
    good: int | None
    bad: int | None
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
    return Status(_number(body, "at_s"), tuple(_objective(item) for item in _maps(body.get("objectives"))))


def _objective(item: Mapping[str, object]) -> ObjectiveStatus:
    budget = _map(item, "budget")
    percentiles = _map(item, "percentiles")
    return ObjectiveStatus(
        service=_text(item, "service"),
        model=_text(item, "model"),
        name=_text(item, "objective"),
        signal=_text(item, "signal"),
        target=_number(item, "target"),
        threshold=_number(item, "threshold"),
        unit=_text(item, "unit"),
        state=_text(item, "state") or "no_data",
        windows=tuple(_window(window) for window in _maps(item.get("windows"))),
        budget_remaining=_number(budget, "remaining"),
        exhausted_in_s=_number(budget, "exhausted_in_s"),
        percentiles={str(label): _quantiles(_map(percentiles, label)) for label in percentiles},
        alerts=tuple(AlertStatus(_text(alert, "tier"), _text(alert, "state")) for alert in _maps(item.get("alerts"))),
    )


def _window(item: Mapping[str, object]) -> WindowStatus:
    return WindowStatus(
        _text(item, "window"),
        _number(item, "window_s"),
        _whole(item, "good"),
        _whole(item, "bad"),
        _number(item, "burn"),
    )


def _quantiles(item: Mapping[str, object]) -> QuantileStatus:
    return QuantileStatus(_whole(item, "count") or 0, _number(item, "p50"), _number(item, "p95"), _number(item, "p99"))


def _map(item: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = item.get(key)
    return value if isinstance(value, dict) else {}


def _maps(value: object) -> Iterable[Mapping[str, object]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _text(item: Mapping[str, object], key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _number(item: Mapping[str, object], key: str) -> float | None:
    """A JSON number, or a number written as text."""
    value = item.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _whole(item: Mapping[str, object], key: str) -> int | None:
    value = _number(item, key)
    return None if value is None else int(value)
