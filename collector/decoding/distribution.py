"""Histogram points of the wire read into histograms, or rejected by name: all the points of a body at once.

Exponential ones arrive at any scale and leave at `histogram.SCALE` or coarser; explicit ones keep their bounds. What a
sender says of its minimum and maximum is kept of deltas only: of a cumulative point they speak of its whole life.

A point has a few dozen buckets, for which every step of numpy costs more than the sums. So the counts of all points
stand in one column and every step is one for all of them: taking the column down in scale, trimming, adding up.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from collector.decoding.sealed import ExplicitPoint, ExponentialPoint, HistogramPoint, packed
from collector.values.histogram import MAX_SCALE, MIN_SCALE, SCALE, Counts, Histogram, Layout
from collector.values.histograms import Cells
from collector.values.measurement import MAX_COUNT, MAX_VALUE, RejectedError
from collector.values.quantile import buckets, estimated_sum

MAX_BUCKETS = 4096
MAX_ZERO_S = 0.001
"""A wider zero bucket hides what a latency objective asks for; a narrower one counts as zero."""
MAX_LOG2_S = 1000
"""Buckets lie within 2^-1000 to 2^1000 s: their edges are then finite floats above 0."""
MAX_SHIFT = 40
"""An index is 32 bits long: shifted further down it stays what it is, 0 or -1."""
_MORE = 0x80
_VARINT_BYTES = 10
LAYOUTS = {scale: Layout(scale) for scale in range(MIN_SCALE, MAX_SCALE + 1)}

_NO_BOUNDS = "an explicit histogram needs bounds, and one bucket more than bounds"

Octets = NDArray[np.uint8]
Whole = Octets | NDArray[np.uint64]
"""Counts as they came."""


@dataclass(slots=True)
class _Column:
    """Points of one kind, side by side: the counts of each as packed on the wire, the index of the first, how many
    scales it goes down, and the layout it arrives at. `place` is where the point stands among all of the body."""

    place: list[int] = field(default_factory=list)
    point: list[HistogramPoint] = field(default_factory=list)
    cumulative: list[bool] = field(default_factory=list)
    packed: list[bytes] = field(default_factory=list)
    layout: list[Layout] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    shift: list[int] = field(default_factory=list)
    zero_count: list[int] = field(default_factory=list)


class Distributions:
    """The histogram points of one body: `add` each, then `read` them all."""

    def __init__(self) -> None:
        self._added = 0
        self._faults: dict[int, str] = {}
        self._exponential, self._explicit = _Column(), _Column()

    def add_exponential(self, point: ExponentialPoint, *, cumulative: bool) -> None:
        """Take an exponential point."""
        place, self._added = self._added, self._added + 1
        positive, scale, zero_count = point.positive, point.scale, point.zero_count
        if not positive.bucket_counts and point.count > zero_count:
            try:
                point = packed(point)
            except RejectedError as error:
                self._faults[place] = str(error)
                return
            positive = point.positive
        offset, counts = positive.offset, positive.bucket_counts
        fault = _exponential_fault(point, scale, offset, counts)
        if fault:
            self._faults[place] = fault
            return
        shift = scale - SCALE if scale > SCALE else 0
        column = self._exponential
        column.place.append(place)
        column.point.append(point)
        column.cumulative.append(cumulative)
        column.packed.append(counts)
        column.layout.append(LAYOUTS[scale - shift])
        column.offset.append(offset)
        column.shift.append(min(shift, MAX_SHIFT))
        column.zero_count.append(zero_count)

    def add_explicit(self, point: ExplicitPoint, *, cumulative: bool) -> None:
        """Take a point between bounds."""
        place, self._added = self._added, self._added + 1
        try:
            if not point.bucket_counts or not point.explicit_bounds:
                point = packed(point)
            counts, bounds = point.bucket_counts, point.explicit_bounds
            layout = explicit_layout(bounds)
        except RejectedError as error:
            self._faults[place] = str(error)
            return
        if len(counts) != len(bounds) + 8:
            self._faults[place] = _NO_BOUNDS
            return
        column = self._explicit
        column.place.append(place)
        column.point.append(point)
        column.cumulative.append(cumulative)
        column.packed.append(counts)
        column.layout.append(layout)
        column.offset.append(0)
        column.shift.append(0)
        column.zero_count.append(0)

    def read(self) -> list[Histogram | str]:
        """For each point, in the order they came, its histogram, or why it is rejected."""
        found: list[Histogram | str] = [""] * self._added
        for column in (self._exponential, self._explicit):
            if column.place:
                wire, sizes = _opened(column, exponential=column is self._exponential)
                shares = trimmed(wire, sizes, np.array(column.offset), np.array(column.shift))
                for place, one in zip(column.place, _histograms(column, shares), strict=True):
                    found[place] = one
        for place, fault in self._faults.items():
            found[place] = fault
        return found


def _exponential_fault(point: ExponentialPoint, scale: int, offset: int, counts: bytes) -> str:
    """What is wrong with a point before its counts are looked at; '' when nothing is."""
    if scale < MIN_SCALE:
        return f"scale {scale}: below {MIN_SCALE} a bucket says nothing"
    # Each count takes a byte at least: no bucket lies further up than that.
    size = len(counts)
    if size and max(abs(offset), abs(offset + size)) * 2.0**-scale > MAX_LOG2_S:
        return "a bucket beyond any latency"
    if size and counts[-1] >= _MORE:
        return "bucket counts that cannot be read"
    if not 0 <= point.zero_threshold <= MAX_ZERO_S:
        return f"a zero threshold above {MAX_ZERO_S} s hides latencies"
    if point.zero_count > MAX_COUNT:
        return f"a count above {MAX_COUNT}"
    if point.HasField("negative") and point.negative.bucket_counts.strip(b"\0"):
        return "a latency is never negative"
    return ""


@functools.lru_cache(maxsize=64)
def explicit_layout(bounds: bytes) -> Layout:
    """The layout between bounds of eight bytes each. Raises `RejectedError`."""
    if not bounds or len(bounds) % 8:
        raise RejectedError(_NO_BOUNDS)
    if len(bounds) > 8 * MAX_BUCKETS:
        raise RejectedError(f"more than {MAX_BUCKETS} buckets")
    try:
        return Layout(None, tuple(np.frombuffer(bounds, "<f8").tolist()))
    except ValueError as error:
        raise RejectedError(str(error)[:200]) from None


def fixed(together: Octets) -> Whole:
    """Counts of eight bytes each."""
    return np.frombuffer(together.tobytes(), "<u8")


def varints(together: Octets, lengths: Counts) -> tuple[Whole, Counts]:
    """Counts of a varint each, one point's after another's, each in so many bytes, and how many each point has. None
    ends in mid-varint."""
    ends = together < _MORE
    if np.count_nonzero(ends) == ends.size:
        return together, lengths
    # How many counts have ended before each point begins.
    edges = np.concatenate(([0], np.cumsum(lengths)))
    sizes = np.diff(np.concatenate(([0], np.cumsum(ends)))[edges])
    last = np.flatnonzero(ends)
    taken = np.diff(last, prepend=-1)
    values = np.zeros(last.size, dtype=np.uint64)
    for place in range(min(int(taken.max()), _VARINT_BYTES)):
        has = np.flatnonzero(taken > place)
        group = together[last[has] - taken[has] + 1 + place] & np.uint8(_MORE - 1)
        values[has] |= group.astype(np.uint64) << np.uint64(7 * place)
    values[taken > _VARINT_BYTES] = np.uint64(2**64 - 1)
    return values, sizes


def _opened(column: _Column, *, exponential: bool) -> tuple[Whole, Counts]:
    """The counts of all points of a column, and how many each has."""
    together = np.frombuffer(b"".join(column.packed), np.uint8)
    lengths = np.array([len(one) for one in column.packed], dtype=np.int64)
    return varints(together, lengths) if exponential else (fixed(together), lengths >> 3)


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The counts of points at their layouts and without zeros at either end: those of point k are
    `counts[lows[k]:highs[k]]`, the first of bucket `firsts[k]`, together `sums[k]`. `faults` says what is wrong with
    some of them."""

    counts: Cells
    firsts: Counts
    lows: Counts
    highs: Counts
    sums: Counts
    faults: dict[int, str]


