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
    number `offsets[k]`, without zeros at either end. An extreme that is not known is NaN."""

    layouts: tuple[Layout, ...]
    layout_of: Counts  # (histograms)
    zero_counts: Counts  # (histograms)
    offsets: Counts  # (histograms)
    lows: Counts  # (histograms)
    highs: Counts  # (histograms)
    counts: Cells  # (cells), of several histograms
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
        return Histograms(self.layouts, layout_of, zero_counts, offsets, lows, highs, self.counts, *facts)

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

    def totals(self) -> Counts:
        """The values that each holds."""
        total, used = self.zero_counts.copy(), np.flatnonzero(self.highs > self.lows)
        if used.size:
            # From where each begins to where it ends, and on to where the next one begins: every second sum counts.
            order = used[np.argsort(self.lows[used], kind="stable")]
            edges = np.stack((self.lows[order], self.highs[order]), axis=1).reshape(-1)
            if (np.diff(edges) < 0).any():  # two share cells
                total[used] += np.array([one.counts.sum() for one in self.chosen(used)])
            else:
                edges = edges[:-1] if edges[-1] == self.counts.size else edges
                total[order] += np.add.reduceat(self.counts, edges, dtype=np.int64)[::2]
        return total


_NONE: Counts = np.zeros(1, dtype=np.int64)


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
        np.concatenate([part.sums for part in parts]),
        np.concatenate([part.mins for part in parts]),
        np.concatenate([part.maxs for part in parts]),
    )


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
