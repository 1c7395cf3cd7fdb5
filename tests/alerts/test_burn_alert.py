"""When a burn alert starts, what holds it and what ends it, put to the real rule engine by promtool.

The spec is `support.SMALL`: burn above 3 (15 % bad) over 10m and 1m, at least 10 bad events. A sample every 15 s.
"""

import itertools
from pathlib import Path
from random import Random

import pytest

from alerts.annotations import Links
from alerts.burn_alert import burn_alert, burning_rule, starts
from alerts.group import Alert
from slo import promql
from slo.burn import Tier, WindowCounts, next_state, tiers
from slo.objective import Spec
from tests.alerts.support import SMALL, Check, events, firing, heartbeat, promtool_test, rules, spec

pytestmark = pytest.mark.tools

BURN = '{{model_name="{}",objective="ttft",service_name="chat"}}'
BOTH = {'{model_name="m1"}': 1.0, '{model_name="*"}': 1.0}
ALIVE = {heartbeat(): "0+15x400"}
# Ten a step: 5 min of good events (20 steps), 5 min of bad ones, then 10 min of what the test says.
GOOD_THEN_NONE = "0+10x20 200x60"
BAD_FROM_5M_TO_10M = "0x20 10+10x19 200x60"


def alert(of: Spec) -> Alert:
    (objective,) = of.objectives
    return burn_alert(of, objective, tiers(objective)[0], Links())


def verdict(of: Spec) -> str:
    (objective,) = of.objectives
    return burning_rule(of, objective, tiers(objective)[0]).expr


