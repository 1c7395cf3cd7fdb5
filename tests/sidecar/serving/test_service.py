"""The whole sidecar as a process: what it shows, what it sends, and how it ends."""

import signal
import socket
import threading
import time
from pathlib import Path

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from slo.signals import (
    GPU_COLLECTOR_UP,
    GPU_ERRORS,
    GPU_METRICS,
    GPU_POWER,
    HEARTBEAT,
    HW_ID,
    SERVICE_INSTANCE,
    SLO_EVENTS,
    SOURCE,
    TPOT,
    TTFT,
)
from tests.sidecar.engine_pages import RUNNING, metrics_page, ttft
from tests.sidecar.process import engine, sidecar
from tests.sidecar.receiver import Receiver, attributes, eventually, receiving
from tests.sidecar.rig import chat, completion

SPEC = """
service: chat
environment: test
objectives:
  - {name: first, signal: ttft, percentile: 95, threshold: 300ms, match: {model: m}}
  - {name: answered, signal: availability, target: 99.9%, match: {model: m}}
"""


def write_spec(folder: Path, text: str = SPEC) -> None:
    (folder / "slo.yaml").write_text(text)


def event(objective: str, result: str, metrics: dict[str, float]) -> float:
    (value,) = [
        value
        for name, value in metrics.items()
        if name.startswith("firsttoken_slo_events_total")
        and f"objective={objective} " in name
        and f"result={result}" in name
    ]
    return value


def test_a_hung_engine_is_bad_on_the_page_while_its_request_is_open(tmp_path: Path) -> None:
    write_spec(tmp_path)
    with engine(None) as url, sidecar(url, cwd=tmp_path) as process, socket.socket() as client:
        assert event("first", "bad", process.metrics()) == 0
        client.connect(("127.0.0.1", process.proxy))
        client.sendall(chat())
        eventually(lambda: event("first", "bad", process.metrics()) == 1)
        metrics = process.metrics()
        labels = "environment=test model_name=m service_name=chat"
        assert metrics[f"firsttoken_requests_in_flight {labels}"] == 1
        assert metrics[f"firsttoken_requests_waiting_first_token {labels}"] == 1
        assert metrics[f"firsttoken_requests_overdue {labels} signal=ttft"] == 1
        assert metrics["firsttoken_last_token_age_seconds environment=test service_name=chat"] > 0.3
        assert event("first", "good", metrics) == 0
        assert event("answered", "bad", metrics) == 0


def test_everything_reaches_the_endpoint_and_the_last_of_it_at_the_end(tmp_path: Path) -> None:
    write_spec(tmp_path)
    with receiving() as receiver, engine(completion("a", "b")) as url:
        with sidecar(
            url, "--otlp-endpoint", receiver.url, cwd=tmp_path, OTEL_RESOURCE_ATTRIBUTES="team=one"
        ) as process:
            for _ in range(3):
                status, body = process.ask()
                assert status == 200
                assert body.endswith(b"data: [DONE]\n\n")
            eventually(lambda: process.get("/readyz")[0] == 200)
            assert process.stop() == 0
        assert len(receiver.spans()) == 3
        assert attributes(receiver.spans()[0].attributes)["firsttoken.outcome"] == "ok"
        resource = receiver.resource()
        assert resource["service.name"] == "chat"
        assert resource["firsttoken.source"] == "proxy"
        assert resource["deployment.environment.name"] == "test"
        assert resource["team"] == "one"
        assert len(str(resource["service.instance.id"])) == 36
        names = {metric.name for metric in receiver.metrics()}
        assert {"firsttoken.slo.events", "firsttoken.requests", "firsttoken.heartbeat", TTFT.name, TPOT.name} <= names
        assert "firsttoken.config.last_reload_successful" not in names
        ok = sum(
            point.as_int
            for metric in receiver.metrics()
            if metric.name == "firsttoken.requests"
            for point in metric.sum.data_points
            if attributes(point.attributes)["firsttoken.outcome"] == "ok"
        )
        assert ok == 3


