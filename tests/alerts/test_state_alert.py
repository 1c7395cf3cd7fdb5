"""Engine stalled, telemetry absent, budget exhausted: put to the real rule engine by promtool."""

from pathlib import Path

import pytest

from alerts.annotations import Links
from alerts.state_alert import absent_alert, policy_alert
from tests.alerts.support import SMALL, events, firing, heartbeat, promtool_test, rules, spec

pytestmark = pytest.mark.tools

STALLED = firing("LLMEngineStalled", by="instance")
ABSENT = (
    'count by (service_name, environment) (ALERTS{alertname="LLMTelemetryAbsent",alertstate="firing",notify="page"})'
)
LOST = 'count by (service_name) (ALERTS{alertname="LLMTelemetryAbsent",alertstate="firing",notify="ticket"})'
EXHAUSTED = firing("LLMBudgetExhausted")
CHAT = {'{service_name="chat"}': 1.0}


def overdue(instance: str = "a", signal: str = "ttft", model: str = "m1") -> str:
    labels = f'service_name="chat",instance="{instance}",pod="{instance}",model_name="{model}",signal="{signal}"'
    return f"firsttoken_requests_overdue{{{labels}}}"


def token_age(instance: str = "a") -> str:
    return f'firsttoken_last_token_age_seconds{{service_name="chat",instance="{instance}",pod="{instance}"}}'


AGEING, FRESH = "0+15x40", "5x40"


@pytest.mark.parametrize(
    ("series", "instances"),
    [
        ({overdue(): "3x40", token_age(): AGEING}, ["a"]),
        ({overdue(model="m1"): "2x40", overdue(model="m2"): "1x40", token_age(): AGEING}, ["a"]),
        ({overdue(): "2x40", token_age(): AGEING}, []),
        ({overdue(): "9x40", token_age(): FRESH}, []),
        ({overdue(signal="ttft"): "2x40", overdue(signal="e2e"): "2x40", token_age(): AGEING}, []),
        ({overdue("a"): "2x40", overdue("b"): "2x40", token_age("a"): AGEING, token_age("b"): AGEING}, []),
        ({overdue("a"): "5x40", token_age("a"): FRESH, overdue("b"): "0x40", token_age("b"): AGEING}, []),
        ({overdue("a"): "5x40", token_age("a"): AGEING, overdue("b"): "0x40", token_age("b"): FRESH}, ["a"]),
        ({overdue(): "9x40"}, []),
    ],
    ids=[
        "three overdue and no token for a minute",
        "three overdue of two models",
        "two overdue are no stall",
        "tokens still come",
        "two requests late for two signals are two",
        "two on each of two instances",
        "one instance's queue and another's silence",
        "one hung instance of two",
        "nothing in flight: no age at all",
    ],
)
def test_an_engine_is_stalled_when(tmp_path: Path, series: dict[str, str], instances: list[str]) -> None:
    expected = {f'{{instance="{instance}"}}': 1.0 for instance in instances}
    checks = [("45s", STALLED, {}), ("1m30s", STALLED, expected)]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_a_stall_is_kept_over_a_scrape_that_fails_and_ends_with_a_token(tmp_path: Path) -> None:
    series = {overdue(): "5x8 stale 5x3 0x30", token_age(): "0+15x8 stale 150 165 180 0x30"}
    one = {'{instance="a"}': 1.0}
    checks = [("2m", STALLED, one), ("2m15s", STALLED, one), ("3m", STALLED, one), ("5m", STALLED, {})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_telemetry_is_absent_after_five_minutes_of_every_instances_silence(tmp_path: Path) -> None:
    # Both are last scraped at 10m; a moment without either is nothing.
    series = {heartbeat(instance="a"): "0+15x30 stale _x7 600 stale", heartbeat(instance="b"): "0+15x40 stale"}
    checks = [("9m", ABSENT, {}), ("14m45s", ABSENT, {}), ("15m30s", ABSENT, CHAT), ("40m", ABSENT, CHAT)]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_telemetry_is_there_while_one_instance_is_heard(tmp_path: Path) -> None:
    series = {heartbeat(instance="a"): "0+15x10 stale", heartbeat(instance="b"): "0+15x100"}
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=[("20m", ABSENT, {})])


def test_telemetry_that_comes_back_ends_it(tmp_path: Path) -> None:
    series = {heartbeat(): "0+15x10 stale _x29 0+15x40"}
    promtool_test(
        tmp_path, groups=rules(spec()), series=series, checks=[("9m30s", ABSENT, CHAT), ("10m45s", ABSENT, {})]
    )


@pytest.mark.parametrize(
    ("text", "series"),
    [
        (f"elastic: true\n{SMALL}", {heartbeat(): "0+15x10 stale"}),
        (SMALL, {heartbeat(service_name="search"): "0+15x10"}),
    ],
    ids=["a service that may scale to zero", "a service that was never seen"],
)
def test_telemetry_is_not_missed_of(tmp_path: Path, text: str, series: dict[str, str]) -> None:
    promtool_test(tmp_path, groups=rules(spec(text)), series=series, checks=[("12m", ABSENT, {})])


