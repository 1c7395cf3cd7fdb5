"""Histogram points of which nothing is wrong, read side by side: the usual ones of a body in a few steps of numpy.

This way takes a point only where it would say what `distribution` says of it alone: whole, with a time, a sum and a
count that fits its buckets, nothing beyond any limit. Such a point is *plain*; of hundreds in a body all are. What is
not plain is left to whoever reads points one by one, and names the fault.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from collector.decoding.distribution import (
    LAYOUTS,
    MAX_LOG2_S,
    MAX_SHIFT,
    MAX_ZERO_S,
    Trimmed,
    explicit_layout,
    fixed,
    trimmed,
    varints,
)
from collector.decoding.fields import BYTES, FIXED64, MORE, VARINT, Flags, Kind, Walked, in_step
from collector.values.histogram import MIN_SCALE, SCALE, Counts, Layout
from collector.values.histograms import Histograms
from collector.values.measurement import MAX_COUNT, MAX_VALUE, RejectedError

_START, _END, _COUNT, _SUM, _FLAGS = 2, 3, 4, 5, 10
"""What both messages number alike; the rest is numbered otherwise in each."""
_COMMON = (Kind(_START, FIXED64), Kind(_END, FIXED64), Kind(_COUNT, FIXED64), Kind(_SUM, FIXED64))

_SCALE, _ZERO_COUNT, _POSITIVE, _NEGATIVE, _ZERO_THRESHOLD = 6, 7, 8, 9, 14
_OFFSET, _BUCKET_COUNTS = 1, 2
_BUCKETS = (Kind(_OFFSET, VARINT), Kind(_BUCKET_COUNTS, BYTES))
_EXPLICIT_COUNTS, _BOUNDS = 6, 7


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A kind of histogram point: its fields, in the order of opentelemetry-proto, and the numbers of some."""

    kinds: tuple[Kind, ...]
    attributes: int
    least: int
    greatest: int


