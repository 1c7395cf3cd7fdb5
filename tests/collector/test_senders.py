"""Real senders: what the OpenTelemetry SDK measures is what the collector counts, whatever way it is told."""

import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from collector.decoding.otlp import decode_metrics, decode_traces
from collector.decoding.points import UNKNOWN_METRIC
from collector.decoding.spans import OTHER_SPAN
from collector.folding.rollup import REPEATED_DELTA, Intake, fold
from collector.values.deltas import Deltas, StreamRow, concat
from collector.values.histogram import Layout
from collector.values.measurement import Tally
from collector.values.quantile import buckets, quantiles
from slo import signals
from tests.collector.sent import GENAI_BOUNDS, Sdk, vllm_spans

TTFT = signals.TTFT.name
VALUES = np.random.default_rng(7).lognormal(-2, 0.7, 600).tolist()


def intake() -> Intake:
    now_s = int(time.time())
    return Intake(now_s=now_s, tick_s=10, oldest_s=now_s - 3600, since_s=now_s - 60)


def counted(bodies: Sequence[bytes]) -> Deltas:
    """The rows of bodies that come one after another."""
    streams: dict[str, StreamRow] = {}
    parts = []
    for body in bodies:
        parts.append(fold(decode_metrics(body, json=False), intake=intake(), streams=streams))
        streams.update({row.stream: row for row in parts[-1].streams})
    return concat(parts)


def exact(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(np.ceil(round(share * len(values), 9))) - 1]


@pytest.mark.parametrize("exponential", [False, True], ids=["explicit", "exponential"])
@pytest.mark.parametrize("delta", [False, True], ids=["cumulative", "delta"])
def test_an_sdk_is_counted_exactly_and_its_quantiles_are_within_their_error(exponential: bool, delta: bool) -> None:
    sdk, bodies = Sdk(exponential=exponential, delta=delta), []
    for start in range(0, 600, 200):
        sdk.record(TTFT, VALUES[start : start + 200])
        sdk.record(signals.E2E.name, [8.0])
        bodies.append(sdk.body())
    rows = counted(bodies)
    assert (rows.rejected, rows.ignored) == ((), ())
    assert {row.series.latency.source for row in rows.latencies} == {"otel"}
    ttft = [row for row in rows.latencies if row.series.latency.signal == "ttft"]
    assert sum(row.histogram.count for row in ttft) == 600
    assert sum(row.histogram.count for row in rows.latencies) == 603
    shares = (0.5, 0.9, 0.99)
    for share, found in zip(shares, quantiles([buckets(row.histogram) for row in ttft], shares), strict=True):
        truth = exact(VALUES, share)
        assert found.value is not None
        assert abs(found.value - truth) <= found.rel_error * truth * (1 + 1e-9)
    layouts = {row.series.layout for row in ttft}
    # An SDK keeps 160 buckets, whatever the scale: so wide a spread is at scale 4.
    assert layouts <= ({Layout(5), Layout(4)} if exponential else {Layout(None, GENAI_BOUNDS)})


def test_points_out_of_order_and_again_add_nothing() -> None:
    sdk, bodies = Sdk(), []
    for start in range(0, 600, 200):
        sdk.record(TTFT, VALUES[start : start + 200])
        bodies.append(sdk.body())
    first, second, third = bodies
    rows = counted([second, first, second, third, third, first])
    assert sum(row.histogram.count for row in rows.latencies) == 600
    assert sum(tally.count for tally in rows.ignored) == 4


def test_deltas_that_come_again_in_other_bodies_count_once() -> None:
    """As from a collector in between, whose sender had sent its export twice."""
    sdk, bodies = Sdk(delta=True), []
    for start in range(0, 600, 200):
        sdk.record(TTFT, VALUES[start : start + 200])
        bodies.append(sdk.body())
    first, second, third = bodies
    rows = counted([second, first, first + second, third, second + third])
    assert sum(row.histogram.count for row in rows.latencies) == 600
    assert rows.ignored == (Tally(REPEATED_DELTA, 4),)


