"""Histograms side by side are those that were put there, however they are chosen and joined."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.values.histogram import Facts, Histogram, Layout, from_values, histogram
from collector.values.histograms import joined, side_by_side

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
    assert held.totals().tolist() == [one.count for one in several]
    assert held.layout_at() == [one.layout for one in several]
    assert set(held.used_layouts()) == {one.layout for one in several}


@given(st.lists(some_histograms(), max_size=4))
def test_joined_they_stand_one_part_behind_another(parts: list[list[Histogram]]) -> None:
    found = joined([side_by_side(part) for part in parts])
    assert list(found) == [one for part in parts for one in part]
    assert found.totals().tolist() == [one.count for part in parts for one in part]


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