def trimmed(wire: Whole, sizes: Counts, offsets: Counts, shifts: Counts) -> Trimmed:
    """The counts of points, each from its offset on and so many scales down; `sizes` are how many each has."""
    faults, values = _checked(wire, sizes)
    edges = np.concatenate(([0], np.cumsum(sizes)))
    index: Counts | None = None
    if shifts.any() and values.size:
        values, edges, index = _scaled_down(values, edges, offsets, shifts)
    values.setflags(write=False)
    filled = np.flatnonzero(values != 0)
    # How many filled counts stand before each point; of an empty one no more behind it than before it.
    before = np.searchsorted(filled, edges)
    used = np.flatnonzero(np.diff(before))
    firsts, lows, highs, sums = np.zeros((4, sizes.size), dtype=np.int64)
    if used.size:
        lows[used], highs[used] = filled[before[used]], filled[before[used + 1] - 1] + 1
        firsts[used] = (offsets + lows - edges[:-1])[used] if index is None else index[lows[used]]
        sums[used] = np.add.reduceat(values, lows[used], dtype=np.int64)
    return Trimmed(values, firsts, lows, highs, sums, faults)


def _histograms(column: _Column, found: Trimmed) -> Iterator[Histogram | str]:
    """Each point of the column, or what is wrong with it."""
    edges = zip(found.lows.tolist(), found.highs.tolist(), found.firsts.tolist(), found.sums.tolist(), strict=True)
    for at, (low, high, first, count) in enumerate(edges):
        if at in found.faults:
            yield found.faults[at]
            continue
        counts = found.counts[low:high].astype(np.int64)  # its own: it may be kept for long, and the column must not be
        yield _known(column, at, counts, first, count)


