"""All objectives as they stand, as plain data: the one shape behind `/api/v1/status` and the page (DESIGN 4.5)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any, Literal

from collector.judging.evaluate import Evaluation
from collector.judging.percentiles import QUANTILES, source_rank
from collector.values.alerting import Alert
from collector.values.columns import Columns
from collector.values.verdicts import BudgetRow
from slo.burn import Tier, tiers, windows_s
from slo.objective import Objective, Spec
from slo.quantity import duration_text
from slo.signals import ALL_MODELS, SIGNALS
from slo.trouble import BUDGET_POLICY

MAX_MODELS_TOLD = 5
"""Of a service without an objective."""
State = Literal["ok", "burning", "exhausted", "no_data"]
_FIGURES = ("count", "censored", *QUANTILES, "max", "at_least", "rel_error", "coverage")
_WINDOW = ("window_s", "good", "bad", "burn", "coverage")
_Of = tuple[str, str, str]  # environment, service, model


@dataclass(frozen=True, slots=True)
class _Index:
    """Where the rows of an evaluation stand, by whom they speak of, and its columns as the status names them."""

    burns: Mapping[tuple[_Of, str], Sequence[int]]
    budgets: Mapping[tuple[_Of, str], BudgetRow]
    percentiles: Mapping[tuple[_Of, str], Sequence[int]]
    models: Mapping[tuple[str, str, str], Sequence[str]]
    alerts: Mapping[tuple[_Of, str], Sequence[Alert]]
    windows: Mapping[str, Sequence[Any]]
    figures: Mapping[str, Sequence[Any]]


def status(specs: Sequence[Spec], evaluation: Evaluation | None, alerts: Iterable[Alert]) -> dict[str, Any]:
    """The status of every objective of the specs, for each model seen and over all of them; `alerts` are those that
    are pending or firing. Before the first evaluation every objective has no data."""
    alerts = tuple(alerts)
    index = _indexed(evaluation, alerts)
    seen = _seen(index)
    found = [
        one
        for spec in specs
        for objective in spec.objectives
        for one in _standing(spec, objective, seen.get((spec.service, objective.name), ()), index)
    ]
    at_s = evaluation.at_s if evaluation else None
    drifts = [asdict(row) for row in evaluation.drifts] if evaluation else []
    return {
        "at_s": at_s,
        "objectives": found,
        "alerts": [_told(alert) for alert in alerts],
        "drifts": drifts,
        "unjudged": list(_unjudged(specs, evaluation)) if evaluation else [],
    }


def _unjudged(specs: Sequence[Spec], evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """The services that are heard from, and that no objective speaks of."""
    rows, promised = evaluation.percentiles, {spec.service for spec in specs}
    heard: defaultdict[tuple[str, str], tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    columns = (rows.column(name) for name in ("environment", "service", "model", "signal"))
    for environment, service, model, signal in zip(*columns, strict=True):
        if service not in promised:
            models, signals = heard[environment, service]
            models.add(model)
            signals.add(signal)
    for (environment, service), (models, signals) in sorted(heard.items()):
        names = sorted(models - {ALL_MODELS})
        told = {"models": names[:MAX_MODELS_TOLD], "models_count": len(names), "signals": sorted(signals)}
        yield {"environment": environment, "service": service, **told}


def _indexed(evaluation: Evaluation | None, alerts: Iterable[Alert]) -> _Index:
    told: defaultdict[tuple[_Of, str], list[Alert]] = defaultdict(list)
    for alert in alerts:
        key = alert.key
        told[(key.environment, key.service, key.model), key.objective].append(alert)
    if evaluation is None:
        return _Index({}, {}, {}, {}, told, {}, {})
    burns, percentiles = evaluation.burns, evaluation.percentiles
    latencies = _places(percentiles, "signal")
    models: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (environment, service, model), signal in latencies:
        models[environment, service, signal].append(model)
    budgets = {((row.environment, row.service, row.model), row.objective): row for row in evaluation.budgets}
    windows = {name: burns.column(name) for name in _WINDOW}
    figures = {name: percentiles.column(name) for name in ("source", "window_s", *_FIGURES)}
    return _Index(_places(burns, "objective"), budgets, latencies, models, told, windows, figures)


def _places(rows: Columns[Any], name: str) -> dict[tuple[_Of, str], list[int]]:
    """Where the rows of each environment, service, model and `name` stand."""
    found: defaultdict[tuple[_Of, str], list[int]] = defaultdict(list)
    of = zip(rows.column("environment"), rows.column("service"), rows.column("model"), strict=True)
    for place, key in enumerate(zip(of, rows.column(name), strict=True)):
        found[key].append(place)
    return found


def _seen(index: _Index) -> dict[tuple[str, str], list[_Of]]:
    """Whom each objective is kept for: all its models together first, then each."""
    found: defaultdict[tuple[str, str], list[_Of]] = defaultdict(list)
    for of, name in index.budgets:
        found[of[1], name].append(of)
    return {key: sorted(some, key=lambda of: (of[0], of[2] != ALL_MODELS, of[2])) for key, some in found.items()}


def _standing(spec: Spec, objective: Objective, seen: Sequence[_Of], index: _Index) -> Iterator[dict[str, Any]]:
    """An objective for each of those it is kept for."""
    promised = {
        "objective": objective.name,
        "signal": objective.signal,
        "target": float(objective.goal),
        "threshold": None if objective.threshold is None else float(objective.threshold),
        "unit": SIGNALS[objective.signal].unit,
        "period": duration_text(objective.window),
        "period_s": objective.window,
        "owner": objective.owner or "",
        "tiers": [_tier(tier) for tier in tiers(objective)],
    }
    labels = {window_s: duration_text(window_s) for window_s in windows_s(objective)}
    for of in seen or [(spec.environment, spec.service, ALL_MODELS)]:
        budget = index.budgets.get((of, objective.name))
        alerts = index.alerts.get((of, objective.name), ())
        yield {
            "environment": of[0],
            "service": of[1],
            "model": of[2],
            **promised,
            "basis": budget.basis if budget else None,
            "state": _state(budget, alerts),
            "windows": _windows(index, index.burns.get((of, objective.name), ()), labels),
            "budget": _budget(budget),
            "percentiles": _percentiles(objective, of, index),
            "alerts": [_alert(alert) for alert in alerts],
        }


def _windows(index: _Index, places: Iterable[int], labels: Mapping[int, str]) -> list[dict[str, Any]]:
    """The burn of each of the windows, ascending."""
    found = [{name: column[place] for name, column in index.windows.items()} for place in places]
    mine = sorted((one for one in found if one["window_s"] in labels), key=itemgetter("window_s"))
    return [{"window": labels[one["window_s"]], **one} for one in mine]


def _state(budget: BudgetRow | None, alerts: Sequence[Alert]) -> State:
    """Exhausted outranks burning: with the budget gone, the contract is broken whether or not it burns now."""
    if budget is None or budget.good + budget.bad == 0:
        return "no_data"
    if budget.remaining <= 0:
        return "exhausted"
    return "burning" if any(one.state == "firing" and one.key.name != BUDGET_POLICY for one in alerts) else "ok"


def _tier(tier: Tier) -> dict[str, Any]:
    return {
        "name": tier.name,
        "long": duration_text(tier.long_s),
        "short": duration_text(tier.short_s),
        "factor": float(tier.factor),
        "notify": tier.notify,
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
    """By window, all from one source, the best that has seen anything: the sidecar's own eye before what an engine says
    of itself."""
    whose = of if of[2] != ALL_MODELS else _together(objective, of, index)
    by_source: defaultdict[str, list[int]] = defaultdict(list)
    for place in index.percentiles.get((whose, objective.signal), ()):
        by_source[index.figures["source"][place]].append(place)
    ranked = sorted(by_source, key=source_rank)
    best = next((source for source in ranked if _saw(index, by_source[source])), ranked[0] if ranked else "")
    places = sorted(by_source[best], key=lambda place: index.figures["window_s"][place])
    return {duration_text(index.figures["window_s"][place]): _figures(index, place) for place in places}


def _saw(index: _Index, places: Iterable[int]) -> bool:
    return any(index.figures["count"][place] + index.figures["censored"][place] for place in places)


def _together(objective: Objective, of: _Of, index: _Index) -> _Of:
    """Whose percentiles are those of all models of an objective: its only model's, or those over all the models of the
    service where it speaks of each of them. Of some of several nobody keeps any."""
    environment, service, _ = of
    models = [model for model in index.models.get((environment, service, objective.signal), ()) if model != ALL_MODELS]
    mine = [model for model in models if objective.match.holds_model(model)]
    if len(mine) == 1:
        return environment, service, mine[0]
    return (environment, service, ALL_MODELS if mine == models else "")


def _figures(index: _Index, place: int) -> dict[str, Any]:
    return {name: column[place] for name, column in index.figures.items() if name != "window_s"}


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
