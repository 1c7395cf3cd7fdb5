"""What an alert says, as the rule engine renders it."""

import subprocess
from pathlib import Path

import pytest
import yaml

from alerts.annotations import Links, burn_annotations
from alerts.rules import service_groups
from slo.burn import tiers
from slo.objective import Spec
from tests.alerts.support import TARGET, events, heartbeat, spec, tool, yaml_text

AWKWARD = 'org/m "x"+\\y'


def texts(of: Spec, links: Links | None = None) -> dict[str, str]:
    (objective,) = of.objectives
    return burn_annotations(of, objective, tiers(objective)[0], links or Links())


def rendered(folder: Path, model: str, more: dict[str, str] | None = None) -> str:
    """The annotations of the burn alert after five minutes of nothing good, and of `more` series, as promtool got
    them."""
    of = spec()
    escaped = model.replace("\\", "\\\\").replace('"', '\\"')
    (folder / "rules.yaml").write_text(yaml_text(service_groups(of, TARGET), of))
    test = {
        "interval": "15s",
        "input_series": [
            {"series": heartbeat(environment="prod"), "values": "0+15x40"},
            {"series": events("good", model=escaped, environment="prod"), "values": "0x40"},
            {"series": events("bad", model=escaped, environment="prod"), "values": "0+10x40"},
            *({"series": name, "values": values} for name, values in (more or {}).items()),
        ],
        "alert_rule_test": [{"alertname": "LLMTTFTBudgetBurn", "eval_time": "6m", "exp_alerts": []}],
    }
    file = {"rule_files": ["rules.yaml"], "evaluation_interval": "15s", "tests": [test]}
    (folder / "tests.yaml").write_text(yaml.safe_dump(file))
    result = subprocess.run(
        [tool("promtool"), "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    return result.stdout + result.stderr


@pytest.mark.tools
def test_the_numbers_of_the_moment_are_filled_in(tmp_path: Path) -> None:
    said = rendered(tmp_path, "m1")
    assert (
        "chat in prod, model m1: 100% of the last 10m was bad (time to first token over 500ms; 5% is allowed)" in said
    )
    assert "Burn 20, alert above 3. Budget left: -" in said
    assert "it ends in 0s." in said


def engine(name: str, more: str = "") -> str:
    return f'{name}{{service_name="chat",environment="prod",instance="b"{more}}}'


@pytest.mark.tools
def test_what_is_known_of_the_cause_is_told_and_nothing_else(tmp_path: Path) -> None:
    more = {
        engine("firsttoken_kv_cache_occupancy_ratio", ',rank="0"'): "0.97x40",
        engine("firsttoken_engine_preemptions_total"): "0+1x40",
        engine("firsttoken_engine_waiting"): "12x40",
        engine("hw_gpu_throttle_seconds_total", ',hw_id="g",reason="hw_thermal"'): "0+3x40",
        events("good", model="m2", environment="prod", instance="b"): "0+100x40",
        events("bad", model="m2", environment="prod", instance="b"): "0+30x40",
    }
    said = rendered(tmp_path, "m1", more)
    assert "Worst model: m1, 100% bad. Most bad events: instance b." in said
    assert "KV cache full to 97% at most. Preemptions in 5m: 20. Waiting in engines: 12." in said
    assert "GPU clocks held back for 20%." in said
    silent = rendered(tmp_path, "m1")
    assert "it ends in 0s. Worst model: m1, 100% bad. Most bad events: instance a." in silent
    assert not [word for word in ("KV cache", "Preemptions", "Waiting", "GPU", "Time of") if word in silent]


def latency_sum(metric: str, source: str = "proxy") -> str:
    return engine(f"gen_ai_server_{metric}_seconds_sum", f',source="{source}"')


@pytest.mark.tools
@pytest.mark.parametrize(
    ("more", "said"),
    [
        # In every second of the last minutes 10 requests were under way, 6 of them without a first token, 4 waited.
        ({latency_sum("time_to_first_token"): "0+90x40", engine("firsttoken_engine_waiting"): "4x40"},
         "Time of requests: queue 40%, prefill 20%, decode 40%."),
        ({latency_sum("time_to_first_token"): "0+90x40"}, "Time of requests: queue and prefill 60%, decode 40%."),
        ({latency_sum("time_to_first_token"): "0+90x40", latency_sum("time_to_first_token", "engine"): "0+30x40"},
         "Time of requests: queue and prefill 60%, decode 40%."),
    ],
    ids=["an engine that tells its queue", "one that does not", "the engine's own latencies beside the sidecar's"],
)  # fmt: skip
def test_where_the_time_of_requests_goes_is_told(tmp_path: Path, more: dict[str, str], said: str) -> None:
    assert said in rendered(tmp_path, "m1", {latency_sum("request_duration"): "0+150x40", **more})


def test_who_cannot_ask_is_told_what_the_alert_knows_itself() -> None:
    said = texts(spec(), Links(asks=False))["description"]
    assert "query" not in said
    assert "over the last 10m, alert above 3 (time to first token over 500ms; 5% is allowed)." in said


@pytest.mark.tools
def test_an_awkward_model_name_breaks_neither_queries_nor_links(tmp_path: Path) -> None:
    said = rendered(tmp_path, AWKWARD)
    assert "error expanding" not in said
    assert "unknown" not in said
    assert "100% of the last 10m was bad" in said
    assert "var-model_name=org%2Fm+%22x%22%2B%5Cy" in said


def test_the_summary_is_a_static_sentence() -> None:
    summary = texts(spec())["summary"]
    assert "{{" not in summary
    assert summary.endswith(".")


def test_links_follow_the_patterns_given() -> None:
    links = Links("https://wiki.example/llm/{alertname}", "https://grafana.example/")
    found = texts(spec(), links)
    assert found["runbook_url"] == "https://wiki.example/llm/LLMTTFTBudgetBurn"
    assert found["dashboard_url"].startswith("https://grafana.example/d/firsttoken-slo-overview?var-service_name=chat&")
    assert texts(spec(runbook_url="https://own.example/x"), links)["runbook_url"] == "https://own.example/x"
