"""What a running sidecar's buckets point at: as a real Prometheus finds it, and whose trace it is."""

import time
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.openmetrics import parser as openmetrics

from slo.signals import LATENCY_METRICS
from tests.alerts.support import tool
from tests.dashboards import stack
from tests.sidecar.process import Process, engine, sidecar
from tests.sidecar.receiver import eventually, receiving
from tests.sidecar.rig import CHAT, chat, completion

ANSWER = completion("a", "b")
SERIES = {f"{metric.prometheus}_bucket" for metric in LATENCY_METRICS}
CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
Links = dict[str, set[tuple[str, str]]]  # trace and span, by series


def ask(process: Process, *, sampled: int | None = None) -> None:
    """One request; of a caller whose trace is kept (1), or not (0)."""
    body = chat().partition(b"\r\n\r\n")[2]
    request = urllib.request.Request(f"http://127.0.0.1:{process.proxy}{CHAT}", body)
    request.add_header("Content-Type", "application/json")
    if sampled is not None:
        request.add_header("traceparent", f"00-{CALLER[0]}-{CALLER[1]}-0{sampled}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.read().endswith(b"data: [DONE]\n\n")


def links(process: Process) -> Links:
    """What the page points at, for who asks for OpenMetrics."""
    request = urllib.request.Request(f"http://127.0.0.1:{process.admin}/metrics")
    request.add_header("Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        families = openmetrics.text_string_to_metric_families(answer.read().decode())  # type: ignore[no-untyped-call]
    found: Links = {}
    for sample in (sample for family in families for sample in family.samples if sample.exemplar is not None):
        labels = sample.exemplar.labels
        found.setdefault(sample.name, set()).add((labels["trace_id"], labels["span_id"]))
    return found


def stored(url: str) -> Links:
    """What Prometheus holds."""
    query, now_s = f'{{__name__=~"{"|".join(SERIES)}"}}', time.time()
    rows = stack.ask(url, "query_exemplars", query=query, start=str(now_s - 3600), end=str(now_s + 60))
    found: Links = {}
    for row in rows:
        some = {(one["labels"]["trace_id"], one["labels"]["span_id"]) for one in row["exemplars"]}
        found.setdefault(row["seriesLabels"]["__name__"], set()).update(some)
    return found


@pytest.mark.tools
def test_a_prometheus_finds_the_span_that_was_exported(tmp_path: Path) -> None:
    program = tool("prometheus")
    with (
        receiving() as receiver,
        engine(ANSWER) as upstream,
        sidecar(upstream, "--otlp-endpoint", receiver.url, cwd=tmp_path) as process,
    ):
        ask(process)
        ask(process)
        with stack.prometheus(program, tmp_path, {"sidecar": f"127.0.0.1:{process.admin}"}, "exemplar-storage") as url:
            stack.until(lambda: stored(url).keys() == SERIES)
            found = stored(url)
        process.stop()
        eventually(lambda: len(receiver.spans()) == 2)
        spans = {(span.trace_id.hex(), span.span_id.hex()) for span in receiver.spans()}
        assert all(some and some <= spans for some in found.values())


def test_one_page_points_at_the_requests_of_every_worker(tmp_path: Path) -> None:
    with (
        receiving() as receiver,
        engine(ANSWER) as upstream,
        sidecar(upstream, "--workers", "2", "--otlp-endpoint", receiver.url, cwd=tmp_path) as process,
    ):
        for _ in range(4):
            ask(process)
        found = links(process)
        process.stop()
        eventually(lambda: len(receiver.spans()) == 4)
        spans = {(span.trace_id.hex(), span.span_id.hex()) for span in receiver.spans()}
        assert found.keys() == SERIES
        assert all(some <= spans for some in found.values())


def test_a_span_that_is_not_sampled_leaves_nothing_to_look_up(tmp_path: Path) -> None:
    with (
        receiving() as receiver,
        engine(ANSWER) as upstream,
        sidecar(upstream, "--otlp-endpoint", receiver.url, "--sample", "0", cwd=tmp_path) as process,
    ):
        ask(process, sampled=1)
        assert links(process) == {}


def test_without_spans_of_ours_a_caller_that_keeps_its_trace_is_pointed_at(tmp_path: Path) -> None:
    with engine(ANSWER) as upstream, sidecar(upstream, cwd=tmp_path) as process:
        ask(process)
        ask(process, sampled=0)
        assert links(process) == {}
        ask(process, sampled=1)
        assert links(process) == {name: {CALLER} for name in SERIES}
