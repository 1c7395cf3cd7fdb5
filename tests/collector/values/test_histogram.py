"""The histogram against sorted values, against itself, and against the OpenTelemetry SDK."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ExponentialHistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View

from collector.values.histogram import Facts, Histogram, Layout, at_scale, difference, from_values, histogram, merge
from tests.strategies import BOUNDS, explicit_histograms, exponential_histograms, scales, value_lists


def counted(one: Histogram) -> tuple[Layout, int, int, list[int]]:
    return one.layout, one.zero_count, one.offset, one.counts.tolist()


@pytest.mark.parametrize(
    "layout", [Layout(5), Layout(0), Layout(-2), Layout(20), Layout(None, (0.1, 0.30000000000000004))]
)
def test_a_layout_reads_back_from_its_text(layout: Layout) -> None:
    assert Layout.parse(layout.text) == layout


@pytest.mark.parametrize("text", ["", "exp:", "exp:99", "le:", "le:2,1", "le:nan", "le:-1,1", "le:1,inf", "ddsketch:5"])
def test_other_texts_are_no_layout(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Layout.parse(text)


@given(value_lists(), scales)
def test_each_value_lies_in_its_bucket(values: list[float], scale: int) -> None:
    layout = Layout(scale)
    positive = np.array([value for value in values if value > 0])
    low, high = layout.edges(layout.indexes(positive))
    # Beyond powers of two an edge is an irrational number: one in its last digit may go either way.
    assert (low <= positive * (1 + 1e-12)).all()
    assert (positive <= high * (1 + 1e-12)).all()


@pytest.mark.parametrize("scale", [-2, 0, 1, 3, 5])
@pytest.mark.parametrize("power", [-20, -4, -1, 0, 1, 4, 8])
def test_a_power_of_two_belongs_to_the_bucket_that_it_ends(scale: int, power: int) -> None:
    edge = 2.0**power
    one = from_values([edge], Layout(scale))
    low, high = one.layout.edges(np.array([one.offset]))
    assert low[0] < edge <= high[0]
    assert scale < 0 or high[0] == edge
    above = from_values([math.nextafter(edge, math.inf)], Layout(scale))
    assert (above.offset == one.offset + 1) == (high[0] == edge)


def test_explicit_buckets_contain_their_upper_bound() -> None:
    one = from_values([0.0, 0.1, 0.100001, 0.5, 2.5, 2.6], Layout(None, BOUNDS))
    assert counted(one) == (Layout(None, BOUNDS), 0, 0, [2, 1, 1, 0, 1, 1])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.001])
def test_what_is_no_latency_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        from_values([0.1, value])


def test_the_form_is_one_whatever_zeros_surround_it() -> None:
    assert histogram(Layout(5), 10, [0, 0, 3, 0, 1, 0]) == histogram(Layout(5), 12, [3, 0, 1])
    assert histogram(Layout(5), 10, [0, 0]) == Histogram(Layout(5))
    assert histogram(Layout(5), 10, [1]) != histogram(Layout(5), 11, [1])


@pytest.mark.parametrize(
    ("layout", "offset", "counts"),
    [(Layout(5), 0, [1, -1]), (Layout(None, (1.0,)), 0, [0, 0, 1]), (Layout(None, (1.0,)), -1, [1])],
)
def test_impossible_parts_are_refused(layout: Layout, offset: int, counts: list[int]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        histogram(layout, offset, counts)


def test_e03_different_scales_merge_at_the_lower() -> None:
    a = histogram(Layout(1), -3, [2, 1, 4], zero_count=1)
    b = histogram(Layout(0), -1, [5, 1])
    assert counted(merge(a, b)) == (Layout(0), 1, -2, [2, 10, 1])
    assert merge(a, b).count == a.count + b.count == 14


def test_e04_an_odd_offset_loses_nothing_going_down() -> None:
    assert counted(at_scale(histogram(Layout(1), 1, [1, 1]), 0)) == (Layout(0), 0, 0, [1, 1])


@given(value_lists(), scales, scales)
def test_going_down_equals_counting_there(values: list[float], scale: int, lower: int) -> None:
    # Only edges that both scales name with the same float can be compared to the last digit.
    kept = [value for value in values if value == 0 or math.frexp(value)[0] not in (0.5, 1.0)]
    down = at_scale(from_values(kept, Layout(max(scale, lower))), min(scale, lower))
    assert down == from_values(kept, Layout(min(scale, lower)))


@given(value_lists(), value_lists(), scales)
def test_merging_equals_the_union(a: list[float], b: list[float], scale: int) -> None:
    one = merge(from_values(a, Layout(scale)), from_values(b, Layout(scale)))
    both = from_values(a + b, Layout(scale))
    assert counted(one) == counted(both)
    assert (one.min, one.max) == (both.min, both.max)
    assert one.sum == pytest.approx(both.sum)


@given(exponential_histograms(), exponential_histograms(), exponential_histograms())
def test_merging_knows_no_order(a: Histogram, b: Histogram, c: Histogram) -> None:
    assert counted(merge(a, b)) == counted(merge(b, a))
    left, right = merge(merge(a, b), c), merge(a, merge(b, c))
    assert counted(left) == counted(right)
    assert (left.min, left.max) == (right.min, right.max)


@given(explicit_histograms(), explicit_histograms())
def test_explicit_ones_of_the_same_bounds_merge(a: Histogram, b: Histogram) -> None:
    assert merge(a, b).count == a.count + b.count
    assert counted(merge(a, b)) == counted(merge(b, a))


def test_other_bounds_do_not_merge() -> None:
    with pytest.raises(ValueError, match="do not merge"):
        merge(from_values([1.0], Layout(None, BOUNDS)), from_values([1.0]))
    with pytest.raises(ValueError, match="do not merge"):
        merge(from_values([1.0], Layout(None, BOUNDS)), from_values([1.0], Layout(None, (1.0,))))


def test_an_unknown_extreme_stays_unknown_in_a_merge_and_an_empty_one_hides_nothing() -> None:
    known, unknown = from_values([1.0, 3.0]), histogram(Layout(5), 0, [1])
    assert (merge(known, unknown).min, merge(known, unknown).max) == (None, None)
    assert (merge(known, Histogram(Layout(5))).min, merge(known, Histogram(Layout(5))).max) == (1.0, 3.0)


@given(value_lists(), value_lists(), scales, scales)
def test_a_cumulative_point_less_the_one_before_is_what_came(
    before: list[float], came: list[float], scale: int, later_scale: int
) -> None:
    lower = min(scale, later_scale)
    earlier = from_values(before, Layout(scale))
    later = merge(at_scale(earlier, lower), at_scale(from_values(came, Layout(scale)), lower))
    grown = difference(later, earlier)
    assert grown is not None
    assert counted(grown) == counted(at_scale(from_values(came, Layout(scale)), lower))
    assert grown.sum == pytest.approx(sum(came), rel=1e-6, abs=abs(earlier.sum) * 1e-9)


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        (histogram(Layout(5), 0, [1]), histogram(Layout(5), 0, [2])),
        (histogram(Layout(5), 0, [5]), histogram(Layout(5), 1, [1])),
        (histogram(Layout(5), 0, [5]), histogram(Layout(5), -1, [1])),
        (Histogram(Layout(5)), histogram(Layout(5), 0, [1])),
        (histogram(Layout(5), 0, [5], zero_count=0), histogram(Layout(5), 0, [1], zero_count=1)),
        (histogram(Layout(5), 0, [5]), histogram(Layout(4), 0, [1])),
        (histogram(Layout(None, BOUNDS), 0, [5]), histogram(Layout(None, (1.0,)), 0, [1])),
        (histogram(Layout(None, BOUNDS), 0, [5]), histogram(Layout(5), 0, [1])),
    ],
)
def test_what_fell_or_changed_its_buckets_is_no_continuation(later: Histogram, earlier: Histogram) -> None:
    assert difference(later, earlier) is None


def sdk_point(values: list[float], max_scale: int = 20) -> ExponentialHistogramDataPoint:
    """What the OpenTelemetry SDK makes of values."""
    reader = InMemoryMetricReader()
    view = View(
        instrument_name="latency", aggregation=ExponentialBucketHistogramAggregation(max_size=640, max_scale=max_scale)
    )
    provider = MeterProvider(metric_readers=[reader], views=[view])
    instrument = provider.get_meter("test").create_histogram("latency")
    for value in values:
        instrument.record(value)
    data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None
    point = data.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points[0]
    assert isinstance(point, ExponentialHistogramDataPoint)
    return point


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(1).lognormal(-1.5, 1.2, 2000).tolist(),
        np.random.default_rng(2).uniform(0.001, 100, 2000).tolist(),
        [0.0, 0.0, 0.001, 0.25, 0.5, 1.0, 2.0, 4.0],
        [2.0**power for power in range(-10, 8)],
    ],
    ids=["lognormal", "uniform", "zeros and powers", "powers of two"],
)
@pytest.mark.parametrize("max_scale", [5, 20])
def test_the_sdk_puts_the_same_values_into_the_same_buckets(values: list[float], max_scale: int) -> None:
    point = sdk_point(values, max_scale)
    facts = Facts(point.sum, point.min, point.max)
    theirs = histogram(
        Layout(point.scale),
        point.positive.offset,
        list(point.positive.bucket_counts),
        zero_count=point.zero_count,
        facts=facts,
    )
    ours = from_values(values, Layout(point.scale))
    assert counted(ours) == counted(theirs)
    assert (ours.min, ours.max) == (theirs.min, theirs.max)
    assert ours.sum == pytest.approx(theirs.sum)
    assert counted(at_scale(theirs, 2)) == counted(from_values(values, Layout(2)))


@given(st.lists(value_lists(10), min_size=1, max_size=5))
def test_any_order_of_merging_gives_the_same(parts: list[list[float]]) -> None:
    every = [from_values(part) for part in parts]
    answers = []
    for order in itertools.islice(itertools.permutations(every), 6):
        total = Histogram(Layout(5))
        for one in order:
            total = merge(total, one)
        answers.append((counted(total), total.min, total.max))
    assert all(answer == answers[0] for answer in answers)
