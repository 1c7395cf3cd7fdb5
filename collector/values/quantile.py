"""Quantiles and shares over histograms, each with its own error.

The quantile q of n values is the nearest-rank one: the value of rank k = ceil(q*n) (at least 1) in ascending order.
A histogram knows of each value only the edges of its bucket, narrowed by the sender's min and max. The rank-k value
therefore lies between L, the rank-k lower edge, and U, the rank-k upper edge, over all buckets of all histograms
together; this holds for any mixture of layouts. The estimate is 2LU/(L+U), whose relative error is at most
(U-L)/(U+L) wherever in between the true value lies. A bucket that starts at 0 gives U, and an error of 1: anything
between nothing and U.

A request without a value (censored: past its deadline, ended so or still waiting) counts as slower than every value.
A rank that falls among those, or into an explicit histogram's open last bucket, has no U: the quantile is unknown,
and only L, what it is known to exceed, can be said.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collector.values.bins import Bins
from collector.values.histogram import Counts, Floats, Histogram, Layout


@dataclass(frozen=True, slots=True)
class Buckets:
    """What is known of some values: `counts[i]` of them lie in (low[i], high[i]] seconds; high may be infinite."""

    low: Floats
    high: Floats
    counts: Counts

    @property
    def count(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True, slots=True)
class Quantile:
    """One quantile in seconds: `value` is None when it is unknown, and `at_least` too when there is nothing at all."""

    value: float | None = None
    at_least: float | None = None
    rel_error: float = 0.0


@dataclass(frozen=True, slots=True)
class Censored:
    """Requests of a window past a deadline and without a value.

    `waited` holds how long those had waited that ended so; `overdue` counts those that wait still, each known to have
    waited `overdue_s` at least.
    """

    waited: Sequence[Buckets] = ()
    overdue: int = 0
    overdue_s: float = 0.0

    @property
    def count(self) -> int:
        return self.overdue + sum(one.count for one in self.waited)


NONE_CENSORED = Censored()


@dataclass(frozen=True, slots=True)
class Split:
    """Values at or below a threshold, above it, and how many of them (counted by the middle of their bucket) lie in
    the one bucket that the threshold cuts, so may belong to the other side."""

    below: int
    above: int
    unsure: int


def rank(share: float, count: int) -> int:
    """Nearest rank of a quantile among `count` values; rounding keeps 0.07 * 100 at 7."""
    return max(math.ceil(round(share * count, 9)), 1)


def buckets(one: Histogram) -> Buckets:
    """The buckets of a histogram that hold something, narrowed by its extremes where those are known."""
    whole = _whole_buckets(one)
    low, high = whole.low, whole.high
    # An extreme that contradicts its own buckets narrows nothing.
    if one.min is not None:
        low = np.where(one.min <= high, np.maximum(low, one.min), low)
    if one.max is not None:
        high = np.where(one.max >= low, np.minimum(high, one.max), high)
    return Buckets(low, high, whole.counts)


def _whole_buckets(one: Histogram) -> Buckets:
    used = np.flatnonzero(one.counts)
    low, high = one.layout.edges(used + one.offset)
    counts = one.counts[used]
    if one.zero_count:
        low, high = np.append(low, 0.0), np.append(high, 0.0)
        counts = np.append(counts, one.zero_count)
    return Buckets(low, high, counts)


def ranks_of(shares: Sequence[float], counts: Counts) -> Counts:
    """The nearest ranks of quantiles, of many at once: (counts, shares)."""
    ranks: Counts = np.maximum(np.ceil(np.round(np.outer(counts, shares), 9)), 1).astype(np.int64)
    return ranks


def quantiles(
    parts: Sequence[Buckets], shares: Sequence[float], *, censored: Censored = NONE_CENSORED
) -> tuple[Quantile, ...]:
    """The quantiles of all values and censored requests together; share 1.0 is the largest."""
    edges = edges_at_ranks(parts, shares, censored=censored)
    if edges is None:
        return tuple(Quantile() for _ in shares)
    return tuple(quantile_between(low, high) for low, high in zip(*edges, strict=True))


Edges = tuple[list[float], list[float]]
"""Lower and upper edges."""


def edges_at_ranks(
    parts: Sequence[Buckets], shares: Sequence[float], *, censored: Censored = NONE_CENSORED
) -> Edges | None:
    """Between which edges each quantile lies; None when there is nothing."""
    waits = [np.full(one.low.size, np.inf) for one in censored.waited]
    low = np.concatenate([one.low for one in (*parts, *censored.waited)] + [np.array([censored.overdue_s])])
    high = np.concatenate([*(one.high for one in parts), *waits, np.array([np.inf])])
    counts = np.concatenate([one.counts for one in (*parts, *censored.waited)] + [np.array([censored.overdue])])
    total = int(counts.sum())
    if total == 0:
        return None
    ranks = [rank(share, total) for share in shares]
    return _at_ranks(low, counts, ranks), _at_ranks(high, counts, ranks)


def split_at(one: Histogram, threshold_s: float) -> Split:
    """How many values lie at or below a threshold. Exact (`unsure` 0) when it is an edge of the buckets.

    A bucket from 0 on has no middle: where the threshold cuts it, nothing says that any of its values lie above, and
    what cannot be known to be bad counts as below.
    """
    part = _whole_buckets(one)
    is_below, is_unsure = _cut(part.low, part.high, threshold_s)
    below = int(part.counts[is_below].sum())
    return Split(below, part.count - below, int(part.counts[is_unsure].sum()))


def splits_at(layout: Layout, many: Bins, threshold_s: float) -> tuple[Counts, Counts, Counts]:
    """The values below, above and unsure of each of many histograms, by the rule of `split_at`."""
    low, high = layout.edges(many.buckets)
    is_below, is_unsure = _cut(low, high, threshold_s)

    def summed(cells: NDArray[np.bool_]) -> Counts:
        sums = np.zeros(many.zeros.size, dtype=np.int64)
        np.add.at(sums, many.owners[cells], many.counts[cells])
        return sums

    return summed(is_below) + many.zeros, summed(~is_below), summed(is_unsure)


def _cut(low: Floats, high: Floats, threshold_s: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which buckets count as at or below the threshold, and which of all it cuts."""
    middle = np.where(low <= 0, 0.0, middles(low, high))
    return middle <= threshold_s, (low < threshold_s) & (high > threshold_s)


def estimated_sum(part: Buckets) -> float:
    """The sum of values of which only the buckets are known, each taken at its bucket's middle (at its lower edge
    where the bucket is open)."""
    middle = middles(part.low, part.high)
    return float((np.where(np.isinf(middle), part.low, middle) * part.counts).sum())


def _at_ranks(edges: Floats, counts: Counts, ranks: Sequence[int]) -> list[float]:
    order = np.argsort(edges, kind="stable")
    reached = np.cumsum(counts[order])
    return [float(edge) for edge in edges[order][np.searchsorted(reached, ranks, side="left")]]


def middles(low: Floats, high: Floats) -> Floats:
    """The estimates of many, as of `quantile_between`; infinite where the upper edge is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        middle: Floats = np.where(np.isinf(high) | (low <= 0), high, 2 * low / (1 + low / high))
    return middle


def quantile_between(low: float, high: float) -> Quantile:
    """What is to be said of a value that lies between two edges."""
    if math.isinf(high):
        return Quantile(None, low)
    if low <= 0:
        return Quantile(high, low, 1.0 if high > 0 else 0.0)
    return Quantile(2 * low / (1 + low / high), low, (high - low) / (high + low))
