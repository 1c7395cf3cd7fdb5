"""Groups of a service: what is in them, how often they run, and that every tool accepts them."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from alerts.group import Alert, Group, Recording
from alerts.rules import MAX_INTERVAL_S, Target, service_groups
from slo.burn import factor_text, tiers
from slo.objective import Spec, parse
from slo.promql import BURNING, TIER_LABEL, number
from slo.quantity import duration_text
from tests.alerts.support import spec, tool, yaml_text

FIVE = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms}
  - {name: tpot, signal: tpot, percentile: 99, threshold: 50ms, window: 30d}
  - {name: e2e, signal: e2e, percentile: 90, threshold: 30s, window: 7d}
  - {name: answered, signal: availability, target: 99.9%, window: 1d}
  - {name: kv-headroom, signal: kv_occupancy, threshold: 90%, target: 99%, match: {model: "llama*"}}
"""
ODD = """
service: a.b-c
environment: 'pro"d\\'
objectives:
  - name: a-b
    signal: queue
    threshold: 10
    target: 97.3%
    alerts: {tiers: [{name: x, budget: 1%, long: 7h, short: 7h}, {name: y, budget: 2%, long: 7h},
                     {name: z, budget: 90%, long: 20d}]}
  - {name: a_b, signal: ttft, threshold: 1.5s, target: 99%, window: 10m}
  - name: tiny
    signal: ttft
    threshold: 1.5s
    target: 95%
    window: 10m
    alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 15s}]}
"""


def both() -> tuple[Spec, ...]:
    return (*parse(FIVE), *parse(FIVE.replace("chat", "search")))


def groups(text: str = FIVE, target: Target | None = None) -> tuple[Group, ...]:
    return tuple(group for found in parse(text) for group in service_groups(found, target or Target()))


def alerts(found: tuple[Group, ...]) -> list[Alert]:
    return [rule for group in found for rule in group.rules if isinstance(rule, Alert)]


