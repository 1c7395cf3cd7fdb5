"""Counts, coverage and budget as Prometheus reckons them from the recordings."""

from pathlib import Path

import pytest

from alerts import counts
from alerts.rules import Target
from slo import promql
from slo.objective import Spec
from tests.alerts.support import events, heartbeat, promtool_test, rules, spec

pytestmark = pytest.mark.tools

ONE = 'model_name="m1",objective="ttft",service_name="chat"'
HASHED = 'model_name="m1",objective="ttft",objective_hash="h1",service_name="chat"'
ALL_HASHED = HASHED.replace("m1", "*")


def of(record: str, labels: str = ONE) -> str:
    return f'{{__name__="{record}",{labels}}}'


def long_count(of_spec: Spec, window_s: int) -> str:
    """The expression of the events of a window longer than three days."""
    (objective,) = of_spec.objectives
    return next(
        r.expr for r in counts.window_rules(of_spec, objective, window_s) if r.record == promql.slo_total(window_s)
    )


def test_counts_are_the_same_for_every_split_into_instances_and_models(tmp_path: Path) -> None:
    series = {
        events("good", instance="a"): "0+3x80",
        events("good", instance="b"): "0+5x80",
        events("bad", instance="a", model="m2"): "0+1x80",
        events("good", instance="a", model="m2"): "0+1x80",
    }
    total, bad = "firsttoken:slo_total:increase10m", "firsttoken:slo_bad:increase10m"
    checks = [
        ("15m", f'{total}{{model_name="m1"}}', {of(total, HASHED): 320.0}),
        ("15m", f'{total}{{model_name="*"}}', {of(total, ALL_HASHED): 400.0}),
        ("15m", f'{bad}{{model_name="*"}}', {of(bad, ALL_HASHED): 40.0}),
    ]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_an_instance_that_is_gone_leaves_its_counts_in_the_total(tmp_path: Path) -> None:
    series = {events("good", instance="a"): "0+10x20 stale", events("good", instance="b"): "0x60"}
    total = "firsttoken:slo_total:increase10m"
    promtool_test(
        tmp_path,
        groups=rules(spec()),
        series=series,
        checks=[("8m", f'round({total}{{model_name="m1"}}, 50)', {f"{{{HASHED}}}": 200.0})],
    )


@pytest.mark.parametrize(
    ("head", "tail", "total"),
    [("7", "2", 7 + 4 * 24 * 2), ("7", None, 7), (None, "2", 4 * 24 * 2)],
    ids=["three days and the hours before", "a service of less than three days", "silent for the last three days"],
)
def test_a_long_window_adds_counts_and_never_ratios(
    tmp_path: Path, head: str | None, tail: str | None, total: int
) -> None:
    # Eight days of hourly records for a window of seven: three days come from the head, four from the tail.
    week = spec(window="7d", alerts={})
    hours = 8 * 24
    series = {
        of("firsttoken:slo_judged:info", 'service_name="chat",objective="ttft",objective_hash="h1"'): f"1x{hours}"
    }
    if tail:
        series[of("firsttoken:slo_total:increase1h", HASHED)] = f"{tail}x{hours}"
    if head:
        series[of("firsttoken:slo_total:increase3d", HASHED)] = f"{head}x{hours}"
    # Half an hour past the hour: the tail ends on a whole hour, and 24 * 4 of them are in four days.
    checks = [("7d12h0m30s", long_count(week, 7 * 86400), {f"{{{HASHED}}}": float(total)})]
    promtool_test(tmp_path, groups=[], series=series, checks=checks, step="1h")


def test_a_long_window_forgets_a_hash_that_is_judged_no_more(tmp_path: Path) -> None:
    judged = of("firsttoken:slo_judged:info", 'service_name="chat",objective="ttft",objective_hash="h2"')
    series = {judged: "1x200", of("firsttoken:slo_total:increase1h", HASHED): "2x200"}
    checks = [("7d", long_count(spec(window="7d", alerts={}), 7 * 86400), {})]
    promtool_test(tmp_path, groups=[], series=series, checks=checks, step="1h")


@pytest.mark.parametrize(
    ("bad", "remaining"),
    [(0, 1.0), (5, 0.5), (10, 0.0), (86, -7.6)],
    ids=["D17: nothing bad", "D17: half of it", "D17: all of it", "D17: overspent, and not clamped"],
)
def test_the_budget_left_is_one_minus_bad_over_allowance(tmp_path: Path, bad: int, remaining: float) -> None:
    # Target 99 % over ten minutes, 1,000 events a step: 10 may be bad.
    small = spec(target="99%", window="10m", alerts={"tiers": [{"name": "t", "budget": "50%", "long": "5m"}]})
    left = f'round({promql.BUDGET_REMAINING}{{model_name="m1"}}, 0.01)'
    series = {heartbeat(): "0+15x80", events("good"): f"0+{1000 - bad}x80", events("bad"): f"0+{bad}x80"}
    checks = [("20m", left, {f"{{{ONE}}}": remaining})]
    promtool_test(tmp_path, groups=rules(small), series=series, checks=checks)