def _checked(wire: Whole, sizes: Counts) -> tuple[dict[int, str], Cells]:
    """What is wrong with the counts of some points, and the counts, those that are beyond all as 0."""
    faults = {int(at): f"more than {MAX_BUCKETS} buckets" for at in np.flatnonzero(sizes > MAX_BUCKETS)}
    if wire.dtype == np.uint8:
        return faults, cast("Octets", wire)
    huge = wire > MAX_COUNT
    if not huge.any():
        return faults, wire.astype(np.int64)
    owner = np.repeat(np.arange(sizes.size), sizes)
    faults |= {int(at): f"a count above {MAX_COUNT}" for at in np.unique(owner[huge])}
    return faults, np.where(huge, 0, wire).astype(np.int64)


def _scaled_down(values: Cells, edges: Counts, offsets: Counts, shifts: Counts) -> tuple[Counts, Counts, Counts]:
    """The counts of points so many scales down, where each point's begin and end, and the index of each count."""
    sizes = np.diff(edges)
    owner = np.repeat(np.arange(sizes.size), sizes)
    index = np.arange(values.size) + np.repeat(offsets - edges[:-1], sizes) >> np.repeat(shifts, sizes)
    starts = np.flatnonzero((np.diff(index, prepend=0) != 0) | (np.diff(owner, prepend=-1) != 0))
    return np.add.reduceat(values, starts, dtype=np.int64), np.searchsorted(starts, edges), index[starts]


def _known(column: _Column, at: int, counts: Counts, first: int, count: int) -> Histogram | str:
    """The histogram with what its sender says beside the buckets, or what is wrong with that."""
    point, layout, zero_count = column.point[at], column.layout[at], column.zero_count[at]
    count += zero_count
    if count != point.count:
        return f"the buckets hold {count} values and the count says {point.count}"
    if not count:
        return Histogram(layout)
    least = greatest = None
    if not column.cumulative[at]:
        least, greatest = point.min, point.max
        # What is absent reads as 0.
        if not least and not point.HasField("min"):
            least = None
        if not greatest and not point.HasField("max"):
            greatest = None
    total = point.sum
    if not total and not point.HasField("sum"):
        total = estimated_sum(buckets(Histogram(layout, zero_count, first, counts)))
    if not (0 <= total <= MAX_VALUE and 0 <= (least or 0) <= MAX_VALUE and 0 <= (greatest or 0) <= MAX_VALUE):
        return f"sum, min and max must be finite numbers from 0 to {MAX_VALUE:g}"
    return Histogram(layout, zero_count, first, counts, total, least, greatest)
