"""What the sink has taken, decoded: spans by the number of their request, and the sum of all that was counted."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from slo.signals import LABELS, OUTCOME, SERVICE_INSTANCE
from storm.sink import ENTRY, TRACES

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Taken:
    """`spans`: outcome by number; `twice`: numbers that came in two bodies; `sums`: deltas of counters, and the counts
    of histograms, by metric and Prometheus labels; `instances`: who sent."""

    bodies: int = 0
    spans: dict[int, str] = field(default_factory=dict)
    twice: list[int] = field(default_factory=list)
    sums: Counter[tuple[str, Labels]] = field(default_factory=Counter)
    instances: set[str] = field(default_factory=set)


def read(file: Path) -> Taken:
    """All that the sink's file holds."""
    taken, data, at = Taken(), file.read_bytes(), 0
    while at < len(data):
        lane, refused, size = ENTRY.unpack_from(data, at)
        at += ENTRY.size
        body, at = data[at : at + size], at + size
        taken.bodies += 1
        if lane == TRACES:
            _take_spans(taken, body, refused)
        else:
            _take_metrics(taken, body)
    return taken


def _take_spans(taken: Taken, body: bytes, refused: int) -> None:
    request = ExportTraceServiceRequest.FromString(body)
    spans = [span for rs in request.resource_spans for ss in rs.scope_spans for span in ss.spans]
    for span in spans[refused:]:
        number = int.from_bytes(span.trace_id, "big")
        if number in taken.spans:
            taken.twice.append(number)
        (outcome,) = [a.value.string_value for a in span.attributes if a.key == OUTCOME]
        taken.spans[number] = outcome


def _take_metrics(taken: Taken, body: bytes) -> None:
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        own = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
        taken.instances.add(own[SERVICE_INSTANCE])
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for labels, count in _counts(metric):
                    taken.sums[metric.name, labels] += count


def _counts(metric: Metric) -> Iterator[tuple[Labels, int]]:
    """Deltas alone: a gauge, or a sum since the start, is none."""
    delta = 1
    if metric.sum.aggregation_temporality == delta:
        for point in metric.sum.data_points:
            yield _labels(point.attributes), point.as_int
    for histogram in (metric.exponential_histogram, metric.histogram):
        if histogram.aggregation_temporality == delta:
            for bucket in histogram.data_points:
                yield _labels(bucket.attributes), bucket.count


def _labels(attributes: object) -> Labels:
    return tuple(sorted((LABELS[a.key], a.value.string_value) for a in attributes))  # type: ignore[attr-defined]
