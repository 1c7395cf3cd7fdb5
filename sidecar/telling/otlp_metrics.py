"""An interval of counts as OTLP metrics (opentelemetry.proto.metrics.v1)."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from sidecar.counting.histogram import EdgeBuckets
from sidecar.counting.tally import Attributes, Distribution, Interval, Number
from sidecar.telling import otlp_wire as wire
from slo.signals import Metric

_DELTA, _CUMULATIVE = 1, 2
_ITEM = 2  # the field that repeats metrics within a scope
_GAUGE, _SUM, _HISTOGRAM, _EXPONENTIAL = 5, 7, 9, 10


def encode(interval: Interval) -> tuple[bytes, int]:
    """Every metric of the interval, as the fields that a scope repeats, and the number of points in them."""
    out: list[bytes] = []
    temporality = _DELTA if interval.delta else _CUMULATIVE
    for metric, counts in _by_metric(interval.counters):
        points = b"".join(_integer_point(point, interval) for point in counts)
        out.append(_metric(metric, _SUM, points + wire.integer(2, temporality) + wire.integer(3, 1)))
    for metric, gauges in _by_metric(interval.gauges):
        out.append(_metric(metric, _GAUGE, b"".join(_double_point(point, interval) for point in gauges)))
    for (metric, kind), group in groupby(sorted(interval.distributions, key=_by_name), key=_shape):
        points = b"".join(_distribution(point, interval) for point in group)
        out.append(_metric(metric, kind, points + wire.integer(2, temporality)))
    return b"".join(out), len(interval.counters) + len(interval.gauges) + len(interval.distributions)


def _by_name(point: Distribution) -> tuple[str, int]:
    return point.metric.name, _shape(point)[1]


def _shape(point: Distribution) -> tuple[Metric, int]:
    return point.metric, _HISTOGRAM if isinstance(point.buckets, EdgeBuckets) else _EXPONENTIAL


def _by_metric(points: Sequence[Number]) -> Iterable[tuple[Metric, Iterable[Number]]]:
    return groupby(sorted(points, key=lambda point: point.metric.name), key=lambda point: point.metric)


def _metric(metric: Metric, kind: int, data: bytes) -> bytes:
    fields = wire.text(1, metric.name) + wire.text(2, metric.description) + wire.text(3, metric.unit)
    return wire.block(_ITEM, fields + wire.block(kind, data))


def _attributes(field: int, attributes: Attributes) -> bytes:
    return b"".join(wire.attribute(field, key, value) for key, value in attributes)


def _integer_point(point: Number, interval: Interval) -> bytes:
    times = wire.fixed64(2, interval.start_ns) + wire.fixed64(3, interval.end_ns)
    return wire.block(1, _attributes(7, point.attributes) + times + wire.sfixed64(6, int(point.value)))


def _double_point(point: Number, interval: Interval) -> bytes:
    time = wire.fixed64(3, interval.end_ns)
    return wire.block(1, _attributes(7, point.attributes) + time + wire.double(4, float(point.value)))


def _distribution(point: Distribution, interval: Interval) -> bytes:
    buckets = point.buckets
    if isinstance(buckets, EdgeBuckets):
        return _between_edges(point.attributes, buckets, interval)
    positive = wire.integer(1, wire.zigzag(buckets.offset)) + wire.packed(2, buckets.counts)
    fields = (
        wire.fixed64(2, interval.start_ns)
        + wire.fixed64(3, interval.end_ns)
        + wire.fixed64(4, buckets.count)
        + wire.double(5, buckets.sum)
        + wire.integer(6, wire.zigzag(buckets.scale))
        + wire.fixed64(7, buckets.zero_count)
        + wire.block(8, positive)
        + wire.double(12, buckets.min)
        + wire.double(13, buckets.max)
    )
    return wire.block(1, _attributes(1, point.attributes) + fields)


def _between_edges(attributes: Attributes, buckets: EdgeBuckets, interval: Interval) -> bytes:
    fields = (
        wire.fixed64(2, interval.start_ns)
        + wire.fixed64(3, interval.end_ns)
        + wire.fixed64(4, buckets.count)
        + (b"" if buckets.sum is None else wire.double(5, buckets.sum))
        + wire.packed_fixed64(6, buckets.counts)
        + wire.packed_doubles(7, buckets.bounds)
    )
    return wire.block(1, _attributes(9, attributes) + fields)
