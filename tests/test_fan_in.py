"""deploy/fan-in: what can be known of it without the programs it configures; Prometheus's own part by promtool."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from slo.signals import COLLECTOR_METRICS, GPU_METRICS, WIRE_METRICS
from tests.alerts.support import tool

FOLDER = Path(__file__).parents[1] / "deploy" / "fan-in"
PIPED = ("gateway.yaml", "kafka-in.yaml", "kafka-out.yaml")
KINDS = ("receivers", "processors", "exporters")


def config(name: str) -> dict[str, Any]:
    found = yaml.safe_load((FOLDER / name).read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", PIPED)
def test_every_part_of_a_pipeline_is_configured_and_every_part_configured_is_used(name: str) -> None:
    found = config(name)
    for kind in KINDS:
        used = {part for pipeline in found["service"]["pipelines"].values() for part in pipeline.get(kind, [])}
        assert used == set(found.get(kind, {}))
    assert set(found["service"]["extensions"]) == set(found["extensions"])
    stored = re.findall(r"storage: (\w+)", (FOLDER / name).read_text())
    assert set(stored) <= set(found["extensions"])


@pytest.mark.parametrize("name", PIPED)
def test_metrics_and_traces_both_pass(name: str) -> None:
    assert set(config(name)["service"]["pipelines"]) == {"metrics", "traces"}


@pytest.mark.parametrize("name", ["gateway.yaml", "kafka-in.yaml"])
def test_memory_is_limited_before_anything_else(name: str) -> None:
    for pipeline in config(name)["service"]["pipelines"].values():
        assert pipeline["processors"][0] == "memory_limiter"


def test_nothing_is_joined_behind_kafka() -> None:
    """Or a record that is read again would be another body, and count twice."""
    found = config("kafka-out.yaml")
    assert "processors" not in found
    assert found["exporters"]["otlp"]["sending_queue"] == {"enabled": False}
    assert found["receivers"]["kafka"]["message_marking"]["after"] is True


def test_both_sides_of_kafka_mean_the_same_topics() -> None:
    into, out = config("kafka-in.yaml")["exporters"]["kafka"], config("kafka-out.yaml")["receivers"]["kafka"]
    for signal in ("metrics", "traces"):
        assert out[signal] == {"topics": [into[signal]["topic"]], "encoding": into[signal]["encoding"]}


@pytest.mark.tools
def test_prometheus_takes_its_file() -> None:
    ran = subprocess.run(
        [tool("promtool"), "check", "config", "--agent", "--syntax-only", FOLDER / "prometheus-agent.yaml"],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_metric_of_ours_is_written_to_the_store() -> None:
    (write,) = config("prometheus-agent.yaml")["remote_write"]
    (kept,) = write["write_relabel_configs"]
    names = {metric.prometheus for metric in (*WIRE_METRICS, *GPU_METRICS, *COLLECTOR_METRICS)}
    assert {name for name in names if not re.fullmatch(kept["regex"], name)} == set()
