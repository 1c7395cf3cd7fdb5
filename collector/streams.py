"""Cumulative streams become increases (OTel data model, temporality; E02: 5, 10, 15 are 15 events, not 30).

A stream is one cumulative series of one sender. Each of its points is counted from the one before:

- A point that ends no later than the last is a repetition or out of order: nothing new, the state stays.
- A later start time is a new start of the sender: all its value is new, over (start, end].
- A value, or any bucket, below the last without a new start time is a reset all the same: all its value is new.
- The first point that is ever seen of a stream counts whole when its sender started no more than `FIRST_GRACE_S`
  before this store began to keep data: then all of it happened in our time. An older sender, or one that does not say
  when it started, brings a past of unknown age: its first point is only where counting starts.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from collector.deltas import StreamRow
from collector.histogram import Histogram, difference
from collector.measurement import Interval

FIRST_GRACE_S = 300

Value = TypeVar("Value", float, Histogram)


@dataclass(frozen=True, slots=True)
class Increase(Generic[Value]):
    """What a cumulative point adds over (start_ns, end_ns]; `value` None when it only sets where counting starts."""

    start_ns: int
    end_ns: int
    value: Value | None


def increase(interval: Interval, value: Value, *, last: StreamRow | None, since_ns: int) -> Increase[Value] | None:
    """What the point adds to a stream whose last point was `last`; None when it repeats what is known.

    `since_ns` is when this store began to keep data.
    """
    if last is None:
        ours = interval.start_ns > 0 and interval.start_ns >= since_ns - FIRST_GRACE_S * 10**9
        return Increase(interval.start_ns, interval.end_ns, value if ours else None)
    if interval.end_ns <= last.end_ns:
        return None
    if interval.start_ns > last.start_ns:
        return Increase(max(interval.start_ns, last.end_ns), interval.end_ns, value)
    grown = _grown(value, last.value)
    return Increase(last.end_ns, interval.end_ns, value if grown is None else grown)


def _grown(value: Value, last: float | Histogram) -> Value | None:
    """`value` less `last`; None when it fell or became something else."""
    if isinstance(value, Histogram):
        return difference(value, last) if isinstance(last, Histogram) else None
    if isinstance(last, Histogram) or value < last:
        return None
    return value - last
