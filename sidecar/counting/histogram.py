"""Two histograms of one value: log buckets for OTLP, classic buckets for a Prometheus page; and the buckets of others.

The log buckets are those of an OpenTelemetry exponential histogram at a fixed scale s: bucket i holds (b^i, b^(i+1)]
with b = 2^(2^-s). At scale 5 a value is known to +-1.1 %. Equal scales merge by adding counts; should a spread of
values need more buckets than the wire allows, neighbours are joined and the scale falls by one (OTel metrics data
model, "exponential histogram"). The classic buckets hold (previous edge, edge], so that a count at an edge is exact:
an objective's threshold is an edge, and `value <= threshold` is what good means.

A classic bucket may hold an exemplar, the newest of the requests in it that has a trace (`exemplar`).

A value that is not a finite number of 0 or more is refused: it would be no latency.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, log2
from typing import Protocol

from sidecar import limits
from sidecar.counting.exemplar import Exemplar, Trace

SCALE = 5
_PER_OCTAVE = 1 << SCALE


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
        """How many values there are."""
        return sum(self.counts)

    @property
    def exemplars(self) -> Mapping[int, Exemplar]:
        """None: others' requests are not known one by one."""
        return {}

    def cumulative(self) -> list[tuple[float, int]]:
        """(edge, count at or under it), the last edge infinite."""
        return list(zip((*self.bounds, math.inf), accumulate(self.counts), strict=True))


class Classic(Protocol):
    """What a Prometheus page shows of a histogram; `exemplars` by the place of their bucket in `cumulative`."""

    @property
    def sum(self) -> float | None: ...

    @property
    def exemplars(self) -> Mapping[int, Exemplar]: ...

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
        # Compared here, not by `min` and `max`: a call takes longer than the rest of this function.
        if value < self.min:
            self.min = value
        if value > self.max:
            self.max = value
        if value == 0:
            self.zero_count += 1
            return
        index = ceil(log2(value) * _PER_OCTAVE) - 1
        self._bins[index] = self._bins.get(index, 0) + 1

    def merge(self, other: "LogHistogram") -> None:
        """Add what another has counted."""
        self.count += other.count
        self.sum += other.sum
        self.min, self.max = min(self.min, other.min), max(self.max, other.max)
        self.zero_count += other.zero_count
        for index, count in other._bins.items():  # noqa: SLF001  another of this class
            self._bins[index] = self._bins.get(index, 0) + count

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

    __slots__ = ("_counts", "edges", "exemplars", "sum")

    def __init__(self, edges: Iterable[float]) -> None:
        self.edges = tuple(sorted(set(edges)))
        self._counts = [0] * (len(self.edges) + 1)
        self.exemplars: dict[int, Exemplar] = {}
        self.sum = 0.0

    def add(self, value: float, trace: Trace | None = None) -> None:
        """Count one value, an example of its bucket if it has a trace."""
        place = bisect_left(self.edges, value)
        self._counts[place] += 1
        self.sum += value
        if trace is not None:
            self.exemplars[place] = value, trace

    def cumulative(self) -> list[tuple[float, int]]:
        """(edge, count at or under it), the last edge infinite."""
        total, rows = 0, []
        for edge, count in zip((*self.edges, math.inf), self._counts, strict=True):
            total += count
            rows.append((edge, total))
        return rows

    def merge(self, other: "ClassicHistogram") -> None:
        """Add what another with the same edges has counted; its examples are the newer ones."""
        assert self.edges == other.edges
        counts = zip(self._counts, other._counts, strict=True)  # noqa: SLF001  another of this class
        self._counts = [own + more for own, more in counts]
        self.exemplars.update(other.exemplars)
        self.sum += other.sum

    def moved_to(self, edges: Iterable[float]) -> "ClassicHistogram":
        """An empty histogram over other edges, or this one when they are the same."""
        fresh = ClassicHistogram(edges)
        return self if fresh.edges == self.edges else fresh
