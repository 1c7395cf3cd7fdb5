"""What the collector holds in memory: always what is committed, no more and no less.

The store alone changes it, right after a commit; a tick reads its windows. It is filled from the database at the start
and whenever a commit ended in doubt.
"""

from collections import ChainMap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from collector import recall
from collector.deltas import Deltas, StreamRow, concat
from collector.measurement import Batch
from collector.rollup import NS, Intake, cap_series, fold, identities
from collector.windows import Plan, Windows


@dataclass(slots=True)
class Ledger:
    """The windows, the last points of cumulative streams and the series seen, as the database has them."""

    plan: Plan
    windows: Windows
    since_s: int
    streams: dict[str, StreamRow] = field(default_factory=dict)
    seen: set[tuple[str, ...]] = field(default_factory=set)

    def folded(self, batches: Iterable[Batch], *, now_s: int, max_series: int) -> tuple[Deltas, Sequence[Deltas]]:
        """What the batches add together, and each of them alone; nothing is changed yet."""
        intake = Intake(
            now_s=now_s,
            tick_s=self.plan.tick_s,
            oldest_s=now_s - self.plan.horizon_s,
            since_s=min(self.since_s, now_s),
        )
        pending: dict[str, StreamRow] = {}
        parts = []
        for batch in batches:
            part = fold(batch, intake=intake, streams=ChainMap(pending, self.streams))
            pending.update({row.stream: row for row in part.streams})
            parts.append(part)
        return cap_series(concat(parts), seen=self.seen, max_series=max_series), parts

    def apply(self, deltas: Deltas) -> None:
        """Take in what was committed."""
        self.windows.add(deltas)
        self.streams.update({row.stream: row for row in deltas.streams})
        self.seen |= identities(deltas)

    def forget_streams(self, *, before_s: int) -> None:
        """Drop cumulative streams that have not moved since: their senders are gone."""
        self.streams = {key: row for key, row in self.streams.items() if row.end_ns >= before_s * NS}


def recalled(connection: Connection, plan: Plan, *, now_s: int) -> Ledger:
    """The ledger that the database gives."""
    ledger = Ledger(plan, Windows(plan, now_s=now_s), since_s=now_s, streams=recall.streams(connection))
    ledger.since_s = min(recall.since_s(connection) or now_s, now_s)
    for deltas in recall.stored_deltas(connection, oldest_s=now_s - plan.horizon_s):
        ledger.apply(deltas)
    return ledger