@pytest.mark.tools
@pytest.mark.parametrize("text", [FIVE, ODD], ids=["five objectives", "odd names, windows and tiers"])
def test_promtool_accepts_them_and_finds_no_duplicate(tmp_path: Path, text: str) -> None:
    paths = []
    for index, found in enumerate((*parse(text), *parse(text.replace("service: ", "service: x")))):
        paths.append(tmp_path / f"{index}.yaml")
        paths[-1].write_text(yaml_text(service_groups(found, Target()), found))
    command = [tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *map(str, paths)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_d14_no_rule_stands_twice_over_all_services() -> None:
    found = [
        (rule.alert if isinstance(rule, Alert) else rule.record, tuple(sorted(rule.labels.items())))
        for service in (*both(), *parse(ODD))
        for group in service_groups(service, Target())
        for rule in group.rules
    ]
    assert [key for key, times in Counter(found).items() if times > 1] == []
    names = [group.name for service in (*both(), *parse(ODD)) for group in service_groups(service, Target())]
    assert len(set(names)) == len(names)


def test_d06_no_rule_asks_for_a_bucket_by_how_its_edge_is_written() -> None:
    """`le="2"` and `le="2.0"` are one edge to people and two to a matcher; counts at the threshold need neither."""
    found = [rule for service in both() for group in service_groups(service, Target()) for rule in group.rules]
    assert [rule.expr for rule in found if "_bucket" in rule.expr or "le=" in rule.expr] == []


def test_there_is_one_alert_for_each_objective_and_tier() -> None:
    found = Counter(
        (a.alert, a.labels["objective"], a.labels[TIER_LABEL]) for a in alerts(groups()) if TIER_LABEL in a.labels
    )
    expected = {("LLMTTFTBudgetBurn", "ttft", tier) for tier in ("fast", "medium", "slow", "long")} | {
        ("LLMTPOTBudgetBurn", "tpot", tier) for tier in ("fast", "medium", "slow", "long")
    }
    expected |= {("LLME2EBudgetBurn", "e2e", tier) for tier in ("fast", "medium", "slow", "long")}
    expected |= {("LLMAvailabilityBudgetBurn", "answered", tier) for tier in ("fast", "medium", "slow")}
    expected |= {("LLMKVCacheBudgetBurn", "kv-headroom", tier) for tier in ("fast", "medium", "slow", "long")}
    assert dict(found) == dict.fromkeys(expected, 1)


FACTORS = {
    # target: factors of fast, medium, slow and long over 28 d (DESIGN 5)
    "99.9%": ("13.44", "5.6", "2.8", "1"),
    "99%": ("13.44", "5.6", "2.8", "1"),
    "95%": ("5", "3", "2.4", "1"),
    "90%": ("2.5", "1.5", "1.2", "1"),
    "80%": ("2.5", "1.5", "1.2", "1"),
}


@pytest.mark.parametrize("target", FACTORS)
def test_factors_are_derived_from_the_target_and_stand_in_the_alert(target: str) -> None:
    (found,) = parse(FIVE.replace("percentile: 95", f"target: {target}"))
    made = service_groups(found, Target())
    burns = [a for a in alerts(made) if a.labels.get("objective") == "ttft" and TIER_LABEL in a.labels]
    verdicts = [
        rule
        for group in made
        for rule in group.rules
        if isinstance(rule, Recording) and rule.record == BURNING and rule.labels["objective"] == "ttft"
    ]
    of_tier = zip(burns, verdicts, FACTORS[target], tiers(found.objectives[0]), strict=True)
    for alert, verdict, factor, tier in of_tier:
        assert f" > {number(tier.bad_share_needed)} * firsttoken:" in verdict.expr
        assert factor_text(tier) == factor
        assert f"alert above {factor}." in alert.annotations["description"]
        assert alert.labels["long_window"] == duration_text(tier.long_s)


def test_only_page_tiers_page() -> None:
    notify = {
        (a.labels["objective"], a.labels[TIER_LABEL]): a.labels["notify"]
        for a in alerts(groups())
        if TIER_LABEL in a.labels
    }
    assert [notify["ttft", tier] for tier in ("fast", "medium", "slow", "long")] == ["page", "page", "ticket", "ticket"]
    assert {notify["kv-headroom", tier] for tier in ("fast", "medium", "slow", "long")} == {"ticket"}


@pytest.mark.parametrize("interval", [None, 2, 30, 3600])
@pytest.mark.parametrize("text", [FIVE, ODD])
def test_no_group_runs_less_often_than_a_quarter_of_its_shortest_window(text: str, interval: int | None) -> None:
    for found in parse(text):
        shorts = {(o.name, t.name): t.short_s for o in found.objectives for t in tiers(o)}
        for group in service_groups(found, Target(eval_interval_s=interval)):
            assert 1 <= group.interval_s <= MAX_INTERVAL_S
            if interval is not None:
                assert group.interval_s <= interval
            *_, objective, tier = group.name.split(":")
            if (objective, tier) in shorts:
                assert group.interval_s <= max(1, shorts[objective, tier] // 4)


def test_groups_run_by_their_windows_unless_told() -> None:
    found = {group.name.split(":", 2)[2]: group.interval_s for group in groups()}
    assert [found[f"ttft:{tier}"] for tier in ("fast", "medium", "slow", "long")] == [30, 60, 120, 120]
    assert found["engine"] == 15
    assert {group.interval_s for group in groups(target=Target(eval_interval_s=2))} == {2}


def test_a_period_records_no_window_longer_than_itself() -> None:
    (_, _, tiny) = parse(ODD)[0].objectives
    rules = [rule for group in groups(ODD) if f":{tiny.name}:" in group.name for rule in group.rules]
    own = {rule.record for rule in rules if isinstance(rule, Recording)}
    windows = {record.rpartition("increase")[2] for record in own if "slo_bad:" in record}
    assert windows == {"15s", "1m", "5m", "10m", "1h"}


def test_an_alert_reads_only_what_its_own_or_an_earlier_group_records() -> None:
    recorded: set[str] = set()
    for group in groups():
        for rule in group.rules:
            if isinstance(rule, Recording):
                recorded.add(rule.record)
            elif TIER_LABEL in rule.labels:
                assert set(re.findall(r"firsttoken:\w+:\w+", rule.expr)) <= recorded


def test_an_elastic_service_has_no_absence_alert() -> None:
    names = [a.alert for a in alerts(service_groups(spec(), Target()))]
    assert names.count("LLMTelemetryAbsent") == 2
    elastic = service_groups(spec("elastic: true\n" + FIVE), Target())
    assert [a for a in alerts(elastic) if a.alert == "LLMTelemetryAbsent"] == []


def test_query_offset_stands_on_every_group() -> None:
    assert {group.query_offset_s for group in groups(target=Target((2, 53), query_offset_s=30))} == {30}
