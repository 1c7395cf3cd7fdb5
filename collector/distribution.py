"""Histogram points of the wire read into histograms, or rejected by name.

Exponential ones arrive at any scale and leave at `histogram.SCALE` or coarser; explicit ones keep their bounds. What a
sender says of its minimum and maximum is kept of deltas only: of a cumulative point they speak of its whole life.
"""

import numpy as np
from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint, HistogramDataPoint

from collector.histogram import MAX_SCALE, MIN_SCALE, SCALE, Counts, Facts, Histogram, Layout, at_scale, histogram
from collector.measurement import MAX_COUNT, MAX_VALUE, RejectedError
from collector.quantile import buckets, estimated_sum

MAX_BUCKETS = 4096
MAX_ZERO_S = 0.001
"""A wider zero bucket hides what a latency objective asks for; a narrower one counts as zero."""
MAX_LOG2_S = 1000
"""Buckets lie within 2^-1000 to 2^1000 s: their edges are then finite floats above 0."""

HistogramPoint = HistogramDataPoint | ExponentialHistogramDataPoint


def read_histogram(point: HistogramPoint, *, cumulative: bool) -> Histogram:
    """The histogram of a point. Raises `RejectedError`."""
    one = _exponential(point) if isinstance(point, ExponentialHistogramDataPoint) else _explicit(point)
    if one.count != point.count:
        raise RejectedError(f"the buckets hold {one.count} values and the count says {point.count}")
    facts = _facts(point, one, cumulative=cumulative)
    return histogram(one.layout, one.offset, one.counts, zero_count=one.zero_count, facts=facts)


def _exponential(point: ExponentialHistogramDataPoint) -> Histogram:
    if any(point.negative.bucket_counts):
        raise RejectedError("a latency is never negative")
    if not MIN_SCALE <= point.scale <= MAX_SCALE:
        raise RejectedError(f"scale {point.scale}: use {MIN_SCALE} to {MAX_SCALE}")
    if not 0 <= point.zero_threshold <= MAX_ZERO_S:
        raise RejectedError(f"a zero threshold above {MAX_ZERO_S} s hides latencies")
    counts = _counts(point.positive.bucket_counts)
    offset, step = point.positive.offset, 2.0**-point.scale
    if counts.size and max(abs(offset), abs(offset + counts.size)) * step > MAX_LOG2_S:
        raise RejectedError("a bucket beyond any latency")
    if point.zero_count > MAX_COUNT:
        raise RejectedError(f"a count above {MAX_COUNT}")
    return at_scale(histogram(Layout(point.scale), offset, counts, zero_count=point.zero_count), SCALE)


def _explicit(point: HistogramDataPoint) -> Histogram:
    counts, bounds = _counts(point.bucket_counts), tuple(point.explicit_bounds)
    if not bounds or counts.size != len(bounds) + 1:
        raise RejectedError("an explicit histogram needs bounds, and one bucket more than bounds")
    try:
        return histogram(Layout(None, bounds), 0, counts)
    except ValueError as error:
        raise RejectedError(str(error)) from None


def _counts(wire: object) -> Counts:
    counts = np.array(wire, dtype=np.uint64)
    if counts.size > MAX_BUCKETS:
        raise RejectedError(f"more than {MAX_BUCKETS} buckets")
    if counts.size and int(counts.max()) > MAX_COUNT:
        raise RejectedError(f"a count above {MAX_COUNT}")
    return counts.astype(np.int64)


def _facts(point: HistogramPoint, one: Histogram, *, cumulative: bool) -> Facts:
    if not one.count:
        return Facts()
    total = point.sum if point.HasField("sum") else estimated_sum(buckets(one))
    said = [None if cumulative else point.min if point.HasField("min") else None]
    said.append(None if cumulative else point.max if point.HasField("max") else None)
    numbers = [total, *(value for value in said if value is not None)]
    if not all(0 <= value <= MAX_VALUE for value in numbers):
        raise RejectedError(f"sum, min and max must be finite numbers from 0 to {MAX_VALUE:g}")
    least, greatest = said
    return Facts(total, least, greatest)
