"""Many rows of one kind kept as columns: what an evaluation gives, since a tick has too many figures to be objects.

A row is made when somebody asks for it; whoever wants all of them takes the columns, or the rows as bare tuples.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Row = TypeVar("Row")
Cell = int | float | str | None


@dataclass(frozen=True, slots=True)
class Run:
    """The rows from `first` up to `until`, of which every `several` belong together."""

    first: int
    until: int
    several: int


def runs(sizes: Iterable[int]) -> tuple[Run, ...]:
    """The runs of rows of which first so many belong together, then so many ..."""
    found, first = [], 0
    for several, some in groupby(sizes):
        until = first + several * len(list(some))
        found.append(Run(first, until, several))
        first = until
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Columns(Generic[Row]):
    """Rows of the dataclass `kind`: one sequence a field, in the order of its fields and all of one length. `runs` say
    where every so many rows differ in their windows and figures alone; every row is in one run."""

    kind: type[Row]
    held: tuple[Sequence[Any], ...]
    runs: tuple[Run, ...]

    def __len__(self) -> int:
        return len(self.held[0])

    def __iter__(self) -> Iterator[Row]:
        return map(self.kind, *self.held)

    def row(self, number: int) -> Row:
        """The row at a place."""
        return self.kind(*(column[number] for column in self.held))

    def where(self, name: str, value: Cell) -> "Columns[Row]":
        """The rows whose field has the value."""
        places = [place for place, found in enumerate(self.column(name)) if found == value]
        held = tuple([column[place] for place in places] for column in self.held)
        return Columns(self.kind, held, runs([1] * len(places)))

    def column(self, name: str) -> Sequence[Any]:
        """One field of every row."""
        return self.held[[field.name for field in fields(self.kind)].index(name)]  # type: ignore[arg-type]

    def tuples(self) -> Iterator[tuple[Cell, ...]]:
        """Every row as a tuple of its fields."""
        return zip(*self.held, strict=True)


def columns(kind: type[Row], rows: Iterable[Row] = ()) -> Columns[Row]:
    """The columns of rows."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    found = list(map(attrgetter(*names), rows))
    return Columns(kind, tuple(zip(*found, strict=True)) if found else ((),) * len(names), runs([1] * len(found)))


def or_none(column: NDArray[np.float64]) -> list[float | None]:
    """The numbers of a column, None where there is none (NaN)."""
    unknown = np.flatnonzero(np.isnan(column))
    if unknown.size == column.size:
        return [None] * column.size
    listed: list[float | None] = column.tolist()
    for place in unknown.tolist():
        listed[place] = None
    return listed
