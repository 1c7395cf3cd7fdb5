"""OTLP bodies read into measurements: protobuf or JSON bytes in, a `Batch` out (OTLP 1.x; DESIGN 4.3).

What is not an OTLP message raises `PayloadError`. Inside one, each point stands for itself: a faulty one is rejected
by name and the rest is kept (OTLP partial success), what is not for us is ignored and counted. No NaN, infinity or
negative latency passes. A resource with `firsttoken.source` is one of ours: its spans serve traces alone, because
its metrics count the same requests; a foreign span with `gen_ai.latency.*` gives those latencies (`spans`). The worst
requests of either are named, to be looked at (`worst_spans`).
"""

from collections.abc import Sized

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.decoding import sealed, wire, worst_spans
from collector.decoding.points import Points
from collector.decoding.spans import SpanReading
from collector.errors import PayloadError
from collector.values.measurement import Batch, Request, SpanLatencies

OWN_SPAN = "span of a sidecar: its metrics count the request"


def decode_metrics(body: bytes, *, json: bool) -> Batch:
    """The metrics of an `ExportMetricsServiceRequest`. Raises `PayloadError`."""
    return read_metrics(body, json=json).batch()


def read_metrics(body: bytes, *, json: bool) -> Points:
    """The same, but for what many bodies are better read for together (`points.batches`)."""
    name = "ExportMetricsServiceRequest"
    points = Points()
    try:
        raw = _from_json(ExportMetricsServiceRequest(), body) if json else body
        request = sealed.metrics_request(raw)
        _expect(name, raw, request.resource_metrics)
        for sent in request.resource_metrics:
            sender = wire.sender(sent.resource)
            for scope in sent.scope_metrics:
                for metric in scope.metrics:
                    points.read(sender, scope.scope.name, metric)
    except DecodeError:
        raise PayloadError(f"not a {name} in protobuf") from None
    return points


def decode_traces(body: bytes, *, json: bool) -> Batch:
    """The latencies in the foreign spans of an `ExportTraceServiceRequest`, and the worst requests in all of them.
    Raises `PayloadError`."""
    name = "ExportTraceServiceRequest"
    found: list[SpanLatencies] = []
    worst: list[Request] = []
    rejected, ignored = wire.Reasons(), wire.Reasons()
    try:
        raw = _from_json(ExportTraceServiceRequest(), body) if json else body
        request = sealed.traces_request(raw)
        _expect(name, raw, request.resource_spans)
        for sent in request.resource_spans:
            sender = wire.sender(sent.resource)
            if sender.ours:
                spans = [span for scope in sent.scope_spans for span in scope.spans]
                worst.extend(worst_spans.worst(spans, sender.resource))
                ignored.add(OWN_SPAN, len(spans))
                continue
            reading = SpanReading(sender.resource)
            for scope in sent.scope_spans:
                reading.read(scope.spans)
            found.extend(reading.columns())
            worst.extend(reading.worst())
            rejected.take(reading.rejected)
            ignored.take(reading.ignored)
    except DecodeError:
        raise PayloadError(f"not a {name} in protobuf") from None
    return Batch(spans=tuple(found), worst=tuple(worst), rejected=rejected.tallies(), ignored=ignored.tallies())


def _expect(name: str, raw: bytes, found: Sized) -> None:
    if raw and not len(found):
        raise PayloadError(f"not a {name} in protobuf: none of its fields is there")


def _from_json(message: Message, body: bytes) -> bytes:
    """A body in JSON as it would have come in protobuf. Raises `PayloadError`."""
    name = type(message).__name__
    if not body.lstrip().startswith(b"{"):
        raise PayloadError(f"not a {name} in JSON: it must be an object")
    try:
        json_format.Parse(body, message, ignore_unknown_fields=True)
        return bytes(message.SerializeToString())
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise PayloadError(f"not a {name} in JSON: {str(error)[:200]}") from None
