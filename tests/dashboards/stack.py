"""A page as a sidecar shows it, and a real Prometheus that scrapes it and evaluates the generated rules.

Everything is on loopback and on free ports. Counters grow with the time since the page was opened, so that every rate
is steady and known.
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
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slo import signals
from slo.objective import Spec
from slo.promql import quoted
from slo.signals import Metric

SCRAPE = "1s"
PATIENCE_S = 120.0
REQUESTS_PER_S = 20.0
BAD_SHARE = {"answered": 0.5}
"""Every other objective is kept without a bad event."""
Labels = Mapping[str, str]


def page(specs: tuple[Spec, ...], models: tuple[str, ...], age_s: float) -> str:
    """What the sidecars of all services show `age_s` after their start."""
    lines: list[str] = []
    for spec in specs:
        own = {"service_name": spec.service} | ({"environment": spec.environment} if spec.environment else {})
        lines += _instance(own, age_s)
        for model in models:
            lines += _model({**own, "model_name": model}, spec, age_s)
    return "\n".join(lines) + "\n"


def _sample(metric: Metric | str, labels: Labels, value: float) -> str:
    name = metric if isinstance(metric, str) else metric.prometheus
    return f"{name}{{{','.join(f'{key}={quoted(text)}' for key, text in labels.items())}}} {value}"


def _instance(own: Labels, age_s: float) -> Iterator[str]:
    yield _sample(signals.HEARTBEAT, own, age_s)
    yield _sample(signals.LAST_TOKEN_AGE, own, 0.25)
    yield _sample(signals.ENGINE_RUNNING, own, 7)  # an engine of several models says no name


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
    yield _sample(signals.ENGINE_WAITING, own, 2)
    for metric in signals.LATENCY_METRICS:
        yield from _histogram(metric, own, count)
    for objective in spec.objectives:
        if objective.signal == "queue":
            continue  # an engine that does not tell its queue: nothing is judged
        bad = BAD_SHARE.get(objective.name, 0.0)
        judged = {**own, "objective": objective.name, "objective_hash": objective.hash}
        yield _sample(signals.SLO_EVENTS, {**judged, "result": signals.BAD}, math.floor(count * bad))
        yield _sample(signals.SLO_EVENTS, {**judged, "result": signals.GOOD}, math.ceil(count * (1 - bad)))


def _histogram(metric: Metric, own: Labels, count: float) -> Iterator[str]:
    """All values between 0.2 and 0.3 s."""
    for edge in (*signals.LATENCY_BUCKETS_S, math.inf):
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
def prometheus(program: str, folder: Path, target: str, *features: str) -> Iterator[str]:
    """A Prometheus over the target and the rules in `folder`, with features that are switched on; gives its URL."""
    config = {
        "global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": "1s"},
        "rule_files": [f"{folder}/*.rules.yaml"],
        "scrape_configs": [{"job_name": "sidecar", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
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
