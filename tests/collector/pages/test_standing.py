"""One objective in words: each figure with how it stands against the promise."""

from dataclasses import replace
from typing import Any

from collector.answering.status import status
from collector.pages.standing import Standing, lasting
from collector.pages.standing import standing as worded
from slo.burn import tiers
from slo.objective import parse
from tests.collector.answering import test_status as made

OBJECTIVE = made.SPECS[0].objectives[0]


def standing(objective: Any, row: Any) -> Standing:
    return worded(objective, row, shortest_s=300, tiers=tiers(objective))


def row(found: Any, *alerts: Any) -> Any:
    return status(made.SPECS, found, alerts)["objectives"][0]


def test_a_kept_objective_says_what_is_left_and_for_how_long() -> None:
    found = standing(OBJECTIVE, row(made.FULL))
    assert (found.tone, found.state, found.model) == ("good", "kept", "all models")
    assert (found.remaining, found.width, found.lasts) == ("50 %", 50.0, "lasts 10 min")
    assert (found.bad, found.allowance) == ("10", "20")


def test_a_budget_that_outlasts_a_long_period_is_not_measured_in_years() -> None:
    assert lasting(5e7, 28 * 86400) == "beyond 28 d"
    assert lasting(86400, 28 * 86400) == "1 d"
    assert lasting(1080, 600) == "18 min"


def test_without_data_nothing_is_claimed() -> None:
    found = standing(OBJECTIVE, row(None))
    assert (found.tone, found.remaining, found.width) == ("none", "–", 0.0)
    assert found.lasts == "waiting for the first events"
    assert found.windows == found.latencies == []


def test_a_spent_budget_is_said_so() -> None:
    found = standing(OBJECTIVE, row(made.evaluation(budgets=(made.budget("*", remaining=-0.5),))))
    assert (found.tone, found.state, found.remaining, found.lasts) == ("bad", "budget spent", "-50 %", "spent")
    assert found.width == 0.0


def burn_of(rate: float | None, window_s: int, coverage: float = 1.0, *alerts: Any) -> Any:
    burn = made.BurnRow(made.AT_S, "", "chat", "*", "ttft", window_s, 1, 1, rate, coverage, "counts", 0)
    (found,) = standing(OBJECTIVE, row(made.evaluation(burns=(burn,), budgets=(made.budget("*"),)), *alerts)).windows
    return found


def test_amber_is_spending_too_fast_and_red_is_an_alert() -> None:
    assert [burn_of(rate, 3600).tone for rate in (None, 0.5, 1.0, 1.1, 9.0)] == ["none", "good", "good", "warn", "warn"]
    assert burn_of(9.0, 3600, 1.0, made.firing()).tone == "bad"
    assert burn_of(9.0, 21600, 1.0, made.firing()).tone == "warn"
    assert burn_of(0.5, 300, 1.0, made.firing()).tone == "good"
    assert burn_of(9.0, 259200, 0.04).tone == "none"


def test_a_window_of_a_tier_knows_its_factor() -> None:
    assert burn_of(5.1, 3600).factor == "5.0×"
    assert burn_of(100.0, 2419200).factor == ""


def test_a_bar_is_full_a_little_above_the_factor() -> None:
    assert burn_of(5.0, 3600).height == 80.0
    assert burn_of(50.0, 3600).height == 100.0
    assert burn_of(None, 3600).height == 0.0


def test_a_window_that_is_only_partly_known_says_so() -> None:
    assert burn_of(1.0, 3600, 0.05).partly_known
    assert burn_of(1.0, 3600, 0.05).coverage == "5.0 %"
    assert not burn_of(1.0, 3600, 0.95).partly_known


def latency(**figures: Any) -> Any:
    values = {"count": 10, "censored": 0, "p50": 0.1, "p90": 0.2, "p95": 0.4, "p99": 0.6, "p999": 0.7, "max": 0.9}
    full = values | {"at_least": None, "rel_error": 0.011, "coverage": 1.0} | figures
    row = made.PercentileRow(made.AT_S, "", "chat", "m", "ttft", "proxy", 300, **full)
    found = made.evaluation(budgets=(made.budget("m"),), rows=(row,))
    return standing(OBJECTIVE, status(made.SPECS, found, ())["objectives"][0]).latencies[0]


def test_the_promised_percentile_alone_is_held_against_the_threshold() -> None:
    assert latency().values == [("p50", "100 ms", "none"), ("p95", "400 ms", "good"), ("p99", "600 ms", "none")]
    assert latency(p95=0.51).values[1] == ("p95", "510 ms", "bad")
    assert latency().note == "±1.1 %"


def test_a_percentile_among_the_censored_is_more_than_what_is_known() -> None:
    found = latency(p95=None, p99=None, at_least=0.5, censored=3)
    assert found.values[2] == ("p99", "> 500 ms", "none")
    assert found.count == "10 requests, 3 without a value"
    assert found.values[1] == ("p95", "> 500 ms", "bad"), "it exceeds the very threshold"
    assert latency(p95=None, at_least=0.4).values[1] == ("p95", "> 400 ms", "none"), "it may still be good"
    assert latency(p95=None, at_least=None).values[1] == ("p95", "–", "none")


def test_a_promise_on_another_percentile_is_shown_as_well() -> None:
    objective = parse("service: chat\nobjectives: [{name: a, signal: ttft, percentile: 99.9, threshold: 1s}]")[
        0
    ].objectives[0]
    found = made.evaluation(budgets=(made.budget("m"),), rows=(made.percentile("m"),))
    shown = standing(objective, status(made.SPECS, found, ())["objectives"][0]).latencies[0]
    assert shown.values[-1] == ("p99.9", "700 ms", "good")


def test_a_basis_that_is_no_count_is_said() -> None:
    assert standing(OBJECTIVE, row(made.FULL)).basis == ""
    said = row(made.FULL) | {"basis": "histogram"}
    assert "histogram" in standing(OBJECTIVE, said).basis


def test_windows_longer_than_the_period_are_left_out() -> None:
    burns = tuple(made.burn("*", window_s) for window_s in (300, 3600, 259200))
    text = "service: chat\nobjectives: [{name: ttft, signal: ttft, percentile: 95, threshold: 1s, window: 1h}]"
    objective = parse(text)[0].objectives[0]
    found = status(parse(text), made.evaluation(burns=burns, budgets=(made.budget("*"),)), ())["objectives"][0]
    assert [window.label for window in standing(objective, found).windows] == ["5m", "1h"]


def test_percentiles_are_those_of_the_shortest_and_of_a_settled_window() -> None:
    rows = tuple(replace(made.percentile("m"), window_s=window_s) for window_s in (60, 300, 3600, 86400))
    found = status(made.SPECS, made.evaluation(budgets=(made.budget("m"),), rows=rows), ())["objectives"][0]
    for shortest_s, windows in ((60, ["1m", "1h"]), (3600, ["1h"])):
        said = worded(OBJECTIVE, found, shortest_s=shortest_s, tiers=tiers(OBJECTIVE))
        assert [line.window for line in said.latencies] == windows
