"""What one database counted and ClickHouse does not hold yet: the rows to send.

Counts only grow, so what is missing is the present count less what was sent before, at the same steps. A row that
holds less than was sent is no such thing (its database was restored from a backup): it is left alone, and counted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from collector.clickhouse.engine import Row

Key = tuple[str | int, ...]
"""What tells rows apart: the names and the start of the step."""
Number = int | float
Sums = Mapping[Key, tuple[Number, ...]]

NOISE = 1e-9
"""Sums of floating values that differ by no more, relative to their size, differ by the order they were added in."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cells:
    """A histogram as it is stored: counts by bucket, and what its senders said of it."""

    count: int
    sum: float
    min: float | None
    max: float | None
    zero_count: int
    bins: Mapping[int, int]


NOTHING = Cells(0, 0.0, None, None, 0, {})


@dataclass(frozen=True, slots=True)
class Missing:
    """Rows to send, in the order of their table's columns; `fallen` were left alone."""

    rows: Sequence[Row]
    fallen: int = 0


def grown(held: Mapping[int, tuple[Number, ...]], sent: Mapping[int, tuple[Number, ...]]) -> list[int]:
    """The steps of which more is held than was sent, ascending; of each how much there is of several things."""
    return sorted(start_s for start_s, much in held.items() if _is_more(much, sent.get(start_s, (0,) * len(much))))


def of_sums(held: Sums, sent: Sums, *, origin: str) -> Missing:
    """The rows of values that add up. A row that was never sent is sent though it holds zeros: it says so."""
    return _gathered(_of_sum(key, values, sent.get(key), origin) for key, values in sorted(held.items()))


def of_cells(held: Mapping[Key, Cells], sent: Mapping[Key, Cells], *, origin: str) -> Missing:
    """The rows of histograms."""
    return _gathered(_of_one(key, one, sent.get(key, NOTHING), origin) for key, one in sorted(held.items()))


def merged(a: Cells, b: Cells) -> Cells:
    """Two histograms of one layout as one."""
    bins = dict(a.bins)
    for bucket, count in b.bins.items():
        bins[bucket] = bins.get(bucket, 0) + count
    least, greatest = _known((a.min, b.min)), _known((a.max, b.max))
    return Cells(
        a.count + b.count,
        a.sum + b.sum,
        min(least, default=None),
        max(greatest, default=None),
        a.zero_count + b.zero_count,
        bins,
    )


_FALLEN = "fallen"
_Found = Row | str | None


def _gathered(found: Iterable[_Found]) -> Missing:
    rows: list[Row] = []
    fallen = 0
    for one in found:
        if isinstance(one, tuple):
            rows.append(one)
        fallen += one == _FALLEN
    return Missing(rows, fallen)


def _of_sum(key: Key, values: tuple[Number, ...], sent: tuple[Number, ...] | None, origin: str) -> _Found:
    if sent is None:
        return _row(key, origin, values)
    if not _is_more(values, sent):
        return None
    more = tuple(value - before for value, before in zip(values, sent, strict=True))
    if any(one < -NOISE * max(abs(value), 1) for one, value in zip(more, values, strict=True)):
        return _FALLEN
    return _row(key, origin, tuple(max(one, 0) for one in more))


def _of_one(key: Key, one: Cells, sent: Cells, origin: str) -> _Found:
    if one.count <= sent.count:
        return None
    bins = {bucket: count - sent.bins.get(bucket, 0) for bucket, count in one.bins.items()}
    zero_count = one.zero_count - sent.zero_count
    if zero_count < 0 or min(bins.values(), default=0) < 0 or not sent.bins.keys() <= one.bins.keys():
        return _FALLEN
    more = {bucket: count for bucket, count in bins.items() if count}
    return _row(key, origin, (one.count - sent.count, one.sum - sent.sum, one.min, one.max, zero_count, more))


def _row(key: Key, origin: str, values: tuple[object, ...]) -> Row:
    return (*key[:-1], origin, key[-1], *values)


def _is_more(values: Sequence[Number], before: Sequence[Number]) -> bool:
    return any(value - was > NOISE * max(abs(value), 1) for value, was in zip(values, before, strict=True))


def _known(values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None)
