"""Alerts as values: what is wanted now, against what was there, gives what there is (DESIGN 4.6).

An alert is pending (its long window burns, a shorter one not yet or no longer), firing, or resolved; `ok` is the
absence of one. Labels never hold a value, so that an alert keeps its identity while it lasts; figures stand in the
annotations. No clock and no network: the shell tells.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from slo.signals import ENVIRONMENT_LABEL, MODEL_LABEL, SERVICE_LABEL

CAUSE = "cause"
"""The annotation that says what burns a budget, and why that is thought."""
State = Literal["pending", "firing", "resolved"]
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, order=True)
class AlertKey:
    """One alert: `model`, `objective` and `tier` are '' where its name needs none."""

    name: str
    environment: str
    service: str
    model: str = ""
    objective: str = ""
    tier: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert's state since `since_s`. `fired_s` is when it began to fire, None of one that never did: nobody is told
    of that one. Labels and annotations are (name, value), sorted."""

    key: AlertKey
    state: State
    since_s: int
    fired_s: int | None
    labels: Pairs
    annotations: Pairs


@dataclass(frozen=True, slots=True)
class Wanted:
    """An alert that should be pending or firing now."""

    key: AlertKey
    state: Literal["pending", "firing"]
    labels: Pairs
    annotations: Pairs


def next_alerts(
    wanted: Iterable[Wanted], alerts: Mapping[AlertKey, Alert], *, now_s: int
) -> tuple[tuple[Alert, ...], tuple[Alert, ...]]:
    """Every alert pending, firing or just resolved, and those whose state changed now; both sorted by key.

    `alerts` are those that were pending or firing. One that nothing wants any more is resolved, whatever the reason:
    the trouble is over, or its objective is gone.
    """
    now = {one.key: _entered(one, alerts.get(one.key), now_s) for one in wanted}
    for key, alert in alerts.items():
        if key not in now and alert.state != "resolved":
            now[key] = replace(alert, state="resolved", since_s=now_s)
    everything = tuple(now[key] for key in sorted(now))
    changed = tuple(one for one in everything if one.key not in alerts or alerts[one.key].state != one.state)
    return everything, changed


def _entered(one: Wanted, before: Alert | None, now_s: int) -> Alert:
    if before is None or before.state == "resolved":
        return Alert(one.key, one.state, now_s, _fired_s(one, None, now_s), one.labels, one.annotations)
    # A clock that was set back leaves moments in the future, which no receiver takes as a start.
    since_s = min(before.since_s, now_s) if before.state == one.state else now_s
    fired_s = None if before.fired_s is None else min(before.fired_s, now_s)
    return Alert(one.key, one.state, since_s, _fired_s(one, fired_s, now_s), one.labels, one.annotations)


def _fired_s(one: Wanted, fired_s: int | None, now_s: int) -> int | None:
    return now_s if fired_s is None and one.state == "firing" else fired_s


def labels(key: AlertKey, more: Mapping[str, str | None]) -> Pairs:
    """The labels of an alert: `more`, and those of its key over them; sorted, none empty."""
    values: dict[str, str | None] = {
        **more,
        "alertname": key.name,
        ENVIRONMENT_LABEL: key.environment,
        SERVICE_LABEL: key.service,
        MODEL_LABEL: key.model,
        "objective": key.objective,
        "burn_tier": key.tier,
    }
    return tuple(sorted((name, value) for name, value in values.items() if value))


def with_cause(alert: Alert, text: str) -> Alert:
    """The alert with its cause among the annotations, in the place of one that was known before."""
    return replace(alert, annotations=tuple(sorted({**dict(alert.annotations), CAUSE: text}.items())))


def runbook(name: str) -> str:
    """Where the runbook of an alert lies whose objective names none."""
    return f"runbooks/{name}.md"


def annotations(*, summary: str, description: str, runbook_url: str) -> Pairs:
    """The annotations of an alert, sorted."""
    values = {"summary": summary, "description": description, "runbook_url": runbook_url}
    return tuple(sorted((name, value) for name, value in values.items() if value))
