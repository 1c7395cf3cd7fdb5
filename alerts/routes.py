"""The Alertmanager configuration: who is told of what, grouped so that one incident is one page (DESIGN 4.6).

Pages are grouped by environment and service alone, so that further objectives, tiers and models join the open
notification; tickets by objective too. What is neither goes to a receiver that tells nobody.

Inhibition (an `equal` label that both sides lack counts as equal, so every label but `environment`, which may be unset
for a whole fleet, is asked for by a matcher first):
- a page of an objective holds back the tickets of the same objective, of any model;
- the fastest page tier of an objective and model holds back its slower page tiers, as the spec orders them;
- a service whose telemetry is absent holds back its burns, which nothing can confirm or clear.

Secrets are read from files that the operator writes; a URL stands here only when a flag gave it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from alerts.errors import TargetError
from slo.burn import tiers
from slo.objective import Objective, Spec
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY, TIER_LABEL, quoted
from slo.quantity import duration_text
from slo.signals import MODEL_LABEL, OTHER_MODEL, SERVICE_LABEL

PAGE, TICKET, NOBODY = "firsttoken-page", "firsttoken-ticket", "firsttoken-nobody"

PAGE_REPEAT_S = 4 * 3600
TICKET_REPEAT_S = 24 * 3600
PAGE_WAIT_S, TICKET_WAIT_S = 10, 60
GROUP_INTERVAL_S = 300

PAGERDUTY_KEY_FILE = "/etc/alertmanager/secrets/pagerduty-routing-key"
SLACK_URL_FILE = "/etc/alertmanager/secrets/slack-webhook-url"

PATTERN_DOT = "\\."

_SUMMARIES = "{{ range .Alerts.Firing }}{{ .Annotations.summary }} {{ end }}"
_TITLE = '{{ .Status | toUpper }}: {{ .GroupLabels.Values | join " " }}'


@dataclass(frozen=True, slots=True)
class Receiver:
    """One way to tell people: the kind of Alertmanager integration and its fields."""

    kind: str
    fields: Mapping[str, object]


def webhook(url: str) -> Receiver:
    """A plain webhook; the URL stands in the configuration, so it should hold no secret. Raises `TargetError`."""
    if not url.startswith(("http://", "https://")):
        raise TargetError(f"{url} is no webhook: write http://... or https://...")
    return Receiver("webhook_configs", {"url": url})


def webhook_from_file(path: str) -> Receiver:
    """A webhook whose URL is read from a file: Alertmanager 0.26 and newer."""
    return Receiver("webhook_configs", {"url_file": path})


def pagerduty(key_file: str = PAGERDUTY_KEY_FILE) -> Receiver:
    """PagerDuty Events v2, its routing key read from a file."""
    fields = {"routing_key_file": key_file, "severity": "critical", "description": f"{_TITLE}: {_SUMMARIES}"}
    return Receiver("pagerduty_configs", fields)


def slack(url_file: str = SLACK_URL_FILE) -> Receiver:
    """A Slack webhook, its URL read from a file."""
    return Receiver("slack_configs", {"api_url_file": url_file, "title": _TITLE, "text": _SUMMARIES})


@dataclass(frozen=True, slots=True)
class Routing:
    """Where pages and tickets go, and how long a group waits (None: what fits a page or a ticket)."""

    page: Receiver = field(default_factory=pagerduty)
    ticket: Receiver = field(default_factory=slack)
    group_wait_s: int | None = None
    group_interval_s: int | None = None


def alertmanager(specs: tuple[Spec, ...], routing: Routing) -> dict[str, object]:
    """The whole configuration."""
    return {
        "route": _tree(routing),
        "inhibit_rules": list(_inhibitions(specs)),
        "receivers": [
            _receiver(PAGE, routing.page),
            _receiver(TICKET, routing.ticket),
            {"name": NOBODY},
        ],
    }


def _tree(routing: Routing) -> dict[str, object]:
    page = _route(routing, SERVICE_KEY, wait_s=PAGE_WAIT_S, repeat_s=PAGE_REPEAT_S)
    ticket = _route(routing, (*SERVICE_KEY, OBJECTIVE_LABEL), wait_s=TICKET_WAIT_S, repeat_s=TICKET_REPEAT_S)
    paging = [_is("notify", "page"), f"{MODEL_LABEL}!={quoted(OTHER_MODEL)}"]
    return {
        "receiver": NOBODY,
        "group_by": list(SERVICE_KEY),
        "routes": [
            {"receiver": PAGE, "matchers": paging, **page},
            {"receiver": TICKET, "matchers": [_is("notify", "ticket")], **ticket},
        ],
    }


def _route(routing: Routing, group_by: tuple[str, ...], *, wait_s: int, repeat_s: int) -> dict[str, object]:
    wait_s = wait_s if routing.group_wait_s is None else routing.group_wait_s
    interval_s = GROUP_INTERVAL_S if routing.group_interval_s is None else routing.group_interval_s
    return {
        "group_by": list(group_by),
        "group_wait": duration_text(wait_s),
        "group_interval": duration_text(interval_s),
        "repeat_interval": duration_text(repeat_s),
    }


def _receiver(name: str, receiver: Receiver) -> dict[str, object]:
    return {"name": name, receiver.kind: [{**receiver.fields, "send_resolved": True}]}


def _inhibitions(specs: tuple[Spec, ...]) -> Iterator[dict[str, object]]:
    subject = [_given(SERVICE_LABEL), _given(OBJECTIVE_LABEL)]
    yield {
        "source_matchers": [_is("notify", "page"), *subject],
        "target_matchers": [_is("notify", "ticket"), *subject],
        "equal": [*SERVICE_KEY, OBJECTIVE_LABEL],
    }
    for spec in specs:
        yield from _tier_inhibitions(spec)
    yield {
        "source_matchers": [_is("alertname", "LLMTelemetryAbsent"), _is("notify", "page"), _given(SERVICE_LABEL)],
        "target_matchers": [_given(TIER_LABEL), _given(SERVICE_LABEL)],
        "equal": list(SERVICE_KEY),
    }


def _tier_inhibitions(spec: Spec) -> Iterator[dict[str, object]]:
    """One rule for each set of page tiers, for its objectives alone: two orders of the same names never meet."""
    objectives: dict[tuple[str, ...], list[str]] = {}
    for objective in spec.objectives:
        objectives.setdefault(_page_tiers(objective), []).append(objective.name)
    for tier_names, names in objectives.items():
        if len(tier_names) > 1:
            subject = [_is(SERVICE_LABEL, spec.service), _any_of(OBJECTIVE_LABEL, names), _given(MODEL_LABEL)]
            yield {
                "source_matchers": [_is("notify", "page"), _is(TIER_LABEL, tier_names[0]), *subject],
                "target_matchers": [_is("notify", "page"), _any_of(TIER_LABEL, tier_names[1:]), *subject],
                "equal": [*SERVICE_KEY, OBJECTIVE_LABEL, MODEL_LABEL],
            }


def _page_tiers(objective: Objective) -> tuple[str, ...]:
    """The names of the objective's page tiers, fastest first."""
    return tuple(tier.name for tier in sorted(tiers(objective), key=lambda t: t.long_s) if tier.notify == "page")


def _any_of(label: str, names: Sequence[str]) -> str:
    return f"{label}=~{quoted('|'.join(names).replace('.', PATTERN_DOT))}"


def _is(label: str, value: str) -> str:
    return f"{label}={quoted(value)}"


def _given(label: str) -> str:
    return f'{label}!=""'
