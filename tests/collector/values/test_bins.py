"""Bins of many histograms at once are those of each: from values, and from the text of stored rows."""

from collections.abc import Sequence
from random import Random

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from collector.values import bins
from collector.values.bins import Bins
from collector.values.histogram import Histogram, Layout, from_values
from collector.values.histograms import side_by_side
from collector.values.quantile import split_at, splits_at
from tests.strategies import BOUNDS, usual_latencies_s

LAYOUTS = (Layout(5), Layout(-1), Layout(None, BOUNDS))
histograms = st.sampled_from(LAYOUTS).flatmap(
    lambda layout: st.lists(
        st.lists(usual_latencies_s | st.just(0.0), max_size=12).map(lambda values: from_values(values, layout)),
        min_size=1,
        max_size=8,
    )
)


def one_by_one(many: Sequence[Histogram]) -> list[dict[int, int]]:
    """The buckets of each that hold something."""
    return [{one.offset + k: int(n) for k, n in enumerate(one.counts.tolist()) if n} for one in many]


def taken_apart(found: Bins) -> list[dict[int, int]]:
    apart: list[dict[int, int]] = [{} for _ in found.zeros]
    cells = zip(found.owners.tolist(), found.buckets.tolist(), found.counts.tolist(), strict=True)
    for owner, bucket, count in cells:
        assert bucket not in apart[owner]
        apart[owner][bucket] = count
    return apart


def stored(many: Sequence[Histogram]) -> Bins:
    texts = [orjson.dumps(one.counts.tolist()).decode() for one in many]
    return bins.parsed(texts, np.array([one.offset for one in many]), np.array([one.zero_count for one in many]))


@given(histograms)
def test_made_and_parsed_are_the_same_as_one_by_one(many: list[Histogram]) -> None:
    for found in (bins.of(many), stored(many)):
        assert taken_apart(found) == one_by_one(many)
        assert found.zeros.tolist() == [one.zero_count for one in many]


@given(histograms, st.randoms(use_true_random=False))
def test_histograms_in_any_order_or_only_some_of_them_keep_their_bins(many: list[Histogram], random: Random) -> None:
    places = random.sample(range(len(many)), len(many))
    for some in (places, places[1:], places * 2):
        held = side_by_side(many).chosen(np.array(some, dtype=np.int64))
        assert taken_apart(bins.of(held)) == one_by_one([many[place] for place in some])


@given(histograms)
def test_a_run_of_each_is_its_counts(many: list[Histogram]) -> None:
    for found in (bins.of(many), stored(many)):
        firsts, lows, highs, counts = bins.runs(found)
        runs = zip(firsts.tolist(), lows.tolist(), highs.tolist(), strict=True)
        assert [(first, counts[low:high].tolist()) for first, low, high in runs] == [
            (one.offset, one.counts.tolist()) for one in many
        ]


@given(st.lists(st.lists(st.integers(0, 2**40), max_size=9), min_size=1, max_size=9), st.integers(-500, 500))
def test_numbers_of_any_length_are_read(rows: list[list[int]], offset: int) -> None:
    found = bins.parsed(
        [orjson.dumps(row).decode() for row in rows], np.full(len(rows), offset), np.zeros(len(rows), dtype=np.int64)
    )
    assert taken_apart(found) == [{offset + k: n for k, n in enumerate(row) if n} for row in rows]


def test_text_that_another_hand_wrote_is_read_too() -> None:
    found = bins.parsed(["[ 0, 12 ,0,\n 305]", "[]"], np.array([7, 0]), np.array([0, 4]))
    assert taken_apart(found) == [{8: 12, 10: 305}, {}]


@given(histograms, st.sampled_from([0.001, 0.1, 0.25, 0.5, 3.0]))
def test_many_are_split_at_a_threshold_like_each(many: list[Histogram], threshold_s: float) -> None:
    below, above, unsure = splits_at(many[0].layout, bins.of(many), threshold_s)
    expected = [split_at(one, threshold_s) for one in many]
    assert below.tolist() == [split.below for split in expected]
    assert above.tolist() == [split.above for split in expected]
    assert unsure.tolist() == [split.unsure for split in expected]
