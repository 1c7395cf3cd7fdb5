"""Whatever bytes come: they are read or refused, and what comes of them is bounded by what went in."""

import copy
import json
import sys
from collections.abc import Callable, Iterator

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.decoding import wire
from collector.decoding.otlp import decode_metrics, decode_traces
from collector.decoding.spans import OTHER_SPAN
from collector.errors import PayloadError
from collector.folding.admission import Seen, admitted
from collector.folding.rollup import Intake, fold
from collector.values.deltas import Deltas
from collector.values.histogram import Histogram
from collector.values.measurement import Batch
from slo import signals
from tests.collector import messages
from tests.collector.messages import T0
from tests.collector.sent import Sdk, vllm_attributes, vllm_spans

INTAKE = Intake(now_s=T0 + 100, tick_s=10, oldest_s=T0 - 3600, since_s=T0)


def metrics_bodies() -> Iterator[bytes]:
    for exponential, delta in ((False, False), (True, False), (True, True)):
        sdk = Sdk(exponential=exponential, delta=delta)
        for metric in signals.LATENCY_METRICS:
            sdk.record(metric.name, [0.0, 0.1, 0.2, 0.21, 7.0])
        sdk.meter.create_counter(signals.TOKENS.name).add(300)
        yield sdk.body()
    point = messages.exponential_point([0.1, 0.2])
    yield messages.metrics(
        messages.exponential(signals.TTFT.name, point), messages.explicit(signals.E2E.name)
    ).SerializeToString()


def traces_bodies() -> Iterator[bytes]:
    yield vllm_spans([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], start_up=True)
    yield messages.traces(messages.span(vllm_attributes(0.1)), messages.span({})).SerializeToString()


METRICS, TRACES = tuple(metrics_bodies()), tuple(traces_bodies())
METRICS_JSON = tuple(messages.in_json(ExportMetricsServiceRequest.FromString(body)).decode() for body in METRICS)
TRACES_JSON = tuple(messages.in_json(ExportTraceServiceRequest.FromString(body)).decode() for body in TRACES)


@st.composite
def mutated(draw: st.DrawFn, bodies: tuple[bytes, ...]) -> bytes:
    """A real body of which bytes are changed, cut out, or said again."""
    body = bytearray(draw(st.sampled_from(bodies)))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(body)))
        end = min(start + draw(st.integers(0, 12)), len(body))
        what = draw(st.sampled_from(["change", "cut", "again", "insert"]))
        if what == "change":
            body[start:end] = draw(st.binary(min_size=end - start, max_size=end - start))
        elif what == "cut":
            del body[start:end]
        elif what == "again":
            body[start:start] = body[start:end] * draw(st.integers(1, 30))
        else:
            body[start:start] = draw(st.binary(max_size=12))
    return bytes(body)


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["NaN", "-1", "18446744073709551615", "", [], {}, [{}], {"key": 1}]).map(copy.deepcopy),
)


@st.composite
def mutated_json(draw: st.DrawFn, bodies: tuple[str, ...]) -> bytes:
    """A real body in JSON of which some values are others, or gone, or come twice."""
    body = json.loads(draw(st.sampled_from(bodies)))
    for _ in range(draw(st.integers(0, 4))):
        at = body
        while isinstance(at, dict | list) and at:
            key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
            inner = at[key]
            if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 7)) == 0:
                at[key] = draw(values)
                break
            if isinstance(inner, list) and draw(st.integers(0, 7)) == 0:
                inner.append(copy.deepcopy(inner[0]))
            at = inner
    return json.dumps(body).encode()


def weight(value: object) -> int:
    """Bytes that a value takes, roughly: those of its fields, numbers and texts."""
    if isinstance(value, tuple):
        return sum(map(weight, value))
    if isinstance(value, Histogram):
        return 100 + value.counts.nbytes + 8 * len(value.layout.bounds)
    slots = getattr(value, "__slots__", None)
    if slots:
        return 50 + sum(weight(getattr(value, slot)) for slot in slots)
    nbytes = getattr(value, "nbytes", None)
    return int(nbytes) if nbytes is not None else sys.getsizeof(value)


def hold(decode: Callable[..., Batch], body: bytes, *, is_json: bool) -> None:
    """The promises of the intake, of one body."""
    try:
        batch = decode(body, json=is_json)
    except PayloadError as error:
        batch, said = Batch(), str(error)
    else:
        said = ""
    assert len(said) < 400
    assert weight((batch.latencies, batch.events, batch.counters, batch.gauges, batch.spans)) <= 10_000 + 100 * len(
        body
    )
    for tallies in (batch.rejected, batch.ignored):
        assert len(tallies) <= wire.MAX_REASONS + 1
        assert all(len(tally.reason) <= wire.MAX_REASON and tally.count > 0 for tally in tallies)
    rows = admitted(fold(batch, intake=INTAKE, streams={}), seen=Seen(), max_series=100)
    whole(rows)
    assert weight((rows.latencies, rows.slo, rows.counters, rows.gauges, rows.streams)) <= 20_000 + 300 * len(body)


def whole(rows: Deltas) -> None:
    """No NaN, no infinity, nothing negative, nothing out of its time."""
    for row in rows.latencies:
        one = row.histogram
        assert (one.counts > 0).any() or one.zero_count >= 0
        assert (one.counts >= 0).all()
        numbers = [one.sum, *(number for number in (one.min, one.max) if number is not None)]
        assert all(0 <= number < 1e308 for number in numbers)
        assert INTAKE.oldest_s - 10 <= row.start_s <= INTAKE.now_s + 300
    assert all(row.good >= 0 and row.bad >= 0 for row in rows.slo)
    assert all(0 <= row.value < 1e308 for row in rows.counters)


@given(mutated(METRICS))
def test_metrics_of_any_bytes(body: bytes) -> None:
    hold(decode_metrics, body, is_json=False)


@given(mutated(TRACES))
def test_traces_of_any_bytes(body: bytes) -> None:
    hold(decode_traces, body, is_json=False)


@given(mutated_json(METRICS_JSON))
def test_metrics_of_any_json(body: bytes) -> None:
    hold(decode_metrics, body, is_json=True)


@given(mutated_json(TRACES_JSON))
def test_traces_of_any_json(body: bytes) -> None:
    hold(decode_traces, body, is_json=True)


@given(mutated(METRICS), mutated(TRACES))
def test_what_is_meant_for_the_other_path_is_refused_or_ignored(metrics: bytes, traces: bytes) -> None:
    hold(decode_metrics, traces, is_json=False)
    hold(decode_traces, metrics, is_json=False)


def test_the_bodies_that_are_mutated_are_good_ones() -> None:
    assert all(decode_metrics(body, json=False).latencies for body in METRICS)
    assert all(decode_metrics(body.encode(), json=True).latencies for body in METRICS_JSON)
    batches = [decode_traces(body, json=False) for body in TRACES]
    assert [batch.span_latencies for batch in batches] == [18, 3]
    assert {tally.reason for batch in batches for tally in batch.ignored} == {OTHER_SPAN}
