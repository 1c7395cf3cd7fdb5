"""Prometheus rule groups as values, and the mapping that a rule file holds.

Other formats of the same rules (PrometheusRule, Grafana-managed) are made from these values too. Fields that need a
newer Prometheus than the floor are left out for older targets here, in `group_mapping`, and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slo.quantity import duration_text

Version = tuple[int, int]
FLOOR: Version = (2, 42)
QUERY_OFFSET_SINCE: Version = (2, 53)
GROUP_LIMIT = 5000
"""Series or alerts that one rule may make; more than that is a label set gone wild, and the rule fails by name."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording rule."""

    record: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alert:
    """One alerting rule; durations in seconds, 0 for none."""

    alert: str
    expr: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    for_s: int = 0
    keep_firing_for_s: int = 0


Rule = Recording | Alert


@dataclass(frozen=True, slots=True)
class Group:
    """Rules evaluated one after another every `interval_s` seconds: a later rule reads what an earlier one wrote."""

    name: str
    interval_s: int
    rules: tuple[Rule, ...]
    query_offset_s: int = 0


def group_mapping(group: Group) -> dict[str, object]:
    """The group as a rule file writes it."""
    head: dict[str, object] = {"name": group.name, "interval": duration_text(group.interval_s), "limit": GROUP_LIMIT}
    if group.query_offset_s:
        head["query_offset"] = duration_text(group.query_offset_s)
    return {**head, "rules": [rule_mapping(rule) for rule in group.rules]}


def rule_mapping(rule: Rule) -> dict[str, object]:
    """One rule as a rule file writes it."""
    if isinstance(rule, Recording):
        mapping: dict[str, object] = {"record": rule.record, "expr": rule.expr}
        return mapping | ({"labels": dict(rule.labels)} if rule.labels else {})
    mapping = {"alert": rule.alert, "expr": rule.expr}
    if rule.for_s:
        mapping["for"] = duration_text(rule.for_s)
    if rule.keep_firing_for_s:
        mapping["keep_firing_for"] = duration_text(rule.keep_firing_for_s)
    return mapping | {"labels": dict(rule.labels), "annotations": dict(rule.annotations)}
