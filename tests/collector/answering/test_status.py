"""The status: its shape, and what it says of each objective and model."""

from dataclasses import replace

import pytest

from collector.answering.status import status
from collector.judging.evaluate import Evaluation
from collector.judging.percentiles import PercentileRow
from collector.values.alerting import Alert, AlertKey
from collector.values.columns import columns
from collector.values.verdicts import BudgetRow, BurnRow
from slo.objective import Spec, parse
from slo.trouble import BUDGET_POLICY
from tests.collector.drift_scene import DRIFT

AT_S = 1_800_000_000
SPECS = parse(
    """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, owner: serving}
  - {name: answered, signal: availability, target: 99.9%}
"""
)


def burn(model: str, window_s: int = 3600, *, good: int = 90, bad: int = 10) -> BurnRow:
    return BurnRow(AT_S, "", "chat", model, "ttft", window_s, good, bad, 2.0, 0.5, "counts", 0)


def budget(model: str, *, remaining: float = 0.5, good: int = 90) -> BudgetRow:
    return BudgetRow(AT_S, "", "chat", model, "ttft", good, 10, 20.0, remaining, 600.0, 0.1, "counts")


def percentile(model: str, source: str = "proxy", *, p95: float | None = 0.4) -> PercentileRow:
    figures = (100, 0, 0.1, 0.3, p95, 0.6, 0.7, 0.8, None, 0.011)
    return PercentileRow(AT_S, "", "chat", model, "ttft", source, 300, *figures, 1.0)


def firing(model: str = "*") -> Alert:
    key = AlertKey("LLMTTFTBudgetBurn", "", "chat", model, "ttft", "fast")
    return Alert(
        key, "firing", AT_S - 60, AT_S - 60, (("notify", "page"), ("severity", "critical")), (("summary", "x."),)
    )


def due() -> Alert:
    return replace(firing(), key=AlertKey(BUDGET_POLICY, "", "chat", "*", "ttft", "50%"))


def evaluation(
    *, burns: tuple[BurnRow, ...] = (), budgets: tuple[BudgetRow, ...] = (), rows: tuple[PercentileRow, ...] = ()
) -> Evaluation:
    return Evaluation(AT_S, columns(PercentileRow, rows), columns(BurnRow, burns), columns(BudgetRow, budgets), (), ())


FULL = evaluation(
    burns=(burn("m", 300), burn("m"), burn("*"), burn("*", 2419200), burn("*", 77)),
    budgets=(budget("m"), budget("*")),
    rows=(percentile("m"),),
)


def of(specs: tuple[Spec, ...], found: Evaluation | None, *alerts: Alert) -> list[dict[str, object]]:
    objectives: list[dict[str, object]] = status(specs, found, alerts)["objectives"]
    return objectives


def test_the_shape_is_that_of_the_design() -> None:
    said = status(SPECS, FULL, [firing()])
    assert said["at_s"] == AT_S
    one = said["objectives"][0]
    assert {
        *("service", "model", "objective", "signal", "target", "threshold", "unit", "state", "windows", "budget"),
        *("percentiles", "alerts"),
    } <= set(one)
    assert (one["target"], one["threshold"], one["unit"], one["owner"]) == (0.95, 0.5, "s", "serving")
    assert set(one["windows"][0]) == {"window", "window_s", "good", "bad", "burn", "coverage"}
    assert {"good", "bad", "remaining", "exhausted_in_s"} <= set(one["budget"])
    assert {"count", "p50", "p95", "p99"} <= set(one["percentiles"]["5m"])
    assert one["alerts"][0]["name"] == "LLMTTFTBudgetBurn"


def test_all_models_come_first_and_windows_ascend() -> None:
    found = of(SPECS, FULL)
    assert [(one["objective"], one["model"]) for one in found] == [("ttft", "*"), ("ttft", "m"), ("answered", "*")]
    assert [window["window"] for window in found[0]["windows"]] == ["1h", "28d"]  # type: ignore[attr-defined, index]


