"""The alert of one tier of one objective: when it starts, what holds it, what ends it (DESIGN 5, `slo.burn`).

It starts when burn * coverage > f over the long window and burn > f over the short one and the one between, with enough
bad events in two different minutes, and when neither chance nor an idle hour is all that says so; each hash for itself,
compared as counts (bad > f * (1 - target) * total), so that an idle window is no division by zero. Where few events
decide they are made whole again (`round`), for `increase` extrapolates.

Once firing it must not end by silence: a hung or vanished server sends neither good nor bad events. So the condition
is recorded, as a series that is there while the tier fires and reads itself at the next evaluation:

    burn over the long window                        (absent without events there: the end of everything)
    and (it starts  or  it was firing at the last evaluation, and some hash still burns:
                        its short window does, or its long one does and the short one may be so by chance)

where a short window without events tells nothing. Coverage stands in the start alone: damping may delay a page, and
never takes one back. `keep_firing_for` would only delay the end that good events bring, at any traffic; what it is good
for, one page where few events come, the counts do by themselves, and the same in the collector.

A tier that is a ticket does not start while a page of its objective fires, nor for its own short window after: what
burned then has been told, and is no second incident. One that began before the page goes on.

A record rather than `ALERTS`, in which Prometheus itself remembers what fires: every rule engine keeps records (Mimir,
Thanos, VictoriaMetrics), and whoever else evaluates the alert (Grafana) reads the same verdict. After a restart of the
rule engine that takes longer than its look-back (5 min) the memory is gone and the tier must start anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from alerts.annotations import Links, burn_annotations
from alerts.counts import spans_windows_s
from alerts.group import Alert, Recording
from slo import promql
from slo.burn import ENOUGH_GOOD, Tier, tiers
from slo.objective import Objective, Spec
from slo.promql import LONG_WINDOW_LABEL, SERVICE_KEY, SHORT_WINDOW_LABEL, SUBJECT_KEY, TIER_LABEL, of_objective, on
from slo.quantity import duration_text
from slo.signals import MODEL_LABEL, OTHER_MODEL, SERVICE_LABEL, SIGNALS

HALF = Decimal("0.5")


def burning_rule(spec: Spec, objective: Objective, tier: Tier) -> Recording:
    """The verdict of a tier: while it fires, the burn over its long window."""
    # Model `other` is whatever was asked for beyond the known names: it is counted in `*`, and pages nobody alone.
    named = {f"{MODEL_LABEL}!=": OTHER_MODEL} if tier.notify == "page" else {}
    long = promql.burn_rate(tier.long_s) + of_objective(spec, objective, named)
    held = f"    {_burning(spec, objective, tier)}\n    and {on(SUBJECT_KEY)} (\n{stays(spec, objective, tier)}\n    )"
    expr = f"{long}\nand {on(SUBJECT_KEY)} (\n{starts(spec, objective, tier)}\n  or\n{held}\n)"
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
    """The condition under which the tier starts to fire, per hash: `slo.burn.starts`."""
    selector = of_objective(spec, objective)
    long, short = _counts(spec, objective, tier.long_s), _counts(spec, objective, tier.short_s)
    needed, known = promql.number(tier.bad_share_needed), promql.coverage(tier.long_s) + selector
    spread = " or ".join(f"{promql.bad_spans(window)}{selector} >= 2" for window in spans_windows_s(tier))
    apart = (f"    and {long.total} > {short.total}",) if tier.looks_twice else ()
    lasts = (f"    and {recent.bad} > {needed} * {recent.total}" for recent in _recent(spec, objective, tier))
    return "\n".join(
        (
            f"    {long.bad} * {known} > {needed} * {long.total}",
            f"    and round({long.bad}) >= {tier.min_bad_events}",
            f"    and ({spread})",
            f"    and {short.bad} > {needed} * {short.total}",
            f"    and ({_beyond_chance(tier, short)})",
            *lasts,
            *apart,
            *_unless_paged(spec, objective, tier),
        )
    )


def _unless_paged(spec: Spec, objective: Objective, tier: Tier) -> Iterator[str]:
    """Of a ticket: that no page of the objective fires, or did in the tier's short window, of any model."""
    pages = "|".join(one.name for one in tiers(objective) if one.notify == "page")
    if tier.notify == "ticket" and pages:
        paged = promql.BURNING + of_objective(spec, objective, {f"{TIER_LABEL}=~": pages.replace(".", "\\.")})
        yield f"    unless {on(SERVICE_KEY)} max_over_time({paged}[{duration_text(tier.short_s)}])"