def test_it_fires_for_the_model_and_for_all_models_and_ends_with_good_events(tmp_path: Path) -> None:
    good = "0+10x20 200x20 210+10x40"
    series = ALIVE | {events("good"): good, events("bad"): BAD_FROM_5M_TO_10M}
    # 15 % of ten minutes is 90 s of only bad events; the short window is good again within a minute.
    checks = [("6m", firing(), {}), ("7m30s", firing(), BOTH), ("10m", firing(), BOTH), ("11m15s", firing(), {})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_its_labels_tell_it_apart_and_hold_no_value(tmp_path: Path) -> None:
    series = ALIVE | {events("good"): GOOD_THEN_NONE, events("bad"): BAD_FROM_5M_TO_10M}
    labels = (
        'alertname="LLMTTFTBudgetBurn",alertstate="firing",burn_tier="fast",long_window="10m",notify="page",'
        'objective="ttft",service_name="chat",severity="critical",short_window="1m"'
    )
    expected = {f'ALERTS{{{labels},model_name="{model}"}}': 1.0 for model in ("m1", "*")}
    checks = [("9m", 'ALERTS{alertname="LLMTTFTBudgetBurn"}', expected)]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_silence_is_no_recovery_until_the_long_window_has_passed(tmp_path: Path) -> None:
    series = ALIVE | {events("good"): GOOD_THEN_NONE, events("bad"): BAD_FROM_5M_TO_10M}
    checks = [("13m", firing(), BOTH), ("19m30s", firing(), BOTH), ("21m", firing(), {})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_a_server_that_vanishes_while_firing_keeps_it_firing(tmp_path: Path) -> None:
    bad, good = "0x20 10+10x19 stale", "0+10x20 200x19 stale"
    series = {heartbeat(): "0+15x39 stale", events("good"): good, events("bad"): bad}
    checks = [("10m", firing(), BOTH), ("18m", firing(), BOTH), ("20m45s", firing(), {})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_one_good_moment_ends_it_and_a_new_burn_starts_it_again(tmp_path: Path) -> None:
    good = "0+10x20 200x20 210+10x8 280x32"
    bad = "0x20 10+10x19 200x8 210+10x19 400x12"
    series = ALIVE | {events("good"): good, events("bad"): bad}
    checks = [("10m", firing(), BOTH), ("12m", firing(), {}), ("14m", firing(), BOTH)]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_a_straggler_does_not_ring_for_a_burn_that_is_over(tmp_path: Path) -> None:
    # Two minutes of good events end it; then one event a sample comes, and one of them is bad: a fifth of that minute.
    series = ALIVE | {
        events("good"): "0+10x20 200x20 210+10x8 291+1x20",
        events("bad"): "0x20 10+10x19 200x11 201x20",
    }
    burns = {BURN.format(model): 1.0 for model in ("m1", "*")}
    checks = [
        ("10m", firing(), BOTH),
        ("12m30s", firing(), {}),
        ("13m30s", "firsttoken:burn_rate:ratio1m > bool 3", burns),
        ("13m30s", firing(), {}),
        ("14m15s", firing(), {}),
    ]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


@pytest.mark.parametrize(("each", "at_11m15s"), [(1, BOTH), (2, {})], ids=["four a minute", "eight a minute"])
def test_a_few_good_events_are_no_recovery_and_as_many_as_two_bad_ones_were_among_are(
    tmp_path: Path, each: int, at_11m15s: dict[str, float]
) -> None:
    # Of the long window a quarter is bad, and more the more of its good begin it loses.
    good = f"0+30x20 600x20 {600 + each}+{each}x60"
    series = ALIVE | {events("good"): good, events("bad"): BAD_FROM_5M_TO_10M}
    checks = [("10m45s", firing(), BOTH), ("11m15s", firing(), at_11m15s), ("14m30s", firing(), {})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_ten_good_events_are_a_recovery_whatever_burned(tmp_path: Path) -> None:
    # A hundredth of all events is bad, ten times what may be: of twelve a minute later on none would be.
    tight = spec(target="99.9%", alerts={"tiers": [{"name": "fast", "budget": "50%", "long": "10m", "short": "1m"}]})
    series = ALIVE | {
        events("good"): "0+198x40 7920x4 7921+3x20",
        events("bad"): "0+2x40 80x24",
    }
    checks = [("10m30s", firing(), BOTH), ("11m30s", firing(), BOTH), ("12m30s", firing(), {})]
    promtool_test(tmp_path, groups=rules(tight), series=series, checks=checks)


HOURLY = spec(window="4h", alerts={"tiers": [{"name": "fast", "budget": "75%", "long": "1h"}]})
"""Burn above 3 (15 % bad) over 1h and 5m."""


def test_a_minute_of_bad_events_after_an_idle_hour_is_a_cold_start_and_no_alert(tmp_path: Path) -> None:
    # Idle for 70 minutes, bad from 70m30s to 71m30s, good from then on: for a while both windows hold just that.
    series = {
        heartbeat(): "0+15x400",
        events("good"): "0x286 10+10x100",
        events("bad"): "0x282 10+10x3 40x100",
    }
    looks: list[Check] = [(f"{minute}m{s}s", firing(), {}) for minute in range(71, 78) for s in (0, 30)]
    burns: Check = ("72m", "firsttoken:burn_rate:ratio5m > bool 3", {BURN.format(model): 1.0 for model in ("m1", "*")})
    promtool_test(tmp_path, groups=rules(HOURLY), series=series, checks=[burns, *looks])


def test_an_outage_after_an_idle_hour_rings_once_the_short_window_is_past(tmp_path: Path) -> None:
    series = {heartbeat(): "0+15x400", events("good"): "0x400", events("bad"): "0x282 10+10x100"}
    checks: list[Check] = [("75m", firing(), {}), ("76m15s", firing(), BOTH)]
    promtool_test(tmp_path, groups=rules(HOURLY), series=series, checks=checks)


def test_a_burn_within_one_minute_is_a_spike_and_no_alert(tmp_path: Path) -> None:
    # 200 bad events between two looks at the clock, in three scrapes: over both windows far above the factor.
    series = ALIVE | {events("good"): "0+1x60", events("bad"): "0x21 60 120 200x40"}
    checks = [
        ("5m45s", "firsttoken:burn_rate:ratio10m > bool 3", {BURN.format("m1"): 1.0, BURN.format("*"): 1.0}),
        ("5m45s", "firsttoken:burn_rate:ratio1m > bool 3", {BURN.format("m1"): 1.0, BURN.format("*"): 1.0}),
        ("5m45s", firing(), {}),
        ("6m", firing(), {}),
    ]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_few_bad_events_are_no_alert_however_large_their_share(tmp_path: Path) -> None:
    # One request a minute; nine bad ones in a row are below the ten that a page with a low factor needs.
    series = ALIVE | {events("good"): "0x4 1x4 2x4 3x60", events("bad"): "0x16 1x4 2x4 3x4 4x4 5x4 6x4 7x4 8x4 9x30"}
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=[("12m", firing(), {}), ("13m", firing(), {})])


def test_d03_one_bad_of_three_in_a_quiet_hour_tells_nobody(tmp_path: Path) -> None:
    """A burn of 33 over the hour; the stock tiers of 99 % over 30 days ask for five bad events."""
    month = spec(target="99%", window="30d", alerts=None)
    series = {
        heartbeat(): "0+60x90",
        events("good"): "0x20 1x19 2x50",
        events("bad"): "0x59 1x30",
    }
    burn = f'round({promql.burn_rate(3600)}{{model_name="m1"}})'
    checks = [("61m", burn, {BURN.format("m1"): 33.0}), ("61m", firing(), {}), ("65m", firing(), {})]
    promtool_test(tmp_path, groups=rules(month), series=series, checks=checks, step="1m")


def test_the_least_number_of_bad_events_is_what_the_spec_says(tmp_path: Path) -> None:
    series = ALIVE | {events("good"): "0x4 1x4 2x4 3x60", events("bad"): "0x16 1x4 2x4 3x4 4x40"}
    small = spec(alerts={"min_bad_events": 3, "tiers": [{"name": "fast", "budget": "50%", "long": "10m"}]})
    # Short is long/12 = 50 s here; its last event comes at 7m.
    promtool_test(
        tmp_path, groups=rules(small), series=series, checks=[("6m15s", firing(), {}), ("7m15s", firing(), BOTH)]
    )


def test_a_young_series_is_damped_at_its_start_alone(tmp_path: Path) -> None:
    # All bad from the first second: 15 % of the window must be known before it may fire, though the burn is 20.
    series = ALIVE | {events("good"): "0x60", events("bad"): "0+10x60"}
    checks = [("1m15s", firing(), {}), ("2m", firing(), BOTH)]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


@pytest.mark.parametrize(("elastic", "at_12m"), [("false", {}), ("true", BOTH)], ids=["unknown", "elastic: at rest"])
def test_unknown_minutes_damp_the_start(tmp_path: Path, elastic: str, at_12m: dict[str, float]) -> None:
    # Seen for a minute, unseen for eight, then back with a third of everything bad (15 % is enough): at 12m three
    # minutes of ten are known. For a service that may scale to zero the gap is no gap.
    hole = "stale _x31 "
    series = {
        heartbeat(): f"0+15x4 {hole}555+15x60",
        events("good"): f"0+10x4 {hole}50+10x60",
        events("bad"): f"0x4 {hole}5+5x60",
    }
    checks = [("12m", firing(), at_12m), ("16m", firing(), BOTH)]
    promtool_test(tmp_path, groups=rules(spec(f"elastic: {elastic}\n{SMALL}")), series=series, checks=checks)


def test_a_changed_threshold_starts_anew_and_the_old_hash_counts_no_more(tmp_path: Path) -> None:
    series = ALIVE | {
        events("good"): "0+10x20 200x11 stale",
        events("bad"): "0x20 10+10x11 stale",
        events("good", of_hash="h2"): "_x32 0+10x60",
        events("bad", of_hash="h2"): "_x32 0x60",
    }
    counted = 'round(firsttoken:slo_bad:increase10m{model_name="m1"})'
    new = '{model_name="m1",objective="ttft",objective_hash="h2",service_name="chat"}'
    checks = [("7m45s", firing(), BOTH), ("9m15s", firing(), {}), ("9m15s", counted, {new: 0.0})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_in_a_half_rolled_fleet_each_hash_is_judged_for_itself(tmp_path: Path) -> None:
    # 10 % of all events are bad, but all of them under the new threshold, where they are 50 %.
    series = ALIVE | {
        events("good"): "0+80x60",
        events("bad"): "0x60",
        events("good", of_hash="h2", instance="b"): "0+10x60",
        events("bad", of_hash="h2", instance="b"): "0+10x60",
    }
    worst = 'round(firsttoken:slo_error:ratio10m{model_name="m1"}, 0.01)'
    checks = [("12m", firing(), BOTH), ("12m", worst, {BURN.format("m1"): 0.5})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_a_hash_stays_judged_while_no_instance_exports_any(tmp_path: Path) -> None:
    series = {events("good"): "0+10x20 stale", events("bad"): "0+5x20 stale"}
    judged = '{__name__="firsttoken:slo_judged:info",objective="ttft",objective_hash="h1",service_name="chat"}'
    checks = [("5m", "firsttoken:slo_judged:info", {judged: 1.0}), ("12m", "firsttoken:slo_judged:info", {judged: 1.0})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_a_restart_loses_no_bad_event_and_makes_none(tmp_path: Path) -> None:
    # Every step one bad of 100; the process restarts twice and counts from 0 again.
    series = ALIVE | {events("good"): "0+99x20 0+99x20 0+99x20", events("bad"): "0+1x20 0+1x20 0+1x20"}
    near = "abs(firsttoken:burn_rate:ratio10m - 0.2) < bool 0.02"
    labels = {BURN.format("m1"): 1.0, BURN.format("*"): 1.0}
    checks = [("8m", near, labels), ("12m", near, labels), ("12m", firing(), {}), ("15m", firing(), {})]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_d01_an_idle_night_gives_no_sample_no_alert_and_poisons_no_average(tmp_path: Path) -> None:
    series = ALIVE | {events("good"): "0+10x20 200x100 210+10x20", events("bad"): "0x140"}
    idle = "firsttoken:slo_error:ratio10m"
    left = 'firsttoken:error_budget_remaining:ratio{model_name="*"}'
    one = {
        '{__name__="firsttoken:error_budget_remaining:ratio",model_name="*",objective="ttft",service_name="chat"}': 1.0
    }
    back = {'{__name__="firsttoken:slo_error:ratio10m",model_name="*",objective="ttft",service_name="chat"}': 0.0}
    checks = [
        ("20m", idle, {}),
        ("20m", left, one),
        ("32m", f'{idle}{{model_name="*"}}', back),
        (
            "34m",
            f'avg_over_time({idle}{{model_name="*"}}[34m])',
            {'{model_name="*",objective="ttft",service_name="chat"}': 0.0},
        ),
        ("20m", 'count(ALERTS{alertstate="firing"})', {}),
        ("34m", 'count(ALERTS{alertstate="firing"})', {}),
    ]
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=checks)


def test_d02_without_any_bad_series_the_bad_share_is_zero_and_the_budget_whole(tmp_path: Path) -> None:
    whole, of_m1 = "firsttoken:error_budget_remaining:ratio", 'model_name="m1",objective="ttft",service_name="chat"'
    expected = {f'{{__name__="firsttoken:slo_error:ratio10m",{of_m1}}}': 0.0}
    checks = [
        ("5m", 'firsttoken:slo_error:ratio10m{model_name="m1"}', expected),
        ("5m", f'{whole}{{model_name="m1"}}', {f'{{__name__="{whole}",{of_m1}}}': 1.0}),
    ]
    promtool_test(tmp_path, groups=rules(spec()), series=ALIVE | {events("good"): "0+10x40"}, checks=checks)


def test_model_other_pages_nobody_alone_but_counts_in_all_models(tmp_path: Path) -> None:
    series = ALIVE | {events("good", model="other"): "0+10x20 200x40", events("bad", model="other"): BAD_FROM_5M_TO_10M}
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=[("9m", firing(), {'{model_name="*"}': 1.0})])


def test_environments_are_told_apart_and_a_missing_one_is_one_too(tmp_path: Path) -> None:
    # Production burns, the instances without the label do not; together they would not either.
    series = {
        heartbeat(): "0+15x60",
        heartbeat(environment="prod"): "0+15x60",
        events("good"): "0+100x60",
        events("bad"): "0x60",
        events("good", environment="prod"): "0+8x60",
        events("bad", environment="prod"): "0+2x60",
    }
    by_environment = firing(by="environment, model_name")
    prod = {f'{{environment="prod",model_name="{model}"}}': 1.0 for model in ("m1", "*")}
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=[("12m", by_environment, prod)])


def test_a_spec_that_names_its_environment_judges_that_one_alone(tmp_path: Path) -> None:
    series = {
        events("good"): "0+8x60",
        events("bad"): "0+8x60",
        events("good", environment="prod"): "0+8x60",
        events("bad", environment="prod"): "0+8x60",
    }
    groups = rules(spec("environment: prod\n" + SMALL))
    prod = {f'{{environment="prod",model_name="{model}"}}': 1.0 for model in ("m1", "*")}
    promtool_test(tmp_path, groups=groups, series=series, checks=[("12m", firing(by="environment, model_name"), prod)])


def test_two_services_with_the_same_objective_do_not_mix(tmp_path: Path) -> None:
    series = {
        events("good"): "0+10x60",
        events("bad"): "0x60",
        events("good", service_name="search"): "0+5x60",
        events("bad", service_name="search"): "0+5x60",
    }
    groups = rules(spec(), spec(SMALL.replace("chat", "search")))
    search = {'{service_name="search"}': 2.0}
    promtool_test(tmp_path, groups=groups, series=series, checks=[("12m", firing(by="service_name"), search)])


def test_d08_both_windows_must_be_strictly_over_the_factor(tmp_path: Path) -> None:
    # Exactly the factor: 15 % bad, no more.
    series = ALIVE | {events("good"): "0+17x80", events("bad"): "0+3x80"}
    promtool_test(tmp_path, groups=rules(spec()), series=series, checks=[("12m", firing(), {}), ("19m", firing(), {})])


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ({"owner": "team-a"}, {"owner": "team-a"}),
        ({"labels": {"tier": "gold"}}, {"tier": "gold"}),
        ({"alerts": {"tiers": [{"name": "t", "budget": "50%", "long": "10m", "notify": "ticket"}]}},
         {"severity": "warning", "notify": "ticket", "burn_tier": "t", "short_window": "50s"}),
        ({"alerts": {"tiers": [{"name": "t", "budget": "50%", "long": "10m", "notify": "none"}]}},
         {"severity": "info", "notify": "none"}),
    ],
    ids=["its owner", "labels of the objective", "a ticket tier", "a tier that tells nobody"],
)  # fmt: skip
def test_labels_come_from_the_spec(changes: dict[str, object], labels: dict[str, str]) -> None:
    found = alert(spec(**changes)).labels
    assert {name: found[name] for name in labels} == labels


FAST = {"name": "fast", "budget": "50%", "long": "10m", "short": "1m"}


def test_a_ticket_waits_for_the_pages_of_its_objective_and_a_page_for_nothing() -> None:
    two = spec(alerts={"tiers": [{**FAST, "name": "x.y"}, {**FAST, "name": "slow", "notify": "ticket"}]})
    page, ticket = (starts(two, two.objectives[0], tier) for tier in tiers(two.objectives[0]))
    assert "unless" not in page
    paged = 'firsttoken:burning:ratio{service_name="chat",objective="ttft",burn_tier=~"x\\\\.y"}'
    assert ticket.endswith(f"unless on (environment, service_name) max_over_time({paged}[1m])")
    alone = spec(alerts={"tiers": [{**FAST, "notify": "ticket"}]})
    assert "unless" not in starts(alone, alone.objectives[0], tiers(alone.objectives[0])[0])


def test_a_ticket_tier_speaks_of_model_other_and_a_page_tier_does_not() -> None:
    ticket = spec(alerts={"tiers": [{"name": "t", "budget": "50%", "long": "10m", "notify": "ticket"}]})
    assert 'model_name!="other"' in verdict(spec())
    assert 'model_name!="other"' not in verdict(ticket)


Counted = tuple[list[int], list[int]]
"""Good and bad events up to each minute."""


def drawn(random: Random, minutes: int) -> Counted:
    """Few events and many, by stretches: good ones, bad ones, both, none."""
    good, bad = [0], [0]
    while len(good) < minutes:
        most, share = random.choice((0, 1, 1, 4, 20)), random.choice((0.0, 0.05, 0.3, 1.0))
        for _ in range(random.choice((3, 8, 20))):
            worse = [random.random() < share for _ in range(random.randint(0, most))]
            good.append(good[-1] + worse.count(False))
            bad.append(bad[-1] + worse.count(True))
    return good[:minutes], bad[:minutes]


def walked(tier: Tier, counted: Counted) -> list[bool]:
    """Whether the tier fires, minute by minute, by `slo.burn` alone."""
    good, bad = counted
    firing, found = False, []
    for now in range(len(good)):
        windows = []
        for length_s in (tier.long_s, tier.short_s, tier.recent_s or tier.long_s):
            first = max(now - length_s // 60, 0)
            spans = sum(a < b for a, b in itertools.pairwise(bad[first : now + 1]))
            known = min(60 * now / length_s, 1.0)
            windows.append(WindowCounts(good[now] - good[first], bad[now] - bad[first], known, spans))
        firing = next_state(tier, firing=firing, long=windows[0], short=windows[1], recent=windows[2]) == "firing"
        found.append(firing)
    return found


@pytest.mark.parametrize(("target", "budget"), [("80%", "40%"), ("99%", "75%")])
def test_at_every_minute_of_any_traffic_the_rules_say_what_slo_burn_says(
    tmp_path: Path, target: str, budget: str
) -> None:
    hourly = spec(target=target, window="4h", alerts={"tiers": [{"name": "fast", "budget": budget, "long": "1h"}]})
    (tier,) = tiers(hourly.objectives[0])
    minutes, random = 120, Random(target)
    models = {f"m{number}": drawn(random, minutes) for number in range(20)}
    series = {heartbeat(): f"0+60x{minutes}"}
    for model, counted in models.items():
        for result, counts in zip(("good", "bad"), counted, strict=True):
            series[events(result, model=model)] = " ".join(map(str, counts))
    verdicts = {f'{{model_name="{model}"}}': walked(tier, counted) for model, counted in models.items()}
    each = 'count by (model_name) (ALERTS{alertname="LLMTTFTBudgetBurn",alertstate="firing",model_name!="*"})'
    checks = [
        (f"{now}m", each, {model: 1.0 for model, found in verdicts.items() if found[now]}) for now in range(60, minutes)
    ]
    assert sum(a != b for found in verdicts.values() for a, b in itertools.pairwise(found[60:])) > 15
    groups = [group for group in rules(hourly) if group.name.endswith((":series", ":telemetry", ":fast"))]
    promtool_test(tmp_path, groups=groups, series=series, checks=checks, step="1m")
