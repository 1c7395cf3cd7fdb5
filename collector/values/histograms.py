"""Many histograms side by side, as columns: what intake, commits and windows work on, since a body has hundreds.

A histogram as an object costs microseconds to make and as many at each step that looks at it; as one place in a dozen
columns it costs a share of a few calls of numpy. Nothing else is meant by it: `histograms[k]` is the histogram.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from collector.values.columns import or_none
from collector.values.histogram import Counts, Floats, Histogram, Layout

Places = Counts | NDArray[np.bool_] | slice
Cells = Counts | NDArray[np.uint8]
"""Counts of cells: those of a body that all came as one byte stay one, an eighth of what must be looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Histograms:
    """Histogram k has layout `layouts[layout_of[k]]`, and its buckets are `counts[lows[k]:highs[k]]`, the first of them
    number `offsets[k]`, without zeros at either end. It holds `totals[k]` values, those at 0 included. An extreme that
    is not known is NaN."""

    layouts: tuple[Layout, ...]
    layout_of: Counts  # (histograms)
    zero_counts: Counts  # (histograms)
    offsets: Counts  # (histograms)
    lows: Counts  # (histograms)
    highs: Counts  # (histograms)
    counts: Cells  # (cells), of several histograms
    totals: Counts  # (histograms)
    sums: Floats  # (histograms)
    mins: Floats  # (histograms)
    maxs: Floats  # (histograms)

    def __len__(self) -> int:
        return self.offsets.size

    def __getitem__(self, place: int) -> Histogram:
        return next(iter(self.chosen(np.array([place]))))

    def __iter__(self) -> Iterator[Histogram]:
        cells = zip(self.lows.tolist(), self.highs.tolist(), strict=True)
        counts = (self.counts[low:high].astype(np.int64, copy=False) for low, high in cells)
        columns = self.zero_counts.tolist(), self.offsets.tolist(), counts, self.sums.tolist()
        return map(Histogram, self.layout_at(), *columns, or_none(self.mins), or_none(self.maxs))

    def chosen(self, places: Places) -> "Histograms":
        """Some of them, in the order of the places."""
        columns = self.layout_of, self.zero_counts, self.offsets, self.lows, self.highs
        layout_of, zero_counts, offsets, lows, highs = (column[places] for column in columns)
        facts = (column[places] for column in (self.sums, self.mins, self.maxs))
        cells = lows, highs, self.counts, self.totals[places]
        return Histograms(self.layouts, layout_of, zero_counts, offsets, *cells, *facts)

    def apart(self) -> Iterator[Histogram]:
        """Each of them with counts of its own: for one that is kept for long, and must not hold all others."""
        for one in self:
            yield Histogram(one.layout, one.zero_count, one.offset, one.counts.copy(), one.sum, one.min, one.max)

    def without_extremes(self) -> "Histograms":
        """The same, as if no extreme were known."""
        unknown = np.full(len(self), np.nan)
        return replace(self, mins=unknown, maxs=unknown)

    def layout_at(self) -> list[Layout]:
        """The layout of each."""
        return [self.layouts[number] for number in self.layout_of.tolist()]

    def used_layouts(self) -> tuple[Layout, ...]:
        """The layouts that any of them has."""
        return tuple(self.layouts[number] for number in np.unique(self.layout_of).tolist())


_NONE: Counts = np.zeros(1, dtype=np.int64)
_FAR = 1 << 62


def side_by_side(histograms: Iterable[Histogram]) -> Histograms:
    """The columns of histograms."""
    several = list(histograms)
    layouts: dict[Layout, int] = {}
    layout_of = [layouts.setdefault(one.layout, len(layouts)) for one in several]
    sizes = np.array([one.counts.size for one in several], dtype=np.int64)
    highs = np.cumsum(sizes)
    facts = [(one.sum, _number(one.min), _number(one.max)) for one in several]
    sums, mins, maxs = np.array(facts, dtype=np.float64).reshape(-1, 3).T
    return Histograms(
        tuple(layouts),
        np.array(layout_of, dtype=np.int64),
        np.array([one.zero_count for one in several], dtype=np.int64),
        np.array([one.offset for one in several], dtype=np.int64),
        highs - sizes,
        highs,
        np.concatenate([one.counts for one in several]) if several else _NONE[:0],
        np.array([one.count for one in several], dtype=np.int64),
        sums,
        mins,
        maxs,
    )


