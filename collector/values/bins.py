"""The bins of many histograms of one layout at once, as columns: what a plane takes in.

Made from histograms, or straight from the text of stored rows: a start reads millions of those, and one number at a
time they would take minutes. The text is the JSON array of `schema.rollup`, and is read as the bytes it is: a number
begins at a digit that follows none, and its place in the array is the count of commas before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from collector.values.deltas import LatencyRow, LatencyRows, SeriesKey, latency_rows
from collector.values.histogram import Counts, Histogram
from collector.values.histograms import Histograms, side_by_side

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
    ids: Sequence[int]  # of the series
    of: Counts  # (histograms)
    starts_s: Counts  # (histograms)
    bins: Bins


def sheets(rows: Iterable[LatencyRow]) -> list[Sheet]:
    """The histograms of rows, by layout."""
    held = latency_rows(rows)
    if held and len(held.histograms.layouts) == 1:
        return [_sheet(held)]
    of_layout = held.histograms.layout_of
    return [_sheet(held.chosen(np.flatnonzero(of_layout == number))) for number in np.unique(of_layout).tolist()]


def _sheet(held: LatencyRows) -> Sheet:
    return Sheet(held.series, held.ids.tolist(), np.arange(len(held)), held.starts_s, of(held.histograms))


def of(histograms: Histograms | Iterable[Histogram]) -> Bins:
    """The bins of histograms, which share a layout."""
    held = histograms if isinstance(histograms, Histograms) else side_by_side(histograms)
    counts, order = held.counts, np.argsort(held.lows, kind="stable")
    sizes = (held.highs - held.lows)[order]
    if sizes.sum() != counts.size or not _is_gapless(held.lows[order], sizes):
        places = np.arange(sizes.sum()) + np.repeat(held.lows[order] - (np.cumsum(sizes) - sizes), sizes)
        counts = counts[places]
    used = np.flatnonzero(counts != 0)
    owners = np.repeat(order, sizes)[used]
    # Where the cells of each histogram begin, all standing one behind another.
    begins = np.empty_like(sizes)
    begins[order] = np.cumsum(sizes) - sizes
    return Bins(owners, used + (held.offsets - begins)[owners], counts[used].astype(np.int64), held.zero_counts)


def _is_gapless(lows: Counts, sizes: Counts) -> bool:
    """Whether each run of cells begins where the one before ends, the first at 0."""
    return bool((lows == np.cumsum(sizes) - sizes)[sizes > 0].all())


def runs(found: Bins) -> tuple[Counts, Counts, Counts, Counts]:
    """The cells of each histogram as a run without a gap: the bucket that each begins with, where in all of them its
    run begins and ends, and the counts of all."""
    firsts, lasts = np.zeros((2, found.zeros.size), dtype=np.int64)
    firsts[found.owners[::-1]], lasts[found.owners] = found.buckets[::-1], found.buckets
    sizes = np.zeros_like(firsts)
    sizes[found.owners] = (lasts - firsts + 1)[found.owners]
    highs = np.cumsum(sizes)
    lows = highs - sizes
    counts = np.zeros(sizes.sum(), dtype=np.int64)
    counts[(lows - firsts)[found.owners] + found.buckets] = found.counts
    return firsts, lows, highs, counts


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
