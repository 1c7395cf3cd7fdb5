"""The collector over real sockets and a real SQLite file: what goes in stands in SQL, and every answer is right."""

import gzip
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.answering import service
from collector.doors import body
from slo import signals
from tests.collector import exports, messages
from tests.collector.support import Running, ask, collector, send, until

PROTOBUF = "application/x-protobuf"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One collector for the tests that only ask, and the folder of its database."""
    folder = tmp_path_factory.mktemp("shared")
    with collector(folder, "--tick", "1s") as running:
        yield running, folder


def rows(folder: Path, question: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "firsttoken.db", timeout=10)) as connection:
        return connection.execute(question).fetchall()


def test_what_a_sidecar_sends_stands_in_every_table(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s") as running:
        now_s = int(time.time())
        sent = send(running.url, exports.second(good=95, bad=5, at_s=now_s))
        assert (sent.status, sent.body) == (200, b"")
        assert rows(tmp_path, "SELECT sum(good), sum(bad) FROM slo_count") == [(95, 5)]
        assert rows(tmp_path, "SELECT sum(count) FROM rollup") == [(100,)]
        assert rows(tmp_path, "SELECT name, last FROM gauge ORDER BY name") == [
            ("engine_waiting", 3.0),
            ("kv_cache_occupancy", 0.4),
        ]
        until(lambda: rows(tmp_path, "SELECT 1 FROM percentile WHERE count = 100 AND window_s = 60"))
        found = rows(tmp_path, "SELECT p50, p99, rel_error FROM percentile WHERE count = 100 AND window_s = 60")
        assert found[0][0] == pytest.approx(0.1, rel=0.011)
        assert found[0][1] == pytest.approx(2.0, rel=0.011)
        burns = rows(tmp_path, "SELECT DISTINCT good, bad, burn FROM burn_rate WHERE good > 0")
        assert burns == [(95, 5, pytest.approx(1.0))]
        assert rows(tmp_path, "SELECT DISTINCT good, bad FROM budget WHERE good > 0") == [(95, 5)]
        assert running.stop() == 0


def test_status_metrics_and_sql_say_the_same(tmp_path: Path) -> None:
    with collector(tmp_path, "--tick", "1s") as running:
        send(running.url, exports.second(good=90, bad=10, at_s=int(time.time())))
        found = until(lambda: _judged(running))
        assert {one["model"] for one in found} == {"*", "m"}
        for one in found:
            window = next(window for window in one["windows"] if window["window"] == "1m")
            assert (window["good"], window["bad"], window["burn"]) == (90, 10, pytest.approx(2.0))
            assert one["percentiles"]["1m"]["p50"] == pytest.approx(0.1, rel=0.011)
            assert (one["target"], one["threshold"], one["unit"]) == (0.95, 0.5, "s")
        text = ask(f"{running.url}/metrics").body.decode()
        labels = 'environment="",model_name="m",objective="ttft",service_name="chat",window="1m"'
        assert f"{signals.BURN_RATE.prometheus}{{{labels}}} 2.0" in text or f"{labels}}} 1.99" in text
        assert "nan" not in text.lower().replace("tenant", "")
        assert f"{signals.INTAKE_BODIES.prometheus} 1.0" in text


def _judged(running: Running) -> list[Any]:
    objectives: list[Any] = ask(f"{running.url}/api/v1/status").json["objectives"]
    return objectives if all(one["state"] != "no_data" for one in objectives) else []


def test_e01_the_same_bytes_count_once_also_at_once_and_after_a_restart(tmp_path: Path) -> None:
    message = exports.second(good=7, bad=1, at_s=int(time.time()))
    with collector(tmp_path, "--tick", "1s") as running, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: send(running.url, message).status, range(16)))
        assert answers == [200] * 16
        running.stop()
    with collector(tmp_path, "--tick", "1s") as running:
        assert send(running.url, message).status == 200
        packed = gzip.compress(message.SerializeToString())
        assert ask(f"{running.url}/v1/metrics", packed, content_type=PROTOBUF, content_encoding="gzip").status == 200
        one = until(lambda: _judged(running))[0]
        assert (one["budget"]["good"], one["budget"]["bad"]) == (7, 1)
    assert rows(tmp_path, "SELECT sum(good), sum(bad) FROM slo_count") == [(7, 1)]
    assert rows(tmp_path, "SELECT sum(count) FROM rollup") == [(8,)]


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_json_is_taken_and_answered_as_json(shared: tuple[Running, Path], encoding: str) -> None:
    running, folder = shared
    at_s = int(time.time()) - 30 - len(encoding)
    sent = messages.in_json(exports.export(exports.gauge(signals.ENGINE_RUNNING, 5, at_s=at_s)))
    packed = gzip.compress(sent) if encoding == "gzip" else sent
    answer = ask(f"{running.url}/v1/metrics", packed, content_type="application/json", content_encoding=encoding)
    assert (answer.status, answer.json) == (200, {})
    assert answer.headers["content-type"] == "application/json"
    assert rows(folder, f"SELECT last FROM gauge WHERE start_s = {at_s} AND name = 'engine_running'") == [(5.0,)]


def test_e08_points_that_cannot_be_used_are_a_partial_success(shared: tuple[Running, Path]) -> None:
    running, folder = shared
    at_s = int(time.time()) - 60
    good = exports.gauge(signals.ENGINE_RUNNING, 5, at_s=at_s)
    bad = exports.gauge(signals.ENGINE_WAITING, float("nan"), at_s=at_s)
    answer = send(running.url, exports.export(good, bad))
    reply = ExportMetricsServiceResponse.FromString(answer.body)
    assert answer.status == 200
    assert reply.partial_success.rejected_data_points == 1
    assert signals.ENGINE_WAITING.name in reply.partial_success.error_message
    assert rows(folder, f"SELECT name FROM gauge WHERE start_s = {at_s}") == [("engine_running",)]


def test_spans_are_answered_as_spans(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    answer = send(running.url, messages.traces(messages.span({})), kind="traces")
    assert answer.status == 200
    assert ExportTraceServiceResponse.FromString(answer.body) == ExportTraceServiceResponse()


REFUSED: dict[str, tuple[bytes, dict[str, str], int, str]] = {
    "no protobuf": (b"\xff\xff nonsense", {"content_type": PROTOBUF}, 400, ""),
    "no json": (b"{", {"content_type": "application/json"}, 400, ""),
    "another type": (b"x", {"content_type": "text/plain"}, 415, "text/plain"),
    "another encoding": (b"x", {"content_type": PROTOBUF, "content_encoding": "br"}, 415, "br"),
    "encodings on top of each other": (b"x", {"content_type": PROTOBUF, "content_encoding": "gzip, gzip"}, 415, "gzip"),
    "broken gzip": (b"not gzip", {"content_type": PROTOBUF, "content_encoding": "gzip"}, 400, "gzip"),
    "cut gzip": (gzip.compress(b"x" * 999)[:-9], {"content_type": PROTOBUF, "content_encoding": "gzip"}, 400, "early"),
    "a bomb": (gzip.compress(bytes(200 << 20)), {"content_type": PROTOBUF, "content_encoding": "gzip"}, 413, "longer"),
    "too long": (bytes(body.MAX_BODY_BYTES + 1), {"content_type": PROTOBUF}, 413, "longer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_their_faults_are_refused_in_their_own_encoding(shared: tuple[Running, Path], case: str) -> None:
    running, _ = shared
    sent, headers, status, says = REFUSED[case]
    answer = ask(f"{running.url}/v1/metrics", sent, **headers)
    assert answer.status == status
    assert answer.headers["content-type"] == (
        "application/json" if headers["content_type"] == "application/json" else PROTOBUF
    )
    assert says.encode() in answer.body
    assert send(running.url, exports.export()).status == 200


def test_a_refusal_is_a_google_rpc_status(shared: tuple[Running, Path]) -> None:
    from google.rpc.status_pb2 import Status

    running, _ = shared
    status = Status.FromString(ask(f"{running.url}/v1/metrics", b"\xff", content_type=PROTOBUF).body)
    assert status.code == 3
    assert status.message
    told = ask(f"{running.url}/v1/traces", b"{", content_type="application/json").json
    assert told["code"] == 3


def test_health_and_readiness(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    assert ask(f"{running.url}/healthz").body == b"ok\n"
    assert ask(f"{running.url}/readyz").status == 200
    for path in ("/healthz", "/readyz"):
        with urllib.request.urlopen(urllib.request.Request(running.url + path, method="HEAD"), timeout=30) as found:
            assert (found.status, found.read()) == (200, b"")


def test_the_page_needs_nothing_from_elsewhere(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    answer = ask(running.url)
    text = answer.body.decode()
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    assert "style=" not in text
    for name in ("style.css", "live.js", "icon.svg"):
        assert f"/static/{name}" in text
        assert ask(f"{running.url}/static/{name}").status == 200
    assert ask(f"{running.url}/static/../cli.py").status == 404


def test_every_objective_has_a_page_of_its_own(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    assert b"requests get a first token" in ask(f"{running.url}/objectives/chat/ttft").body
    assert ask(f"{running.url}/objectives/chat/nothing").status == 404


def test_each_tick_is_told_to_whoever_listens(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    with urllib.request.urlopen(f"{running.url}/api/v1/ticks", timeout=30) as stream:
        seen = [stream.readline() for _ in range(8)]
    assert seen.count(b"event: tick\n") == 2


def test_more_listeners_than_there_is_room_for_are_refused(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    with ExitStack() as open_:
        for _ in range(service.MAX_VIEWERS):
            open_.enter_context(urllib.request.urlopen(f"{running.url}/api/v1/ticks", timeout=30)).readline()
        assert ask(f"{running.url}/api/v1/ticks").status == 503
    until(lambda: _listens(running))


def _listens(running: Running) -> bool:
    try:
        with urllib.request.urlopen(f"{running.url}/api/v1/ticks", timeout=30) as stream:
            return bool(stream.readline())
    except urllib.error.HTTPError as refused:
        refused.close()
        return False


def test_the_interface_describes_itself(shared: tuple[Running, Path]) -> None:
    running, _ = shared
    described = ask(f"{running.url}/api/openapi.json").json
    assert {"/v1/metrics", "/v1/traces", "/api/v1/status", "/metrics"} <= set(described["paths"])


def test_its_own_requests_make_no_telemetry() -> None:
    """A collector that reported its requests to itself would never be quiet."""
    probe = """
import asyncio
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
trace.set_tracer_provider(TracerProvider())
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(spans))
metrics.set_meter_provider(MeterProvider([reader]))
import types
import httpx
from collector.answering.service import application
async def one():
    app = application(types.SimpleNamespace(version="1"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://c") as client:
        return (await client.get("/healthz")).text
print(repr(asyncio.run(one())), len(spans.get_finished_spans()), reader.get_metrics_data())
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == repr("ok\n") + " 0 None", done.stderr
