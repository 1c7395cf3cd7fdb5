"""The promtool tests that are made with the rules: they pass on the rules, and fail on rules that are broken."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from alerts.document import document
from alerts.group import Alert, group_mapping
from alerts.rules import Target, service_groups
from alerts.unit_tests import service_tests, slow_tests
from slo.objective import Spec, parse
from tests.alerts.support import SMALL, tool
from tests.alerts.test_rules import FIVE

DEMO = """
service: demo
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 500ms
    window: 10m
    alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}]}
"""
HARD = """
service: chat
environment: prod
objectives:
  - {name: often, signal: ttft, target: 95%, threshold: 1s, window: 1h, alerts: {min_bad_events: 500}}
  - {name: short, signal: ttft, target: 95%, threshold: 1s, window: 5m}
"""


def run(folder: Path, found: Spec, target: Target, change: Callable[[str], str] = lambda text: text) -> str:
    """What promtool says of the tests when the rules' text is changed; nothing when it is content."""
    groups = service_groups(found, target)
    text = document({"groups": [group_mapping(group) for group in groups]}, (found,))
    (folder / "r.yaml").write_text(change(text))
    (folder / "t.yaml").write_text(document(service_tests(found, groups, "r.yaml", target), (found,)))
    result = subprocess.run(
        [tool("promtool"), "test", "rules", "t.yaml"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    return "" if result.returncode == 0 else result.stdout + result.stderr


@pytest.mark.tools
@pytest.mark.parametrize(
    ("text", "target"),
    [(SMALL, Target()), (DEMO, Target(eval_interval_s=2)), (DEMO, Target()), (HARD, Target())],
    ids=["a small spec", "the demo's, at its cadence", "the demo's, by its windows", "many events and an environment"],
)
def test_they_pass_on_the_rules_of(tmp_path: Path, text: str, target: Target) -> None:
    (found,) = parse(text)
    assert run(tmp_path, found, target) == ""


BROKEN: dict[str, Callable[[str], str]] = {
    "an alert that never fires": lambda text: text.replace(">= 2)", ">= 9999)"),
    "an alert that fires at once": lambda text: re.sub(r"> 0\.15 \*", "> -1 *", text).replace(">= 10\n", ">= 0\n"),
    "an alert that never ends": lambda text: text.replace("> 0 and (", "> 99999 and ("),
    "an alert that silence ends": lambda text: text.replace("> 0 and (", "> -1 and (").replace("> 9.5)", "> -1)"),
    "no sum over all models": lambda text: text.replace("model_name: '*'", "model_name: 'x'"),
    "bad events that need not lie in two minutes": lambda text: text.replace(">= 2)", ">= 0)"),
    "few bad events that are enough": lambda text: text.replace(">= 10\n", ">= 0\n").replace(">= 2)", ">= 0)"),
    "a stalled engine that is not seen": lambda text: text.replace(">= 60", ">= 600"),
    "a stall at the first sight": lambda text: text.replace(">= 60", ">= 0"),
}  # fmt: skip


@pytest.mark.tools
@pytest.mark.parametrize("fault", BROKEN)
def test_they_find(tmp_path: Path, fault: str) -> None:
    (found,) = parse(SMALL)
    broken = BROKEN[fault]

    def changed(text: str) -> str:
        assert broken(text) != text, "the fault is not in the rules"
        return broken(text)

    assert "FAILED" in run(tmp_path, found, Target(), changed)


def test_every_objective_is_tried_and_every_group_is_ordered() -> None:
    (found,) = parse(FIVE)
    groups = service_groups(found, Target())
    tests = service_tests(found, groups, "r.yaml", Target())
    assert tests["group_eval_order"] == [group.name for group in groups]
    tried = set(re.findall(r'objective="([^"]+)",alertname', str(tests)))
    assert tried == {objective.name for objective in found.objectives}
    named = {rule.alert for group in groups for rule in group.rules if isinstance(rule, Alert)}
    assert "LLMEngineStalled" in named


TWO_TIERS = """
service: chat
objectives:
  - name: ttft
    signal: ttft
    target: 95%
    threshold: 500ms
    window: 6h
    alerts: {tiers: [{name: fast, budget: 30%, long: 1h}, {name: slow, budget: 30%, long: 3h, notify: ticket}]}
"""


def run_slow(folder: Path, change: Callable[[str], str] = lambda text: text) -> str:
    (found,) = parse(TWO_TIERS)
    groups = service_groups(found, Target())
    text = document({"groups": [group_mapping(group) for group in groups]}, (found,))
    (folder / "r.yaml").write_text(change(text))
    (folder / "t.yaml").write_text(document(slow_tests(found, groups, "r.yaml"), (found,)))
    result = subprocess.run(
        [tool("promtool"), "test", "rules", "t.yaml"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    return "" if result.returncode == 0 else result.stdout + result.stderr


@pytest.mark.tools
def test_a_slow_burn_fires_the_slower_tier_alone(tmp_path: Path) -> None:
    assert run_slow(tmp_path) == ""


@pytest.mark.tools
@pytest.mark.parametrize(
    ("needed", "instead"), [("0.03", "0.3"), ("0.09", "0.03")], ids=["the slow one never fires", "the fast one does"]
)
def test_slow_tests_find(tmp_path: Path, needed: str, instead: str) -> None:
    assert "FAILED" in run_slow(tmp_path, lambda text: text.replace(f"> {needed} * ", f"> {instead} * "))


def test_tiers_that_no_traffic_tells_apart_have_no_slow_tests() -> None:
    for text in (SMALL, TWO_TIERS.replace("long: 1h}", "long: 179m}")):
        (found,) = parse(text)
        assert slow_tests(found, service_groups(found, Target()), "r.yaml") is None
