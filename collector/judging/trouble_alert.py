"""The alert of a trouble: its labels from the table (`slo.trouble`) and the spec, its words from who found it.

It speaks of a service as a whole and names places in words. An instance is new at each start of its process: an alert
that had one in its identity would end and be told anew with every restart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from collector.values import alerting
from collector.values.alerting import AlertKey, Wanted
from collector.windowing.fleet import Service
from collector.windowing.windows import Plan
from slo.objective import Spec
from slo.trouble import Trouble

MAX_NAMED = 5
"""Places that an alert names; of more it says how many there are."""


@dataclass(frozen=True, slots=True)
class Said:
    """What an alert says: a sentence without a value, and one with the figures of the moment."""

    summary: str
    description: str


def spec_of(plan: Plan, service: Service) -> Spec | None:
    """The spec that speaks for a service where it runs."""
    environment, name = service
    spec = plan.spec(name)
    return spec if spec is not None and spec.environment in ("", environment) else None


def trouble_alert(
    spec: Spec, key: AlertKey, trouble: Trouble, said: Said, *, state: Literal["pending", "firing"] = "firing"
) -> Wanted:
    """The alert. The key's tier tells alerts of one trouble apart and is no label."""
    whose = AlertKey(key.name, key.environment, key.service)
    routed: dict[str, str | None] = {"severity": trouble.severity, "notify": trouble.notify, "owner": spec.owner}
    told = alerting.annotations(
        summary=said.summary, description=said.description, runbook_url=alerting.runbook(key.name)
    )
    return Wanted(key, state, alerting.labels(whose, routed), told)


def subject(service: Service) -> str:
    """A service where it runs, as an alert's description begins."""
    environment, name = service
    return f"{name} in {environment}" if environment else name


def named(places: Iterable[str]) -> str:
    """The first of the places by name, and how many more there are."""
    found: Sequence[str] = sorted(places)
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return ", ".join(found[:MAX_NAMED]) + more