def test_deltas_of_nobody_in_particular_may_be_of_several() -> None:
    """Without an instance two senders may tell the same of the same interval."""
    sdk = Sdk(delta=True, resource={signals.SERVICE_NAME: "chat"})
    sdk.record(TTFT, VALUES[:10])
    body = sdk.body()
    assert sum(row.histogram.count for row in counted([body + body]).latencies) == 20


def test_a_program_that_starts_again_goes_on_counting() -> None:
    before, after = Sdk(), Sdk()
    before.record(TTFT, VALUES[:200])
    first = before.body()
    after.record(TTFT, VALUES[:150])
    second = after.body()
    assert sum(row.histogram.count for row in counted([first, second]).latencies) == 350


def test_workers_that_share_a_resource_are_all_counted() -> None:
    """As forked from one process: one resource, one instance id, two lives."""
    workers = [Sdk(resource={signals.SERVICE_NAME: "chat"}) for _ in range(2)]
    bodies = []
    for start in range(0, 600, 100):
        for worker in workers:
            worker.record(TTFT, VALUES[start : start + 100])
            bodies.append(worker.body())
    assert sum(row.histogram.count for row in counted(bodies).latencies) == 1200


def test_milliseconds_are_refused_by_name() -> None:
    sdk = Sdk(unit="ms")
    sdk.record(TTFT, [250.0])
    batch = decode_metrics(sdk.body(), json=False)
    assert batch.latencies == ()
    assert batch.rejected == (Tally(f"{TTFT}: the unit is 'ms': send seconds", 1),)


def test_sums_of_either_number_are_counted_and_what_is_not_ours_is_ignored() -> None:
    sdk = Sdk()
    tokens = sdk.meter.create_counter(signals.TOKENS.name)
    tokens.add(5, {signals.TOKEN_TYPE: "input"})
    tokens.add(2.5, {signals.TOKEN_TYPE: "output"})
    sdk.meter.create_up_down_counter(signals.REQUESTS.name).add(-1)
    sdk.meter.create_counter("http.requests").add(1)
    batch = decode_metrics(sdk.body(), json=False)
    assert {point.value for point in batch.counters} == {5.0, 2.5}
    assert batch.rejected == (Tally(f"{signals.REQUESTS.name}: a counter must be monotonic", 1),)
    assert batch.ignored == (Tally(UNKNOWN_METRIC, 1),)


def test_exemplars_change_nothing() -> None:
    sdk = Sdk()
    sdk.record(TTFT, VALUES)
    plain = ExportMetricsServiceRequest.FromString(sdk.body())
    told = ExportMetricsServiceRequest.FromString(plain.SerializeToString())
    (metric,) = told.resource_metrics[0].scope_metrics[0].metrics
    metric.histogram.data_points[0].exemplars.add(as_double=0.1, time_unix_nano=1, trace_id=b"t" * 16)
    assert decode_metrics(told.SerializeToString(), json=False) == decode_metrics(plain.SerializeToString(), json=False)


def test_vllm_alone_gives_first_token_duration_and_queue_time() -> None:
    batch = decode_traces(vllm_spans(VALUES[:100], start_up=True), json=False)
    assert (batch.rejected, batch.ignored) == ((), (Tally(OTHER_SPAN, 2),))
    rows = fold(batch, intake=intake(), streams={})
    found = {(row.series.latency.model, row.series.latency.signal) for row in rows.latencies}
    assert found == {("unknown", "ttft"), ("unknown", "e2e"), ("unknown", "queue_time")}
    for signal, times in (("ttft", 1.0), ("e2e", 8.0), ("queue_time", 0.1)):
        parts = [buckets(row.histogram) for row in rows.latencies if row.series.latency.signal == signal]
        (p90,) = quantiles(parts, (0.9,))
        assert p90.value == pytest.approx(times * exact(VALUES[:100], 0.9), rel=0.011)


def test_the_start_of_a_stream_is_in_the_past_of_each_of_its_points() -> None:
    """What the rest of this page rests on: the SDK keeps one start for a stream."""
    sdk = Sdk()
    starts = []
    for _ in range(3):
        sdk.record(TTFT, [0.1])
        (point,) = decode_metrics(sdk.body(), json=False).latencies
        starts.append(point.interval)
    assert all(a.start_ns == b.start_ns and a.end_ns < b.end_ns for a, b in pairwise(starts))