STATES = {
    "kept": (evaluation(budgets=(budget("*"),)), (), "ok"),
    "an alert fires": (evaluation(budgets=(budget("*"),)), (firing(),), "burning"),
    "the budget is spent": (evaluation(budgets=(budget("*", remaining=0.0),)), (firing(),), "exhausted"),
    "a step of the policy is due": (evaluation(budgets=(budget("*"),)), (due(),), "ok"),
    "another model's alert": (evaluation(budgets=(budget("*"),)), (firing("m"),), "ok"),
    "nothing counted": (
        evaluation(budgets=(BudgetRow(AT_S, "", "chat", "*", "ttft", 0, 0, 0.0, 1.0, None, 0.0, "counts"),)),
        (),
        "no_data",
    ),
    "nothing evaluated": (None, (), "no_data"),
}


@pytest.mark.parametrize("case", STATES)
def test_states(case: str) -> None:
    found, alerts, expected = STATES[case]
    assert of(SPECS, found, *alerts)[0]["state"] == expected


def percentiles_of(text: str, *rows: PercentileRow) -> dict[str, dict[str, object]]:
    """The percentiles over all the models of the objective of a spec."""
    found: dict[str, dict[str, object]] = status(parse(text), evaluation(budgets=(budget("*"),), rows=rows), ())[
        "objectives"
    ][0]["percentiles"]
    return found


TTFT = "service: chat\nobjectives:\n  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms%s}\n"
M, N, TOGETHER = percentile("m", p95=0.1), percentile("n", p95=0.2), percentile("*", p95=0.3)


def test_percentiles_over_all_models_are_those_of_the_only_one_or_of_all_together() -> None:
    assert percentiles_of(TTFT % "", M)["5m"]["p95"] == 0.1
    assert percentiles_of(TTFT % "", M, N, TOGETHER)["5m"]["p95"] == 0.3


def test_percentiles_over_some_of_several_models_are_kept_by_nobody() -> None:
    o = percentile("o")
    assert percentiles_of(TTFT % ", match: {model: n}", M, N, TOGETHER)["5m"]["p95"] == 0.2
    assert percentiles_of(TTFT % ", match: {model: '[mn]'}", M, N, TOGETHER)["5m"]["p95"] == 0.3
    assert percentiles_of(TTFT % ", match: {model: '[mn]'}", M, N, o, TOGETHER) == {}


def test_percentiles_of_all_windows_come_from_one_source_that_has_seen_something() -> None:
    idle = replace(percentile("m", p95=None), count=0)
    engine = [replace(percentile("m", "engine"), window_s=window_s) for window_s in (300, 3600)]
    assert {one["source"] for one in percentiles_of(TTFT % "", idle, *engine).values()} == {"engine"}
    seen = replace(percentile("m"), window_s=3600)
    assert {one["source"] for one in percentiles_of(TTFT % "", idle, seen, *engine).values()} == {"proxy"}


def test_the_sidecars_own_eye_comes_before_the_engines() -> None:
    rows = (percentile("m", "engine", p95=9.0), percentile("m", "proxy", p95=0.2))
    for order in (rows, rows[::-1]):
        one = of(SPECS, evaluation(budgets=(budget("m"),), rows=order))[0]
        assert one["percentiles"]["5m"]["source"] == "proxy"  # type: ignore[index]
        assert one["percentiles"]["5m"]["p95"] == 0.2  # type: ignore[index]


def test_drifts_that_last_stand_beside_the_objectives() -> None:
    assert status(SPECS, FULL, ())["drifts"] == status(SPECS, None, ())["drifts"] == []
    (found,) = status(SPECS, replace(FULL, drifts=(DRIFT,)), ())["drifts"]
    assert found == {
        "since_s": DRIFT.since_s,
        "environment": "",
        "service": "chat",
        "model": "m",
        "signal": "ttft",
        "source": "proxy",
        "effect": 0.25,
        "before_s": 0.4,
        "after_s": 0.5,
        "count": 1200,
        "kind": "server",
        "until_s": None,
    }


def test_a_service_that_no_objective_speaks_of_is_told() -> None:
    rows = [replace(percentile(model), service="search") for model in ("*", "n", "m")]
    (found,) = status(SPECS, evaluation(rows=(percentile("m"), *rows)), ())["unjudged"]
    assert found == {
        "environment": "",
        "service": "search",
        "models": ["m", "n"],
        "models_count": 2,
        "signals": ["ttft"],
    }
    assert status(SPECS, None, ())["unjudged"] == status(SPECS, FULL, ())["unjudged"] == []
