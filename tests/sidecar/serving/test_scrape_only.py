"""The sidecar that only scrapes, as a process: before written pages, and beside a real engine with a real collector."""

import re
import signal
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from slo.signals import E2E, SLO_EVENTS, TOKENS, TTFT
from tests.collector.support import collector
from tests.demo_server.support import running_server
from tests.sidecar.engine_pages import RUNNING, metrics_page, ttft
from tests.sidecar.process import START_S, Process, scraping
from tests.sidecar.receiver import Receiver, attributes, eventually, receiving

OBJECTIVE = "  - {{name: {}, signal: {}, percentile: 95, threshold: {}, window: 10m, alerts: {{tiers: [{}]}}}}\n"
TIER = "{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}"


def spec_of(*objectives: tuple[str, str, str]) -> str:
    return "service: chat\nobjectives:\n" + "".join(OBJECTIVE.format(*one, TIER) for one in objectives)


def events(process: Process, objective: str) -> list[float] | None:
    """Good and bad of an objective on the page; None when it has no series."""
    found = {key: value for key, value in process.metrics().items() if f" objective={objective} " in key}
    return [value for result in ("good", "bad") for key, value in found.items() if f"result={result}" in key] or None


def test_pages_become_counts_and_what_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text(spec_of(("first", "ttft", "500ms"), ("fine", "ttft", "300ms")))
    with (
        metrics_page(f"{RUNNING}\n{ttft(100, 7)}\n") as written,
        scraping(written.url, "--scrape-interval", "0.1", cwd=tmp_path) as process,
    ):
        eventually(lambda: process.get("/readyz") == (200, "ready\n"))
        eventually(lambda: events(process, "first") == [0, 0])
        written.text = f"{RUNNING}\n{ttft(103, 8)}\n"
        eventually(lambda: events(process, "first") == [3, 1])
        written.text = f"{RUNNING}\n{ttft(2, 0)}\n"  # a restart
        eventually(lambda: events(process, "first") == [5, 1])
        assert events(process, "fine") is None
        assert "estimated by the collector" in "".join(line for line in process.errors if "objective fine" in line)
        metrics = process.metrics()
        labels = "model_name=m service_name=chat source=engine"
        assert metrics[f"{TTFT.prometheus}_bucket le=0.5 {labels}"] == 5
        assert metrics[f"{TTFT.prometheus}_bucket le=+Inf {labels}"] == 6
        assert not any(key.startswith(E2E.prometheus) for key in metrics)
        assert process.stop() == 0


def test_it_is_ready_once_an_engine_was_read(tmp_path: Path) -> None:
    with (
        metrics_page("python_info 1\n") as written,
        scraping(written.url, "--scrape-interval", "0.1", cwd=tmp_path) as process,
    ):
        eventually(lambda: any("cannot be read" in line for line in process.errors))
        assert process.get("/readyz")[0] == 503
        assert process.get("/healthz")[0] == 200
        written.text = RUNNING + "\n"
        eventually(lambda: process.get("/readyz")[0] == 200)
        eventually(lambda: any("availability cannot be backed" in line for line in process.errors))


def test_a_reload_judges_by_the_new_spec(tmp_path: Path) -> None:
    file = tmp_path / "slo.yaml"
    file.write_text(spec_of(("first", "ttft", "500ms")))
    with (
        metrics_page(f"{RUNNING}\n{ttft(1, 0)}\n") as written,
        scraping(written.url, "--scrape-interval", "0.1", cwd=tmp_path) as process,
    ):
        eventually(lambda: events(process, "first") == [0, 0])
        file.write_text("service: chat\n")
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: any("reload" in line for line in process.errors))
        eventually(lambda: process.metrics()["firsttoken_config_last_reload_successful service_name=chat"] == 0)
        assert events(process, "first") == [0, 0]
        file.write_text(spec_of(("other", "ttft", "250ms")))
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: events(process, "other") == [0, 0])
        assert events(process, "first") is None


