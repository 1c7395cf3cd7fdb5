"""What a body costs until it is rows: decode and fold, in CPU microseconds a span and a histogram point.

Every body is what a real sender writes: spans and deltas of a sidecar by its own encoder, spans as vLLM's tracing makes
them and cumulative histograms by the OpenTelemetry SDK and its encoder. The door before and the database behind are
measured elsewhere.
"""

import functools
import gc
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from collector.decoding.otlp import decode_metrics, decode_traces
from collector.folding.rollup import Intake, fold
from collector.values.measurement import Batch
from sidecar.counting.histogram import LogHistogram
from sidecar.counting.tally import Distribution, Interval
from sidecar.http.trace_context import SpanContext
from sidecar.said.dialects import read_ask, recognise
from sidecar.said.exchange import Exchange
from sidecar.said.record import EndedRequest
from sidecar.telling import otlp_metrics, otlp_spans, otlp_wire
from slo import signals

SPANS = 512
POINTS = 512
NS = 10**9
OURS = {signals.SERVICE_NAME: "chat", signals.SERVICE_INSTANCE: "host:4711", signals.SOURCE: "proxy"}
FOREIGN = {signals.SERVICE_NAME: "chat", signals.SERVICE_INSTANCE: "851be674-c70b-45f7-925d-78998b8feda7"}


@dataclass(frozen=True, slots=True)
class Body:
    """One body, and how many items it holds."""

    data: bytes
    items: int
    read: Callable[..., Batch]
    before: bytes = b""
    """What the sender sent before, so that its streams go on."""

    def cost_us(self, times: int) -> float:
        """CPU microseconds an item, from bytes to rows."""
        now_s = int(time.time())
        intake = Intake(now_s=now_s, tick_s=10, oldest_s=now_s - 86_400, since_s=now_s - 3_600)
        before = fold(self.read(self.before, json=False), intake=intake, streams={})
        streams = {row.stream: row for row in before.streams}
        started = time.process_time()
        for _ in range(times):
            rows = fold(self.read(self.data, json=False), intake=intake, streams=streams)
        cost_s = time.process_time() - started
        assert not rows.rejected, rows.rejected
        return cost_s / times / self.items * 1e6


def measure(rounds: int) -> dict[str, float]:
    """The least of `rounds`, by what was measured."""
    bodies = {
        "span of a sidecar": Body(sidecar_spans(), SPANS, decode_traces),
        "span of vLLM": Body(vllm_spans(), SPANS, decode_traces),
        "exponential histogram of a sidecar, delta": Body(sidecar_points(time.time_ns()), POINTS, decode_metrics),
        "exponential histogram of an SDK, cumulative": _sdk_points(exponential=True),
        "explicit histogram of an SDK, cumulative": _sdk_points(exponential=False),
    }
    gc.collect()
    gc.freeze()  # what the SDK holds is no heap of a collector
    least = dict.fromkeys(bodies, float("inf"))
    for _ in range(rounds):
        for name, body in bodies.items():
            least[name] = min(least[name], body.cost_us(10))
    return {f"{name}: us": cost for name, cost in least.items()}


def _request(of: dict[str, str], items: bytes) -> bytes:
    return otlp_wire.request(otlp_wire.resource(of.items()), otlp_wire.scope("sidecar", "0.1.0"), items)


