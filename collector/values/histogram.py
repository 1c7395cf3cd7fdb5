"""The mergeable latency histogram: the wire form, the stored form and the algebra are one (DESIGN 6).

A histogram counts values in buckets of one fixed *layout*, of which there are two kinds.

*Exponential* (OpenTelemetry data model, exponential histogram): with base b = 2^(2^-scale), bucket i holds the values
in (b^i, b^(i+1)], and zero has a bucket of its own. Any value is known to within (b-1)/(b+1) of itself: 1.083 % at
scale 5, which 531 buckets carry from 1 ms to 100 s. Going down one scale joins buckets 2i and 2i+1 (an arithmetic
shift of the index, also for negative ones), so two histograms merge by taking both to the lower scale and adding; the
result equals the histogram of the union, in whatever order.

*Explicit*: bucket i holds (bounds[i-1], bounds[i]], the first is open below (down to 0: latencies are not negative)
and the last above. Such a histogram keeps its bounds, and so its own error: forcing it into exponential buckets would
claim a precision that was never measured. It merges with its like only; figures over a mixture are `quantile`'s.

At one layout counts are integers, so adding and subtracting are exact. NaN, infinity and negative values are refused,
never counted as something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

SCALE = 5
MIN_SCALE, MAX_SCALE = -10, 20
_EMPTY: Counts = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the edges of the buckets lie: at a `scale`, or at ascending `bounds` in seconds."""

    scale: int | None = SCALE
    bounds: tuple[float, ...] = ()
    text: str = field(init=False, repr=False, compare=False, default="")
    """`exp:5` or `le:0.1,0.25`: what a database keeps of it; `parse` reads it back exactly."""

    def __post_init__(self) -> None:
        if self.scale is None:
            edges = np.array(self.bounds, dtype=np.float64)
            if not self.bounds or not np.isfinite(edges).all() or edges[0] < 0 or (np.diff(edges) <= 0).any():
                raise ValueError(f"bounds {self.bounds}: they must be finite, ascending and not negative")
        elif self.bounds or not MIN_SCALE <= self.scale <= MAX_SCALE:
            raise ValueError(f"scale {self.scale}: it must be from {MIN_SCALE} to {MAX_SCALE}, without bounds")
        text = f"exp:{self.scale}" if self.scale is not None else f"le:{','.join(map(repr, self.bounds))}"
        object.__setattr__(self, "text", text)

    def __hash__(self) -> int:
        # A layout is the key of much, and may have hundreds of bounds; a text knows its hash.
        return hash(self.text)

    @staticmethod
    def parse(text: str) -> Layout:
        """The layout that `text` names; raises ValueError on anything else."""
        kind, _, rest = text.partition(":")
        if kind == "exp":
            return Layout(int(rest))
        if kind == "le":
            return Layout(None, tuple(float(bound) for bound in rest.split(",")))
        raise ValueError(f"{text!r} is no layout: write exp:<scale> or le:<bounds>")

    def edges(self, indexes: Counts) -> tuple[Floats, Floats]:
        """Lower (exclusive) and upper (inclusive) edges of buckets, in seconds."""
        if self.scale is None:
            edges = np.array((0.0, *self.bounds, np.inf))
            return edges[indexes], edges[indexes + 1]
        with np.errstate(over="ignore", under="ignore"):
            step = 2.0**-self.scale
            return np.exp2(indexes * step), np.exp2((indexes + 1) * step)

    def indexes(self, values: Floats) -> Counts:
        """The bucket of each value; all of them above 0."""
        if self.scale is None:
            return np.searchsorted(np.array(self.bounds), values, side="left")
        # frexp gives [0.5, 1): taking the logarithm of [1, 2) alone keeps what lies just above a power of two above.
        fraction, exponent = np.frexp(values)
        octave: Counts = exponent.astype(np.int64) - 1
        if self.scale <= 0:
            under: Counts = octave - (fraction == 0.5)
            return under >> -self.scale
        within: Counts = np.ceil(np.log2(2 * fraction) * 2.0**self.scale).astype(np.int64)
        return (octave << self.scale) + within - 1


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts of values in seconds. `counts[k]` is that of bucket `offset + k`, without zeros at either end.

    `sum`, `min` and `max` are what the sender said; `min` and `max` are None where it is not known. Two histograms
    are equal when their layouts, counts, sums and extremes are.
    """

    layout: Layout
    zero_count: int = 0
    offset: int = 0
    counts: Counts = field(default_factory=lambda: _EMPTY)
    sum: float = 0.0
    min: float | None = None
    max: float | None = None

    @property
    def count(self) -> int:
        """Values in all buckets."""
        return self.zero_count + int(self.counts.sum())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        mine = (self.layout, self.zero_count, self.offset, self.sum, self.min, self.max)
        theirs = (other.layout, other.zero_count, other.offset, other.sum, other.min, other.max)
        return mine == theirs and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # counts are an array: no key of anything


@dataclass(frozen=True, slots=True)
class Facts:
    """What a sender says of a histogram beside its buckets."""

    sum: float = 0.0
    min: float | None = None
    max: float | None = None


NO_FACTS = Facts()


def histogram(
    layout: Layout, offset: int, counts: Iterable[int] | Counts, *, zero_count: int = 0, facts: Facts = NO_FACTS
) -> Histogram:
    """A histogram from its parts, brought to the one form (no zeros at the ends). Raises ValueError on a negative
    count, or on a bucket that an explicit layout does not have."""
    array = np.array(counts if isinstance(counts, np.ndarray) else list(counts), dtype=np.int64)
    if zero_count < 0 or (array < 0).any():
        raise ValueError("a histogram cannot hold a negative count")
    return _trimmed(layout, offset, array, zero_count=zero_count, facts=facts)


def _trimmed(layout: Layout, offset: int, array: Counts, *, zero_count: int, facts: Facts) -> Histogram:
    """The one form of a histogram, of counts that are not negative and that nobody else will change."""
    used = array.nonzero()[0]
    if used.size == 0:
        return Histogram(layout, zero_count, 0, _EMPTY, facts.sum, facts.min, facts.max)
    first, last = int(used[0]), int(used[-1])
    offset += first
    if layout.scale is None and (offset < 0 or offset + last - first > len(layout.bounds)):
        raise ValueError(f"bucket {offset + last - first}: the layout has {len(layout.bounds) + 1}")
    trimmed = array[first : last + 1]
    trimmed.setflags(write=False)
    return Histogram(layout, zero_count, offset, trimmed, facts.sum, facts.min, facts.max)


def plain(one: Histogram) -> tuple[object, ...]:
    """The histogram as plain values, for JSON; `of_plain` reads them."""
    return one.layout.text, one.zero_count, one.offset, one.counts.tolist(), one.sum, one.min, one.max


def of_plain(values: Sequence[Any]) -> Histogram:
    """The histogram that `plain` gave."""
    layout, zero_count, offset, counts, *facts = values
    return histogram(Layout.parse(layout), offset, counts, zero_count=zero_count, facts=Facts(*facts))


def from_values(values: Iterable[float] | Floats, layout: Layout = Layout()) -> Histogram:
    """The histogram of values in seconds. Raises ValueError on NaN, infinity or a negative value."""
    array = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float64)
    if array.size == 0:
        return Histogram(layout)
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError("a latency is a finite number of 0 s or more")
    facts = Facts(float(array.sum()), float(array.min()), float(array.max()))
    zeros = 0
    if layout.scale is not None:
        zeros = int(np.count_nonzero(array == 0))
        array = array[array > 0]
    if array.size == 0:
        return histogram(layout, 0, _EMPTY, zero_count=zeros, facts=facts)
    indexes = layout.indexes(array)
    first = int(indexes.min())
    return histogram(layout, first, np.bincount(indexes - first), zero_count=zeros, facts=facts)


def at_scale(one: Histogram, scale: int) -> Histogram:
    """The same values at a lower scale, or itself when it is there already. Exponential layouts only."""
    assert one.layout.scale is not None, "explicit buckets have no scale"
    by = one.layout.scale - scale
    if by <= 0:
        return one
    facts = Facts(one.sum, one.min, one.max)
    if one.counts.size == 0:
        return histogram(Layout(scale), 0, _EMPTY, zero_count=one.zero_count, facts=facts)
    indexes = (one.offset + np.arange(one.counts.size, dtype=np.int64)) >> by
    starts = np.flatnonzero(np.diff(indexes, prepend=indexes[0] - 1))
    counts = np.add.reduceat(one.counts, starts)
    return histogram(Layout(scale), int(indexes[0]), counts, zero_count=one.zero_count, facts=facts)


def merge(a: Histogram, b: Histogram) -> Histogram:
    """The histogram of the values of both. Raises ValueError when explicit bounds differ or the kinds do."""
    a, b = _alike(a, b)
    filled = [one for one in (a, b) if one.count]
    facts = Facts(a.sum + b.sum, _extreme(min, [one.min for one in filled]), _extreme(max, [one.max for one in filled]))
    zero_count = a.zero_count + b.zero_count
    if a.counts.size == 0 or b.counts.size == 0:
        one = a if b.counts.size == 0 else b
        return Histogram(a.layout, zero_count, one.offset, one.counts, facts.sum, facts.min, facts.max)
    first, last = min(a.offset, b.offset), max(a.offset + a.counts.size, b.offset + b.counts.size)
    counts = np.zeros(last - first, dtype=np.int64)
    counts[a.offset - first : a.offset - first + a.counts.size] += a.counts
    counts[b.offset - first : b.offset - first + b.counts.size] += b.counts
    return _trimmed(a.layout, first, counts, zero_count=zero_count, facts=facts)


def difference(later: Histogram, earlier: Histogram) -> Histogram | None:
    """What came to a cumulative histogram between two of its points, at the later one's layout.

    None when a bucket fell, or the layout became finer or another: then it is no continuation, but a new start.
    The extremes of the interval are not known from two points.
    """
    if later.layout != earlier.layout:
        fine, coarse = earlier.layout.scale, later.layout.scale
        if fine is None or coarse is None or coarse > fine:
            return None
        earlier = at_scale(earlier, coarse)
    zero_count = later.zero_count - earlier.zero_count
    counts = _placed(later, earlier)
    if counts is None or zero_count < 0:
        return None
    facts = Facts(max(later.sum - earlier.sum, 0.0))
    return _trimmed(later.layout, later.offset, counts, zero_count=zero_count, facts=facts)


def _placed(later: Histogram, earlier: Histogram) -> Counts | None:
    """Counts of `later` less those of `earlier`, in the buckets of `later`; None when any would be negative."""
    if earlier.counts.size == 0:
        return later.counts
    start = earlier.offset - later.offset
    if start < 0 or start + earlier.counts.size > later.counts.size:
        return None
    counts = later.counts.copy()
    counts[start : start + earlier.counts.size] -= earlier.counts
    return None if counts.min() < 0 else counts


def _alike(a: Histogram, b: Histogram) -> tuple[Histogram, Histogram]:
    if a.layout == b.layout:
        return a, b
    if a.layout.scale is None or b.layout.scale is None:
        raise ValueError(f"layouts {a.layout.text} and {b.layout.text} do not merge: their buckets have other edges")
    scale = min(a.layout.scale, b.layout.scale)
    return at_scale(a, scale), at_scale(b, scale)


def _extreme(pick: Callable[[Sequence[float]], float], known: Sequence[float | None]) -> float | None:
    """The extreme of several; None when one that holds values does not know its own, or none holds any."""
    values = [value for value in known if value is not None]
    return pick(values) if values and len(values) == len(known) else None
