"""Bodies that wait to be counted, and what becomes of them: one group is read, folded and committed as one.

A body of histograms is not read by whoever takes it in but with the others of its group: dozens of steps of numpy are
the same ones for hundreds of points as for thousands.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from collector.decoding.points import Points, batches
from collector.storage.journal import Entry
from collector.values.deltas import Deltas
from collector.values.measurement import Batch

POINTS_AT_ONCE = 2_000
"""Some milliseconds of work: others have their turn between."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What became of a body: points refused and why; `again` when it had been counted before."""

    rejected: int = 0
    why: str = ""
    again: bool = False


@dataclass(slots=True, eq=False)
class Body:
    """One body, by the digest that tells it apart, and who waits for it."""

    digest: bytes
    read: Batch | Points
    done: asyncio.Future[Counted]

    @property
    def batch(self) -> Batch:
        """What it says, once it was read."""
        assert isinstance(self.read, Batch), "the group was read"
        return self.read


@dataclass(frozen=True, slots=True)
class Group:
    """What a transaction counted: all of it as the journal has it, and what each body is told."""

    entry: Entry
    answers: Sequence[Counted]


async def read(group: Sequence[Body]) -> None:
    """Read what is not read yet of some bodies."""
    unread = [(body, body.read) for body in group if isinstance(body.read, Points)]
    while unread:
        some, count = 0, 0
        while some < len(unread) and count < POINTS_AT_ONCE:
            some, count = some + 1, count + unread[some][1].count
        for (body, _), batch in zip(unread[:some], batches([points for _, points in unread[:some]]), strict=True):
            body.read = batch
        unread = unread[some:]
        if unread:
            await asyncio.sleep(0)


def adds(part: Deltas) -> bool:
    """Whether the part leaves anything behind; what does not may come again as often as it likes."""
    return any((part.latencies, part.slo, part.gauges, part.counters, part.known, part.instances, part.streams))


def answer(part: Deltas | None) -> Counted:
    """What a body is told that adds the part; None when it was counted before."""
    if part is None:
        return Counted(again=True)
    return Counted(part.rejected_count, part.rejected_text)