def sidecar_spans() -> bytes:
    """What a sidecar sends of requests that ended."""
    dialect = recognise(b"/v1/chat/completions")
    assert dialect is not None
    exchange = Exchange(read_ask(dialect, b'{"model":"llama-3.1-8b","stream":true,"messages":[]}'), 0)
    exchange.response_started(200, "text/event-stream", at_ns=1000)
    exchange.feed(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', NS // 4)
    exchange.feed(b'data: {"choices":[],"usage":{"prompt_tokens":70,"completion_tokens":300}}\n\ndata: [DONE]\n\n', NS)
    exchange.response_ended(NS)
    of = exchange.record()
    return _request(
        OURS,
        b"".join(
            otlp_spans.encode(
                EndedRequest(
                    record=of,
                    context=context,
                    start_unix_ns=time.time_ns() - NS,
                    request_class="interactive",
                    request_id=None,
                    kv_at_arrival=0.25,
                    kv_max=0.5,
                    violated=False,
                )
            )
            for context in _contexts()
        ),
    )


def _contexts() -> Iterator[SpanContext]:
    source = random.Random(1)
    return (SpanContext(source.randbytes(16), source.randbytes(8), None) for _ in range(SPANS))


def vllm_spans() -> bytes:
    """As vLLM 0.33 writes them: one `llm_request` a finished request."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource(FOREIGN))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer, source = provider.get_tracer("vllm.tracing.otel"), random.Random(2)
    for number in range(SPANS):
        with tracer.start_as_current_span("llm_request") as span:
            ttft_s = source.lognormvariate(-2, 0.5)
            span.set_attributes(
                {
                    signals.LATENCY_TTFT: ttft_s,
                    signals.LATENCY_E2E: 8 * ttft_s,
                    signals.LATENCY_QUEUE: ttft_s / 10,
                    "gen_ai.usage.prompt_tokens": 180,
                    "gen_ai.usage.completion_tokens": 240,
                    "gen_ai.latency.time_in_model_prefill": ttft_s / 2,
                    "gen_ai.latency.time_in_model_decode": 7 * ttft_s,
                    "gen_ai.latency.time_in_model_inference": 7.5 * ttft_s,
                    "gen_ai.request.id": f"chatcmpl-a98e0a0eaf{number:06x}",
                    "gen_ai.request.top_p": 1.0,
                    "gen_ai.request.max_tokens": 256,
                    "gen_ai.request.n": 1,
                }
            )
    return encode_spans(kept.get_finished_spans()).SerializeToString()


def sidecar_points(end_ns: int, first: int = 0, count: int = POINTS) -> bytes:
    """An export of a sidecar: of ten seconds until `end_ns`, its series numbered from `first` on."""
    distributions = _distributions(first, count)
    interval = Interval(start_ns=end_ns - 10 * NS, end_ns=end_ns, delta=True, distributions=distributions)
    return _request(OURS, otlp_metrics.encode(interval)[0])


@functools.cache
def _distributions(first: int, count: int) -> tuple[Distribution, ...]:
    source, points = random.Random(3), []
    for number in range(first, first + count):
        latency = LogHistogram()
        for _ in range(120):
            latency.add(source.lognormvariate(-2, 0.4))
        attributes = (("gen_ai.request.model", f"model-{number // 3}"), ("gen_ai.operation.name", "chat"))
        points.append(Distribution(signals.LATENCY_METRICS[number % 3], attributes, latency.buckets()))
    return tuple(points)


def _sdk_points(*, exponential: bool) -> Body:
    views = (
        [View(instrument_type=Histogram, aggregation=ExponentialBucketHistogramAggregation())] if exponential else []
    )
    reader = InMemoryMetricReader({Histogram: AggregationTemporality.CUMULATIVE})
    meter = MeterProvider([reader], resource=Resource(FOREIGN), views=views).get_meter("server")
    source = random.Random(4)
    histograms = [
        meter.create_histogram(metric.name, metric.unit, explicit_bucket_boundaries_advisory=signals.LATENCY_BUCKETS_S)
        for metric in signals.LATENCY_METRICS
    ]
    exports = []
    for _ in range(2):
        for number in range(POINTS):
            attributes = {"gen_ai.request.model": f"model-{number // 3}", "gen_ai.operation.name": "chat"}
            for _ in range(120):
                histograms[number % 3].record(source.lognormvariate(-2, 0.4), attributes)
        exports.append(encode_metrics(reader.get_metrics_data()).SerializeToString())
    before, data = exports
    return Body(data, POINTS, decode_metrics, before)


if __name__ == "__main__":
    for title, figure in measure(5).items():
        print(f"{figure:8.2f}  {title}")