def test_a_young_series_has_the_budget_of_a_whole_period(tmp_path: Path) -> None:
    # Six minutes of an hour at 40 events a step: the period would see 9,600 of them, of which 480 may be bad.
    series = {events("good"): "0+20x40", events("bad"): "0+20x40"}
    allowance = f'round({promql.BUDGET_ALLOWANCE}{{model_name="m1"}}, 10)'
    left = f'round({promql.BUDGET_REMAINING}{{model_name="m1"}}, 0.05)'
    checks = [("6m", allowance, {f"{{{HASHED}}}": 480.0}), ("6m", left, {f"{{{ONE}}}": 0.0})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_a_young_series_spends_at_the_rate_of_its_minutes(tmp_path: Path) -> None:
    # Six minutes of an hour at 40 events a step, one of them bad where two may be: half the budget would last an hour,
    # and of the 480 that may be bad 24 are.
    series = {events("good"): "0+39x40", events("bad"): "0+1x40"}
    checks = [("6m", f'round({promql.BUDGET_EXHAUSTED_IN}{{model_name="m1"}}, 300)', {f"{{{ONE}}}": 6900.0})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_exhausted_in_is_what_is_left_over_the_last_hours_rate(tmp_path: Path) -> None:
    # An hour at 100 events a step, 3 of them bad where 5 may be: 2/3 of an hour is left at that rate (0.82 with the
    # other model's 9 good ones a step). Then the rest goes in ten minutes, and 0 stands there. A model without a bad
    # event has no such time.
    series = {
        events("good"): "0+97x240 23280x44",
        events("bad"): "0+3x240 740+30x43",
        events("good", model="m2"): "0+9x290",
    }
    ends = f"round({promql.BUDGET_EXHAUSTED_IN}, 60)"
    checks = [
        ("1h", ends, {f"{{{ONE}}}": 2400.0, f"{{{ONE.replace('m1', '*')}}}": 2940.0}),
        ("1h10m", f'{promql.BUDGET_EXHAUSTED_IN}{{model_name="m1"}}', {of(promql.BUDGET_EXHAUSTED_IN): 0.0}),
        ("1h10m", f'{promql.BUDGET_EXHAUSTED_IN}{{model_name="m2"}}', {}),
    ]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_coverage_is_the_share_of_minutes_with_a_heartbeat(tmp_path: Path) -> None:
    # Two instances by turns, six minutes of the last ten; the counters are older than the window.
    series = {
        heartbeat(instance="a"): "0+15x40 stale",
        heartbeat(instance="b"): "_x60 0+15x7 stale",
        events("good"): "0+1x100",
    }
    covered = f'{promql.coverage(600)}{{model_name="m1"}}'
    checks = [("17m59s", f"round({covered}, 0.1)", {f"{{{HASHED}}}": 0.5})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_coverage_is_at_most_the_age_of_the_series(tmp_path: Path) -> None:
    series = {heartbeat(): "0+15x100", events("good"): "0+1x100", events("good", model="new"): "_x40 0+1x60"}
    covered = f"round({promql.coverage(600)}, 0.1)"
    new = HASHED.replace("m1", "new")
    checks = [("13m", covered, {f"{{{HASHED}}}": 1.0, f"{{{ALL_HASHED}}}": 1.0, f"{{{new}}}": 0.3})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_the_age_of_a_young_series_is_known_to_the_tick_where_a_window_is_short(tmp_path: Path) -> None:
    short = spec(alerts={"tiers": [{"name": "fast", "budget": "5%", "long": "2m", "short": "30s"}]})
    series = {heartbeat(): "0+15x100", events("good"): "_x10 0+1x60"}  # born at 2m30s, between two minutes
    covered = promql.coverage(120)
    checks = [("4m", f'{covered}{{model_name="m1"}}', {of(covered, HASHED): 0.75})]
    promtool_test(tmp_path, groups=rules(short), series=series, checks=checks)


def test_counters_without_any_heartbeat_are_telemetry_too(tmp_path: Path) -> None:
    covered = promql.coverage(600)
    checks = [("13m", f'{covered}{{model_name="m1"}}', {of(covered, HASHED): 1.0})]
    promtool_test(tmp_path, groups=rules(spec()), series={events("good"): "0+1x100"}, checks=checks)


def test_the_promise_itself_is_a_series(tmp_path: Path) -> None:
    labels = 'objective="ttft",service_name="chat",signal="ttft"'
    checks = [
        ("1m", promql.OBJECTIVE_TARGET, {of(promql.OBJECTIVE_TARGET, labels): 0.95}),
        ("1m", promql.OBJECTIVE_THRESHOLD, {of(promql.OBJECTIVE_THRESHOLD, labels): 0.5}),
    ]
    promtool_test(tmp_path, groups=rules(spec()), series={"unrelated": "0x10"}, checks=checks)


@pytest.mark.parametrize(
    ("window_s", "step_s"), [(60, 2), (599, 2), (600, 60), (21600, 60), (86400, 120), (259200, 360), (2419200, 3360)]
)
def test_a_window_is_looked_at_in_ticks_minutes_or_720_looks(window_s: int, step_s: int) -> None:
    assert counts.look_step_s(window_s, tick_s=2) == step_s


def test_no_range_reads_more_than_three_days_of_counters() -> None:
    month = spec(window="28d", alerts={})
    expressions = [rule.expr for group in rules(month, target=Target()) for rule in group.rules]
    raw = [expr for expr in expressions if "increase(" in expr]
    assert raw
    assert not any("[28d]" in expr for expr in raw)
    assert any("[25d:1h] offset 3d" in expr for expr in expressions)
