"""The bodies of any replica of a fleet, made of one recording: another instance, another service, another time.

What is replaced has its own length in every body, so the bytes around it stay what the sidecar's encoder wrote.
"""

import struct
from dataclasses import dataclass

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from fleet.recording import SERVICE, Recording, service
from slo import signals

NS = 10**9
INSTANCE = "00000000-0000-4000-8000-{:012d}"
MARKS_NS = 1_700_000_000_123_456_789, 1_700_000_010_123_456_789
"""Stand for the begin and the end of whatever a body tells."""


@dataclass(frozen=True, slots=True)
class Template:
    """A body with a mark wherever replicas differ."""

    body: bytes

    def of(self, replica: int, of_service: str, *, begin_ns: int, end_ns: int) -> bytes:
        """The body that this replica sends of that time."""
        body = self.body.replace(INSTANCE.format(0).encode(), INSTANCE.format(replica).encode())
        body = body.replace(SERVICE.encode(), of_service.encode())
        for mark_ns, at_ns in zip(MARKS_NS, (begin_ns, end_ns), strict=True):
            body = body.replace(_fixed64(mark_ns), _fixed64(at_ns))
        return body


@dataclass(frozen=True, slots=True)
class Voice:
    """What a replica of the fleet says of the last `every_s` in metrics, and of the last half of it in spans."""

    metrics: Template
    spans: Template
    points: int
    services: int
    every_s: int

    def metrics_of(self, replica: int, end_ns: int) -> bytes:
        return self._said(self.metrics, replica, end_ns - self.every_s * NS, end_ns)

    def spans_of(self, replica: int, end_ns: int) -> bytes:
        return self._said(self.spans, replica, end_ns - self.every_s * NS // 2, end_ns)

    def _said(self, template: Template, replica: int, begin_ns: int, end_ns: int) -> bytes:
        return template.of(replica, service(replica % self.services), begin_ns=begin_ns, end_ns=end_ns)


def voice(recording: Recording, *, services: int, rps: float, every_s: int) -> Voice:
    """Of replicas with so many requests a second each, spread evenly over the services."""
    metrics = ExportMetricsServiceRequest.FromString(recording.metrics)
    points = 0
    for told in metrics.resource_metrics:
        _name(told.resource)
        for metric in (metric for scope in told.scope_metrics for metric in scope.metrics):
            data = getattr(metric, metric.WhichOneof("data") or "gauge").data_points
            points += len(data)
            for point in data:
                point.start_time_unix_nano, point.time_unix_nano = MARKS_NS
    traces = ExportTraceServiceRequest.FromString(recording.spans)
    (of,) = traces.resource_spans
    _name(of.resource)
    (scope_spans,) = of.scope_spans
    one, each = scope_spans.spans[0], round(rps * every_s / 2)
    one.start_time_unix_nano, one.end_time_unix_nano = MARKS_NS
    del scope_spans.spans[:]
    scope_spans.spans.extend([one] * each)
    bodies = Template(metrics.SerializeToString()), Template(traces.SerializeToString())
    return Voice(*bodies, points, services, every_s)


def _name(resource: Resource) -> None:
    """Give the first replica's name to a resource."""
    for attribute in resource.attributes:
        if attribute.key == signals.SERVICE_INSTANCE:
            attribute.value.string_value = INSTANCE.format(0)


def _fixed64(at_ns: int) -> bytes:
    return struct.pack("<Q", at_ns)
