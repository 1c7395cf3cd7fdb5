"""`firsttoken slo`: what people read, and the exit codes scripts rely on."""

import json
from pathlib import Path

import pytest

from slo.cli import main

SPEC = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 90, threshold: 500ms}
  - {name: answered, signal: availability, target: 99.9%}
  - {name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}
  - {name: queue, signal: queue, threshold: 10, target: 99%}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "slo.yaml"
    path.write_text(SPEC)
    return path


def test_check_shows_for_each_tier_what_it_needs(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(spec)]) == 0
    shown = capsys.readouterr().out
    assert "ttft: 90% of requests with time to first token within 500ms, over 28d" in shown
    assert "…" not in shown
    (fast,) = [line.split() for line in shown.splitlines() if line.split()[:3] == ["fast", "1h/5m", "page"]][:1]
    assert fast[3:] == ["2.5", "25%", ">=", "10", "15m", "30m", "never", "4m", "0.4%"]


def test_a_narrow_terminal_loses_nothing(
    spec: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["check", str(spec)]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 50
    assert "…" not in shown
    assert "at 20% bad never" in " ".join(shown.split())


def test_a_faulty_spec_ends_with_2_and_one_line_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(SPEC.replace("99.9%", "100%").replace("threshold: 10", "treshold: 10"))
    assert main(["check", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.removeprefix(f"{path}:").split(":")[0] for line in captured.err.splitlines()] == ["5", "7"]


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "firsttoken slo.yaml"


def test_usage_errors_end_with_2() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["check"])


def test_traffic_adds_how_often_each_alert_rings_for_nothing(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(spec), "--traffic", "600/h"]) == 0
    shown = capsys.readouterr().out
    assert "false in 30d" in shown
    assert "while 50% of what may be bad is bad" in shown
    rows = [line.split() for line in shown.splitlines() if line.split()[:2] == ["fast", "1h/5m"]]
    assert [row[-2:] for row in rows] == [["<", "0.01"], ["<", "0.01"], ["2%", "-"], ["2%", "-"]]


def test_the_check_as_json_holds_the_same(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(spec), "--traffic", "600/h", "--json"]) == 0
    (service,) = json.loads(capsys.readouterr().out)
    assert service["service"] == "chat"
    ttft, answered, kv, _ = service["objectives"]
    fast = ttft["tiers"][0]
    assert (fast["factor"], fast["bad_share_needed"], fast["min_bad_events"], fast["notify"]) == (2.5, 0.25, 10, "page")
    assert fast["detection_s"] == {"100%": 900.0, "50%": 1800.0, "20%": None}
    assert 0 <= fast["false_alerts_30d"] < 0.01
    assert (answered["tiers"][0]["factor"], kv["tiers"][0]["false_alerts_30d"]) == (13.44, None)
    assert any("no e2e objective" in warning for warning in service["warnings"])


def test_a_rate_without_its_unit_of_time_is_bad_usage(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["check", str(spec), "--traffic", "600"])
    assert "600 is not a rate: write a number and a unit of time, as 600/h" in capsys.readouterr().err


def test_a_tier_set_by_hand_that_can_never_fire_is_refused_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "slo.yaml"
    path.write_text(
        SPEC.replace(
            "percentile: 90, threshold: 500ms", "percentile: 90, threshold: 500ms,\n     alerts: {tiers: [{name: fast, "
            "budget: 2%, long: 1h}]}",
        )
    )  # fmt: skip
    assert main(["check", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{path}:5:")
    assert "tier fast can never fire: it needs more than 134.4% bad events" in said
