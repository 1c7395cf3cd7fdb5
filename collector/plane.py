"""Rolling histograms of one layout: `rolling` sums whose columns are buckets.

A plane of an exponential layout spans 61 µs to 4.5 h (2^-14 s to 2^14 s) at the layout's scale, with a column for
zeros, one for what lies under it and one for what lies above; only those three say less than the layout would.
Sums of a window have no extremes: min and max of the parts cannot be subtracted, so the largest value of a window is
its highest bucket's, with that bucket's error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collector.histogram import Counts, Floats, Histogram, Layout
from collector.quantile import Buckets, Quantile, quantile_between
from collector.rolling import RollingCounts

SPAN_LOG2 = 14
ZEROS, UNDER = 0, 1
NOTHING = Quantile()


@dataclass(frozen=True, slots=True)
class Table:
    """Quantiles of every lane over one window: `counts` (lanes), `columns` (lanes, shares) into `answers`."""

    counts: list[int]
    columns: list[list[int]]
    answers: Sequence[Quantile]

    def of(self, lane: int) -> list[Quantile]:
        """The quantiles of one lane; of an empty one, of rank 0."""
        if not self.counts[lane]:
            return [NOTHING] * len(self.columns[lane])
        return [self.answers[column] for column in self.columns[lane]]


class Plane:
    """Rolling histograms of one layout, one lane each."""

    def __init__(self, layout: Layout, windows_s: Sequence[int], *, tick_s: int, now_s: int) -> None:
        self._layout = layout
        self._first, self._low, self._high = _columns(layout)
        edges = zip(self._low.tolist(), self._high.tolist(), strict=True)
        self._answers = [quantile_between(low, high) for low, high in edges]
        self.rolling = RollingCounts(self._low.size, windows_s, tick_s=tick_s, now_s=now_s)

    def cells(self, one: Histogram) -> tuple[Counts, Counts]:
        """The columns of a histogram of this layout and their counts; a column may come twice."""
        used = np.flatnonzero(one.counts)
        columns = used + (one.offset - self._first)
        if self._layout.scale is not None:
            columns = np.clip(columns, UNDER, self._low.size - 1)
        counts = one.counts[used]
        if one.zero_count:
            columns, counts = np.append(columns, ZEROS), np.append(counts, one.zero_count)
        return columns, counts

    def table(self, window_s: int, shares: Sequence[float]) -> Table:
        """The quantiles of all lanes at once: one running sum over the whole matrix, in which each rank is looked up.

        Columns ascend by their edges, so the column that holds a rank says all there is to say of it.
        """
        sums = self.rolling.window(window_s)
        reached = np.cumsum(sums.reshape(-1))
        ends = reached[sums.shape[1] - 1 :: sums.shape[1]]
        before = np.concatenate((np.zeros(1, dtype=np.int64), ends[:-1]))
        counts = ends - before
        ranks = np.maximum(np.ceil(np.round(np.outer(counts, shares), 9)), 1).astype(np.int64)
        found = np.searchsorted(reached, ranks + before[:, None], side="left")
        columns = found - (np.arange(sums.shape[0]) * sums.shape[1])[:, None]
        return Table(counts.tolist(), columns.tolist(), self._answers)

    def buckets(self, lane: int, window_s: int) -> Buckets:
        """What a window holds of a lane."""
        row = self.rolling.window(window_s)[lane]
        used = np.flatnonzero(row)
        return Buckets(self._low[used], self._high[used], row[used])


def _columns(layout: Layout) -> tuple[int, Floats, Floats]:
    """The bucket that column 0 would be, and the edges of every column."""
    if layout.scale is None:
        low, high = layout.edges(np.arange(len(layout.bounds) + 1))
        return 0, low, high
    # Whole buckets inside the span; at a negative scale even one of them is wider than it.
    reach = max(math.floor(SPAN_LOG2 * 2.0**layout.scale), 1)
    low, high = layout.edges(np.arange(-reach, reach))
    under, above = low[:1], high[-1:]
    zero = np.zeros(1)
    return -reach - 2, np.concatenate((zero, zero, low, above)), np.concatenate((zero, under, high, [np.inf]))
