"""The Alertmanager configuration: who is told of what, grouped so that one incident is one page (DESIGN 4.6).

Pages are grouped by environment and service alone, so that further objectives, tiers and models join the open
notification; tickets by objective too, and those of no objective by the alert: a full cache and a faulty GPU are two
people's work. What is neither goes to a receiver that tells nobody. Where receivers are told
apart by owner, each owner has a route of its own below these.

Inhibition (an `equal` label that both sides lack counts as equal, so every label but `environment`, which may be unset
for a whole fleet, is asked for by a matcher first):
- a page of an objective holds back the tickets of the same objective, of any model;
- any page of a service holds back the tickets that speak of the service as a whole: causes, lost instances;
- of an objective and model the fastest page tier holds back the slower ones, and the fastest ticket tier likewise, as
  the spec orders them;
- a service whose telemetry is absent holds back its burns, which nothing can confirm or clear.

A stalled engine holds no burn back: both join one notification, and only the burn says when users are served again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from alerts.group import Alert, Group
from alerts.receiver import UNOWNED, Receiver, Smtp, pagerduty, slack
from slo.burn import tiers
from slo.objective import Notify, Objective, Spec
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY, TIER_LABEL, quoted
from slo.quantity import duration_text
from slo.signals import MODEL_LABEL, OTHER_MODEL, SERVICE_LABEL
from slo.trouble import TELEMETRY_ABSENT, WATCHDOG

PAGE, TICKET, NOBODY, HEARTBEAT = "firsttoken-page", "firsttoken-ticket", "firsttoken-nobody", "firsttoken-watchdog"

PAGE_REPEAT_S = 4 * 3600
TICKET_REPEAT_S = 24 * 3600
PAGE_WAIT_S, TICKET_WAIT_S = 10, 60
GROUP_INTERVAL_S = 300
WATCHDOG_REPEAT_S = 60

PATTERN_DOT = "\\."


@dataclass(frozen=True, slots=True)
class Routing:
    """Where pages, tickets and the watchdog's sign of life go (None: nowhere), through which mail server, and how long
    a group waits (None: what fits a page or a ticket)."""

    page: Receiver = field(default_factory=pagerduty)
    ticket: Receiver = field(default_factory=slack)
    watchdog: Receiver | None = None
    smtp: Smtp | None = None
    group_wait_s: int | None = None
    group_interval_s: int | None = None


def alertmanager(specs: tuple[Spec, ...], routing: Routing) -> dict[str, object]:
    """The whole configuration."""
    owners = _owners(specs)
    receivers = [*_receivers(PAGE, routing.page, owners), *_receivers(TICKET, routing.ticket, owners)]
    if routing.watchdog is not None:
        receivers.append(_receiver(HEARTBEAT, routing.watchdog, send_resolved=False))
    return {
        **({} if routing.smtp is None else {"global": routing.smtp.mapping()}),
        "route": _tree(routing, owners),
        "inhibit_rules": list(_inhibitions(specs)),
        "receivers": [*receivers, {"name": NOBODY}],
    }


def route_tests(specs: tuple[Spec, ...], groups: Sequence[Group], routing: Routing) -> list[dict[str, object]]:
    """Labels of alerts and the receiver that they should reach, for `amtool config routes test`.

    Each kind of alert that the groups make once, one of the models beyond the limit, and one that is not ours.
    """
    found: dict[tuple[str, ...], dict[str, object]] = {}
    for alert in (rule for group in groups for rule in group.rules if isinstance(rule, Alert)):
        labels = {"alertname": alert.alert, **alert.labels}
        key = (alert.alert if alert.alert == WATCHDOG else "", labels["notify"], labels.get("owner", ""))
        found.setdefault(key, {"labels": labels, "receiver": _expected(alert, routing)})
    other = {"alertname": "LLMTTFTBudgetBurn", "notify": "page", SERVICE_LABEL: specs[0].service}
    return [
        *found.values(),
        {"labels": other | {MODEL_LABEL: OTHER_MODEL}, "receiver": NOBODY},
        {"labels": {"alertname": "SomebodyElses", "severity": "critical"}, "receiver": NOBODY},
    ]


def _expected(alert: Alert, routing: Routing) -> str:
    notify, owner = alert.labels["notify"], alert.labels.get("owner")
    if alert.alert == WATCHDOG:
        return NOBODY if routing.watchdog is None else HEARTBEAT
    name, receiver = {"page": (PAGE, routing.page), "ticket": (TICKET, routing.ticket)}.get(notify, (NOBODY, None))
    return _owned(name, owner) if receiver is not None and receiver.is_by_owner and owner else name


def _owners(specs: tuple[Spec, ...]) -> tuple[str, ...]:
    return tuple(sorted({o.owner for spec in specs for o in spec.objectives if o.owner is not None}))


def _owned(name: str, owner: str) -> str:
    return f"{name}-{owner}"


def _tree(routing: Routing, owners: tuple[str, ...]) -> dict[str, object]:
    page = _route(routing, SERVICE_KEY, wait_s=PAGE_WAIT_S, repeat_s=PAGE_REPEAT_S)
    ticket = _route(routing, (*SERVICE_KEY, OBJECTIVE_LABEL), wait_s=TICKET_WAIT_S, repeat_s=TICKET_REPEAT_S)
    paging = [_is("notify", "page"), f"{MODEL_LABEL}!={quoted(OTHER_MODEL)}"]
    own = _by_owner(PAGE, routing.page, owners)
    routes: list[dict[str, object]] = [
        {"receiver": PAGE, "matchers": paging, **page, **({"routes": own} if own else {})},
        {"receiver": TICKET, "matchers": [_is("notify", "ticket")], **ticket, "routes": _below_ticket(routing, owners)},
    ]
    if routing.watchdog is not None:
        routes.insert(0, _heartbeat())
    return {"receiver": NOBODY, "group_by": list(SERVICE_KEY), "routes": routes}


def _below_ticket(routing: Routing, owners: tuple[str, ...]) -> list[dict[str, object]]:
    """The routes below that of tickets: those of no objective, and each owner's."""
    own = _by_owner(TICKET, routing.ticket, owners)
    of_none = {"matchers": [_is(OBJECTIVE_LABEL, "")], "group_by": ["alertname", *SERVICE_KEY]}
    return [{"receiver": TICKET, **of_none, **({"routes": own} if own else {})}, *own]


