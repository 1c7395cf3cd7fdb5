"""Cumulative streams become increases (OTel data model, temporality; E02: 5, 10, 15 are 15 events, not 30).

A stream is one cumulative series of one life of one sender: its identity holds the start time (`wire.stream_id`). So
two senders that share a resource, as workers forked from one process do, are two streams however their points mix, and
a sender that starts again begins a new one. Each point of a stream is counted from the one before:

- A point that ends no later than the last is a repetition or out of order: nothing new, the state stays.
- A value, or any bucket, below the last without a new start time is a reset all the same: all its value is new.
- The first point that is ever seen of a stream counts whole when its sender started no more than `FIRST_GRACE_S`
  before this store began to keep data: then all of it happened in our time. An older sender brings a past of unknown
  age: its first point is only where counting starts.

A sender that does not know when it started says 0, or the time of its first point. All its points are one stream, whose
first point is where counting starts; should later ones say that they count from that first one, they go on from it.
Two such senders that share a resource cannot be told apart. Their mixed values fall again and again, which those of one
sender do at its restarts alone: two falls within `MIXED_S` and no point of the stream counts until it rises steadily
for as long; its sender is told to name its instance.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from collector.values.deltas import StreamRow
from collector.values.histogram import Histogram, difference
from collector.values.measurement import NS, Interval

FIRST_GRACE_S = 300
MIXED_S = 600

Value = TypeVar("Value", float, Histogram)


@dataclass(frozen=True, slots=True)
class Increase(Generic[Value]):
    """What a cumulative point adds over (start_ns, end_ns], and the state of its stream from now on.

    `value` is None when the point only sets where counting starts; `mixed` when it belongs to no one stream.
    """

    start_ns: int
    end_ns: int
    value: Value | None
    state: StreamRow
    mixed: bool = False


def increase(interval: Interval, value: Value, *, last: StreamRow | None, since_ns: int) -> Increase[Value] | None:
    """What the point adds to a stream whose state was `last`; None when it repeats what is known.

    `since_ns` is when this store began to keep data.
    """
    state = StreamRow(interval.stream, interval.start_ns, interval.end_ns, value)
    if last is None:
        ours = interval.start_ns > 0 and interval.start_ns >= since_ns - FIRST_GRACE_S * NS
        return Increase(interval.start_ns, interval.end_ns, value if ours else None, state)
    if interval.end_ns <= last.end_ns:
        return None
    grown = _grown(value, last.value)
    if interval.start_ns:
        return Increase(last.end_ns, interval.end_ns, value if grown is None else grown, state)
    return _unstarted(interval, value, grown, last)


def _unstarted(interval: Interval, value: Value, grown: Value | None, last: StreamRow) -> Increase[Value]:
    """The increase of a stream without a start. Its state's `start_ns` says when it fell last, and is negative when it
    had fallen shortly before then too."""
    fell_ns = last.start_ns
    if fell_ns and interval.end_ns - abs(fell_ns) >= MIXED_S * NS:
        fell_ns = 0
    if grown is None:
        fell_ns = -interval.end_ns if fell_ns else interval.end_ns
    state = StreamRow(interval.stream, fell_ns, interval.end_ns, value)
    if fell_ns < 0:
        return Increase(last.end_ns, interval.end_ns, None, state, mixed=True)
    return Increase(last.end_ns, interval.end_ns, value if grown is None else grown, state)


def _grown(value: Value, last: float | Histogram) -> Value | None:
    """`value` less `last`; None when it fell or became something else."""
    if isinstance(value, Histogram):
        return difference(value, last) if isinstance(last, Histogram) else None
    if isinstance(last, Histogram) or value < last:
        return None
    return value - last
