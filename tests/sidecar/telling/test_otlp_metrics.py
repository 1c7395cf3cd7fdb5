from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, ScopeMetrics

from sidecar.counting.histogram import EdgeBuckets, LogHistogram
from sidecar.counting.tally import Distribution, Interval, Number
from sidecar.telling.otlp_metrics import encode
from slo.signals import IN_FLIGHT, REQUESTS, TOKENS, TTFT
from tests.sidecar.receiver import attributes

A, B = (("m", "a"),), (("m", "b"),)


def decoded(interval: Interval) -> dict[str, Metric]:
    data, _ = encode(interval)
    return {metric.name: metric for metric in ScopeMetrics.FromString(data).metrics}


def interval(*, delta: bool = True) -> Interval:
    latency = LogHistogram()
    for value in (0.0, 0.25, 0.5, 4.0):
        latency.add(value)
    return Interval(
        start_ns=10,
        end_ns=20,
        delta=delta,
        counters=(Number(REQUESTS, A, 3), Number(TOKENS, A, 5), Number(REQUESTS, B, 0)),
        gauges=(Number(IN_FLIGHT, A, 2.0),),
        distributions=(Distribution(TTFT, A, latency.buckets()),),
    )


def test_counters_are_monotonic_sums_of_the_interval() -> None:
    requests = decoded(interval())[REQUESTS.name]
    assert (requests.unit, requests.description) == (REQUESTS.unit, REQUESTS.description)
    assert requests.sum.is_monotonic
    assert requests.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
    points = {attributes(point.attributes)["m"]: point for point in requests.sum.data_points}
    assert {name: point.as_int for name, point in points.items()} == {"a": 3, "b": 0}
    assert (points["a"].start_time_unix_nano, points["a"].time_unix_nano) == (10, 20)


def test_gauges_are_of_the_intervals_end() -> None:
    (point,) = decoded(interval())[IN_FLIGHT.name].gauge.data_points
    assert (point.as_double, point.time_unix_nano) == (2.0, 20)


def test_latencies_are_exponential_histograms() -> None:
    histogram = decoded(interval())[TTFT.name].exponential_histogram
    assert histogram.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
    (point,) = histogram.data_points
    assert (point.count, point.sum, point.min, point.max, point.zero_count, point.scale) == (4, 4.75, 0.0, 4.0, 1, 5)
    places = {point.positive.offset + place: n for place, n in enumerate(point.positive.bucket_counts) if n}
    assert places == {-2 * 32 - 1: 1, -32 - 1: 1, 2 * 32 - 1: 1}


def test_a_cumulative_interval_says_so() -> None:
    found = decoded(interval(delta=False))
    cumulative = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    assert found[REQUESTS.name].sum.aggregation_temporality == cumulative
    assert found[TTFT.name].exponential_histogram.aggregation_temporality == cumulative


def test_points_are_counted() -> None:
    assert encode(interval())[1] == 5
    assert encode(Interval(0, 1, delta=True)) == (b"", 0)


def test_anothers_buckets_are_histograms_with_their_own_edges() -> None:
    known, unknown = EdgeBuckets((0.25, 0.5), (1, 2, 4), 3.5), EdgeBuckets((0.25,), (0, 1), None)
    sent = Interval(10, 20, delta=True, distributions=(Distribution(TTFT, A, known), Distribution(TTFT, B, unknown)))
    histogram = decoded(sent)[TTFT.name].histogram
    assert histogram.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
    first, second = histogram.data_points
    assert attributes(first.attributes) == {"m": "a"}
    assert (first.start_time_unix_nano, first.time_unix_nano) == (10, 20)
    assert (first.count, first.sum, list(first.bucket_counts), list(first.explicit_bounds)) == (
        7,
        3.5,
        [1, 2, 4],
        [0.25, 0.5],
    )
    assert not second.HasField("sum")
    assert not second.HasField("min")


def test_both_kinds_of_one_latency_are_metrics_of_their_own() -> None:
    ours = interval().distributions[0]
    theirs = Distribution(TTFT, B, EdgeBuckets((0.25,), (0, 1), None))
    data, points = encode(Interval(1, 2, delta=True, distributions=(ours, theirs, ours)))
    kinds = [metric.WhichOneof("data") for metric in ScopeMetrics.FromString(data).metrics]
    assert (kinds, points) == (["histogram", "exponential_histogram"], 3)
