"""Rolling histograms of one layout: `rolling` sums whose columns are buckets.

A plane of an exponential layout spans 61 µs to 4.5 h (2^-14 s to 2^14 s) at the layout's scale, with a column for
zeros, one for what lies under it and one for what lies above; only those three say less than the layout would.
Sums of a window have no extremes: min and max of the parts cannot be subtracted, so the largest value of a window is
its highest bucket's, with that bucket's error.

Latencies of one service use a small part of that span, so a plane knows between which columns anything ever came, and
what is asked of whole windows is asked of those alone.
"""

import math
from collections.abc import Iterator, Sequence

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
        owners, counts = bins.owners, bins.counts
        columns, used = self._columns_of(bins)
        if bins.zeros.any():
            of_zeros = np.flatnonzero(bins.zeros)
            owners = np.concatenate((owners, of_zeros))
            columns = np.concatenate((columns, np.full(of_zeros.size, ZEROS)))
            counts = np.concatenate((counts, bins.zeros[of_zeros]))
            used = slice(ZEROS, max(used.stop, ZEROS + 1))
        if columns.size == 0:
            return
        self._use(used)
        cells = columns + (lanes * self._rolling.columns)[owners]
        if (starts_s == starts_s[0]).all():
            self._rolling.add_step(int(starts_s[0]), cells, counts)
        else:
            self._rolling.add(starts_s[owners], cells, counts)

    def _columns_of(self, bins: Bins) -> tuple[Counts, slice]:
        """The column of each bucket, and between which they lie."""
        columns = bins.buckets - self._first
        if columns.size == 0:
            return columns, slice(0, 0)
        least, greatest = int(columns.min()), int(columns.max())
        if self._layout.scale is None or (least >= UNDER and greatest < self._low.size):
            return columns, slice(least, greatest + 1)
        columns = np.clip(columns, UNDER, self._low.size - 1)
        return columns, slice(int(columns.min()), int(columns.max()) + 1)

    def advance(self, now_s: int) -> None:
        """Let leave what lies outside the windows that end now."""
        self._rolling.advance(now_s)

    def _use(self, more: slice) -> None:
        used = self._used
        self._used = slice(min(used.start, more.start), max(used.stop, more.stop)) if used.stop else more

    def edges(self) -> tuple[Floats, Floats]:
        """Lower and upper edges of the columns in use; they ascend."""
        return self._low[self._used], self._high[self._used]

    def growing(self, lanes: Counts) -> Iterator[tuple[int, Counts]]:
        """Every window, ascending, with what it holds of some lanes in the columns in use: (lanes, columns), which the
        next step changes. A lane below 0 is none."""
        return self._rolling.growing(lanes, self._used)

    def buckets(self, lane: int, window_s: int) -> Buckets:
        """What a window holds of a lane."""
        row = self._rolling.lane(lane, window_s)
        used = np.flatnonzero(row)
        return Buckets(self._low[used], self._high[used], row[used])


class Reached:
    """Where the ranks of each row of a matrix of counts lie.

    One running sum over the whole matrix answers for every row, each from where the rows before it end.
    """

    def __init__(self, sums: Counts) -> None:
        rows, self._width = sums.shape
        self._reached = np.cumsum(sums.reshape(-1))
        ends = self._reached[self._width - 1 :: self._width] if self._width else np.zeros(rows, dtype=np.int64)
        self._before = np.concatenate((np.zeros(1, dtype=np.int64), ends))

    @property
    def totals(self) -> Counts:
        """What each row holds."""
        return np.diff(self._before)

    def found(self, rows: Counts, ranks: Counts) -> Counts:
        """The columns that hold the ranks of some rows: (rows, any number). A rank that its row does not reach lies in
        the last column."""
        wanted = (ranks + self._before[rows][:, None]).reshape(-1)
        places = np.searchsorted(self._reached, wanted, side="left").reshape(ranks.shape)
        within: Counts = np.clip(places - (rows * self._width)[:, None], 0, self._width - 1)
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
