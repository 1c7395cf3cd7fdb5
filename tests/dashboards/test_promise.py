"""What slo.yaml promises, as charts draw it and words say it."""

from decimal import Decimal

import pytest

from dashboards import promise
from tests.dashboards.support import many, specs

TIERS = """
service: chat
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 1.5s
    window: 10m
    alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}]}
"""
SHORT = "service: s\nobjectives: [{name: a, signal: availability, target: 99%, window: 30m}]\n"


def test_a_chart_of_burn_for_each_pair_of_windows_that_alerts_look_at() -> None:
    views = promise.burn_views(specs())
    assert [(view.tier, view.long_s, view.short_s) for view in views] == [
        ("fast", 3600, 300),
        ("medium", 21600, 1800),
        ("slow", 86400, 7200),
        ("long", 259200, 21600),
    ]
    limits = {limit.objective: (limit.value, limit.text) for limit in views[0].limits}
    assert limits["ttft"] == (Decimal(5), "page above 5")
    assert limits["kv-headroom"] == (Decimal("13.44"), "ticket above 13.44")


def test_tiers_set_by_hand_have_charts_of_their_own() -> None:
    (view,) = promise.burn_views(specs(TIERS))
    assert (view.tier, view.long_s, view.short_s) == ("fast", 60, 15)
    assert promise.values(view.limits) == (Decimal(5),)


def test_an_objective_too_short_for_any_tier_is_looked_at_over_its_period() -> None:
    (view,) = promise.burn_views(specs(SHORT))
    assert (view.long_s, view.short_s, view.limits) == (1800, 1800, ())
    assert promise.burn_columns_s(specs(SHORT)) == ()


def test_ten_services_with_the_same_windows_share_their_charts() -> None:
    assert len(promise.burn_views(many(10))) == 4
    assert promise.burn_columns_s(many(10)) == (3600, 21600, 86400, 259200)


def test_a_table_has_room_for_the_windows_of_most() -> None:
    texts = [TIERS.replace("service: chat", f"service: s{n}").replace("60s", f"{60 + n}s") for n in range(1, 7)]
    shown = promise.burn_columns_s(specs("\n---".join([*texts, TIERS, TIERS.replace("service: chat", "service: z")])))
    assert len(shown) == promise.MAX_BURN_COLUMNS
    assert shown[0] == 60


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        ("ttft", [("ttft", Decimal("0.5"), "at most 500ms")]),
        ("e2e", [("whole", Decimal(20), "at most 20s")]),
        ("kv_occupancy", [("kv-headroom", Decimal("0.9"), "at most 90%")]),
        ("queue", [("short-queue", Decimal(10), "at most 10")]),
        ("availability", []),
    ],
)
def test_thresholds_are_in_the_unit_of_the_spec(signal: str, expected: list[tuple[str, Decimal, str]]) -> None:
    found = promise.thresholds(specs(), signal)
    assert [(limit.objective, limit.value, limit.text) for limit in found] == expected


def test_the_percentile_that_is_promised_is_among_those_drawn() -> None:
    assert [promise.quantile_name(q) for q in promise.quantiles(specs(), "e2e")] == ["p50", "p90", "p95", "p99"]
    assert [promise.quantile_name(q) for q in promise.quantiles(specs(), "ttft")] == ["p50", "p95", "p99"]
    assert promise.quantile_name(Decimal("0.999")) == "p99.9"


def test_objectives_that_judge_time_are_known_by_name() -> None:
    assert promise.of_time(specs()) == ("kv-headroom", "short-queue")
    both = "service: s\nobjectives: [{name: short-queue, signal: ttft, percentile: 95, threshold: 1s}]\n"
    assert promise.of_time((*specs(), *specs(both))) == ("kv-headroom",)


def test_periods_come_longest_first() -> None:
    assert promise.periods_s(specs()) == (28 * 86400, 7 * 86400)


def test_factors_are_told_in_words_with_those_who_have_them() -> None:
    words = promise.factors_in_words(promise.burn_views(specs())[0])
    assert " Page above 5: chat ttft." in words
    assert " Page above 13.44: chat tpot, chat answered." in words
    assert promise.factors_in_words(promise.burn_views(specs(SHORT))[0]) == ""


def test_the_contract_names_every_objective_and_its_alerts() -> None:
    lines = promise.contract(specs()).splitlines()
    assert len(lines) == 2 + 6
    kept = "95% of requests with time to first token within 500ms, over 28d"
    assert lines[2].startswith(f"| chat | ttft | {kept} | 5 over 1h (page); ")
    assert promise.contract(specs(SHORT)).endswith("| none |")
