"""OTLP messages for tests, built by the protocol's own classes."""

from collections.abc import Mapping, Sequence

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as wire
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from collector.values.histogram import Layout, from_values
from slo.signals import ENVIRONMENT, REQUEST_MODEL, SERVICE_INSTANCE, SERVICE_NAME, SOURCE

NS = 10**9
T0 = 1_800_000_000
DELTA = wire.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = wire.AGGREGATION_TEMPORALITY_CUMULATIVE

Value = str | int | float | bool
SIDECAR: dict[str, Value] = {SERVICE_NAME: "chat", SERVICE_INSTANCE: "i1", SOURCE: "proxy", ENVIRONMENT: "prod"}
FOREIGN: dict[str, Value] = {SERVICE_NAME: "chat", SERVICE_INSTANCE: "i9"}
MODEL: dict[str, Value] = {REQUEST_MODEL: "m"}


def pairs(values: Mapping[str, Value]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_any(value)) for key, value in values.items()]


def _any(value: Value) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    return AnyValue(string_value=value) if isinstance(value, str) else AnyValue(double_value=value)


def number(
    value: float, *, at_s: float = T0 + 10, start_s: float = T0, attributes: Mapping[str, Value] = MODEL
) -> wire.NumberDataPoint:
    point = wire.NumberDataPoint(
        attributes=pairs(attributes), time_unix_nano=round(at_s * NS), start_time_unix_nano=round(start_s * NS)
    )
    if isinstance(value, int):
        point.as_int = value
    else:
        point.as_double = value
    return point


def counter(name: str, *points: wire.NumberDataPoint, temporality: int = DELTA, monotonic: bool = True) -> wire.Metric:
    data = wire.Sum(data_points=points, is_monotonic=monotonic)
    data.aggregation_temporality = temporality  # type: ignore[assignment]
    return wire.Metric(name=name, sum=data)


def gauge(name: str, *points: wire.NumberDataPoint) -> wire.Metric:
    return wire.Metric(name=name, gauge=wire.Gauge(data_points=points))


def exponential_point(
    values: Sequence[float],
    *,
    scale: int = 5,
    at_s: float = T0 + 10,
    start_s: float = T0,
    attributes: Mapping[str, Value] = MODEL,
) -> wire.ExponentialHistogramDataPoint:
    one = from_values(values, Layout(scale))
    return wire.ExponentialHistogramDataPoint(
        attributes=pairs(attributes),
        time_unix_nano=round(at_s * NS),
        start_time_unix_nano=round(start_s * NS),
        count=one.count,
        sum=one.sum,
        scale=scale,
        zero_count=one.zero_count,
        positive=wire.ExponentialHistogramDataPoint.Buckets(offset=one.offset, bucket_counts=one.counts.tolist()),
        min=one.min,
        max=one.max,
    )


def explicit_point(
    bounds: Sequence[float],
    counts: Sequence[int],
    *,
    at_s: float = T0 + 10,
    start_s: float = T0,
    attributes: Mapping[str, Value] = MODEL,
) -> wire.HistogramDataPoint:
    return wire.HistogramDataPoint(
        attributes=pairs(attributes),
        time_unix_nano=round(at_s * NS),
        start_time_unix_nano=round(start_s * NS),
        count=sum(counts),
        sum=1.0 * sum(counts),
        bucket_counts=counts,
        explicit_bounds=bounds,
    )


def exponential(
    name: str, *points: wire.ExponentialHistogramDataPoint, temporality: int = DELTA, unit: str = "s"
) -> wire.Metric:
    data = wire.ExponentialHistogram(data_points=points)
    data.aggregation_temporality = temporality  # type: ignore[assignment]
    return wire.Metric(name=name, unit=unit, exponential_histogram=data)


def explicit(name: str, *points: wire.HistogramDataPoint, temporality: int = DELTA, unit: str = "s") -> wire.Metric:
    data = wire.Histogram(data_points=points)
    data.aggregation_temporality = temporality  # type: ignore[assignment]
    return wire.Metric(name=name, unit=unit, histogram=data)


def metrics(*found: wire.Metric, resource: Mapping[str, Value] = SIDECAR) -> ExportMetricsServiceRequest:
    sent = wire.ResourceMetrics(resource=Resource(attributes=pairs(resource)))
    sent.scope_metrics.append(wire.ScopeMetrics(metrics=found))
    return ExportMetricsServiceRequest(resource_metrics=[sent])


def span(attributes: Mapping[str, Value], *, start_s: float = T0, end_s: float = T0 + 1) -> Span:
    return Span(
        trace_id=b"\1" * 16,
        span_id=b"\2" * 8,
        name="chat m",
        start_time_unix_nano=round(start_s * NS),
        end_time_unix_nano=round(end_s * NS),
        attributes=pairs(attributes),
    )


def traces(*spans: Span, resource: Mapping[str, Value] = FOREIGN) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    sent = request.resource_spans.add()
    sent.resource.CopyFrom(Resource(attributes=pairs(resource)))
    sent.scope_spans.append(ScopeSpans(spans=spans))
    return request


def in_json(message: ExportMetricsServiceRequest | ExportTraceServiceRequest) -> bytes:
    text: str = json_format.MessageToJson(message)
    return text.encode()
