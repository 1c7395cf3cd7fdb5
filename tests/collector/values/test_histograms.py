"""Histograms side by side are those that were put there, however they are chosen and joined."""

from dataclasses import replace
from functools import reduce

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.values.histogram import Facts, Histogram, Layout, from_values, histogram, merge
from collector.values.histograms import joined, side_by_side, summed

LAYOUTS = [Layout(5), Layout(3), Layout(None, (0.1, 0.25, 1.0))]


@st.composite
def some_histograms(draw: st.DrawFn) -> list[Histogram]:
    values = st.lists(st.floats(0, 100), max_size=8)
    found = [from_values(draw(values), draw(st.sampled_from(LAYOUTS))) for _ in range(draw(st.integers(0, 6)))]
    unknown = histogram(LAYOUTS[0], -3, [1, 0, 2], zero_count=1, facts=Facts(0.5))
    return [*found, unknown] if draw(st.booleans()) else found


@given(some_histograms())
def test_they_come_back_as_they_were(several: list[Histogram]) -> None:
    held = side_by_side(several)
    assert list(held) == list(held.apart()) == several
    assert [held[place] for place in range(len(held))] == several
    assert held.totals.tolist() == [one.count for one in several]
    assert held.layout_at() == [one.layout for one in several]
    assert set(held.used_layouts()) == {one.layout for one in several}


@given(st.lists(some_histograms(), max_size=4))
def test_joined_they_stand_one_part_behind_another(parts: list[list[Histogram]]) -> None:
    found = joined([side_by_side(part) for part in parts])
    assert list(found) == [one for part in parts for one in part]
    assert found.totals.tolist() == [one.count for part in parts for one in part]


@given(some_histograms())
def test_parts_that_were_read_together_share_their_counts(several: list[Histogram]) -> None:
    whole = side_by_side(several)
    found = joined([whole.chosen(slice(0, 1)), whole.chosen(slice(1, None))])
    assert list(found) == several
    assert found.counts is whole.counts
    assert found.totals.tolist() == [one.count for one in several]
    twice = joined([whole, whole])
    assert list(twice) == [*several, *several]
    assert twice.totals.tolist() == [one.count for one in (*several, *several)]


@given(some_histograms(), st.data())
def test_summed_they_are_what_merging_one_by_one_makes_of_them(several: list[Histogram], data: st.DataObject) -> None:
    groups: dict[tuple[Layout, int], list[Histogram]] = {}
    for one in several:
        groups.setdefault((one.layout, data.draw(st.integers(0, 1))), []).append(one)
    of_each = [(one, into) for into, group in enumerate(groups.values()) for one in group]
    order = data.draw(st.permutations(range(len(groups))))
    mixed = sorted(of_each, key=lambda item: order[item[1]])  # those of a group stay in their order
    into = np.array([into for _, into in mixed], dtype=np.int64)
    found = summed(side_by_side(one for one, _ in mixed), into, len(groups))
    expected = [reduce(merge, group) for group in groups.values()]
    assert list(found) == expected
    assert found.totals.tolist() == [one.count for one in expected]


def test_counts_of_one_byte_are_summed_and_told_apart_as_any() -> None:
    wide = side_by_side([from_values([0.1] * 200), from_values([0.1] * 100)])
    narrow = replace(wide, counts=wide.counts.astype(np.uint8))
    assert narrow.totals.tolist() == [200, 100]
    assert list(narrow) == list(wide)
    assert {one.counts.dtype for one in narrow} == {np.dtype(np.int64)}
    both = summed(narrow, np.zeros(2, dtype=np.int64), 1)
    assert (both.counts.tolist(), both.totals.tolist()) == ([300], [300])


@given(st.data(), some_histograms())
def test_some_are_chosen_in_any_order(data: st.DataObject, several: list[Histogram]) -> None:
    places = data.draw(st.permutations(range(len(several))))[: len(several) // 2 + 1]
    chosen = side_by_side(several).chosen(np.array(places, dtype=np.int64))
    assert list(chosen) == [several[place] for place in places]
    assert set(chosen.used_layouts()) == {several[place].layout for place in places}
    assert list(side_by_side(several).chosen(slice(1, 3))) == several[1:3]


def test_one_apart_holds_no_others_counts() -> None:
    held = side_by_side([from_values([0.1, 0.2]), from_values([3.0])])
    for one, alone in zip(held, held.apart(), strict=True):
        assert one.counts.base is not None
        assert alone.counts.base is None


def test_extremes_can_be_left_unknown() -> None:
    (one,) = side_by_side([from_values([0.1, 0.2])]).without_extremes()
    assert (one.count, one.min, one.max) == (2, None, None)
