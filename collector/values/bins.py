"""The bins of many histograms of one layout at once, as columns: what a plane takes in.

Made from histograms, or straight from the text of stored rows: a start reads millions of those, and one number at a
time they would take minutes. The text is the JSON array of `schema.rollup`, and is read as the bytes it is: a number
begins at a digit that follows none, and its place in the array is the count of commas before it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from collector.values.deltas import LatencyRow, SeriesKey
from collector.values.histogram import Counts, Histogram, Layout

_COMMA, _ZERO, _NINE = b",09"


@dataclass(frozen=True, slots=True)
class Bins:
    """Cell k says that `counts[k]` values of histogram `owners[k]` lie in bucket `buckets[k]`; none is 0. `zeros` are
    the values at 0 of each histogram."""

    owners: Counts  # (cells)
    buckets: Counts  # (cells)
    counts: Counts  # (cells)
    zeros: Counts  # (histograms)


@dataclass(frozen=True, slots=True)
class Sheet:
    """Histograms of one layout: each belongs to one of `series`, and to the step that begins at its start."""

    series: Sequence[SeriesKey]
    of: Counts  # (histograms)
    starts_s: Counts  # (histograms)
    bins: Bins


def sheets(rows: Iterable[LatencyRow]) -> list[Sheet]:
    """The histograms of rows, by layout."""
    by_layout: defaultdict[Layout, list[LatencyRow]] = defaultdict(list)
    for row in rows:
        by_layout[row.series.layout].append(row)
    found = []
    for mine in by_layout.values():
        starts_s = np.array([row.start_s for row in mine], dtype=np.int64)
        read = of([row.histogram for row in mine])
        found.append(Sheet([row.series for row in mine], np.arange(len(mine)), starts_s, read))
    return found


def of(histograms: Sequence[Histogram]) -> Bins:
    """The bins of histograms, which share a layout."""
    sizes = np.array([one.counts.size for one in histograms], dtype=np.int64)
    counts = np.concatenate([one.counts for one in histograms])
    used = np.flatnonzero(counts)
    owners = np.repeat(np.arange(sizes.size), sizes)[used]
    offsets = np.array([one.offset for one in histograms], dtype=np.int64)
    # A cell lies as far behind its histogram's offset as behind its histogram's first cell.
    shifts = offsets - (np.cumsum(sizes) - sizes)
    zeros = np.array([one.zero_count for one in histograms], dtype=np.int64)
    return Bins(owners, used + shifts[owners], counts[used], zeros)


def parsed(texts: Sequence[str], offsets: Counts, zeros: Counts) -> Bins:
    """The bins of stored rows: JSON arrays of whole numbers, each from the bucket of its offset on."""
    raw = np.frombuffer("".join(texts).encode(), dtype=np.uint8)
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    begins = np.cumsum(lengths) - lengths
    is_digit = (raw >= _ZERO) & (raw <= _NINE)
    is_first = is_digit & (raw != _ZERO)
    is_first[1:] &= ~is_digit[:-1]
    places = np.flatnonzero(is_first)
    owners = np.repeat(np.arange(lengths.size), np.add.reduceat(is_first, begins, dtype=np.int64) if len(texts) else 0)
    commas = np.cumsum(raw == _COMMA, dtype=np.int32)
    buckets = commas[places] + (offsets - commas[begins])[owners]
    return Bins(owners, buckets, _numbers(raw, is_digit, places), zeros)


def _numbers(raw: np.ndarray[tuple[int], np.dtype[np.uint8]], is_digit: np.ndarray, places: Counts) -> Counts:
    """The numbers that begin at the places: one digit more of all that have one, until none has. Each ends before the
    last byte, which closes an array."""
    numbers = raw[places].astype(np.int64) - _ZERO
    longer, places = np.arange(places.size), places + 1
    while (more := is_digit[places]).any():
        longer, places = longer[more], places[more]
        numbers[longer] = 10 * numbers[longer] + (raw[places] - _ZERO)
        places = places + 1
    return numbers
