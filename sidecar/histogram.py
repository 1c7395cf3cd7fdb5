"""Two histograms of one value: log buckets for OTLP, classic buckets for a Prometheus page; and the buckets of others.

The log buckets are those of an OpenTelemetry exponential histogram at a fixed scale s: bucket i holds (b^i, b^(i+1)]
with b = 2^(2^-s). At scale 5 a value is known to +-1.1 %. Equal scales merge by adding counts; should a spread of
values need more buckets than the wire allows, neighbours are joined and the scale falls by one (OTel metrics data
model, "exponential histogram"). The classic buckets hold (previous edge, edge], so that a count at an edge is exact:
an objective's threshold is an edge, and `value <= threshold` is what good means.

A value that is not a finite number of 0 or more is refused: it would be no latency.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from sidecar import limits

SCALE = 5


@dataclass(frozen=True, slots=True)
class LogBuckets:
    """A finished exponential histogram, ready for the wire; `counts[k]` belongs to bucket `offset + k`."""

    scale: int
    count: int
    sum: float
    min: float
    max: float
    zero_count: int
    offset: int
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EdgeBuckets:
    """Counts between edges, as another's histogram tells them: `counts[i]` values lie in (bounds[i-1], bounds[i]]
    seconds, the last ones above all bounds. `sum` is None where it is not told."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float | None

    @property
    def count(self) -> int:
        return sum(self.counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """(edge, count at or under it), the last edge infinite."""
        return list(zip((*self.bounds, math.inf), accumulate(self.counts), strict=True))


class Classic(Protocol):
    """What a Prometheus page shows of a histogram."""

    @property
    def sum(self) -> float | None: ...

    def cumulative(self) -> list[tuple[float, int]]: ...


class LogHistogram:
    """Counts values, in seconds, into log buckets."""

    __slots__ = ("_bins", "count", "max", "min", "sum", "zero_count")

    def __init__(self) -> None:
        self._bins: dict[int, int] = {}
        self.count = self.zero_count = 0
        self.sum = 0.0
        self.min, self.max = math.inf, -math.inf

    def add(self, value: float) -> None:
        """Count one value; ValueError when it is no latency."""
        if not 0 <= value < math.inf:
            raise ValueError(f"{value} is no latency: it must be finite and not negative")
        self.count += 1
        self.sum += value
        self.min, self.max = min(self.min, value), max(self.max, value)
        if value == 0:
            self.zero_count += 1
            return
        index = math.ceil(math.log2(value) * (1 << SCALE)) - 1
        self._bins[index] = self._bins.get(index, 0) + 1

    def buckets(self, *, max_size: int = limits.HISTOGRAM_BUCKETS) -> LogBuckets:
        """What was counted, at the finest scale that needs no more than `max_size` buckets, at least 2: what lies
        under 1 s and above it never joins."""
        assert max_size >= 2
        bins, scale = self._bins, SCALE
        while bins and max(bins) - min(bins) >= max_size:
            joined: dict[int, int] = {}
            for index, count in bins.items():
                joined[index >> 1] = joined.get(index >> 1, 0) + count
            bins, scale = joined, scale - 1
        offset = min(bins) if bins else 0
        counts = [0] * (max(bins) - offset + 1 if bins else 0)
        for index, count in bins.items():
            counts[index - offset] = count
        low, high = (self.min, self.max) if self.count else (0.0, 0.0)
        return LogBuckets(scale, self.count, self.sum, low, high, self.zero_count, offset, tuple(counts))


class ClassicHistogram:
    """Counts values, in seconds, at or under each edge."""

    __slots__ = ("_counts", "edges", "sum")

    def __init__(self, edges: Iterable[float]) -> None:
        self.edges = tuple(sorted(set(edges)))
        self._counts = [0] * (len(self.edges) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self.edges, value)] += 1
        self.sum += value

    def cumulative(self) -> list[tuple[float, int]]:
        """(edge, count at or under it), the last edge infinite."""
        total, rows = 0, []
        for edge, count in zip((*self.edges, math.inf), self._counts, strict=True):
            total += count
            rows.append((edge, total))
        return rows

    def moved_to(self, edges: Iterable[float]) -> "ClassicHistogram":
        """An empty histogram over other edges, or this one when they are the same."""
        fresh = ClassicHistogram(edges)
        return self if fresh.edges == self.edges else fresh
