"""Alerts on what a service is: stalled engines, absent telemetry, spent budgets and what a team does then (DESIGN 4.6).

Idle, lost and dead are told apart by the heartbeat, which a sidecar sends whether there are requests or not: a service
without events that is heard is idle, one of which an instance is heard no more has lost it, one of which nobody is
heard is dead to us. Rules that fail themselves are `fleet`'s business.
"""

from dataclasses import replace

from alerts.annotations import Links, Said, exhausted_annotations, policy_annotations
from alerts.burn_alert import objective_labels
from alerts.group import Alert, Recording
from alerts.trouble_alert import trouble_alert
from slo import promql
from slo.burn import MIN_COVERAGE_EXHAUSTED, severity
from slo.objective import Objective, PolicyStep, Spec
from slo.promql import INSTANCE_LABEL, SERVICE_KEY, VERDICT_KEY, by, of_objective, of_service, on
from slo.quantity import duration_text, percent_text
from slo.signals import ALL_MODELS, HEARTBEAT, LABELS, LAST_TOKEN_AGE, MODEL_LABEL, OVERDUE, SERVICE_LABEL, SIGNAL
from slo.trouble import (
    BUDGET_EXHAUSTED,
    BUDGET_POLICY,
    ENGINE_STALLED,
    FORGOTTEN_S,
    LOST_S,
    SILENT_S,
    STALLED_AGE_S,
    STALLED_OVERDUE,
    STEP_LABEL,
    TELEMETRY_ABSENT,
    TROUBLES,
)

LOOK_S = 60
ABSENT_LOOK_S = SILENT_S - TROUBLES[TELEMETRY_ABSENT].for_s
"""With the `for` of the alert the silence that counts. The last minute is waited out as `for`: a Prometheus that was
down itself then has that minute to scrape again before it calls everybody silent."""


def stalled_alert(spec: Spec, links: Links) -> Alert:
    """The page for an instance that holds overdue requests and gives no token to anybody.

    Requests overdue for two signals are not added up: the larger count of the two decides. Whatever labels the scrape
    adds are kept until the two metrics have met, so that one instance's silence is never paired with another's queue.
    It outlives its state by a minute: a scrape may fail because the machine is as stuck as the engine.
    """
    selector = of_service(spec)
    overdue = f"sum without ({MODEL_LABEL}) ({OVERDUE.prometheus}{selector})"
    age = f"min without ({MODEL_LABEL}) ({LAST_TOKEN_AGE.prometheus}{selector})"
    expr = (
        f"max {by((*SERVICE_KEY, INSTANCE_LABEL))} (\n"
        f"  {overdue} >= {STALLED_OVERDUE}\n"
        f"  and ignoring ({LABELS[SIGNAL]}) {age} >= {STALLED_AGE_S}\n)"
    )
    return trouble_alert(
        spec,
        TROUBLES[ENGINE_STALLED],
        expr,
        Said(
            f"An engine of {spec.service} holds requests and produces no token.",
            "{{ $labels." + SERVICE_LABEL + " }}, instance {{ $labels." + INSTANCE_LABEL + " }}: {{ $value }} requests "
            f"are past their deadline and no token has come for {STALLED_AGE_S}s or longer.",
        ),
        links,
    )


def absent_alert(spec: Spec, links: Links) -> Alert:
    """The page for a service of which no instance has been heard for five minutes, but was within three days.

    A service that was never seen is none of this alert's business, and one that was taken away is forgotten after the
    three days; a service that may scale to zero (`elastic`) has no such alert at all.
    """
    heard = f"last_over_time({HEARTBEAT.prometheus}{of_service(spec)}[{duration_text(ABSENT_LOOK_S)}])"
    expr = f"{promql.telemetry(FORGOTTEN_S)}{of_service(spec)} > 0\nunless {on(SERVICE_KEY)} {heard}"
    return trouble_alert(
        spec,
        TROUBLES[TELEMETRY_ABSENT],
        expr,
        Said(
            f"No sidecar of {spec.service} has been heard for five minutes.",
            "{{ $labels." + SERVICE_LABEL + " }}: every instance is silent, so nothing is known of its objectives: "
            "the service, its sidecars, or the way to them is down.",
        ),
        links,
    )