def test_absence_in_one_environment_is_seen_beside_another(tmp_path: Path) -> None:
    series = {heartbeat(environment="prod"): "0+15x10 stale", heartbeat(): "0+15x100"}
    expected = {'{environment="prod",service_name="chat"}': 1.0}
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=[("12m", ABSENT, expected)])


def test_a_prometheus_that_was_down_has_a_minute_to_scrape_again() -> None:
    assert absent_alert(spec(), Links()).for_s >= 60


WHOLE = "0+30x240"
LOSSES = {
    "one of two": ({"a": "0+30x40 stale", "b": WHOLE}, True),
    "none": ({"a": WHOLE, "b": WHOLE}, False),
    "one that another took over for": ({"a": "0+30x40 stale", "b": WHOLE, "c": "_x42 0+30x200"}, False),
    "one that another took over for shortly before": ({"a": "0+30x40 stale", "b": WHOLE, "c": "_x34 0+30x200"}, False),
    "two, and one was born": ({"a": "0+30x40 stale", "b": "0+30x40 stale", "c": "_x42 0+30x200", "d": WHOLE}, True),
    "one, when another had long been born": ({"a": "0+30x60 stale", "b": WHOLE, "c": "_x20 0+30x220"}, True),
    "one that restarts in its place": ({"a": "0+30x40 stale _x4 0+30x200", "b": WHOLE}, False),
    "all: that is the page's business": ({"a": "0+30x40 stale", "b": "0+30x40 stale"}, False),
}


@pytest.mark.parametrize("case", LOSSES)
def test_instances_that_are_lost_are_a_ticket(tmp_path: Path, case: str) -> None:
    series, is_lost = LOSSES[case]
    groups = [group for group in rules(spec()) if group.name.endswith(":telemetry")]
    checks = [("24m", LOST, {}), ("36m30s", LOST, CHAT if is_lost else {})]
    drawn = {heartbeat(instance=instance): values for instance, values in series.items()}
    if "long" not in case:
        checks = [("24m", LOST, {}), ("28m30s", LOST, CHAT if is_lost else {})]
    promtool_test(tmp_path, groups=groups, series=drawn, checks=checks, step="30s")


def test_a_lost_instance_is_forgotten_after_an_hour(tmp_path: Path) -> None:
    groups = [group for group in rules(spec()) if group.name.endswith(":telemetry")]
    series = {heartbeat(instance="a"): "0+30x40 stale", heartbeat(instance="b"): WHOLE}
    promtool_test(tmp_path, groups=groups, series=series, checks=[("75m", LOST, CHAT), ("85m", LOST, {})], step="30s")


POLICY = [
    {"budget_left": "50%", "do": "freeze {{ $labels.x }}"},
    {"budget_left": "10%", "notify": "page", "do": "stop"},
]


def test_a_step_of_the_policy_is_told_once_for_all_models_when_it_is_due(tmp_path: Path) -> None:
    # 5 % of an hour's events may be bad: 17.5 % of the first fifth of them are seven tenths of the budget.
    series = {heartbeat(): "0+15x60", events("good"): "0+33x60", events("bad"): "0+7x60"}
    due = 'count by (policy_step, notify, model_name) (ALERTS{alertname="LLMBudgetPolicy",alertstate="firing"})'
    expected = {'{policy_step="50%",notify="ticket",model_name="*"}': 1.0}
    checks = [("4m", due, {}), ("12m", due, expected)]
    promtool_test(tmp_path, groups=rules(spec(policy=POLICY)), series=series, checks=checks)


def test_what_the_policy_says_is_no_template() -> None:
    found = spec(policy=POLICY)
    (objective,) = found.objectives
    texts = [policy_alert(found, objective, step, Links()) for step in objective.policy]
    assert texts[0].annotations["description"].endswith('the policy says: freeze {{ "{{" }} $labels.x }}')
    assert [(alert.labels["notify"], alert.labels["severity"]) for alert in texts] == [
        ("ticket", "warning"),
        ("page", "critical"),
    ]


def test_an_exhausted_budget_is_a_ticket_once_a_tenth_of_the_period_is_known(tmp_path: Path) -> None:
    # Only bad events from the start: the hour's budget is overspent at once, but four minutes of an hour say little.
    series = {heartbeat(): "0+15x60", events("good"): "0x60", events("bad"): "0+2x60"}
    both = {'{model_name="m1"}': 1.0, '{model_name="*"}': 1.0}
    ticket = 'count(ALERTS{alertname="LLMBudgetExhausted",notify="ticket",severity="warning",objective="ttft"})'
    checks = [("4m", EXHAUSTED, {}), ("7m", EXHAUSTED, both), ("7m", ticket, {"{}": 2.0})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_a_kept_promise_is_not_exhausted(tmp_path: Path) -> None:
    series = {heartbeat(): "0+15x60", events("good"): "0+96x60", events("bad"): "0+4x60"}
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=[("12m", EXHAUSTED, {})])
