"""Steps of a budget's policy: due by what is left, told once, of all models together."""

import pytest

from collector.judging import policy
from collector.values.alerting import AlertKey, Wanted
from collector.values.columns import columns
from collector.values.verdicts import BudgetRow
from slo.objective import parse
from slo.trouble import BUDGET_POLICY
from tests.collector.scene import NOW_S

SPECS = parse(
    """
service: chat
objectives:
  - name: ttft
    signal: ttft
    percentile: 99
    threshold: 500ms
    owner: serving
    labels: {team: chat}
    policy:
      - {budget_left: 50%, do: "freeze {{changes}}"}
      - {budget_left: 0%, notify: page, do: roll back}
  - {name: up, signal: availability, target: 99%}
"""
)


def left(remaining: float, *, model: str = "*", name: str = "ttft", coverage: float = 1.0) -> BudgetRow:
    return BudgetRow(NOW_S, "prod", "chat", model, name, 90, 10, 20.0, remaining, None, coverage, "counts")


def told(*rows: BudgetRow) -> list[Wanted]:
    return list(policy.wanted(SPECS, columns(BudgetRow, rows)))


@pytest.mark.parametrize(
    ("row", "steps"),
    [
        (left(0.51), []),
        (left(0.5), ["50%"]),
        (left(0.0), ["50%", "0%"]),
        (left(-3.0), ["50%", "0%"]),
        (left(-3.0, model="m"), []),
        (left(-3.0, name="up"), []),
        (left(-3.0, coverage=0.09), []),
        (left(0.2, coverage=0.1), ["50%"]),
    ],
)
def test_a_step_is_due_once_so_little_is_left_of_what_is_known(row: BudgetRow, steps: list[str]) -> None:
    assert [dict(one.labels)["policy_step"] for one in told(row)] == steps


def test_what_is_told() -> None:
    first, second = told(left(-0.25))
    assert first.key == AlertKey(BUDGET_POLICY, "prod", "chat", "*", "ttft", "50%")
    assert dict(second.labels) == {
        "alertname": BUDGET_POLICY,
        "environment": "prod",
        "service_name": "chat",
        "model_name": "*",
        "objective": "ttft",
        "policy_step": "0%",
        "severity": "critical",
        "notify": "page",
        "owner": "serving",
        "team": "chat",
    }
    said = dict(first.annotations)["description"]
    assert "chat in prod, all models: -25 % of the budget of 28d is left" in said
    assert "from 50% on the policy says: freeze {{changes}}" in said


def test_without_a_policy_nothing_is_looked_at() -> None:
    bare = parse("service: chat\nobjectives:\n  - {name: ttft, signal: ttft, percentile: 99, threshold: 500ms}\n")
    assert list(policy.wanted(bare, columns(BudgetRow, [left(-3.0)]))) == []