def joined(parts: Sequence[Histograms]) -> Histograms:
    """All histograms of the parts, one part's behind another's."""
    if len(parts) <= 1:
        return parts[0] if parts else side_by_side(())
    layouts: dict[Layout, int] = {}
    layout_of = [_numbered(part, layouts) for part in parts]
    counts, befores = _cells_of(parts)
    cells = [(part.lows + before, part.highs + before) for part, before in zip(parts, befores, strict=True)]
    return Histograms(
        tuple(layouts),
        np.concatenate(layout_of),
        np.concatenate([part.zero_counts for part in parts]),
        np.concatenate([part.offsets for part in parts]),
        np.concatenate([low for low, _ in cells]),
        np.concatenate([high for _, high in cells]),
        counts,
        np.concatenate([part.totals for part in parts]),
        np.concatenate([part.sums for part in parts]),
        np.concatenate([part.mins for part in parts]),
        np.concatenate([part.maxs for part in parts]),
    )


def summed(several: Histograms, into: Counts, many: int) -> Histograms:
    """So many histograms: each is all those together that go into it, of which there is one at least and which share a
    layout. What `histogram.merge` makes of them one by one."""
    sizes, filled = several.highs - several.lows, np.flatnonzero(several.totals)
    offsets, ends = _reach(several, into, many)
    highs = np.cumsum(ends - offsets)
    lows = highs - (ends - offsets)
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    counts = np.zeros(highs[-1] if many else 0, dtype=np.int64)
    cells = several.counts[within + np.repeat(several.lows, sizes)].astype(np.int64)
    np.add.at(counts, within + np.repeat((lows - offsets)[into] + several.offsets, sizes), cells)
    zero_counts, totals, layout_of = np.zeros((3, many), dtype=np.int64)
    np.add.at(zero_counts, into, several.zero_counts)
    np.add.at(totals, into, several.totals)
    layout_of[into] = several.layout_of
    sums, mins, maxs = np.zeros(many), np.full(many, np.inf), np.full(many, -np.inf)
    np.add.at(sums, into, several.sums)
    with np.errstate(invalid="ignore"):
        # One that holds values and does not know its extreme leaves that of all unknown: NaN stays NaN.
        np.minimum.at(mins, into[filled], several.mins[filled])
        np.maximum.at(maxs, into[filled], several.maxs[filled])
    facts = sums, *(np.where(totals > 0, extremes, np.nan) for extremes in (mins, maxs))
    return Histograms(several.layouts, layout_of, zero_counts, offsets, lows, highs, counts, totals, *facts)


def _reach(several: Histograms, into: Counts, many: int) -> tuple[Counts, Counts]:
    """The first bucket of all that go into one, and the one behind the last; both 0 where none has any."""
    sizes = several.highs - several.lows
    used = np.flatnonzero(sizes)
    firsts, ends = np.full(many, _FAR), np.full(many, -_FAR)
    np.minimum.at(firsts, into[used], several.offsets[used])
    np.maximum.at(ends, into[used], (several.offsets + sizes)[used])
    is_used = firsts < ends
    return np.where(is_used, firsts, 0), np.where(is_used, ends, 0)


def _cells_of(parts: Sequence[Histograms]) -> tuple[Cells, list[int]]:
    """The cells of all parts, and how many stand before those of each. Parts that were read together share theirs."""
    first = parts[0].counts
    if all(part.counts is first for part in parts):
        return first, [0] * len(parts)
    befores = np.cumsum([0, *(part.counts.size for part in parts)]).tolist()
    return np.concatenate([part.counts for part in parts]), befores[:-1]


def _numbered(part: Histograms, layouts: dict[Layout, int]) -> Counts:
    """The layout of each histogram of a part by its number in `layouts`, which takes in those that are new."""
    numbers = np.array([layouts.setdefault(layout, len(layouts)) for layout in part.layouts], dtype=np.int64)
    found: Counts = numbers[part.layout_of]
    return found


def _number(value: float | None) -> float:
    return np.nan if value is None else value
