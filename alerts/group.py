"""Prometheus rule groups as values, and the mapping that a rule file holds.

Other formats of the same rules (`crd`, `grafana`) are made from these values too. Fields that need a
newer Prometheus than the floor are left out for older targets here, in `group_mapping`, and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from slo.quantity import duration_text

Version = tuple[int, int]
FLOOR: Version = (2, 42)
QUERY_OFFSET_SINCE: Version = (2, 53)
GROUP_LABELS_SINCE: Version = (3, 0)
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


def group_mapping(group: Group, version: Version = FLOOR) -> dict[str, object]:
    """The group as a rule file for that version of Prometheus writes it."""
    shared = _shared_labels(group) if version >= GROUP_LABELS_SINCE else {}
    head: dict[str, object] = {"name": group.name, "interval": duration_text(group.interval_s), "limit": GROUP_LIMIT}
    if group.query_offset_s:
        head["query_offset"] = duration_text(group.query_offset_s)
    if shared:
        head["labels"] = shared
    return {**head, "rules": [_rule_mapping(rule, shared) for rule in group.rules]}


def _shared_labels(group: Group) -> dict[str, str]:
    """The labels that all rules of the group have alike."""
    first, *others = (set(rule.labels.items()) for rule in group.rules)
    return dict(sorted(first.intersection(*others)))


def _rule_mapping(rule: Rule, shared: Mapping[str, str]) -> dict[str, object]:
    """One rule as a rule file writes it, less the labels that its group gives it."""
    own = {label: value for label, value in rule.labels.items() if label not in shared}
    labels = {"labels": own} if own else {}
    if isinstance(rule, Recording):
        return {"record": rule.record, "expr": rule.expr, **labels}
    mapping: dict[str, object] = {"alert": rule.alert, "expr": rule.expr}
    if rule.for_s:
        mapping["for"] = duration_text(rule.for_s)
    if rule.keep_firing_for_s:
        mapping["keep_firing_for"] = duration_text(rule.keep_firing_for_s)
    return {**mapping, **labels, "annotations": dict(rule.annotations)}
