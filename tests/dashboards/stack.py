"""Pages as sidecars, a collector and a dcgm-exporter show them, and a real Prometheus that scrapes them and evaluates
the generated rules.

Everything is on loopback and on free ports. Counters grow with the time since the page was opened, so that every rate
is steady and known. Every metric of `slo.signals` that a dashboard reads is on them.
"""

import http.server
import json
import math
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dashboards.prometheus import dcgm
from slo import signals
from slo.objective import Spec
from slo.promql import quoted
from slo.signals import Metric

SCRAPE = "2s"
PATIENCE_S = 120.0
REQUESTS_PER_S = 20.0
BAD_SHARE = {"answered": 0.5}
"""Every other objective is kept without a bad event."""
Labels = Mapping[str, str]


def page(specs: tuple[Spec, ...], models: tuple[str, ...], age_s: float) -> str:
    """What the sidecars of all services, and a dcgm-exporter, show `age_s` after their start."""
    lines: list[str] = []
    for spec in specs:
        own = {"service_name": spec.service} | ({"environment": spec.environment} if spec.environment else {})
        lines += _instance(own, age_s)
        for model in models:
            lines += _model({**own, "model_name": model}, spec, age_s)
    lines += (_sample(field, DCGM_GPU, value) for field, value in DCGM_FIELDS.items())
    return "\n".join(lines) + "\n"


def collector_page(specs: tuple[Spec, ...], models: tuple[str, ...], age_s: float) -> str:
    """What a collector shows of itself, and a latency of each service that has shifted."""
    own = (metric for metric in signals.COLLECTOR_METRICS if metric.name.startswith("firsttoken.collector."))
    lines = [_sample(metric, _labelled(metric, {}), _value(metric, age_s)) for metric in own]
    for spec in specs:
        shifted = {"service_name": spec.service, "model_name": models[0], "signal": "ttft", "source": "proxy"}
        lines.append(_sample(signals.LATENCY_DRIFT, {**shifted, "kind": "server"}, 0.3))
        lines += (_sample(signals.LATENCY, {**shifted, "model_name": model, "window": "5m"}, 0.3) for model in models)
    return "\n".join(lines) + "\n"


DCGM_GPU = {"gpu": "0", "UUID": "GPU-1", "Hostname": "node-1", "modelName": "H200"}
DCGM_FIELDS = {
    dcgm.UTILIZATION: 80, dcgm.ENGINE_ACTIVE: 0.7, dcgm.TENSOR_ACTIVE: 0.4, dcgm.MEMORY_ACTIVE: 0.5,
    dcgm.MEMORY_USED: 60000, dcgm.MEMORY_FREE: 20000, dcgm.POWER: 400, dcgm.TEMPERATURE: 60, dcgm.CLOCK: 1980,
    dcgm.XID: 0,
}  # fmt: skip
RECEIVERS = (signals.NOTIFIED, signals.NOTIFY_FAILURES, signals.RECEIVER_UP)


def _labelled(metric: Metric, own: Labels) -> Labels:
    """The labels, with some value for each that is the metric's own."""
    receiver = {"receiver": "pager"} if metric in RECEIVERS else {}
    return {**own, **dict.fromkeys(metric.labels, "x"), **receiver}


def _value(metric: Metric, age_s: float) -> float:
    """A counter's grows by 1 a second."""
    return age_s if metric.kind == "counter" else 1