@pytest.mark.parametrize("temporality", ["delta", "cumulative"])
def test_the_engines_histograms_go_out_with_their_own_edges(temporality: str, tmp_path: Path) -> None:
    environ = {
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
        "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": temporality,
    }
    with receiving() as receiver, metrics_page(f"{RUNNING}\n{ttft(1, 1)}\n") as written:
        with scraping(
            f"{written.url}/metrics",
            "--scrape-interval",
            "0.1",
            "--otlp-endpoint",
            receiver.url,
            cwd=tmp_path,
            **environ,
        ) as process:
            eventually(lambda: process.get("/readyz")[0] == 200)
            for fast in (2, 4):
                written.text = f"{RUNNING}\n{ttft(fast, 1, total_s=float(fast))}\n"
                eventually(lambda fast=fast: counted(receiver, temporality) == fast - 1)  # type: ignore[misc]
            assert process.stop() == 0
        assert counted(receiver, temporality) == 3
        assert receiver.resource()["firsttoken.source"] == "engine"
        points = [
            point for metric in receiver.metrics() if metric.name == TTFT.name for point in metric.histogram.data_points
        ]
        assert {tuple(point.explicit_bounds) for point in points} == {(0.25, 0.5)}
        assert all(attributes(point.attributes) == {"gen_ai.request.model": "m"} for point in points)


def counted(receiver: Receiver, temporality: str) -> int:
    """Requests in the histograms that were sent."""
    counts = [
        point.count
        for metric in receiver.metrics()
        if metric.name == TTFT.name
        for point in metric.histogram.data_points
    ]
    return sum(counts) if temporality == "delta" else max(counts, default=0)


def stream(url: str, *, tokens: int) -> None:
    ask = {"model": "demo", "stream": True, "max_tokens": tokens, "prompt": "one two three"}
    answer = httpx.post(f"{url}/v1/completions", content=orjson.dumps(ask), timeout=START_S)
    assert answer.status_code == 200


def rows(database: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


PERCENTILES = (
    "select count, p95, rel_error from percentile where source = 'engine' and signal = '{}' and window_s = 300"
)
BURNS = "select good, bad, basis from burn_rate where objective = '{}' and model = 'demo' order by at_s desc limit 1"


@pytest.mark.timeout(180)
def test_a_real_engines_percentiles_stand_in_sql_with_their_error(tmp_path: Path) -> None:
    spec = spec_of(("first", "ttft", "10s"), ("fine", "ttft", "3s"), ("whole", "e2e", "20s"), ("pace", "tpot", "1s"))
    database = tmp_path / "seen.db"
    with (
        running_server() as server,
        collector(tmp_path, "--database", "seen.db", "--tick", "1s", spec=spec) as home,
        scraping(
            server.url,
            "--scrape-interval",
            "0.2",
            "--otlp-endpoint",
            home.url,
            cwd=tmp_path,
            OTEL_METRIC_EXPORT_INTERVAL="500",
        ) as process,
    ):
        eventually(lambda: process.get("/readyz")[0] == 200, START_S)
        for _ in range(5):
            stream(server.url, tokens=8)
        for signal_, found in (("ttft", 5), ("tpot", 5), ("e2e", 5)):
            query = PERCENTILES.format(signal_)
            eventually(
                lambda query=query, found=found: any(  # type: ignore[misc]
                    count == found and p95 > 0 and error > 0.02 for count, p95, error in rows(database, query)
                ),
                START_S,
            )
        assert rows(database, "select distinct source from percentile") == [("engine",)]
        for objective, basis in (("first", "counts"), ("fine", "histogram"), ("whole", "counts"), ("pace", "counts")):
            eventually(lambda o=objective, b=basis: rows(database, BURNS.format(o)) == [(5, 0, b)], START_S)  # type: ignore[misc]
        metrics = process.metrics()
        generated = re.findall(r"vllm:generation_tokens_total\{.*\} (.+)", httpx.get(f"{server.url}/metrics").text)
        assert [metrics[f"{TOKENS.prometheus} model_name=demo service_name=chat type=output"]] == list(
            map(float, generated)
        )
        assert not any("objective=fine" in key for key in metrics if key.startswith(SLO_EVENTS.prometheus))
        assert process.stop() == 0
