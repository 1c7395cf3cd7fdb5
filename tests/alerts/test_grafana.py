"""Alert rules that Grafana provisions: made of the same expressions, and fit for its own templates and files."""

import re

import pytest

from alerts.annotations import Links
from alerts.grafana import Provisioning, provisioning
from alerts.group import Alert, Group
from alerts.rules import Target, service_groups
from tests.alerts.support import spec
from tests.alerts.test_rules import FIVE, groups

AT = Provisioning("prom", "LLM")
SILENT = Target(links=Links(asks=False))


def rules(*made: Group) -> list[dict[str, object]]:
    return [rule for group in provisioning(made, AT)["groups"] for rule in group["rules"]]  # type: ignore[attr-defined]


def test_each_alert_is_asked_for_by_its_own_expression_and_fires_whatever_its_value() -> None:
    (rule,) = rules(Group("g", 30, (Alert("A", "up == 0", {"severity": "critical"}, {}, for_s=60),)))
    a, b, c = rule["data"]  # type: ignore[misc]
    assert (a["model"]["expr"], b["model"]["expr"]) == ("up == 0", "(\nup == 0\n) ^ 0")
    assert (a["datasourceUid"], b["datasourceUid"], c["datasourceUid"]) == ("prom", "prom", "__expr__")
    assert (rule["condition"], c["model"]["expression"]) == ("C", "B")
    assert c["model"]["conditions"] == [{"evaluator": {"type": "gt", "params": [0]}}]
    assert (rule["for"], rule["noDataState"]) == ("60s", "OK")


def test_groups_without_alerts_are_left_out_and_intervals_are_multiples_of_ten_seconds() -> None:
    found = provisioning(service_groups(spec(), Target(eval_interval_s=15)), AT)["groups"]
    assert {group["interval"] for group in found} == {"20s"}  # type: ignore[attr-defined]
    assert not any(group["name"].endswith(":series") for group in found)  # type: ignore[attr-defined]


def test_uids_and_titles_tell_the_rules_of_all_services_apart() -> None:
    found = rules(*groups(FIVE), *groups(FIVE.replace("chat", "search")))
    assert len({rule["uid"] for rule in found}) == len({rule["title"] for rule in found}) == len(found)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", str(rule["uid"])) for rule in found)


def test_a_uid_outlives_a_changed_expression() -> None:
    alerts = [Alert("A", expr, {"x": "y"}, {}) for expr in ("up == 0", "up == 1")]
    assert len({rules(Group("g", 30, (alert,)))[0]["uid"] for alert in alerts}) == 1


@pytest.mark.parametrize("text", [FIVE, FIVE.replace("500ms}", "500ms, policy: [{budget_left: 50%, do: stop}]}")])
def test_its_templates_ask_nobody_and_take_the_value_from_a(text: str) -> None:
    for rule in rules(*groups(text, SILENT)):
        said = " ".join(rule["annotations"].values())  # type: ignore[attr-defined]
        assert "query" not in said.replace("urlquery", "")
        assert "$value " not in said


def test_a_dollar_is_doubled_in_labels_alone() -> None:
    alert = Alert("A", "up", {"x": "$5"}, {"summary": "{{ $value }} of {{ $labels.job }}"})
    (rule,) = rules(Group("g", 30, (alert,)))
    assert rule["labels"] == {"x": "$$5"}
    assert rule["annotations"] == {"summary": "{{ $values.A.Value }} of {{ $labels.job }}"}
