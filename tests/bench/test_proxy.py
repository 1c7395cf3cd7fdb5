"""bench/proxy.py runs: every arm gets through every measurement, and nothing stays behind."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rig.arms import nginx_path
from rig.source import spans_in

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "bench" / "proxy.py"
NGINX = [] if nginx_path() is None else ["nginx"]


def bench(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=150)


def values_of(folder: Path, *arguments: str) -> dict[str, dict[str, list[float]]]:
    written = folder / "figures.json"
    ran = bench("--smoke", "--json", written, *arguments)
    assert ran.returncode == 0, ran.stderr
    assert "did not get through" not in ran.stderr
    found: dict[str, dict[str, list[float]]] = json.loads(written.read_text())
    assert all(headline in ran.stdout for headline in found)
    assert all(math.isfinite(value) for arms in found.values() for values in arms.values() for value in values)
    return found


def test_every_measurement_has_a_value_of_every_arm(tmp_path: Path) -> None:
    arms = ["direct", "sidecar", *NGINX]
    found = values_of(tmp_path, "--arms", ",".join(arms))
    assert len(found) == 9
    for headline, values in found.items():
        assert set(values) == (set(arms) if headline.startswith("TTFT") else set(arms) - {"direct"})


def test_the_slow_and_the_bare_proxy_pass_streams_too(tmp_path: Path) -> None:
    found = values_of(tmp_path, "--only", "chunk", "--arms", f"relay,fastapi,fastapi-plain,sidecar@{ROOT}")
    arms = {"relay", "fastapi", "fastapi-plain", f"sidecar@{ROOT}"}
    assert [set(values) for values in found.values()] == [arms] * 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--arms", "nginx,apache"), "--arms apache: there is no such arm; use direct, nginx, sidecar"),
        (("--arms", "sidecar@/nowhere"), "--arms sidecar@/nowhere: there is no such arm"),
        (("--rounds", "0"), "--rounds 0: at least 1"),
        (("--check", "--smoke"), "--check judges the arm `sidecar` at its full number of streams"),
        (("--only", "speed"), "--only speed: there is no such measurement; use chunk, short, ttft, rss"),
    ],
)
def test_what_is_not_known_is_refused_by_name(arguments: tuple[str, ...], said: str) -> None:
    ran = bench(*arguments)
    assert ran.returncode == 2
    assert said in ran.stderr


def test_spans_are_counted_through_every_resource_and_scope() -> None:
    request = ExportTraceServiceRequest()
    for spans in ((2, 0), (300,)):
        resource = request.resource_spans.add(schema_url="https://example.test/1")
        resource.resource.attributes.add(key="service.name").value.string_value = "chat"
        for count in spans:
            scope = resource.scope_spans.add()
            for number in range(count):
                scope.spans.add(name=f"chat {number}", trace_id=bytes(16), start_time_unix_nano=1)
    assert spans_in(request.SerializeToString()) == 302
