"""Rows kept as columns are the rows."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.values.columns import Run, columns, or_none, runs


@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    value: float | None


PAIRS = [Pair("a", 1.0), Pair("b", None), Pair("a", 2.0)]


@pytest.mark.parametrize("rows", [[], PAIRS])
def test_rows_come_back_in_every_form(rows: list[Pair]) -> None:
    held = columns(Pair, rows)
    assert (len(held), list(held)) == (len(rows), rows)
    assert list(held.tuples()) == [(row.name, row.value) for row in rows]
    assert list(held.column("value")) == [row.value for row in rows]
    assert [held.row(number) for number in range(len(rows))] == rows


def test_rows_are_chosen_by_a_field() -> None:
    assert list(columns(Pair, PAIRS).where("name", "a")) == [PAIRS[0], PAIRS[2]]
    assert list(columns(Pair, PAIRS).where("name", "c")) == []


def test_a_field_that_is_none_of_the_rows_is_no_column() -> None:
    with pytest.raises(ValueError, match="other"):
        columns(Pair, PAIRS).column("other")


@given(st.lists(st.integers(1, 4), max_size=20))
def test_runs_hold_every_row_once(sizes: list[int]) -> None:
    found = runs(sizes)
    assert [run.several for run in found for _ in range((run.until - run.first) // run.several)] == sizes
    edges = [0, *(run.until for run in found)]
    assert [run.first for run in found] == edges[:-1]
    assert edges[-1] == sum(sizes)


def test_runs_of_equal_sizes_are_one() -> None:
    assert runs([7, 7, 7, 2]) == (Run(0, 21, 7), Run(21, 23, 2))


def test_what_is_no_number_is_none() -> None:
    assert or_none(np.array([1.0, np.nan, 0.0])) == [1.0, None, 0.0]
