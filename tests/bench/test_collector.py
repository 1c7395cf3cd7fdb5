"""bench/collector.py runs: every measurement has a value of every arm that is there, and nothing stays behind."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from collector_parts import prometheus, promises
from collector_parts.door import loads
from collector_parts.promises import Promise
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rig.figures import Figures, Row, Turn

from tests.collector.support import initdb

SCRIPT = Path(__file__).parents[2] / "bench" / "collector.py"
DATABASES = {"sqlite"} | ({"postgresql"} if initdb() is not None else set())


def bench(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=170)


def test_every_measurement_has_a_value_of_every_arm(tmp_path: Path) -> None:
    """Without rotel, that is not there for every test run."""
    written = tmp_path / "figures.json"
    ran = bench("--smoke", "--json", written, "--arms", "http,grpc,prometheus")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, dict[str, list[float]]] = json.loads(written.read_text())
    assert all(headline in ran.stdout for headline in found)
    assert all(math.isfinite(value) for arms in found.values() for values in arms.values() for value in values)
    arms = {headline: set(values) for headline, values in found.items()}
    assert [arms[f"{load.title} [us of CPU]"] for load in loads()] == [{"http", "grpc"}] * 4
    assert arms["row written [us of CPU]"] == DATABASES
    yardstick = {"prometheus"} if prometheus.is_installed() else set()
    assert arms["quantile of a window of a series [us of CPU]"] == {"collector"} | yardstick
    assert len(arms) == 19


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--arms", "http,nginx"), "--arms nginx: there is no such thing; use http, grpc, rotel, prometheus"),
        (("--only", "speed"), "--only speed: there is no such thing; use intake, decode, tick, database, start"),
        (("--rounds", "0"), "--rounds 0: at least 1"),
        (("--check", "--smoke"), "--check judges 1,000 series: not with --smoke"),
    ],
)
def test_what_is_not_known_is_refused_by_name(arguments: tuple[str, ...], said: str) -> None:
    ran = bench(*arguments)
    assert ran.returncode == 2
    assert said in ran.stderr


def test_every_body_is_another_and_holds_as_many_items_as_it_says() -> None:
    for load in loads():
        bodies = [next(load.bodies) for _ in range(6)]
        assert len(set(bodies)) == len(bodies)
        for body in bodies:
            assert items(load.path, body) == load.items


def items(path: str, body: bytes) -> int:
    if path == "/v1/traces":
        traces = ExportTraceServiceRequest.FromString(body)
        return sum(len(scope.spans) for one in traces.resource_spans for scope in one.scope_spans)
    metrics = ExportMetricsServiceRequest.FromString(body)
    scopes = (scope for one in metrics.resource_metrics for scope in one.scope_metrics)
    return sum(len(metric.exponential_histogram.data_points) for scope in scopes for metric in scope.metrics)


ROW = Row("span", "us", "times", "rotel")
JUDGED = {
    "cheap enough alone": (4.0, 1.0, True),
    "dear, but not beside the yardstick": (8.0, 4.0, True),
    "dear both ways": (8.0, 3.0, False),
    "dear, without the yardstick": (8.0, None, False),
}


@pytest.mark.parametrize("sentence", JUDGED)
def test_a_promise_is_judged_either_way(sentence: str) -> None:
    ours, theirs, kept = JUDGED[sentence]
    figures = Figures()
    figures.add(1, "http", Turn({ROW: ours}))
    if theirs is not None:
        figures.add(1, "rotel", Turn({ROW: theirs}))
    verdict = Promise("span", "http", 5.0, "rotel", 2.2).verdict(figures)
    assert verdict is not None
    assert verdict.kept == kept
    assert ("NOT KEPT" in verdict.line) != kept


def test_what_was_not_measured_is_not_judged_and_a_yardstick_that_did_not_run_is_named() -> None:
    assert list(promises.verdicts(Figures())) == []
    figures = Figures()
    figures.add(1, "collector", Turn({ROW: 1.0}))
    verdict = Promise("span", "collector", to="prometheus", times=0.01).verdict(figures)
    assert verdict is not None
    assert not verdict.kept
    assert verdict.line.endswith("prometheus did not run")
