"""Alerts on a state rather than a burn: a stalled engine, absent telemetry, a spent budget (DESIGN 4.6)."""

from alerts.annotations import Links, exhausted_annotations, service_annotations
from alerts.burn_alert import objective_labels
from alerts.group import Alert
from slo import promql
from slo.burn import MIN_COVERAGE_EXHAUSTED
from slo.objective import Objective, Spec
from slo.promql import SERVICE_KEY, VERDICT_KEY, by, of_objective, of_service, on
from slo.quantity import duration_text
from slo.signals import HEARTBEAT, LABELS, LAST_TOKEN_AGE, MODEL_LABEL, OVERDUE, SERVICE_LABEL, SIGNAL

INSTANCE_LABEL = "instance"

STALLED_OVERDUE = 3
STALLED_AGE_S = 60
STALLED_KEEP_S = 60
"""Outlives a scrape that fails because the machine is as stuck as the engine."""

ABSENT_LOOK_S = 240
ABSENT_FOR_S = 60
"""Together five minutes of silence. The last one is waited out as `for`: a Prometheus that was down itself then has a
minute to scrape again before it calls everybody silent."""


def stalled_alert(spec: Spec, links: Links) -> Alert:
    """The page for an instance that holds overdue requests and gives no token to anybody.

    Requests overdue for two signals are not added up: the larger count of the two decides. Whatever labels the scrape
    adds are kept until the two metrics have met, so that one instance's silence is never paired with another's queue.
    """
    selector = of_service(spec)
    overdue = f"sum without ({MODEL_LABEL}) ({OVERDUE.prometheus}{selector})"
    age = f"min without ({MODEL_LABEL}) ({LAST_TOKEN_AGE.prometheus}{selector})"
    expr = (
        f"max {by((*SERVICE_KEY, INSTANCE_LABEL))} (\n"
        f"  {overdue} >= {STALLED_OVERDUE}\n"
        f"  and ignoring ({LABELS[SIGNAL]}) {age} >= {STALLED_AGE_S}\n)"
    )
    annotations = service_annotations(
        spec,
        "LLMEngineStalled",
        links,
        summary=f"An engine of {spec.service} holds requests and produces no token.",
        description=(
            "{{ $labels." + SERVICE_LABEL + " }}, instance {{ $labels." + INSTANCE_LABEL + " }}: {{ $value }} requests "
            f"are past their deadline and no token has come for {STALLED_AGE_S}s or longer."
        ),
    )
    labels = {"severity": "critical", "notify": "page", SERVICE_LABEL: spec.service}
    return Alert("LLMEngineStalled", expr, labels, annotations, keep_firing_for_s=STALLED_KEEP_S)


def absent_alert(spec: Spec, links: Links) -> Alert:
    """The page for a service of which no instance has been heard for five minutes, but was within three days.

    A service that was never seen is none of this alert's business, and one that was taken away is forgotten after the
    three days; a service that may scale to zero (`elastic`) has no such alert at all.
    """
    heard = f"last_over_time({HEARTBEAT.prometheus}{of_service(spec)}[{duration_text(ABSENT_LOOK_S)}])"
    expr = f"{promql.telemetry(promql.DIRECT_MAX_S)}{of_service(spec)} > 0\nunless {on(SERVICE_KEY)} {heard}"
    annotations = service_annotations(
        spec,
        "LLMTelemetryAbsent",
        links,
        summary=f"No sidecar of {spec.service} has been heard for five minutes.",
        description=(
            "{{ $labels." + SERVICE_LABEL + " }}: every instance is silent, so nothing is known of its objectives: "
            "the service, its sidecars, or the way to them is down."
        ),
    )
    labels = {"severity": "critical", "notify": "page", SERVICE_LABEL: spec.service}
    return Alert("LLMTelemetryAbsent", expr, labels, annotations, for_s=ABSENT_FOR_S)


def exhausted_alert(spec: Spec, objective: Objective, links: Links) -> Alert:
    """The ticket for a spent budget; silent while less than a tenth of the period is known."""
    selector = of_objective(spec, objective)
    known = f"max {by(VERDICT_KEY)} ({promql.coverage(objective.window)}{selector})"
    expr = (
        f"{promql.BUDGET_REMAINING}{selector} <= 0\n"
        f"and {on(VERDICT_KEY)} {known} >= {promql.number(MIN_COVERAGE_EXHAUSTED)}"
    )
    labels = objective_labels(spec, objective, severity="warning", notify="ticket")
    annotations = exhausted_annotations(spec, objective, links)
    return Alert("LLMBudgetExhausted", expr, labels, annotations)
