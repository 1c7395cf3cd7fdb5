"""Engine stalled, telemetry absent, budget exhausted: put to the real rule engine by promtool."""

from pathlib import Path

import pytest

from alerts.annotations import Links
from alerts.state_alert import absent_alert
from tests.alerts.support import SMALL, events, firing, heartbeat, promtool_test, rules, spec

pytestmark = pytest.mark.tools

STALLED = firing("LLMEngineStalled", by="instance")
ABSENT = firing("LLMTelemetryAbsent", by="service_name, environment")
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
