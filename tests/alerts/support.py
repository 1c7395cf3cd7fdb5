"""A traffic drawn in samples, put through the generated rules by the real promtool."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from alerts.document import document
from alerts.group import Group, group_mapping
from alerts.rules import Target, service_groups
from slo.objective import Spec, parse

TARGET = Target(eval_interval_s=15)

Samples = Mapping[str, float]
Check = tuple[str, str, Samples]
"""A time of the test, an expression, and what it gives: values by labels."""

SMALL = """
service: chat
objectives:
  - name: ttft
    signal: ttft
    target: 95%
    threshold: 500ms
    window: 1h
    alerts: {tiers: [{name: fast, budget: 50%, long: 10m, short: 1m}]}
"""
"""Period 1 h, tier 10m/1m: burn above 3, which is 15 % bad; 10 bad events."""


def spec(text: str = SMALL, **changes: object) -> Spec:
    """The one service of `text`, with fields of its first objective replaced, or taken away by None."""
    authored = yaml.safe_load(text)
    first = {**authored["objectives"][0], **changes}
    authored["objectives"][0] = {key: value for key, value in first.items() if value is not None}
    (found,) = parse(yaml.safe_dump(authored))
    return found


def tool(name: str) -> str:
    """A program on PATH; where it is missing the test skips and says how to get it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on PATH: tests/install_tools.sh installs it")
    return found


def promtool_test(
    folder: Path,
    *,
    groups: Sequence[Group],
    series: Mapping[str, str],
    checks: Sequence[Check],
    step: str = "15s",
) -> None:
    """Run the groups over the series and assert that every check holds."""
    mapping = {"groups": [group_mapping(group) for group in groups]}
    (folder / "rules.yaml").write_text(yaml.safe_dump(mapping))
    test = {
        "interval": step,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": expr,
                "eval_time": at,
                "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
            }
            for at, expr, samples in checks
        ],
    }
    file = {
        "rule_files": ["rules.yaml"] if groups else [],
        "evaluation_interval": step,
        "group_eval_order": [group.name for group in groups],
        "tests": [test],
    }
    (folder / "tests.yaml").write_text(yaml.safe_dump(file))
    result = subprocess.run(
        [tool("promtool"), "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr


def rules(*specs: Spec, target: Target = TARGET) -> list[Group]:
    """All groups of the services."""
    return [group for spec in specs for group in service_groups(spec, target)]


def events(result: str, *, model: str = "m1", objective: str = "ttft", of_hash: str = "h1", **labels: str) -> str:
    """The name of a counter of events, with the labels of sidecar and scrape."""
    found = {"service_name": "chat", "instance": "a", **labels}
    found |= {"model_name": model, "objective": objective, "objective_hash": of_hash, "result": result}
    written = ",".join(f'{key}="{value}"' for key, value in found.items())
    return f"firsttoken_slo_events_total{{{written}}}"


def heartbeat(**labels: str) -> str:
    """The name of an instance's heartbeat."""
    found = {"service_name": "chat", "instance": "a", **labels}
    return "firsttoken_heartbeat_total{" + ",".join(f'{key}="{value}"' for key, value in found.items()) + "}"


def firing(alertname: str = "LLMTTFTBudgetBurn", by: str = "model_name") -> str:
    """How many alerts of the name fire, by a label."""
    return f'count by ({by}) (ALERTS{{alertname="{alertname}",alertstate="firing"}})'


def yaml_text(groups: Sequence[Group], *specs: Spec) -> str:
    """A rule file."""
    return document({"groups": [group_mapping(group) for group in groups]}, specs)
