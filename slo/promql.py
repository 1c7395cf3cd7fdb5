"""PromQL that rules and dashboards share: record names, matchers, and the few expressions both must write alike.

Pure text over `Spec` and `Objective`; nothing here talks to a Prometheus. Series names of the sidecar come from
`signals`, window labels from `quantity.duration_text`, so that `1h` is written the same on every surface.

Records carry (environment, service_name, model_name, objective); those that count also carry `objective_hash`, which
is dropped last (with max; min for the budget left). A model name of `*` is the sum over all models of the objective.
`environment` is absent where the sidecar has none: every `by` and `on` below names it all the same, for PromQL takes
an absent label as an empty one on both sides.
"""

from collections.abc import Mapping
from decimal import Decimal

from slo.objective import Objective, Spec
from slo.quantity import duration_text, plain
from slo.signals import (
    ENVIRONMENT_LABEL,
    LABELS,
    MODEL_LABEL,
    OBJECTIVE,
    OBJECTIVE_HASH,
    SERVICE_LABEL,
    SLO_EVENTS,
)

OBJECTIVE_LABEL = LABELS[OBJECTIVE]
HASH_LABEL = LABELS[OBJECTIVE_HASH]
TIER_LABEL = "burn_tier"
"""Of every burn alert, and of no other."""
LONG_WINDOW_LABEL, SHORT_WINDOW_LABEL = "long_window", "short_window"
"""The two windows over which a burn alert judges, as `duration_text` writes them."""
JOB_LABEL, INSTANCE_LABEL = "job", "instance"
"""Of every series that Prometheus has scraped: of whose kind its target is, and which."""

SERVICE_KEY = (ENVIRONMENT_LABEL, SERVICE_LABEL)
INSTANCE_KEY = (*SERVICE_KEY, INSTANCE_LABEL)
"""An instance of a service, as Prometheus knows it."""
SUBJECT_KEY = (*SERVICE_KEY, MODEL_LABEL)
"""What a burn alert speaks of; its objective and tier are the rule's own."""
VERDICT_KEY = (*SUBJECT_KEY, OBJECTIVE_LABEL)
COUNT_KEY = (*VERDICT_KEY, HASH_LABEL)

BURN_RATE = "firsttoken:burn_rate:ratio"
"""How the name of the record of every window's burn begins: see `burn_rate`."""
BUDGET_REMAINING = "firsttoken:error_budget_remaining:ratio"
BUDGET_EXHAUSTED_IN = "firsttoken:budget_exhausted_in:seconds"
BUDGET_ALLOWANCE = "firsttoken:error_budget_allowance:events"
JUDGED = "firsttoken:slo_judged:info"
FIRST_SEEN = "firsttoken:slo_first_seen:timestamp"
OBJECTIVE_TARGET = "firsttoken:objective_target:ratio"
OBJECTIVE_THRESHOLD = "firsttoken:objective_threshold:value"
BURNING = "firsttoken:burning:ratio"
"""Burn over the long window of a tier that fires, and no sample while it does not: see `alerts.burn_alert`."""
SYNTHETIC_SHARE = "firsttoken:synthetic_requests:ratio2m"
"""Of the requests that ended at an instance lately: see `alerts.synthetic_load`."""
FIRST_HEARD = "firsttoken:first_heard:timestamp"
LAST_HEARD = "firsttoken:last_heard:timestamp"
"""When a heartbeat of an instance was first and last seen, of the last hour or so."""

ALERTS = "ALERTS"
RULE_FAILURES = "prometheus_rule_evaluation_failures_total"
RULE_GROUPS_MISSED = "prometheus_rule_group_iterations_missed_total"
"""Prometheus's own word on itself, where it scrapes itself."""
OVERVIEW_UID = "firsttoken-slo-overview"
"""Of the dashboard that alerts link to."""

DIRECT_MAX_S = 3 * 86400
"""Longest window that is read from the counters themselves; see `alerts.counts`."""


def slo_bad(window_s: int) -> str:
    """Record of the bad events of a window."""
    return f"firsttoken:slo_bad:increase{duration_text(window_s)}"


def slo_total(window_s: int) -> str:
    """Record of all events of a window."""
    return f"firsttoken:slo_total:increase{duration_text(window_s)}"


def bad_spans(window_s: int) -> str:
    """Record of how many minutes (ticks of a short window) of a window had bad events."""
    return f"firsttoken:slo_bad_spans:count{duration_text(window_s)}"


def error_ratio(window_s: int) -> str:
    """Record of bad/total of a window; absent without events."""
    return f"firsttoken:slo_error:ratio{duration_text(window_s)}"


def burn_rate(window_s: int) -> str:
    """Record of the burn of a window; absent without events."""
    return f"{BURN_RATE}{duration_text(window_s)}"


def coverage(window_s: int) -> str:
    """Record of the share of a window that an objective's telemetry is known of."""
    return f"firsttoken:coverage:ratio{duration_text(window_s)}"


def telemetry(window_s: int) -> str:
    """Record of the share of a window in which a service's sidecars were heard."""
    return f"firsttoken:telemetry:ratio{duration_text(window_s)}"


def quoted(text: str) -> str:
    """`text` as a PromQL string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def selector(pairs: Mapping[str, str]) -> str:
    """`{label="value",...}`; a key that ends in an operator (`model_name!=`, `service_name=~`) keeps it."""
    written = (f"{key if key[-1] in '=~' else f'{key}='}{quoted(value)}" for key, value in pairs.items())
    return "{" + ",".join(written) + "}"


def service_labels(spec: Spec) -> dict[str, str]:
    """The matchers of a service: its environment is one only where the spec names it."""
    return ({ENVIRONMENT_LABEL: spec.environment} if spec.environment else {}) | {SERVICE_LABEL: spec.service}


def of_service(spec: Spec, **more: str) -> str:
    """Selector of a service's series."""
    return selector(service_labels(spec) | more)


def of_objective(spec: Spec, objective: Objective, more: Mapping[str, str] | None = None) -> str:
    """Selector of an objective's series."""
    return selector(service_labels(spec) | {OBJECTIVE_LABEL: objective.name} | dict(more or {}))


def events(spec: Spec, objective: Objective, more: Mapping[str, str] | None = None) -> str:
    """The sidecar's counters of an objective."""
    return SLO_EVENTS.prometheus + of_objective(spec, objective, more)


def by(key: tuple[str, ...]) -> str:
    """`by (...)` over a key of this room."""
    return f"by ({', '.join(key)})"


def on(key: tuple[str, ...]) -> str:
    """`on (...)` over a key of this room."""
    return f"on ({', '.join(key)})"


def number(value: Decimal | float) -> str:
    """A number in fixed point, to ten decimals."""
    return plain(round(Decimal(str(value)), 10))
