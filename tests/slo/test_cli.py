"""`firsttoken slo`: what people read, and the exit codes scripts rely on."""

import json
from pathlib import Path

import pytest

from slo.cli import main, warnings
from slo.objective import parse

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


E2E = "{name: e, signal: e2e, target: 95, threshold: 30s}"


@pytest.mark.parametrize(
    ("ranges", "gap"),
    [
        (["<16k"], "16384 bytes and more"),
        (["<16k", ">=16k"], None),
        (["<16k", "32k..64k", ">=64k"], "16384 to 32768 bytes"),
        ([">=1k"], "0 to 1024 bytes"),
        (["<16k", "8k..64k", ">=60k"], None),
        (["<16k", None], None),
        ([">=16k", "16k..64k"], "0 to 16384 bytes"),
        (["<16k", "<64k", ">=64k", "64k..128k"], None),
    ],
)
def test_prompt_sizes_that_no_ttft_objective_judges_are_warned_of(ranges: list[str | None], gap: str | None) -> None:
    rows = [
        f"{{name: t{i}, signal: ttft, target: 95, threshold: 1s{f', match: {{prompt_bytes: {r!r}}}' if r else ''}}}"
        for i, r in enumerate(ranges)
    ]
    (spec,) = parse(f"service: s\nobjectives: [{', '.join([*rows, E2E])}]")
    assert [w.split(" prompts of ")[1] for w in warnings(spec)] == ([gap] if gap else [])


def test_a_service_without_e2e_is_warned_of() -> None:
    assert any("no e2e objective" in warning for warning in warnings(parse(SPEC)[0]))