def _heartbeat() -> dict[str, object]:
    every = duration_text(WATCHDOG_REPEAT_S)
    return {
        "receiver": HEARTBEAT,
        "matchers": [_is("alertname", WATCHDOG)],
        "group_by": ["alertname"],
        "group_wait": "0s",
        "group_interval": every,
        "repeat_interval": every,
    }


def _by_owner(name: str, receiver: Receiver, owners: tuple[str, ...]) -> list[dict[str, object]]:
    """The routes below one, where its receiver differs by owner; what has no owner stays with the one above."""
    if not receiver.is_by_owner:
        return []
    return [{"receiver": _owned(name, owner), "matchers": [_is("owner", owner)]} for owner in owners]


def _route(routing: Routing, group_by: tuple[str, ...], *, wait_s: int, repeat_s: int) -> dict[str, object]:
    wait_s = wait_s if routing.group_wait_s is None else routing.group_wait_s
    interval_s = GROUP_INTERVAL_S if routing.group_interval_s is None else routing.group_interval_s
    return {
        "group_by": list(group_by),
        "group_wait": duration_text(wait_s),
        "group_interval": duration_text(interval_s),
        "repeat_interval": duration_text(repeat_s),
    }


def _receivers(name: str, receiver: Receiver, owners: tuple[str, ...]) -> Iterator[dict[str, object]]:
    yield _receiver(name, receiver.of(UNOWNED))
    if receiver.is_by_owner:
        for owner in owners:
            yield _receiver(_owned(name, owner), receiver.of(owner))


def _receiver(name: str, receiver: Receiver, *, send_resolved: bool = True) -> dict[str, object]:
    return {"name": name, receiver.kind: [{**receiver.fields, "send_resolved": send_resolved}]}


def _inhibitions(specs: tuple[Spec, ...]) -> Iterator[dict[str, object]]:
    subject = [_given(SERVICE_LABEL), _given(OBJECTIVE_LABEL)]
    yield {
        "source_matchers": [_is("notify", "page"), *subject],
        "target_matchers": [_is("notify", "ticket"), *subject],
        "equal": [*SERVICE_KEY, OBJECTIVE_LABEL],
    }
    yield {
        "source_matchers": [_is("notify", "page"), _given(SERVICE_LABEL)],
        "target_matchers": [_is("notify", "ticket"), _given(SERVICE_LABEL), _is(OBJECTIVE_LABEL, "")],
        "equal": list(SERVICE_KEY),
    }
    for spec in specs:
        for notify in ("page", "ticket"):
            yield from _tier_inhibitions(spec, notify)
    yield {
        "source_matchers": [_is("alertname", TELEMETRY_ABSENT), _is("notify", "page"), _given(SERVICE_LABEL)],
        "target_matchers": [_given(TIER_LABEL), _given(SERVICE_LABEL)],
        "equal": list(SERVICE_KEY),
    }


def _tier_inhibitions(spec: Spec, notify: Notify) -> Iterator[dict[str, object]]:
    """One rule for each tier but the slowest, of each set of tiers for its objectives alone: two orders of the same
    names never meet."""
    objectives: dict[tuple[str, ...], list[str]] = {}
    for objective in spec.objectives:
        objectives.setdefault(_tier_names(objective, notify), []).append(objective.name)
    for tier_names, names in objectives.items():
        subject = [_is(SERVICE_LABEL, spec.service), _any_of(OBJECTIVE_LABEL, names), _given(MODEL_LABEL)]
        for place in range(len(tier_names) - 1):
            yield {
                "source_matchers": [_is("notify", notify), _is(TIER_LABEL, tier_names[place]), *subject],
                "target_matchers": [_is("notify", notify), _any_of(TIER_LABEL, tier_names[place + 1 :]), *subject],
                "equal": [*SERVICE_KEY, OBJECTIVE_LABEL, MODEL_LABEL],
            }


def _tier_names(objective: Objective, notify: Notify) -> tuple[str, ...]:
    """The names of the objective's tiers of which such people are told, fastest first."""
    return tuple(tier.name for tier in sorted(tiers(objective), key=lambda t: t.long_s) if tier.notify == notify)


def _any_of(label: str, names: Sequence[str]) -> str:
    return f"{label}=~{quoted('|'.join(names).replace('.', PATTERN_DOT))}"


def _is(label: str, value: str) -> str:
    return f"{label}={quoted(value)}"


def _given(label: str) -> str:
    return f'{label}!=""'
