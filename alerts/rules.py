"""The Prometheus rules of a service: groups as data from its spec, over the sidecar's counters alone.

One group per tier, because what a tier reads must be as fresh as the tier; a window is recorded once, in the first
group that needs it. Inside a group rules run in order, so an alert judges what was recorded at the same moment. Every
group is evaluated at least every two minutes: an instant read of Prometheus looks back five, and the alerts' memory
(see `burn_alert`) must outlive one missed evaluation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from alerts.annotations import Links
from alerts.burn_alert import burn_alert, burning_rule
from alerts.certified_alert import certified_alert
from alerts.counts import (
    budget_rules,
    coverage_rule,
    promise_rules,
    recorded_windows_s,
    series_rules,
    spans_rules,
    spans_windows_s,
    telemetry_rule,
    window_rules,
)
from alerts.gpu_alert import gpu_alerts
from alerts.group import FLOOR, Group, Rule, Version
from alerts.saturation_alert import saturation_alerts
from alerts.share_alert import share_alerts
from alerts.state_alert import absent_alert, exhausted_alert, heard_rules, lost_alert, policy_alert, stalled_alert
from alerts.synthetic_load import synthetic_rule
from slo.burn import tiers
from slo.objective import Objective, Spec
from slo.trouble import FORGOTTEN_S

MAX_INTERVAL_S = 120
FAST_INTERVAL_S = 30
ENGINE_SHORT_S = 60
"""A stalled engine is looked for four times in a minute."""
CAUSE_SHORT_S = 300
"""The shortest window of what is asked about requests, saturation and GPUs."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the rules are made for: the version of Prometheus, the cadence (None: by window), how often it scrapes the
    sidecars (None: not known), where links go, which GPUs of dcgm-exporter are meant (matchers; empty: all), and how
    many requests a second each service is certified for, where that is known."""

    version: Version = FLOOR
    eval_interval_s: int | None = None
    query_offset_s: int = 0
    scrape_interval_s: int | None = None
    links: Links = field(default_factory=Links)
    dcgm: str = ""
    certified_rps: Mapping[str, Decimal] = field(default_factory=dict)

    def interval_s(self, short_s: int) -> int:
        """Seconds between evaluations of a group whose shortest window is `short_s`: at most a quarter of it."""
        by_window = FAST_INTERVAL_S if short_s <= 600 else 60 if short_s <= 3600 else MAX_INTERVAL_S
        wanted = by_window if self.eval_interval_s is None else min(self.eval_interval_s, MAX_INTERVAL_S)
        return max(1, min(wanted, short_s // 4))


def service_groups(spec: Spec, target: Target) -> tuple[Group, ...]:
    """Every rule group of a service, in the order in which they should first run."""
    groups = [_telemetry_group(spec, target)]
    for objective in spec.objectives:
        groups += _objective_groups(spec, objective, target)
    engine = [stalled_alert(spec, target.links)]
    groups.append(_group(spec, "engine", target.interval_s(ENGINE_SHORT_S), engine, target))
    certified_rps = target.certified_rps.get(spec.service)
    above = [] if certified_rps is None else [certified_alert(spec, certified_rps, target.links)]
    causes: dict[str, list[Rule]] = {
        "requests": [*share_alerts(spec, target.links), *above],
        "saturation": [synthetic_rule(spec), *saturation_alerts(spec, target.links)],
        "gpu": [*gpu_alerts(spec, target.links)],
    }
    groups += [_group(spec, name, target.interval_s(CAUSE_SHORT_S), rules, target) for name, rules in causes.items()]
    return tuple(groups)


def _group(spec: Spec, name: str, interval_s: int, rules: Sequence[Rule], target: Target) -> Group:
    return Group(f"firsttoken:{spec.service}:{name}", interval_s, tuple(rules), target.query_offset_s)


def _tick_s(objective: Objective, target: Target) -> int:
    shorts = [tier.short_s for tier in tiers(objective)]
    return target.interval_s(min(shorts, default=objective.window // 12))


def _covered_windows_s(objective: Objective) -> set[int]:
    return {tier.long_s for tier in tiers(objective)} | {objective.window}


def _telemetry_group(spec: Spec, target: Target) -> Group:
    tick_s = min(_tick_s(objective, target) for objective in spec.objectives)
    windows = {FORGOTTEN_S}.union(*map(_covered_windows_s, spec.objectives))
    rules: list[Rule] = [telemetry_rule(spec, window, tick_s) for window in sorted(windows)]
    if not spec.elastic:
        rules += [absent_alert(spec, target.links), *heard_rules(spec), lost_alert(spec, target.links)]
    return _group(spec, "telemetry", tick_s, rules, target)


def _objective_groups(spec: Spec, objective: Objective, target: Target) -> list[Group]:
    tick_s = _tick_s(objective, target)
    groups = [_group(spec, f"{objective.name}:series", tick_s, series_rules(spec, objective, tick_s), target)]
    ordered = sorted(tiers(objective), key=lambda tier: (tier.long_s, tier.short_s))
    windows, covered = set(recorded_windows_s(objective)), _covered_windows_s(objective)
    spread = {window for tier in ordered for window in spans_windows_s(tier)}
    for tier in ordered:
        interval_s = target.interval_s(tier.short_s)
        needed = {tier.short_s, tier.long_s, tier.recent_s or tier.long_s}
        rules: list[Rule] = []
        for window in sorted(windows & needed):
            rules += window_rules(spec, objective, window)
        for window in sorted(spread & set(spans_windows_s(tier))):
            rules += spans_rules(spec, objective, window, interval_s)
        rules += [coverage_rule(spec, objective, window) for window in covered & {tier.long_s}]
        rules += [burning_rule(spec, objective, tier), burn_alert(spec, objective, tier, target.links)]
        groups.append(_group(spec, f"{objective.name}:{tier.name}", interval_s, rules, target))
        windows, covered, spread = windows - needed, covered - {tier.long_s}, spread - set(spans_windows_s(tier))
    return [*groups, _budget_group(spec, objective, windows, covered, target=target)]


def _budget_group(spec: Spec, objective: Objective, windows: set[int], covered: set[int], *, target: Target) -> Group:
    """The windows and coverages that no tier has recorded, the promise itself, and the budget of the period."""
    rules: list[Rule] = [*promise_rules(spec, objective)]
    for window in sorted(windows):
        rules += window_rules(spec, objective, window)
    rules += [coverage_rule(spec, objective, window) for window in sorted(covered)]
    rules += [*budget_rules(spec, objective), exhausted_alert(spec, objective, target.links)]
    rules += [policy_alert(spec, objective, step, target.links) for step in objective.policy]
    return _group(spec, f"{objective.name}:budget", target.interval_s(objective.window // 12), rules, target)