def _sample(metric: Metric | str, labels: Labels, value: float) -> str:
    name = metric if isinstance(metric, str) else metric.prometheus
    shown = ",".join(f"{key}={quoted(text)}" for key, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _instance(own: Labels, age_s: float) -> Iterator[str]:
    yield _sample(signals.HEARTBEAT, own, age_s)
    yield _sample(signals.LAST_TOKEN_AGE, own, 0.25)
    yield _sample(signals.ENGINE_RUNNING, own, 7)  # an engine of several models says no name
    yield _sample(signals.SPEC_INFO, {**own, "hash": "abc"}, 1)
    for metric in (*signals.GPU_METRICS, *(m for m in signals.SIDECAR_METRICS if m is not signals.SPEC_INFO)):
        yield _sample(metric, _labelled(metric, own), _value(metric, age_s))


def _model(own: Labels, spec: Spec, age_s: float) -> Iterator[str]:
    count = REQUESTS_PER_S * age_s
    for outcome in signals.OUTCOMES:
        yield _sample(signals.REQUESTS, {**own, "outcome": outcome, "class": ""}, count if outcome == "ok" else 0)
    yield _sample(signals.REQUESTS, {**own, "outcome": "ok", "class": signals.SYNTHETIC_CLASS}, 1000 * age_s)
    yield _sample(signals.IN_FLIGHT, own, 3)
    yield _sample(signals.WAITING_FIRST_TOKEN, own, 1)
    for signal in ("ttft", "e2e"):
        yield _sample(signals.OVERDUE, {**own, "signal": signal}, 0)
    yield _sample(signals.KV_OCCUPANCY, own, 0.4)
    yield _sample(signals.KV_OCCUPANCY, {**own, "rank": "1"}, 0.7)
    yield _sample(signals.KV_CAPACITY, own, 100_000)
    yield _sample(signals.PREFIX_HIT_RATIO, own, 0.5)
    yield _sample(signals.ENGINE_WAITING, own, 2)
    yield _sample(signals.ENGINE_PREEMPTIONS, own, age_s)
    for kind in ("input", "output"):
        yield _sample(signals.TOKENS, {**own, "type": kind}, 10 * count)
    for metric in signals.LATENCY_METRICS:
        yield from _histogram(metric, own, count)
        yield from _histogram(metric, {**own, "source": "engine"}, count)
    yield from _histogram(signals.TTFT_BY_PROMPT, {**own, "prompt_tokens": signals.PROMPT_STRATA[0]}, count, edges=())
    yield from _histogram(signals.CENSORED, {**own, "signal": "ttft"}, 0)
    yield from _events(own, spec, count)


def _events(own: Labels, spec: Spec, count: float) -> Iterator[str]:
    for objective in spec.objectives:
        if objective.signal == "queue":
            continue  # an engine that does not tell its queue: nothing is judged
        bad = BAD_SHARE.get(objective.name, 0.0)
        judged = {**own, "objective": objective.name, "objective_hash": objective.hash}
        yield _sample(signals.SLO_EVENTS, {**judged, "result": signals.BAD}, math.floor(count * bad))
        yield _sample(signals.SLO_EVENTS, {**judged, "result": signals.GOOD}, math.ceil(count * (1 - bad)))


def _histogram(
    metric: Metric, own: Labels, count: float, *, edges: tuple[float, ...] = signals.LATENCY_BUCKETS_S
) -> Iterator[str]:
    """All values between 0.2 and 0.3 s, 0.25 s on average."""
    for edge in (*edges, math.inf):
        le = "+Inf" if math.isinf(edge) else str(float(edge))
        yield _sample(f"{metric.prometheus}_bucket", {**own, "le": le}, count if edge >= 0.3 else 0)
    yield _sample(f"{metric.prometheus}_count", own, count)
    yield _sample(f"{metric.prometheus}_sum", own, count * 0.25)


@contextmanager
def exporter(text: Callable[[float], str]) -> Iterator[str]:
    """Serve the page of each moment; gives `host:port`."""
    opened = time.monotonic()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text(time.monotonic() - opened).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # a Prometheus that ends does not wait for it
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def rules(slo: Path, folder: Path) -> None:
    """The rules of a spec, as the command writes them, evaluated every second."""
    flags = ["--slo", str(slo), "--out", str(folder), "--eval-interval", "1s"]
    command = [sys.executable, "-m", "alerts", "build", *flags]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@contextmanager
def prometheus(program: str, folder: Path, targets: Mapping[str, str], *features: str) -> Iterator[str]:
    """A Prometheus over the targets, itself, and the rules in `folder`, with features that are switched on; gives its
    URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    jobs = {**targets, "prometheus": f"127.0.0.1:{port}"}
    config = {
        "global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": "1s"},
        "rule_files": [f"{folder}/*.rules.yaml"],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in jobs.items()
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    flags = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address=127.0.0.1:{port}"]
    flags += [f"--enable-feature={feature}" for feature in features]
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(
            [program, *flags], cwd=folder, stdout=log, stderr=log, env={**os.environ, "GOMAXPROCS": "1"}
        )
        try:
            url = f"http://127.0.0.1:{port}"
            until(lambda: _is_ready(child, folder, url))
            yield url
        finally:
            child.terminate()
            child.wait(30)


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds; fails after `PATIENCE_S`."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.2)


def _is_ready(child: "subprocess.Popen[bytes]", folder: Path, url: str) -> bool:
    assert child.poll() is None, (folder / "log").read_text()
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
            return True
    except OSError:
        return False


def ask(url: str, path: str, **parameters: str) -> Any:
    """The data of an answer of Prometheus's API; an error of it fails the test."""
    body = urllib.parse.urlencode(parameters).encode()
    try:
        with urllib.request.urlopen(f"{url}/api/v1/{path}", body, timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{parameters}: {error.read().decode()}") from None


def values(url: str, expr: str) -> list[tuple[dict[str, str], float]]:
    """What an expression gives now: labels and value, without what is not a number."""
    found = ask(url, "query", query=expr)["result"]
    every = [(dict(one["metric"]), float(one["value"][1])) for one in found]
    return [one for one in every if not math.isnan(one[1])]