def stays(spec: Spec, objective: Objective, tier: Tier) -> str:
    """The condition under which a tier that fires goes on, per hash: what `slo.burn.ends` leaves."""
    long, short = _counts(spec, objective, tier.long_s), _counts(spec, objective, tier.short_s)
    needed, chance = promql.number(tier.bad_share_needed), tier.chance_events
    to_be_expected = f"round({short.total}) * round({long.bad}) >= {chance} * round({long.total})"
    enough = f"{short.total} > {promql.number(ENOUGH_GOOD - HALF)}"
    return "\n".join(
        (
            f"      {short.bad} > {needed} * {short.total}",
            "      or (",
            f"        round({long.bad}) + {chance} > {needed} * {long.total}",
            f"        and (round({long.bad}) > 0 or {long.total} < {promql.number(chance + HALF)})",
            f"        unless ({short.total} > 0 and (",
            f"          round({short.bad}) + {chance} <= {needed} * {short.total}",
            f"          or {_only(short, 'good')} and ({to_be_expected} or {enough})",
            "        ))",
            "      )",
        )
    )


@dataclass(frozen=True, slots=True)
class _Counts:
    """The records of a window's events, as an expression reads them."""

    bad: str
    total: str


def _counts(spec: Spec, objective: Objective, window_s: int) -> _Counts:
    selector = of_objective(spec, objective)
    return _Counts(promql.slo_bad(window_s) + selector, promql.slo_total(window_s) + selector)


def _recent(spec: Spec, objective: Objective, tier: Tier) -> Iterator[_Counts]:
    if tier.recent_s is not None:
        yield _counts(spec, objective, tier.recent_s)


def _beyond_chance(tier: Tier, short: _Counts) -> str:
    """That a service within its promise would hardly have so many bad events in the short window."""
    allowed, bad = promql.number(tier.allowed_bad), f"round({short.bad})"
    in_a_row = f"{bad} >= {tier.bad_in_a_row} and {_only(short, 'bad')}"
    return f"{bad} - {allowed} * round({short.total}) > {tier.chance_events} or {in_a_row}"


def _only(counts: _Counts, result: Literal["good", "bad"]) -> str:
    """That a window holds no other event: half of one, for `increase` extrapolates."""
    others = f"{counts.total} - {counts.bad}" if result == "bad" else counts.bad
    return f"{others} < {promql.number(HALF)}"


def objective_labels(spec: Spec, objective: Objective, *, severity: str, notify: str) -> dict[str, str]:
    """The labels of every alert of an objective; what is counted or measured is never among them."""
    owner = {"owner": objective.owner} if objective.owner else {}
    routed = {"severity": severity, "notify": notify}
    return {**objective.labels, **routed, SERVICE_LABEL: spec.service, promql.OBJECTIVE_LABEL: objective.name, **owner}


def _burn_labels(spec: Spec, objective: Objective, tier: Tier) -> dict[str, str]:
    windows = {LONG_WINDOW_LABEL: duration_text(tier.long_s), SHORT_WINDOW_LABEL: duration_text(tier.short_s)}
    labels = objective_labels(spec, objective, severity=tier.severity, notify=tier.notify)
    return {**labels, TIER_LABEL: tier.name, **windows}
