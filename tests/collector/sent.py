"""Bodies that real senders write: the OpenTelemetry SDK through its own encoder, and vLLM's spans as it makes them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider, UpDownCounter
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from slo import signals

SERVER = {signals.SERVICE_NAME: "chat", signals.SERVICE_INSTANCE: "server-1"}
GENAI_BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""What the GenAI conventions advise for the time to first token."""


@dataclass
class Sdk:
    """A program that an OpenTelemetry SDK measures; `body` is what it exports now."""

    exponential: bool = False
    delta: bool = False
    unit: str = "s"
    resource: Mapping[str, str] = field(default_factory=lambda: SERVER)

    def __post_init__(self) -> None:
        temporality = AggregationTemporality.DELTA if self.delta else AggregationTemporality.CUMULATIVE
        kinds: dict[type, AggregationTemporality] = dict.fromkeys((Counter, Histogram), temporality)
        kinds[UpDownCounter] = AggregationTemporality.CUMULATIVE
        aggregation = ExponentialBucketHistogramAggregation()
        views = [View(instrument_type=Histogram, aggregation=aggregation)] if self.exponential else []
        self._reader = InMemoryMetricReader(kinds)
        provider = MeterProvider([self._reader], Resource(self.resource), shutdown_on_exit=False, views=views)
        self.meter = provider.get_meter("server", "1")
        self._histograms = {
            metric.name: self.meter.create_histogram(
                metric.name, self.unit, explicit_bucket_boundaries_advisory=GENAI_BOUNDS
            )
            for metric in signals.LATENCY_METRICS
        }

    def record(self, name: str, values_s: Iterable[float], **more: str) -> None:
        """Measure requests of model m."""
        attributes = {signals.OPERATION: "chat", "gen_ai.provider.name": "x", signals.REQUEST_MODEL: "m", **more}
        for value_s in values_s:
            self._histograms[name].record(value_s, attributes)

    def body(self) -> bytes:
        """One export request."""
        data = self._reader.get_metrics_data()
        assert data is not None
        return bytes(encode_metrics(data).SerializeToString())


def vllm_attributes(ttft_s: float, number: int = 0) -> dict[str, str | int | float]:
    """What vLLM says of a finished request."""
    return {
        signals.LATENCY_TTFT: ttft_s,
        signals.LATENCY_E2E: 8 * ttft_s,
        signals.LATENCY_QUEUE: ttft_s / 10,
        "gen_ai.usage.prompt_tokens": 18 + number,
        "gen_ai.usage.completion_tokens": 24 + 7 * number,
        "gen_ai.latency.time_in_model_prefill": ttft_s / 2,
        "gen_ai.latency.time_in_model_decode": 7 * ttft_s,
        "gen_ai.latency.time_in_model_inference": 7.5 * ttft_s,
        "gen_ai.request.id": f"chatcmpl-a98e0a0eaf{number:06x}",
        "gen_ai.request.top_p": 1.0,
        "gen_ai.request.max_tokens": 24,
        "gen_ai.request.n": 1,
    }


def vllm_spans(ttfts_s: Sequence[float], *, start_up: bool = False) -> bytes:
    """The spans of vLLM's tracing, one a request; `start_up`: those of its start before them."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource(SERVER), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("vllm.tracing.otel")
    if start_up:
        with tracer.start_as_current_span("Overall Loading"), tracer.start_as_current_span("Load model"):
            pass
    for number, ttft_s in enumerate(ttfts_s):
        with tracer.start_as_current_span("llm_request") as span:
            span.set_attributes(vllm_attributes(ttft_s, number))
    return bytes(encode_spans(kept.get_finished_spans()).SerializeToString())
