"""OTLP bodies: protobuf and JSON say the same, what is no message is refused whole, each point stands for itself."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.decoding.otlp import OWN_SPAN, decode_metrics, decode_traces
from collector.decoding.spans import OTHER_SPAN, STEPPED_SPAN
from collector.errors import PayloadError
from collector.values.measurement import Batch, Resource, SpanLatencies, Tally
from slo import signals
from tests.collector import messages
from tests.collector.messages import NS, T0, Value

DATA = Path(__file__).parents[2] / "data" / "collector"
TTFT = signals.TTFT.name


def everything() -> list[messages.wire.Metric]:
    """One metric of each kind."""
    events: dict[str, Value] = {
        **messages.MODEL,
        signals.OBJECTIVE: "ttft",
        signals.OBJECTIVE_HASH: "abc",
        signals.RESULT: "bad",
    }
    overdue: dict[str, Value] = {**messages.MODEL, signals.SIGNAL: "ttft"}
    return [
        messages.exponential(TTFT, messages.exponential_point([0.1, 0.2, 3.0])),
        messages.explicit(signals.E2E.name, messages.explicit_point((0.1, 1.0), (1, 2, 3))),
        messages.exponential(signals.CENSORED.name, messages.exponential_point([5.0], attributes=overdue)),
        messages.counter(signals.SLO_EVENTS.name, messages.number(3, attributes=events)),
        messages.counter(signals.HEARTBEAT.name, messages.number(10, attributes={})),
        messages.gauge(signals.OVERDUE.name, messages.number(2, attributes=overdue)),
    ]


@pytest.mark.parametrize("in_json", [False, True])
def test_each_kind_of_metric_is_read(in_json: bool) -> None:
    request = messages.metrics(*everything())
    body = messages.in_json(request) if in_json else request.SerializeToString()
    batch = decode_metrics(body, json=in_json)
    assert (batch.rejected, batch.ignored) == ((), ())
    ttft, e2e, censored = batch.latencies
    assert [(one.signal, one.censored, one.histogram.count) for one in (ttft, e2e, censored)] == [
        ("ttft", False, 3),
        ("e2e", False, 6),
        ("ttft", True, 1),
    ]
    assert ttft.resource == Resource("prod", "chat", "i1", "proxy")
    assert (ttft.model, ttft.interval.start_ns, ttft.interval.end_ns) == ("m", T0 * NS, (T0 + 10) * NS)
    assert [(one.objective, one.objective_hash, one.good, one.value) for one in batch.events] == [
        ("ttft", "abc", False, 3.0)
    ]
    assert [(one.name, one.model, one.value) for one in batch.counters] == [("heartbeat", "", 10.0)]
    assert [(one.name, one.attribute, one.model, one.value) for one in batch.gauges] == [
        (signals.OVERDUE.sql, "ttft", "m", 2.0)
    ]


def test_protobuf_and_json_are_the_same_truth() -> None:
    request = messages.metrics(*everything())
    assert decode_metrics(request.SerializeToString(), json=False) == decode_metrics(
        messages.in_json(request), json=True
    )


@pytest.mark.parametrize(
    ("body", "is_json"),
    [
        (b"hello", False),
        (b"\x00" * 20, False),
        (b"\x0a\xff", False),
        (b'{"resourceMetrics":[]}', False),
        (b"\x12\x03abc", False),
        (b"", True),
        (b"[]", True),
        (b"null", True),
        (b'"x"', True),
        (b"{", True),
        (b"{\xff}", True),
        (b'{"resourceMetrics":{}}', True),
        (b'{"resourceMetrics":[null]}', True),
        (b'{"resourceMetrics":[' + b"[" * 5000, True),
        (b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"sum":{"dataPoints":[{"asInt":"x"}]}}]}]}]}', True),
        (b'{"resourceSpans":[{"scopeSpans":"x"}],"resourceMetrics":7}', True),
    ],
)
def test_what_is_no_message_is_refused_whole(body: bytes, is_json: bool) -> None:
    with pytest.raises(PayloadError, match="not a ExportMetrics"):
        decode_metrics(body, json=is_json)
    if b"resourceMetrics" not in body or b"resourceSpans" in body:
        with pytest.raises(PayloadError, match="not a ExportTrace"):
            decode_traces(body, json=is_json)


def test_an_empty_message_is_empty() -> None:
    assert decode_metrics(b"", json=False) == decode_traces(b"", json=False) == Batch()
    assert decode_metrics(b" {}", json=True) == Batch()


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(body: bytes, is_json: bool) -> None:
    for decode in (decode_metrics, decode_traces):
        try:
            decode(body, json=is_json)
        except PayloadError as error:
            said = str(error)
        else:
            said = ""
        assert len(said) < 400


@given(st.data())
def test_a_message_with_broken_bytes_is_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(messages.metrics(*everything()).SerializeToString())
    for place in data.draw(st.lists(st.integers(0, len(body) - 1), min_size=1, max_size=6)):
        body[place] = data.draw(st.integers(0, 255))
    try:
        decode_metrics(bytes(body), json=False)
    except PayloadError:
        return


def test_e08_a_faulty_point_is_rejected_by_name_and_the_others_are_kept() -> None:
    batch = decode_metrics(
        messages.metrics(
            messages.gauge(signals.IN_FLIGHT.name, messages.number(4)),
            messages.gauge("", messages.number(4)),
            messages.gauge(signals.KV_OCCUPANCY.name, messages.number(float("nan"))),
            messages.counter(signals.TOKENS.name, messages.number(7)),
        ).SerializeToString(),
        json=False,
    )
    assert (len(batch.gauges), len(batch.counters)) == (1, 1)
    assert batch.rejected == (
        Tally("a metric without a name", 1),
        Tally(f"{signals.KV_OCCUPANCY.name}: the value is no finite number", 1),
    )


def test_metrics_of_no_interest_are_ignored_and_counted() -> None:
    batch = decode_metrics(
        messages.metrics(messages.gauge("cpu", messages.number(1), messages.number(2))).SerializeToString(), json=False
    )
    assert (batch.rejected, batch.ignored) == ((), (Tally("metric of no interest", 2),))


LATENCIES: dict[str, Value] = {signals.LATENCY_TTFT: 0.25, signals.LATENCY_E2E: 2, signals.REQUEST_MODEL: "m"}


class TestSpans:
    def read(self, *spans: messages.Span, resource: dict[str, Value] = messages.FOREIGN) -> Batch:
        return decode_traces(messages.traces(*spans, resource=resource).SerializeToString(), json=False)

    def test_a_foreign_span_gives_its_latencies_at_its_end(self) -> None:
        who = Resource("", "chat", "i9", "otel")
        ends_ns = np.array([(T0 + 1) * NS])
        assert self.read(messages.span(LATENCIES)).spans == (
            SpanLatencies(who, "m", "ttft", ends_ns, np.array([0.25])),
            SpanLatencies(who, "m", "e2e", ends_ns, np.array([2.0])),
        )

    def test_a_span_of_a_sidecar_counts_nothing(self) -> None:
        batch = self.read(messages.span(LATENCIES), resource=messages.SIDECAR)
        assert (batch.spans, batch.ignored) == ((), (Tally(OWN_SPAN, 1),))

    def test_a_span_without_latencies_is_ignored(self) -> None:
        assert self.read(messages.span({"http.route": "/"})).ignored == (Tally(OTHER_SPAN, 1),)

    def test_a_span_without_a_model_is_of_an_unknown_one(self) -> None:
        (one,) = self.read(messages.span({signals.LATENCY_TTFT: 0.25})).spans
        assert one.model == "unknown"

    def test_e13_a_span_that_ends_before_it_starts_gives_no_latency(self) -> None:
        batch = self.read(messages.span(LATENCIES, start_s=T0, end_s=T0 - 29))
        assert (batch.spans, batch.rejected, batch.ignored) == ((), (), (Tally(STEPPED_SPAN, 1),))

    @pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), 1e300, "0.3", True])
    def test_what_is_no_latency_is_rejected_with_its_span(self, value: Value) -> None:
        batch = self.read(messages.span({**LATENCIES, signals.LATENCY_E2E: value}), messages.span(LATENCIES))
        assert batch.span_latencies == 2
        assert batch.rejected == (Tally(f"{signals.LATENCY_E2E} is not a number of 0 s or more", 1),)

    def test_a_span_without_an_end_is_rejected(self) -> None:
        assert self.read(messages.span(LATENCIES, end_s=0)).rejected == (Tally("a span without an end", 1),)

    def test_recorded_spans_of_vllm_are_read(self) -> None:
        bodies = json.loads((DATA / "vllm_spans.json").read_text())
        batches = [decode_traces(json.dumps(body).encode(), json=True) for body in bodies]
        assert all(not batch.rejected for batch in batches)
        found = [one for batch in batches for one in batch.spans]
        assert {one.signal for one in found} == {"ttft", "e2e", "queue_time"}
        assert found[0].values_s[0] == pytest.approx(0.02880716323852539)
        assert {one.resource.source for one in found} == {"otel"}
