"""The alerts for Grafana's own alerting, as a file that it provisions (`provisioning/alerting/`).

Grafana asks the data source what the alerting rules of Prometheus ask; records are made by a rule engine beside the
data (Prometheus, Mimir) from the same rule files, so the verdicts are the same. A is what the alert shows. Its value
says nothing about whether the alert fires, its presence does: B is 1 wherever A has a value (x^0 is 1, infinity's too),
and C is true of it.

Its templates cannot ask the data source: build the groups with `Links(asks=False)`. In the labels of a provisioned file
`$NAME` is a variable of the environment and `$$` a dollar; in annotations a dollar is itself.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from alerts.group import Alert, Group
from slo.promql import OBJECTIVE_LABEL, TIER_LABEL
from slo.quantity import duration_text
from slo.signals import SERVICE_LABEL
from slo.trouble import STEP_LABEL

BASE_INTERVAL_S = 10
"""Grafana evaluates at multiples of it."""
LOOK_BACK_S = 600
EXPRESSION = "__expr__"
IS_THERE = {"evaluator": {"type": "gt", "params": [0]}}
TITLED_BY = (SERVICE_LABEL, OBJECTIVE_LABEL, TIER_LABEL, STEP_LABEL, "notify")


@dataclass(frozen=True, slots=True)
class Provisioning:
    """The uid of the data source that holds the records, and the folder of the rules."""

    datasource: str
    folder: str = "firsttoken"


def provisioning(groups: Sequence[Group], at: Provisioning) -> dict[str, object]:
    """The file: each group that has alerts, with its alerts alone."""
    return {"apiVersion": 1, "groups": [_group(group, at) for group in groups if _alerts(group)]}


def _alerts(group: Group) -> list[Alert]:
    return [rule for rule in group.rules if isinstance(rule, Alert)]


def _group(group: Group, at: Provisioning) -> dict[str, object]:
    interval_s = -(-group.interval_s // BASE_INTERVAL_S) * BASE_INTERVAL_S
    return {
        "orgId": 1,
        "name": group.name,
        "folder": at.folder,
        "interval": duration_text(interval_s),
        "rules": [_rule(alert, at) for alert in _alerts(group)],
    }


def _rule(alert: Alert, at: Provisioning) -> dict[str, object]:
    rule: dict[str, object] = {
        "uid": _uid(alert),
        "title": " ".join((alert.alert, *(alert.labels[label] for label in TITLED_BY if label in alert.labels))),
        "condition": "C",
        "data": [
            _asked("A", at.datasource, {"expr": alert.expr, "instant": True, "range": False}),
            _asked("B", at.datasource, {"expr": f"(\n{alert.expr}\n) ^ 0", "instant": True, "range": False}),
            _asked("C", EXPRESSION, {"type": "threshold", "expression": "B", "conditions": [IS_THERE]}),
        ],
        "noDataState": "OK",
        "execErrState": "Error",
        "for": f"{alert.for_s}s",
    }
    if alert.keep_firing_for_s:
        rule["keepFiringFor"] = f"{alert.keep_firing_for_s}s"
    annotations = {name: re.sub(r"\$value\b", "$values.A.Value", text) for name, text in alert.annotations.items()}
    labels = {name: text.replace("$", "$$") for name, text in alert.labels.items()}
    return {**rule, "labels": labels, "annotations": annotations}


def _asked(ref: str, datasource: str, model: dict[str, object]) -> dict[str, object]:
    return {
        "refId": ref,
        "relativeTimeRange": {"from": LOOK_BACK_S, "to": 0},
        "datasourceUid": datasource,
        "model": {"refId": ref, **model},
    }


def _uid(alert: Alert) -> str:
    """The same for the same alert, whatever its expression: Grafana keeps its state over a new build."""
    of = json.dumps([alert.alert, sorted(alert.labels.items())])
    return "firsttoken-" + hashlib.sha256(of.encode()).hexdigest()[:20]
