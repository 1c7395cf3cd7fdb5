import pytest

from sidecar.counting.histogram import EdgeBuckets
from sidecar.counting.tally import Distribution
from sidecar.engine.engine_latencies import EngineLatencies
from slo.signals import E2E, REQUEST_MODEL, SOURCE, TTFT

M = ((REQUEST_MODEL, "m"),)


def buckets(*counts: int, bounds: tuple[float, ...] = (0.5,), total_s: float | None = 1.0) -> EdgeBuckets:
    return EdgeBuckets(bounds, counts, total_s)


def test_intervals_add_up_to_the_total() -> None:
    kept = EngineLatencies()
    kept.add(TTFT, M, buckets(1, 2))
    kept.add(TTFT, M, buckets(3, 0))
    assert kept.take(delta=True) == (Distribution(TTFT, M, buckets(4, 2, total_s=2.0)),)
    kept.add(TTFT, M, buckets(1, 1))
    assert kept.take(delta=True) == (Distribution(TTFT, M, buckets(1, 1)),)
    assert kept.take(delta=True) == ()
    assert list(kept.classics()) == [(TTFT, (*M, (SOURCE, "engine")), buckets(5, 3, total_s=3.0))]


def test_cumulative_points_hold_all_since_the_start_and_the_empty_ones_too() -> None:
    kept, counts = EngineLatencies(), list[int]()
    for grown in (buckets(0, 0), buckets(2, 1), buckets(0, 0), buckets(0, 4)):
        kept.add(TTFT, M, grown)
        counts += [point.buckets.count for point in kept.take(delta=False)]
    assert counts == [0, 3, 3, 7]


def test_what_holds_no_value_is_shown_and_not_sent() -> None:
    kept = EngineLatencies()
    assert not kept.is_known
    kept.add(E2E, M, buckets(0, 0))
    assert kept.is_known
    assert kept.take(delta=True) == ()
    assert [histogram.count for _, _, histogram in kept.classics()] == [0]


def test_other_edges_start_another_total_and_lose_nothing_unsent() -> None:
    kept = EngineLatencies()
    kept.add(TTFT, M, buckets(1, 2))
    kept.add(TTFT, M, buckets(4, 4, bounds=(0.7,)))
    assert {point.buckets for point in kept.take(delta=True)} == {buckets(1, 2), buckets(4, 4, bounds=(0.7,))}
    assert [histogram for _, _, histogram in kept.classics()] == [buckets(4, 4, bounds=(0.7,))]


@pytest.mark.parametrize("total_s", [None, 1.0])
def test_a_sum_is_known_while_all_its_parts_are(total_s: float | None) -> None:
    kept = EngineLatencies()
    kept.add(TTFT, M, buckets(1, 2))
    kept.add(TTFT, M, buckets(1, 2, total_s=total_s))
    (point,) = kept.take(delta=True)
    assert point.buckets.sum == (None if total_s is None else 2.0)
