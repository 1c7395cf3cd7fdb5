"""Objectives and specs as somebody would write them: the mapping of slo.yaml that a value was, or could have been."""

from decimal import Decimal

from slo.objective import Match, Objective, PromptBytes, Spec, TierSpec
from slo.quantity import duration_text, percent_text
from slo.words import limit


def authored(objective: Objective) -> dict[str, object]:
    """The mapping that gives this objective again; what has its default is left out."""
    goal = "percentile" if objective.percentile is not None else "target"
    found: dict[str, object] = {
        "name": objective.name,
        "signal": objective.signal,
        goal: percent_text(objective.goal),
        "threshold": limit(objective),
        "window": duration_text(objective.window),
        "match": _match(objective.match),
        "owner": objective.owner,
        "labels": dict(objective.labels),
        "runbook_url": objective.runbook_url,
        "patience": _duration(objective.patience),
        "stall": _duration(objective.stall),
        "min_output_tokens": objective.min_output_tokens,
        "alerts": _alerts(objective),
        "policy": [
            {"budget_left": percent_text(step.budget_left), "notify": step.notify, "do": step.do}
            for step in objective.policy
        ],
    }
    return {key: value for key, value in found.items() if value is not None and value not in ({}, [])}


def settings(spec: Spec) -> dict[str, object]:
    """What a spec says of its service as a whole, less the name."""
    found: dict[str, object] = {"environment": spec.environment, "classes": list(spec.classes), "elastic": spec.elastic}
    return {key: value for key, value in found.items() if value}


def _duration(seconds: Decimal | None) -> str | None:
    return None if seconds is None else duration_text(seconds)


def _match(match: Match) -> dict[str, object]:
    sizes = None if match.prompt_bytes is None else _sizes(match.prompt_bytes)
    found = {"model": match.model, "class": match.class_, "prompt_bytes": sizes}
    return {key: value for key, value in found.items() if value is not None}


def _sizes(sizes: PromptBytes) -> str:
    if sizes.below is None:
        return f">={sizes.at_least}"
    return f"{sizes.at_least}..{sizes.below}" if sizes.at_least else f"<{sizes.below}"


def _alerts(objective: Objective) -> dict[str, object]:
    alerts = objective.alerts
    found: dict[str, object] = {}
    if alerts.min_bad_events is not None:
        found["min_bad_events"] = alerts.min_bad_events
    if alerts.tiers is not None:
        found["tiers"] = [_tier(tier) for tier in alerts.tiers]
    return found


def _tier(tier: TierSpec) -> dict[str, object]:
    short = {} if tier.short is None else {"short": duration_text(tier.short)}
    long = {"name": tier.name, "budget": percent_text(tier.budget), "long": duration_text(tier.long)}
    return {**long, **short, "notify": tier.notify}
