"""Rolling histograms of one layout: `rolling` sums whose columns are buckets.

A plane of an exponential layout spans 61 µs to 4.5 h (2^-14 s to 2^14 s) at the layout's scale, with a column for
zeros, one for what lies under it and one for what lies above; only those three say less than the layout would.
Sums of a window have no extremes: min and max of the parts cannot be subtracted, so the largest value of a window is
its highest bucket's, with that bucket's error.

Latencies of one service use a small part of that span, so a plane knows between which columns anything ever came, and
what is asked of whole windows is asked of those alone.
"""

import math
from collections.abc import Sequence

import numpy as np

from collector.values.bins import Bins
from collector.values.histogram import Counts, Floats, Layout
from collector.values.quantile import Buckets
from collector.windowing.rolling import RollingCounts

SPAN_LOG2 = 14
ZEROS, UNDER = 0, 1


class Plane:
    """Rolling histograms of one layout, one lane each."""

    def __init__(self, layout: Layout, windows_s: Sequence[int], *, tick_s: int, now_s: int) -> None:
        self._layout = layout
        self._first, self._low, self._high = _columns(layout)
        self._used = slice(0, 0)
        self._lanes = 0
        self._rolling = RollingCounts(self._low.size, windows_s, tick_s=tick_s, now_s=now_s)

    @property
    def lanes(self) -> int:
        """How many there are."""
        return self._lanes

    def new_lane(self) -> int:
        """One lane more, with nothing in it; its number."""
        self._rolling.reserve(self._lanes)
        self._lanes += 1
        return self._lanes - 1

    def add(self, lanes: Counts, starts_s: Counts, bins: Bins) -> None:
        """Add histograms of this layout, each to a lane in the step that begins at its start."""
        columns = bins.buckets - self._first
        distinct = _are_distinct(lanes, starts_s)
        if self._layout.scale is not None:
            clipped = np.clip(columns, UNDER, self._low.size - 1)
            distinct, columns = distinct and np.array_equal(clipped, columns), clipped
        of_zeros = np.flatnonzero(bins.zeros)
        columns = np.concatenate((columns, np.full(of_zeros.size, ZEROS)))
        if columns.size == 0:
            return
        owners = np.concatenate((bins.owners, of_zeros))
        counts = np.concatenate((bins.counts, bins.zeros[of_zeros]))
        self._use(int(columns.min()), int(columns.max()) + 1)
        self._rolling.add(starts_s[owners], (lanes[owners], columns), counts, distinct=distinct)

    def advance(self, now_s: int) -> None:
        """Let leave what lies outside the windows that end now."""
        self._rolling.advance(now_s)

    def _use(self, first: int, until: int) -> None:
        used = self._used
        self._used = slice(min(used.start, first), max(used.stop, until)) if used.stop else slice(first, until)

    def edges(self) -> tuple[Floats, Floats]:
        """Lower and upper edges of the columns in use; they ascend."""
        return self._low[self._used], self._high[self._used]

    def sums(self, window_s: int) -> Counts:
        """What a window holds of every lane in the columns in use: (lanes, columns)."""
        return self._rolling.window(window_s)[: self._lanes, self._used]

    def buckets(self, lane: int, window_s: int) -> Buckets:
        """What a window holds of a lane."""
        row = self._rolling.window(window_s)[lane]
        used = np.flatnonzero(row)
        return Buckets(self._low[used], self._high[used], row[used])


def _are_distinct(lanes: Counts, starts_s: Counts) -> bool:
    """Whether no lane comes twice in a step."""
    order = np.lexsort((lanes, starts_s))
    again = (np.diff(lanes[order]) == 0) & (np.diff(starts_s[order]) == 0)
    return not again.any()


def found(sums: Counts, ranks: Counts) -> Counts:
    """The column that holds each rank of its own row: `ranks` is (rows, any number). A rank that a row does not reach
    lies in its last column.

    One running sum over the whole matrix answers for every row, each from where the rows before it end.
    """
    rows, width = sums.shape
    reached = np.cumsum(sums.reshape(-1))
    before = np.concatenate((np.zeros(1, dtype=np.int64), reached[width - 1 : -1 : width]))
    places = np.searchsorted(reached, ranks + before[:, None], side="left")
    within: Counts = np.clip(places - (np.arange(rows) * width)[:, None], 0, width - 1)
    return within


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
