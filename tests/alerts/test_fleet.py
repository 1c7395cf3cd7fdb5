"""The watchdog, the collector and the rules themselves, by promtool."""

import subprocess
from pathlib import Path

import pytest

from alerts.annotations import Links
from alerts.fleet import FLEET, fleet_groups
from slo.fields import NAME
from tests.alerts.support import firing, promtool_test, spec, tool, yaml_text

pytestmark = pytest.mark.tools

GROUPS = fleet_groups(Links(), dcgm="", query_offset_s=0)
DOWN = firing("LLMCollectorDown", by="job")
FAILING = firing("LLMRulesFailing", by="rule_group")
JOB = {'{job="collector"}': 1.0}


def collector(name: str, instance: str = "a") -> str:
    return f'firsttoken_collector_{name}{{job="collector",instance="{instance}"}}'


TICKS, TICKS_B, AGE = collector("ticks_total"), collector("ticks_total", "b"), collector("evaluation_age_seconds")

CASES = {
    "it ticks": ({TICKS: "0+3x60", AGE: "10x60"}, {}),
    "it was heard and is no more": ({TICKS: "0+3x20 stale"}, JOB),
    "one of two is heard": ({TICKS: "0+3x20 stale", TICKS_B: "0+3x60"}, {}),
    "it is up and evaluates nothing": ({TICKS: "60x60", AGE: "0+30x60"}, JOB),
    "there never was one": ({'up{job="x"}': "1x60"}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_collector(tmp_path: Path, case: str) -> None:
    series, expected = CASES[case]
    promtool_test(tmp_path, groups=GROUPS, series=series, checks=[("29m", DOWN, expected)], step="30s")


def test_rules_of_ours_that_fail_or_are_late_are_told(tmp_path: Path) -> None:
    def own_word(name: str, group: str) -> str:
        return f'prometheus_rule_{name}_total{{rule_group="/etc/r.yaml;{group}"}}'

    series = {
        own_word("evaluation_failures", "firsttoken:chat:ttft:fast"): "0x50 2x10",
        own_word("evaluation_failures", "somebody-elses"): "0+1x60",
        own_word("group_iterations_missed", "firsttoken:chat:engine"): "0x50 9x10",
        own_word("group_iterations_missed", "firsttoken:chat:budget"): "0x50 1x10",
    }
    groups = ("firsttoken:chat:ttft:fast", "firsttoken:chat:engine")
    expected = {f'{{rule_group="/etc/r.yaml;{group}"}}': 1.0 for group in groups}
    promtool_test(tmp_path, groups=GROUPS, series=series, checks=[("28m", FAILING, expected)], step="30s")


def test_the_watchdog_always_fires_and_tells_nobody(tmp_path: Path) -> None:
    watchdog = 'ALERTS{alertname="LLMWatchdog"}'
    labels = {'ALERTS{alertname="LLMWatchdog",alertstate="firing",notify="none",severity="info"}': 1.0}
    promtool_test(tmp_path, groups=GROUPS, series={"x": "1x10"}, checks=[("2m", watchdog, labels)])


def test_promtool_accepts_them(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(yaml_text(GROUPS, spec()))
    command = [tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", str(tmp_path / "r.yaml")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_no_service_can_have_the_name_of_the_file() -> None:
    assert NAME.fullmatch(FLEET) is None