def test_metrics_come_each_interval_and_beat_once_a_second(tmp_path: Path) -> None:
    environ = {"OTEL_METRIC_EXPORT_INTERVAL": "200", "OTEL_BSP_SCHEDULE_DELAY": "100"}
    with receiving() as receiver, engine(completion("a")) as url:
        with sidecar(url, "--otlp-endpoint", receiver.url, "--service", "x", cwd=tmp_path, **environ) as process:
            process.ask()
            began_s = time.monotonic()
            eventually(lambda: bool(receiver.spans()))
            eventually(lambda: _beats(receiver.metrics()) >= 2)
            lived_s = time.monotonic() - began_s
            assert _beats(receiver.metrics()) <= lived_s + 60
            assert process.stop(signal.SIGINT) == 0
        starts = [m.sum.data_points[0] for m in receiver.metrics() if m.name == "firsttoken.heartbeat"]
        assert [p.start_time_unix_nano for p in starts[1:]] == [p.time_unix_nano for p in starts[:-1]]


def _beats(metrics: list[Metric]) -> int:
    found = [m for m in metrics if m.name == "firsttoken.heartbeat"]
    return sum(point.as_int for metric in found for point in metric.sum.data_points)


def by_source(receiver: Receiver) -> dict[str, set[str]]:
    """Names of the metrics that were sent, by the source of their resource."""
    names: dict[str, set[str]] = {}
    for sent in receiver.resource_metrics():
        source = str(attributes(sent.resource.attributes)[SOURCE])
        names.setdefault(source, set()).update(m.name for s in sent.scope_metrics for m in s.metrics)
    return names


def test_case_a28_behind_a_proxy_the_engines_own_latency_goes_out_beside_ours(tmp_path: Path) -> None:
    """Under its own source and instance, with no event of its own: nothing is counted twice."""
    write_spec(tmp_path)
    with (
        receiving() as receiver,
        metrics_page(f"{RUNNING}\n{ttft(4, 0)}\n") as written,
        engine(completion("a", "b")) as url,
    ):
        environ = {"OTEL_METRIC_EXPORT_INTERVAL": "200"}
        with sidecar(
            url,
            "--scrape",
            written.url,
            "--scrape-interval",
            "0.1",
            "--otlp-endpoint",
            receiver.url,
            cwd=tmp_path,
            **environ,
        ) as process:
            labels = "environment=test le=+Inf model_name=m service_name=chat source=engine"
            eventually(lambda: process.metrics().get(f"{TTFT.prometheus}_bucket {labels}") == 0)
            process.ask()
            written.text = f"{RUNNING}\n{ttft(5, 1)}\n"
            eventually(lambda: process.metrics()[f"{TTFT.prometheus}_bucket {labels}"] == 2)
            assert process.metrics()[f"{TTFT.prometheus}_count environment=test model_name=m service_name=chat"] == 1
            eventually(lambda: TTFT.name in by_source(receiver).get("engine", ()))
            assert process.stop() == 0
        sent = by_source(receiver)
        assert sent["engine"] == {TTFT.name, HEARTBEAT.name}
        assert {TTFT.name, TPOT.name, HEARTBEAT.name, SLO_EVENTS.name} <= sent["proxy"]
        counts = {"explicit": 0, "exponential": 0}
        for metric in receiver.metrics():
            if metric.name == TTFT.name:
                counts["explicit"] += sum(point.count for point in metric.histogram.data_points)
                counts["exponential"] += sum(point.count for point in metric.exponential_histogram.data_points)
        assert counts == {"explicit": 2, "exponential": 1}
        instances = {attributes(one.resource.attributes)[SERVICE_INSTANCE] for one in receiver.resource_metrics()}
        assert len(instances) == 2


def test_an_endpoint_that_is_down_harms_no_request(tmp_path: Path) -> None:
    with engine(completion("a")) as url, sidecar(url, "--otlp-endpoint", "http://127.0.0.1:1", cwd=tmp_path) as process:
        for _ in range(5):
            assert process.ask()[0] == 200
        began_s = time.monotonic()
        assert process.stop() == 0
        assert time.monotonic() - began_s < 10
    lost = [line for line in process.errors if "could not be exported" in line]
    assert sorted(line.split()[-5] for line in lost) == ["metrics", "traces"]