def heard_rules(spec: Spec) -> tuple[Recording, ...]:
    """When each instance was first and last heard of late, by the minute; whatever labels the scrape adds are kept."""
    heard = f"timestamp({HEARTBEAT.prometheus}{of_service(spec)})"
    window = f"[{duration_text(LOST_S + 2 * SILENT_S)}:{duration_text(LOOK_S)}]"
    own = {SERVICE_LABEL: spec.service}
    return (
        Recording(promql.FIRST_HEARD, f"min_over_time({heard}{window})", own),
        Recording(promql.LAST_HEARD, f"max_over_time({heard}{window})", own),
    )


def lost_alert(spec: Spec, links: Links) -> Alert:
    """The ticket for instances that fell silent in the last hour and were not replaced, while others are heard.

    Losses are counted against births since shortly before the first loss, so that a rolling restart is none: its new
    pods come with other `instance`s than those that go.
    """
    last, first = (name + of_service(spec) for name in (promql.LAST_HEARD, promql.FIRST_HEARD))
    now_and_then = f"time() - {last}"
    silent = f"({last} and {now_and_then} >= {SILENT_S} and {now_and_then} < {LOST_S})"
    since = f"min {by(SERVICE_KEY)} ({silent}) - {SILENT_S}"
    born = f"count {by(SERVICE_KEY)} ({first} >= {on(SERVICE_KEY)} group_left () ({since}))"
    lost = f"count {by(SERVICE_KEY)} ({silent})"
    alive = f"{last} >= time() - {SILENT_S}"
    expr = f"({lost} - ({born} or 0 * {lost})) > 0\nand {on(SERVICE_KEY)} {alive}"
    return trouble_alert(
        spec,
        replace(TROUBLES[TELEMETRY_ABSENT], notify="ticket"),
        expr,
        Said(
            f"Some sidecars of {spec.service} have not been heard for five minutes.",
            "{{ $labels." + SERVICE_LABEL + " }}: {{ $value }} instance(s) fell silent in the last hour and no new one "
            "took over; the others are heard.",
        ),
        links,
    )


def exhausted_alert(spec: Spec, objective: Objective, links: Links) -> Alert:
    """The ticket for a spent budget; silent while less than a tenth of the period is known."""
    trouble = TROUBLES[BUDGET_EXHAUSTED]
    labels = objective_labels(spec, objective, severity=trouble.severity, notify=trouble.notify)
    annotations = exhausted_annotations(spec, objective, links)
    return Alert(BUDGET_EXHAUSTED, _left(spec, objective, "0", {}), labels, annotations)


def policy_alert(spec: Spec, objective: Objective, step: PolicyStep, links: Links) -> Alert:
    """What the team has promised to do when so little of the budget is left: once, for all models together."""
    left = percent_text(step.budget_left)
    labels = objective_labels(spec, objective, severity=severity(step.notify), notify=step.notify)
    expr = _left(spec, objective, promql.number(step.budget_left), {MODEL_LABEL: ALL_MODELS})
    annotations = policy_annotations(spec, objective, step, links)
    return Alert(BUDGET_POLICY, expr, labels | {STEP_LABEL: left}, annotations)


def _left(spec: Spec, objective: Objective, at_most: str, more: dict[str, str]) -> str:
    selector = of_objective(spec, objective, more)
    known = f"max {by(VERDICT_KEY)} ({promql.coverage(objective.window)}{selector})"
    return (
        f"{promql.BUDGET_REMAINING}{selector} <= {at_most}\n"
        f"and {on(VERDICT_KEY)} {known} >= {promql.number(MIN_COVERAGE_EXHAUSTED)}"
    )
