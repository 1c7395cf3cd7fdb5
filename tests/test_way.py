"""One request's way, whole: from the wire to the page, on loopback, through real processes.

A server of our own behind the sidecar, the collector on SQLite behind the sidecar's export, and a webhook that stands
for the pager. The same request is looked for in every room it must pass.
"""

import http.client
import os
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from slo import signals
from tests.collector.support import SPEC, Receiver, Running, collector, receiver, until

ANSWER = b"".join(
    b"data: %b\n\n" % event
    for event in (
        b'{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}',
        b'{"choices":[{"index":0,"delta":{"content":"Sun"},"finish_reason":null}]}',
        b'{"choices":[{"index":0,"delta":{"content":"ny."},"finish_reason":null}]}',
        b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
        b'{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}',
        b"[DONE]",
    )
)
ASK = orjson.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "a secret of the user"}]})


@contextmanager
def engine(admits: threading.Event) -> Iterator[int]:
    """An inference server that streams ANSWER, and makes no token while `admits` is not set; its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(ANSWER)))
            self.end_headers()
            admits.wait(120)
            self.wfile.write(ANSWER)

        def do_GET(self) -> None:
            self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port
    finally:
        admits.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def sidecar(folder: Path, *, upstream_port: int, otlp: str) -> Iterator[tuple[int, str]]:
    """A sidecar before the engine; the port of its proxy and the URL of its admin pages."""
    environment = {
        **os.environ,
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp,
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }
    places = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--slo", str(folder / "slo.yaml")]
    command = [sys.executable, "-m", "sidecar", "--upstream", f"http://127.0.0.1:{upstream_port}", *places]
    with (folder / "sidecar.log").open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    assert process.stdout is not None
    try:
        told = dict(process.stdout.readline().split() for _ in range(2))
        yield int(told["proxy:"].rpartition(":")[2]), told["admin:"]
        process.terminate()
        assert process.wait(timeout=60) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def ask(port: int) -> bytes:
    """One request through the sidecar; the body that the client got."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", "/v1/chat/completions", ASK, {"content-type": "application/json"})
        return connection.getresponse().read()
    finally:
        connection.close()


def page_of(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()  # type: ignore[no-any-return]


def sample(url: str, metric: signals.Metric, **labels: str) -> float | None:
    """A value on a Prometheus page."""
    for family in text_string_to_metric_families(page_of(url)):
        for one in family.samples:
            if one.name == metric.prometheus and labels.items() <= one.labels.items():
                return one.value
    return None


def rows(database: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def objective(home: Running) -> dict[str, Any]:
    """What the collector says of the objective over all its models."""
    found = orjson.loads(page_of(f"{home.url}/api/v1/status"))["objectives"]
    return next((one for one in found if one["model"] == signals.ALL_MODELS), {})


def pages(pager: Receiver, status: str) -> list[dict[str, Any]]:
    """Notifications of the burn that the pager got."""
    bodies = [body for _, body in pager.told if isinstance(body, dict) and body["status"] == status]
    return [b for b in bodies if any(a["labels"]["alertname"] == "LLMTTFTBudgetBurn" for a in b["alerts"])]


@pytest.mark.timeout(300)
def test_one_request_from_the_wire_to_the_page(tmp_path: Path) -> None:
    admits = threading.Event()
    admits.set()
    with receiver() as pager, engine(admits) as upstream_port:
        flags = ("--database", "way.db", "--tick", "1s", "--webhook", f"{pager.url}/page")
        with collector(tmp_path, *flags, spec=SPEC) as home:
            with sidecar(tmp_path, upstream_port=upstream_port, otlp=home.url) as (proxy_port, admin):
                a_good_request_is_seen_in_every_room(tmp_path / "way.db", home=home, proxy_port=proxy_port, admin=admin)
                bad = a_hang_pages_while_no_request_ends(pager, admits, proxy_port=proxy_port, home=home)
                good_requests_end_it(pager, bad, proxy_port=proxy_port, home=home)
            assert home.stop() == 0
        kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(pages(pager, "firing")) == 1
    assert len(pages(pager, "resolved")) == 1
    assert b"a secret of the user" not in kept
    assert b"Sun" not in kept


def a_good_request_is_seen_in_every_room(database: Path, *, home: Running, proxy_port: int, admin: str) -> None:
    assert ask(proxy_port) == ANSWER
    judged = {"objective": "ttft", "model_name": "m"}
    assert sample(f"{admin}/metrics", signals.SLO_EVENTS, **judged, result=signals.GOOD) == 1
    assert sample(f"{admin}/metrics", signals.SLO_EVENTS, **judged, result=signals.BAD) == 0
    until(lambda: rows(database, "select 1 from slo_count where model = 'm' and good = 1 and bad = 0"))
    until(
        lambda: rows(database, "select 1 from rollup join series on id = series_id where signal = 'ttft' and count = 1")
    )
    until(lambda: rows(database, "select 1 from percentile where signal = 'ttft' and count = 1 and p95 > 0"))
    until(lambda: rows(database, "select 1 from burn_rate where model = '*' and good = 1 and burn = 0"))
    until(lambda: rows(database, "select 1 from budget where model = '*' and remaining = 1"))
    assert until(lambda: objective(home).get("state")) == "ok"
    assert sample(f"{home.url}/metrics", signals.BURN_RATE, objective="ttft", model_name="m", window="1m") == 0


def a_hang_pages_while_no_request_ends(
    pager: Receiver, admits: threading.Event, *, proxy_port: int, home: Running
) -> int:
    """Requests keep coming to an engine that makes no token: each is bad at its deadline, and none ends."""
    admits.clear()
    answers: list[bytes] = []
    waiting: list[threading.Thread] = []

    def one_more() -> list[dict[str, Any]]:
        waiting.append(threading.Thread(target=lambda: answers.append(ask(proxy_port))))
        waiting[-1].start()
        time.sleep(0.3)
        return pages(pager, "firing")

    until(one_more, patience_s=90)
    assert answers == []
    assert objective(home)["state"] in ("burning", "exhausted")
    (said,) = [
        alert for body in pages(pager, "firing") for alert in body["alerts"] if alert["labels"]["model_name"] == "*"
    ]
    assert said["labels"].items() >= {"notify": "page", "burn_tier": "fast", "objective": "ttft"}.items()
    time.sleep(0.6)  # past the deadline of the youngest
    admits.set()
    for thread in waiting:
        thread.join(60)
    assert answers == [ANSWER] * len(waiting)
    return len(waiting)


def good_requests_end_it(pager: Receiver, asked: int, *, proxy_port: int, home: Running) -> None:
    until(lambda: ask(proxy_port) and pages(pager, "resolved"), patience_s=120)
    windows = {window["window"]: window for window in objective(home)["windows"]}
    assert windows["10m"]["bad"] == asked
