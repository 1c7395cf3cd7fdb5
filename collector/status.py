"""All objectives as they stand, as plain data: the one shape behind `/api/v1/status` and the page (DESIGN 4.5)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from collector.evaluate import Alert, BudgetRow, BurnRow, Evaluation, PercentileRow
from slo.burn import windows_s
from slo.objective import Objective, Spec
from slo.quantity import duration_text
from slo.signals import ALL_MODELS, SIGNALS, SOURCES

State = Literal["ok", "burning", "exhausted", "no_data"]
QUANTILES = ("p50", "p90", "p95", "p99", "p999")
_FIGURES = ("count", "censored", *QUANTILES, "max", "at_least", "rel_error", "coverage")
_Of = tuple[str, str, str]  # environment, service, model


@dataclass(frozen=True, slots=True)
class _Index:
    """The rows of an evaluation by whom they speak of."""

    burns: Mapping[tuple[_Of, str], Sequence[BurnRow]]
    budgets: Mapping[tuple[_Of, str], BudgetRow]
    percentiles: Mapping[tuple[_Of, str], Sequence[PercentileRow]]
    alerts: Mapping[tuple[_Of, str], Sequence[Alert]]


def status(specs: Sequence[Spec], evaluation: Evaluation | None, alerts: Iterable[Alert]) -> dict[str, Any]:
    """The status of every objective of the specs, for each model seen and over all of them; `alerts` are those that
    are pending or firing. Before the first evaluation every objective has no data."""
    alerts = tuple(alerts)
    index = _indexed(evaluation, alerts)
    found = [
        _objective(objective, of, index)
        for spec in specs
        for objective in spec.objectives
        for of in _models(spec, objective, index)
    ]
    at_s = evaluation.at_s if evaluation else None
    return {"at_s": at_s, "objectives": found, "alerts": [_told(alert) for alert in alerts]}


def _indexed(evaluation: Evaluation | None, alerts: Iterable[Alert]) -> _Index:
    burns: defaultdict[tuple[_Of, str], list[BurnRow]] = defaultdict(list)
    percentiles: defaultdict[tuple[_Of, str], list[PercentileRow]] = defaultdict(list)
    told: defaultdict[tuple[_Of, str], list[Alert]] = defaultdict(list)
    budgets: dict[tuple[_Of, str], BudgetRow] = {}
    if evaluation is not None:
        for burn in evaluation.burns:
            burns[_of(burn), burn.objective].append(burn)
        for row in evaluation.percentiles:
            percentiles[_of(row), row.signal].append(row)
        budgets = {(_of(budget), budget.objective): budget for budget in evaluation.budgets}
    for alert in alerts:
        told[_of(alert.key), alert.key.objective].append(alert)
    return _Index(burns, budgets, percentiles, told)


def _of(row: Any) -> _Of:
    return (row.environment, row.service, row.model)


def _models(spec: Spec, objective: Objective, index: _Index) -> list[_Of]:
    """Whom the objective is kept for: all its models together first, then each."""
    seen = {of for of, name in index.budgets if name == objective.name and of[1] == spec.service}
    if not seen:
        return [(spec.environment, spec.service, ALL_MODELS)]
    return sorted(seen, key=lambda of: (of[0], of[2] != ALL_MODELS, of[2]))


def _objective(objective: Objective, of: _Of, index: _Index) -> dict[str, Any]:
    key = (of, objective.name)
    budget = index.budgets.get(key)
    alerts = index.alerts.get(key, ())
    environment, service, model = of
    return {
        "environment": environment,
        "service": service,
        "model": model,
        "objective": objective.name,
        "signal": objective.signal,
        "target": float(objective.goal),
        "threshold": None if objective.threshold is None else float(objective.threshold),
        "unit": SIGNALS[objective.signal].unit,
        "period": duration_text(objective.window),
        "period_s": objective.window,
        "owner": objective.owner or "",
        "basis": budget.basis if budget else None,
        "state": _state(budget, alerts),
        "windows": [_window(row) for row in _kept(objective, index.burns.get(key, ()))],
        "budget": _budget(budget),
        "percentiles": _percentiles(objective, of, index),
        "alerts": [_alert(alert) for alert in alerts],
    }


def _kept(objective: Objective, burns: Iterable[BurnRow]) -> list[BurnRow]:
    kept = set(windows_s(objective))
    return sorted((row for row in burns if row.window_s in kept), key=lambda row: row.window_s)


def _state(budget: BudgetRow | None, alerts: Sequence[Alert]) -> State:
    """Exhausted outranks burning: with the budget gone, the contract is broken whether or not it burns now."""
    if budget is None or budget.good + budget.bad == 0:
        return "no_data"
    if budget.remaining <= 0:
        return "exhausted"
    return "burning" if any(alert.state == "firing" for alert in alerts) else "ok"


def _window(row: BurnRow) -> dict[str, Any]:
    return {
        "window": duration_text(row.window_s),
        "window_s": row.window_s,
        "good": row.good,
        "bad": row.bad,
        "burn": row.burn,
        "coverage": row.coverage,
    }


def _budget(row: BudgetRow | None) -> dict[str, Any]:
    if row is None:
        return {"good": 0, "bad": 0, "allowance": 0.0, "remaining": 1.0, "exhausted_in_s": None, "coverage": 0.0}
    return {
        "good": row.good,
        "bad": row.bad,
        "allowance": row.allowance,
        "remaining": row.remaining,
        "exhausted_in_s": row.exhausted_in_s,
        "coverage": row.coverage,
    }


def _percentiles(objective: Objective, of: _Of, index: _Index) -> dict[str, Any]:
    """By window, from the best source there is: the sidecar's own eye before what an engine says of itself."""
    rows = index.percentiles.get((of, objective.signal)) or _only_model(objective, of, index)
    best = {row.window_s: row for row in sorted(rows, key=_source_rank, reverse=True)}
    return {duration_text(window_s): _figures(best[window_s]) for window_s in sorted(best)}


def _only_model(objective: Objective, of: _Of, index: _Index) -> Sequence[PercentileRow]:
    """Percentiles are kept by model; over all models they are known where there is only one."""
    if of[2] != ALL_MODELS:
        return ()
    mine = [
        rows
        for (other, signal), rows in index.percentiles.items()
        if signal == objective.signal and other[:2] == of[:2] and objective.match.holds_model(other[2])
    ]
    return mine[0] if len(mine) == 1 else ()


def _source_rank(row: PercentileRow) -> int:
    return SOURCES.index(row.source) if row.source in SOURCES else len(SOURCES)


def _figures(row: PercentileRow) -> dict[str, Any]:
    return {"source": row.source, **{name: getattr(row, name) for name in _FIGURES}}


def _told(alert: Alert) -> dict[str, Any]:
    """An alert with whom it speaks of: also those of a service, that belong to no objective."""
    key = alert.key
    of = {"environment": key.environment, "service": key.service, "model": key.model, "objective": key.objective}
    return of | _alert(alert)


def _alert(alert: Alert) -> dict[str, Any]:
    labels = dict(alert.labels)
    return {
        "name": alert.key.name,
        "tier": alert.key.tier,
        "state": alert.state,
        "since_s": alert.since_s,
        "fired_s": alert.fired_s,
        "severity": labels.get("severity", ""),
        "notify": labels.get("notify", ""),
        "annotations": dict(alert.annotations),
    }
