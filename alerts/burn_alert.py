"""The alert of one tier of one objective: when it starts, what holds it, what ends it (DESIGN 5).

It starts when burn * coverage > f over the long window and burn > f over the short one, with enough bad events in two
different minutes; each hash for itself, compared as counts (bad > f * (1 - target) * total), so that an idle window
is no division by zero.

Once firing it must not end by silence: a hung or vanished server sends neither good nor bad events. So the condition
is recorded, as a series that is there while the tier fires and reads itself at the next evaluation:

    burn over the long window                        (absent without events there: the end of everything)
    and (it starts  or  it was firing at the last evaluation, unless burn <= f over the short window)

where the burn of a short window without events is absent, and hence not <= f. The record `burn_rate` has dropped the
hash with max, so an alert goes on while any hash that is judged burns on. Coverage stands in the start alone: damping
may delay a page, and never takes one back. `keep_firing_for` would only delay the end that good events bring.

A record rather than `ALERTS`, in which Prometheus itself remembers what fires: every rule engine keeps records (Mimir,
Thanos, VictoriaMetrics), and whoever else evaluates the alert (Grafana) reads the same verdict. After a restart of the
rule engine that takes longer than its look-back (5 min) the memory is gone and the tier must start anew.
"""

from alerts.annotations import Links, burn_annotations
from alerts.counts import spans_windows_s
from alerts.group import Alert, Recording
from slo import promql
from slo.burn import Tier
from slo.objective import Objective, Spec
from slo.promql import SUBJECT_KEY, TIER_LABEL, of_objective, on
from slo.quantity import duration_text
from slo.signals import MODEL_LABEL, OTHER_MODEL, SERVICE_LABEL, SIGNALS


def burning_rule(spec: Spec, objective: Objective, tier: Tier) -> Recording:
    """The verdict of a tier: while it fires, the burn over its long window."""
    # Model `other` is whatever was asked for beyond the known names: it is counted in `*`, and pages nobody alone.
    named = {f"{MODEL_LABEL}!=": OTHER_MODEL} if tier.notify == "page" else {}
    long = promql.burn_rate(tier.long_s) + of_objective(spec, objective, named)
    short = promql.burn_rate(tier.short_s) + of_objective(spec, objective)
    held = f"{_burning(spec, objective, tier)}\n    unless {on(SUBJECT_KEY)} {short} <= {promql.number(tier.factor)}"
    expr = f"{long}\nand {on(SUBJECT_KEY)} (\n{starts(spec, objective, tier)}\n  or\n    {held}\n)"
    own = {SERVICE_LABEL: spec.service, promql.OBJECTIVE_LABEL: objective.name, TIER_LABEL: tier.name}
    return Recording(promql.BURNING, expr, own)


def burn_alert(spec: Spec, objective: Objective, tier: Tier, links: Links) -> Alert:
    """The alerting rule of a tier, on what `burning_rule` records; its value is the burn over the long window."""
    return Alert(
        SIGNALS[objective.signal].alert,
        _burning(spec, objective, tier),
        _burn_labels(spec, objective, tier),
        burn_annotations(spec, objective, tier, links),
    )


def _burning(spec: Spec, objective: Objective, tier: Tier) -> str:
    return promql.BURNING + of_objective(spec, objective, {TIER_LABEL: tier.name})


def starts(spec: Spec, objective: Objective, tier: Tier) -> str:
    """The condition under which the tier starts to fire, per hash."""
    selector, needed = of_objective(spec, objective), promql.number(tier.bad_share_needed)
    bad, total = promql.slo_bad(tier.long_s) + selector, promql.slo_total(tier.long_s) + selector
    known = promql.coverage(tier.long_s) + selector
    bad_short, total_short = promql.slo_bad(tier.short_s) + selector, promql.slo_total(tier.short_s) + selector
    spread = " or ".join(f"{promql.bad_spans(window)}{selector} >= 2" for window in spans_windows_s(tier))
    return "\n".join(
        (
            f"    {bad} * {known} > {needed} * {total}",
            f"    and round({bad}) >= {tier.min_bad_events}",
            f"    and ({spread})",
            f"    and {bad_short} > {needed} * {total_short}",
        )
    )


def objective_labels(spec: Spec, objective: Objective, *, severity: str, notify: str) -> dict[str, str]:
    """The labels of every alert of an objective; what is counted or measured is never among them."""
    owner = {"owner": objective.owner} if objective.owner else {}
    routed = {"severity": severity, "notify": notify}
    return {**objective.labels, **routed, SERVICE_LABEL: spec.service, promql.OBJECTIVE_LABEL: objective.name, **owner}


def _burn_labels(spec: Spec, objective: Objective, tier: Tier) -> dict[str, str]:
    windows = {"long_window": duration_text(tier.long_s), "short_window": duration_text(tier.short_s)}
    labels = objective_labels(spec, objective, severity=tier.severity, notify=tier.notify)
    return {**labels, TIER_LABEL: tier.name, **windows}
