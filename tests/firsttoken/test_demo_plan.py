"""The demo as data: its contract holds what it promises, and its commands what they need."""

from decimal import Decimal
from pathlib import Path

import pytest

from firsttoken import demo_plan
from firsttoken.demo_plan import INCIDENTS, LONG_S, MODEL, PERIOD_S, SHORT_S, SLO_YAML, plan
from firsttoken.errors import UsageError
from slo.burn import tiers
from slo.objective import parse

FOLDER = Path("/somewhere/.demo")


def test_the_contract_is_a_valid_spec_with_the_demos_one_tier() -> None:
    (spec,) = parse(SLO_YAML)
    assert spec.service == demo_plan.SERVICE
    assert {objective.signal for objective in spec.objectives} == {"ttft", "tpot", "availability", "kv_occupancy"}
    for objective in spec.objectives:
        (tier,) = tiers(objective)
        assert objective.window == PERIOD_S
        assert (tier.name, tier.budget, tier.long_s, tier.short_s) == ("fast", Decimal("0.5"), LONG_S, SHORT_S)
        assert tier.notify == ("ticket" if objective.signal == "kv_occupancy" else "page")
        assert tier.long_s >= tier.short_s >= 2 * demo_plan.TICK_S


def test_a_page_comes_and_goes_well_within_the_limits_of_the_story() -> None:
    (spec,) = parse(SLO_YAML)
    told = plan(demo_plan.DEFAULT_SECONDS, "slow")
    for objective in spec.objectives:
        (tier,) = tiers(objective)
        detected_s, reset_s = tier.detection_s(Decimal(1)), tier.reset_s(Decimal(1))
        assert detected_s is not None
        assert reset_s is not None
        assert 2 * detected_s < told.page_limit_s
        assert 2 * reset_s < told.resolve_limit_s


def test_the_default_story_is_under_three_minutes_and_healthy_for_half_a_minute_or_more() -> None:
    told = plan(demo_plan.DEFAULT_SECONDS, "slow")
    assert 30 <= told.healthy_s <= 60
    assert told.length_s < 150


@pytest.mark.parametrize("kind", INCIDENTS)
def test_the_load_outlasts_the_longest_story(kind: str) -> None:
    told = plan(120, kind)
    assert told.load_s > told.healthy_s + told.page_limit_s + told.hold_s + told.resolve_limit_s


@pytest.mark.parametrize("seconds", [30, 45, 120, 900])
def test_parts_scale_with_the_length_asked_for(seconds: int) -> None:
    told = plan(seconds, "slow")
    assert 10 <= told.healthy_s <= 60
    assert plan(seconds, "none").healthy_s == plan(seconds, "none").length_s == seconds
    assert told.healthy_s >= plan(30, "slow").healthy_s


@pytest.mark.parametrize(
    ("seconds", "kind", "says"),
    [(29, "slow", "from 30 to 900"), (901, "slow", "from 30 to 900"), (120, "fire", "use slow, hang, kv_pressure")],
)
def test_what_cant_be_told_is_refused(seconds: int, kind: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        plan(seconds, kind)


def test_every_fault_of_an_incident_is_undone_after_it() -> None:
    for incident in INCIDENTS.values():
        assert set(incident.fault) <= set(demo_plan.NO_FAULT)
        assert all(demo_plan.NO_FAULT[name] != value for name, value in incident.fault.items())


def test_a_child_inherits_nothing_that_would_change_the_story() -> None:
    ours = demo_plan.environment(
        {
            "PATH": "/bin",
            "FIRSTTOKEN_LISTEN": "x",
            "OTEL_SDK_DISABLED": "true",
            "https_proxy": "http://p",
            "HTTP_PROXY": "p",
        },
        "http://127.0.0.1:4318",
    )
    assert ours["PATH"] == "/bin"
    assert ours["OTEL_METRIC_EXPORT_INTERVAL"] == "2000"
    assert ours["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://127.0.0.1:4318"
    assert not {"FIRSTTOKEN_LISTEN", "OTEL_SDK_DISABLED", "https_proxy", "HTTP_PROXY"} & set(ours)


def test_every_process_listens_on_a_free_port_of_loopback() -> None:
    commands = (
        demo_plan.server({}),
        demo_plan.collector(FOLDER, {}, None),
        demo_plan.sidecar(FOLDER, {}, server_url="http://127.0.0.1:1", collector_url="http://127.0.0.1:2"),
    )
    for command in commands:
        listeners = [text for text in command.argv if text.startswith("127.0.0.1:")]
        assert listeners
        assert set(listeners) == {"127.0.0.1:0"}


def test_the_collector_notifies_only_when_it_is_given_a_webhook() -> None:
    assert "--webhook" not in demo_plan.collector(FOLDER, {}, None).argv
    assert demo_plan.collector(FOLDER, {}, "http://127.0.0.1:9/").argv[-2:] == ("--webhook", "http://127.0.0.1:9/")


def test_users_are_no_synthetic_load_and_ask_for_the_demos_model() -> None:
    argv = demo_plan.load("load", FOLDER, {}, proxy_url="http://127.0.0.1:1", seconds=60).argv
    flags = dict(zip(argv[4::2], argv[5::2], strict=False))
    assert flags["--class"] == "none"
    assert flags["--model"] == MODEL
    assert flags["--json"] == str(FOLDER / "load.json")
    assert flags["--seconds"] == "60"