_EXPONENTIAL = _Numbers(
    (
        Kind(1, BYTES, repeated=True),
        *_COMMON,
        Kind(_SCALE, VARINT),
        Kind(_ZERO_COUNT, FIXED64),
        Kind(_POSITIVE, BYTES),
        Kind(_NEGATIVE, BYTES),
        Kind(_FLAGS, VARINT),
        Kind(11, BYTES, repeated=True),  # exemplars
        Kind(12, FIXED64),
        Kind(13, FIXED64),
        Kind(_ZERO_THRESHOLD, FIXED64),
    ),
    attributes=1,
    least=12,
    greatest=13,
)
_EXPLICIT = _Numbers(
    (
        *_COMMON,
        Kind(_EXPLICIT_COUNTS, BYTES),
        Kind(_BOUNDS, BYTES),
        Kind(8, BYTES, repeated=True),  # exemplars
        Kind(9, BYTES, repeated=True),
        Kind(_FLAGS, VARINT),
        Kind(11, FIXED64),
        Kind(12, FIXED64),
    ),
    attributes=9,
    least=11,
    greatest=12,
)


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of points: which of them are plain, and of those their attributes as they came, their times (an end
    is above 0, a start 0 or more) and their histograms. Of points that are not, nothing here holds."""

    plain: Flags
    attributes: Sequence[bytes]
    starts_ns: Counts
    ends_ns: Counts
    histograms: Histograms

    def part(self, first: int, until: int) -> "Read":
        """What was read of some points, one behind another."""
        if until - first == len(self.attributes):
            return self
        some = slice(first, until)
        columns = self.plain[some], self.attributes[some], self.starts_ns[some], self.ends_ns[some]
        return Read(*columns, self.histograms.chosen(some))


@dataclass(frozen=True, slots=True)
class _Shares:
    """The buckets of points of one kind."""

    layouts: tuple[Layout, ...]
    layout_of: Counts
    zero_counts: Counts
    counts: Trimmed


def exponential(points: Sequence[bytes]) -> Read:
    """The exponential points of a body, as a protobuf library wrote them."""
    walked = in_step(points, _EXPONENTIAL.kinds)
    positive = walked.inner(_POSITIVE, _BUCKETS)
    buckets = positive.fields[_BUCKET_COUNTS]
    scale, offset, lengths = walked.signed(_SCALE), positive.signed(_OFFSET), buckets.size
    plain = walked.whole & positive.whole & _are_within_limits(walked, scale, offset, lengths)
    # What ends in mid-varint would spoil its neighbours.
    plain &= (lengths == 0) | (walked.data[buckets.at + lengths - 1] < MORE)
    together = positive.octets(_BUCKET_COUNTS)
    if not plain.all():
        together = together[np.repeat(plain, lengths)]
        lengths, offset, scale = np.where(plain, lengths, 0), np.where(plain, offset, 0), np.where(plain, scale, SCALE)
    wire, sizes = varints(together, lengths)
    counts = trimmed(wire, sizes, offset, np.clip(scale - SCALE, 0, MAX_SHIFT))
    layouts, layout_of = _layouts(np.minimum(scale, SCALE))
    zero_counts = np.where(plain, walked.integers(_ZERO_COUNT), 0)
    return _read(_EXPONENTIAL, walked, plain, _Shares(layouts, layout_of, zero_counts, counts))


def _layouts(scale: Counts) -> tuple[tuple[Layout, ...], Counts]:
    """The layouts of points, and which of them each has: mostly all the same."""
    if scale.size and np.array_equal(scale[1:], scale[:-1]):
        return (LAYOUTS[int(scale[0])],), np.zeros(scale.size, np.int64)
    scales, layout_of = np.unique(scale, return_inverse=True)
    return tuple(LAYOUTS[number] for number in scales.tolist()), layout_of


def explicit(points: Sequence[bytes]) -> Read:
    """The points between bounds of a body, as a protobuf library wrote them."""
    walked = in_step(points, _EXPLICIT.kinds)
    lengths, bounds = walked.fields[_EXPLICIT_COUNTS].size, walked.fields[_BOUNDS].size
    layouts, layout_of, known = _explicit_layouts(walked)
    plain = walked.whole & known & (lengths == bounds + 8)
    together = walked.octets(_EXPLICIT_COUNTS)
    if not plain.all():
        together, lengths = together[np.repeat(plain, lengths)], np.where(plain, lengths, 0)
    nothing = np.zeros(lengths.size, np.int64)
    counts = trimmed(fixed(together), lengths >> 3, nothing, nothing)
    return _read(_EXPLICIT, walked, plain, _Shares(layouts, layout_of, nothing, counts))


def _are_within_limits(walked: Walked, scale: Counts, offset: Counts, lengths: Counts) -> Flags:
    """Which exponential points are, before their counts are looked at."""
    with np.errstate(over="ignore", invalid="ignore"):
        reach = np.maximum(np.abs(offset), np.abs(offset + lengths)) * np.exp2(-scale.astype(np.float64))
    zeros, threshold = walked.integers(_ZERO_COUNT), walked.doubles(_ZERO_THRESHOLD)
    # Of what is written longer than 32 bits protobuf takes the lower ones.
    plain: Flags = (scale >= MIN_SCALE) & (scale < 1 << 31) & (np.abs(offset) < 1 << 31)
    plain &= (lengths == 0) | (reach <= MAX_LOG2_S)
    plain &= (zeros >= 0) & (zeros <= MAX_COUNT) & (threshold >= 0) & (threshold <= MAX_ZERO_S)
    if not walked.fields[_NEGATIVE].has.any():
        return plain
    negative = walked.inner(_NEGATIVE, _BUCKETS)
    plain &= negative.whole
    if negative.fields[_BUCKET_COUNTS].has.any():
        of = np.repeat(np.arange(lengths.size), negative.fields[_BUCKET_COUNTS].size)
        plain &= np.bincount(of, weights=negative.octets(_BUCKET_COUNTS), minlength=lengths.size) == 0
    return plain


def _explicit_layouts(walked: Walked) -> tuple[tuple[Layout, ...], Counts, Flags]:
    """The layouts of points, which of them each has, and which points have one."""
    numbers: dict[bytes, int] = {}
    found = np.array([numbers.setdefault(one, len(numbers)) for one in walked.apart(_BOUNDS)], dtype=np.int64)
    layouts = [_layout(bounds) for bounds in numbers]
    known = np.array([layout is not None for layout in layouts], dtype=np.bool_)
    return tuple(layout or Layout() for layout in layouts), found, known[found]


def _layout(bounds: bytes) -> Layout | None:
    try:
        return explicit_layout(bounds)
    except RejectedError:
        return None


def _read(of: _Numbers, walked: Walked, plain: Flags, shares: _Shares) -> Read:
    """What is read of points, once their buckets are."""
    counts = shares.counts
    total, end, start = counts.sums + shares.zero_counts, walked.integers(_END), walked.integers(_START)
    plain = plain & (end > 0) & (start >= 0) & (walked.integers(_COUNT) == total) & (walked.fields[_FLAGS].value == 0)
    plain[list(counts.faults)] = False
    is_empty = total == 0
    plain &= is_empty | walked.fields[_SUM].has
    sums, least, greatest = (walked.doubles(number) for number in (_SUM, of.least, of.greatest))
    for fact in (sums, least, greatest):  # what is absent reads as 0
        plain &= is_empty | ((fact >= 0) & (fact <= MAX_VALUE))
    histograms = Histograms(
        shares.layouts,
        shares.layout_of,
        shares.zero_counts,
        counts.firsts,
        counts.lows,
        counts.highs,
        counts.counts,
        total,
        np.where(is_empty, 0.0, sums),
        np.where(walked.fields[of.least].has & ~is_empty, least, np.nan),
        np.where(walked.fields[of.greatest].has & ~is_empty, greatest, np.nan),
    )
    return Read(plain, walked.apart(of.attributes), start, end, histograms)


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of histogram points: what reads them, and the number of the field that their attributes repeat."""

    read: Callable[[Sequence[bytes]], Read]
    attributes: int


SHAPES = {
    "exponential_histogram": Shape(exponential, _EXPONENTIAL.attributes),
    "histogram": Shape(explicit, _EXPLICIT.attributes),
}
