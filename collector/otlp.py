"""OTLP bodies read into measurements: protobuf or JSON bytes in, a `Batch` out (OTLP 1.x; DESIGN 4.3).

What is not an OTLP message raises `PayloadError`. Inside one, each point stands for itself: a faulty one is rejected
by name and the rest is kept (OTLP partial success), what is not for us is ignored and counted. No NaN, infinity or
negative latency passes. A resource with `firsttoken.source` is one of ours: its spans serve traces alone, because
its metrics count the same requests; a foreign span with `gen_ai.latency.*` gives those latencies.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector import wire
from collector.errors import PayloadError
from collector.measurement import MAX_VALUE, Batch, RejectedError, Resource, SpanLatency
from collector.points import Points
from slo import signals

QUEUE_TIME = "queue_time"
"""Time in the engine's queue: a latency, unlike signal `queue`, which counts requests."""
SPAN_LATENCIES = {
    signals.LATENCY_TTFT: signals.TTFT.sql,
    signals.LATENCY_TPOT: signals.TPOT.sql,
    signals.LATENCY_E2E: signals.E2E.sql,
    signals.LATENCY_QUEUE: QUEUE_TIME,
}

OWN_SPAN = "span of a sidecar: its metrics count the request"
OTHER_SPAN = "span without a latency of ours"
STEPPED_SPAN = "span that ends before it starts: its sender's clock was set"

AnyMessage = TypeVar("AnyMessage", bound=Message)


def decode_metrics(body: bytes, *, json: bool) -> Batch:
    """The metrics of an `ExportMetricsServiceRequest`. Raises `PayloadError`."""
    request = _parsed(ExportMetricsServiceRequest(), body, json=json)
    points = Points()
    for sent in request.resource_metrics:
        resource = wire.resource(wire.attributes(sent.resource.attributes))
        for scope in sent.scope_metrics:
            for metric in scope.metrics:
                points.read(sent.resource, resource, scope.scope.name, metric)
    return points.batch()


def decode_traces(body: bytes, *, json: bool) -> Batch:
    """The latencies in the foreign spans of an `ExportTraceServiceRequest`. Raises `PayloadError`."""
    request = _parsed(ExportTraceServiceRequest(), body, json=json)
    latencies: list[SpanLatency] = []
    rejected: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    for sent in request.resource_spans:
        found = wire.attributes(sent.resource.attributes)
        resource = wire.resource(found)
        for span in (span for scope in sent.scope_spans for span in scope.spans):
            reason = OWN_SPAN if signals.SOURCE in found else _no_interest(span)
            if reason is not None:
                ignored[reason] += 1
                continue
            try:
                latencies.extend(list(_latencies(resource, span)))
            except RejectedError as error:
                rejected[str(error)] += 1
    return Batch(spans=tuple(latencies), rejected=wire.tallies(rejected), ignored=wire.tallies(ignored))


def _parsed(message: AnyMessage, body: bytes, *, json: bool) -> AnyMessage:
    name = type(message).__name__
    if json:
        if not body.lstrip().startswith(b"{"):
            raise PayloadError(f"not a {name} in JSON: it must be an object")
        try:
            json_format.Parse(body, message, ignore_unknown_fields=True)
        except (json_format.ParseError, ValueError, RecursionError) as error:
            raise PayloadError(f"not a {name} in JSON: {str(error)[:200]}") from None
        return message
    try:
        message.ParseFromString(body)
    except DecodeError:
        raise PayloadError(f"not a {name} in protobuf") from None
    if body and not message.ListFields():
        raise PayloadError(f"not a {name} in protobuf: none of its fields is there")
    return message


def _no_interest(span: Span) -> str | None:
    """Why a foreign span is not for us; None when it is."""
    if not any(pair.key in SPAN_LATENCIES for pair in span.attributes):
        return OTHER_SPAN
    return STEPPED_SPAN if 0 < span.end_time_unix_nano < span.start_time_unix_nano else None


def _latencies(resource: Resource, span: Span) -> Iterator[SpanLatency]:
    if span.end_time_unix_nano == 0:
        raise RejectedError("a span without an end")
    model = wire.model(wire.attributes(span.attributes)) or signals.UNKNOWN_MODEL
    for pair in span.attributes:
        if pair.key in SPAN_LATENCIES:
            value = wire.value_number(pair.value)
            if not 0 <= value <= MAX_VALUE:
                raise RejectedError(f"{pair.key} is not a number of 0 s or more")
            yield SpanLatency(resource, model, SPAN_LATENCIES[pair.key], span.end_time_unix_nano, value)