def test_a_request_in_flight_is_let_end_after_sigterm(tmp_path: Path) -> None:
    with engine(completion("a"), chunks_s=1.0) as url, sidecar(url, cwd=tmp_path) as process:
        answers: list[tuple[int, bytes]] = []
        asking = threading.Thread(target=lambda: answers.append(process.ask()))
        asking.start()
        eventually(
            lambda: any(v == 1 for n, v in process.metrics().items() if n.startswith("firsttoken_requests_in_flight"))
        )
        assert process.stop() == 0
        asking.join()
        assert answers[0][0] == 200


def test_the_probes(tmp_path: Path) -> None:
    with sidecar("http://127.0.0.1:1", cwd=tmp_path) as process:
        assert process.get("/healthz") == (200, "ok\n")
        status, text = process.get("/readyz")
        assert status == 503
        assert "not been reached" in text
        assert process.ask()[0] == 502
    with engine(b"") as url, sidecar(url, cwd=tmp_path) as process:
        eventually(lambda: process.get("/readyz") == (200, "ready\n"))


def test_a_reload_takes_a_good_spec_and_keeps_the_old_one_from_a_bad(tmp_path: Path) -> None:
    write_spec(tmp_path)
    ok = "firsttoken_config_last_reload_successful environment=test service_name=chat"
    with engine(completion("a")) as url, sidecar(url, cwd=tmp_path) as process:
        first = process.metrics()
        assert first[ok] == 1
        write_spec(tmp_path, SPEC.replace("95", "101"))
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: process.metrics()[ok] == 0)
        assert _hash(process.metrics()) == _hash(first)
        assert event("first", "bad", process.metrics()) == 0
        write_spec(tmp_path, SPEC.replace("300ms", "310ms").replace("name: answered", "name: alive"))
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: process.metrics()[ok] == 1)
        metrics = process.metrics()
        assert _hash(metrics) != _hash(first)
        assert not any("objective=answered " in name for name in metrics)
        assert any("objective=alive " in name for name in metrics)
        assert any("le=0.31 " in name for name in metrics)
        assert not any("le=0.3 " in name and "0.31" in name for name in metrics)
        assert process.ask()[0] == 200
    assert any("slo.yaml:5" in line for line in process.errors)


def test_a_gpu_is_on_the_page_and_at_the_endpoint(tmp_path: Path) -> None:
    gpu = "hw_id=GPU-aaaa hw_model=NVIDIA H200 hw_name=gpu0"
    where, on = {"module": "tests.sidecar.nvml", "OTEL_METRIC_EXPORT_INTERVAL": "200"}, "service_name=x"
    with receiving() as receiver, engine(completion("a")) as url:
        with sidecar(url, "--otlp-endpoint", receiver.url, "--service", "x", cwd=tmp_path, **where) as process:
            eventually(lambda: process.metrics()[f"firsttoken_gpu_collector_up {on}"] == 1)
            eventually(lambda: process.metrics()[f"hw_gpu_errors_total error_type=xid {gpu} {on}"] == 1)
            metrics = process.metrics()
            assert metrics[f"hw_gpu_utilization_ratio {gpu} {on}"] == 0.42
            assert metrics[f"hw_gpu_power_watts {gpu} {on}"] == 350.5
            assert metrics[f"hw_gpu_last_xid {gpu} {on}"] == 79
            assert metrics[f"hw_gpu_row_remap_pending {gpu} {on}"] == 1
            assert metrics[f"hw_gpu_lost {gpu} {on}"] == 0
            eventually(lambda: process.metrics()[f"hw_gpu_throttle_seconds_total {gpu} reason=hw_thermal {on}"] >= 1)
            assert process.ask()[0] == 200
            assert process.stop() == 0
        sent = {metric.name: metric for metric in receiver.metrics()}
        assert {metric.name for metric in GPU_METRICS} <= set(sent)
        assert attributes(sent[GPU_POWER.name].gauge.data_points[0].attributes)[HW_ID] == "GPU-aaaa"
        assert sum(p.as_int for m in receiver.metrics() if m.name == GPU_ERRORS.name for p in m.sum.data_points) == 1
        assert GPU_COLLECTOR_UP.name not in sent
    assert not any("Traceback" in line or "left behind" in line for line in process.errors)


def _hash(metrics: dict[str, float]) -> str:
    (name,) = [name for name in metrics if name.startswith("firsttoken_spec_info")]
    return name
