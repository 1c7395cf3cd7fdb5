"""When a point holds, and under which identity its interval or stream is remembered."""

from dataclasses import dataclass

from collector.decoding import wire
from collector.values.measurement import Interval
from slo.signals import Metric

REMEMBERED_DELTAS = 8
"""Intervals of a foreign delta series that are known again; its sender must name its instance, or it may be several."""


@dataclass(frozen=True, slots=True)
class Of:
    """What the points of one metric share."""

    sender: wire.Sender
    scope: str
    metric: Metric
    cumulative: bool

    @property
    def is_plain(self) -> bool:
        """Whether nothing is remembered of the intervals: they are deltas of a sidecar, or of nobody in particular."""
        return not self.cumulative and (self.sender.ours or not self.sender.resource.instance)


def interval(of: Of, began_ns: int, end_ns: int, said: wire.Said) -> Interval:
    """The interval of a point by its times as they came, each below 2^64 and the end above 0."""
    # A start beyond the end is a clock that was set: nothing is known of the time before the end.
    start_ns = min(began_ns, end_ns)
    if of.is_plain:
        return Interval(start_ns, end_ns)
    name = of.sender, of.scope, of.metric.name, said
    if not of.cumulative:
        # A collector in between may send again, in another body, what its own sender had sent it twice.
        # Its place is its moment in units of half to once its length, so that a sender's jitter moves nothing.
        bits = (end_ns - start_ns).bit_length()
        ordinal = bits * REMEMBERED_DELTAS + (end_ns >> max(bits - 1, 0)) % REMEMBERED_DELTAS
        place = wire.stream_id(*name, -1 - ordinal) if 0 < start_ns < end_ns else ""
        return Interval(start_ns, end_ns, place=place)
    unstarted = wire.stream_id(*name, 0)
    if start_ns < began_ns:
        # It goes on as the same stream once its clock is right again.
        return Interval(0, end_ns, wire.stream_id(*name, began_ns))
    if start_ns in (0, end_ns):
        return Interval(0, end_ns, unstarted)
    return Interval(start_ns, end_ns, wire.stream_id(*name, start_ns), unstarted)
