"""What the collector holds in memory: always what is committed, no more and no less.

The store alone changes it: right after a commit of its own and, on a shared database, by the journal of what others
committed. `mark` is how far it has come there; an entry is taken in once and in its place, however often it is
offered. It is filled from the database at the start, and whenever it cannot be told what was committed.
"""

from collections import ChainMap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat

import numpy as np

from collector.folding.admission import Seen, admitted
from collector.folding.rollup import FUTURE_S, Intake, added
from collector.storage import journal, recall
from collector.storage.file_engine import AnyConnection
from collector.storage.journal import START, Entry, Mark
from collector.values.bins import Sheet
from collector.values.deltas import Deltas, StreamRow, concat, latency_rows
from collector.values.measurement import NS, Batch
from collector.windowing.windows import Plan, Windows


@dataclass(slots=True)
class Ledger:
    """The windows, the last points of cumulative streams and the series seen, as the database has them. `latest_s` is
    the latest step that each series of histograms has rows in, of those that came lately: they have names there, and
    no row beyond. `reach_s` is the same of all series, whether they have names or not: late data must not make an early
    step the latest, or what is stored beyond it would be written over. `ahead_s` is the earliest moment that was
    counted and is not in the windows, for it had not come: once it has, the ledger must be read anew."""

    plan: Plan
    windows: Windows
    since_s: int
    streams: dict[str, StreamRow] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    latest_s: dict[int, int] = field(default_factory=dict)
    reach_s: dict[int, int] = field(default_factory=dict)
    mark: Mark = START
    ahead_s: int | None = None

    def folded(self, batches: Iterable[Batch], *, now_s: int, max_series: int) -> tuple[Deltas, Sequence[Deltas]]:
        """What the batches add together, and each of them alone, not folded; nothing is changed yet."""
        intake = Intake(
            now_s=now_s,
            tick_s=self.plan.tick_s,
            oldest_s=now_s - self.plan.horizon_s,
            since_s=min(self.since_s, now_s),
        )
        pending: dict[str, StreamRow] = {}
        parts = []
        for batch in batches:
            part = added(batch, intake=intake, streams=ChainMap(pending, self.streams))
            pending.update({row.stream: row for row in part.streams})
            parts.append(part)
        return admitted(concat(parts), seen=self.seen, max_series=max_series), parts

    def apply(self, deltas: Deltas) -> None:
        """Take in what was committed."""
        self.windows.add(deltas)
        self.streams.update({row.stream: row for row in deltas.streams})
        self.seen.add(deltas)
        rows = latency_rows(deltas.latencies)
        ids = rows.ids.tolist()
        # Rows are sorted by step: the latest of a series comes last.
        held_s = np.fromiter(map(self.reach_s.get, ids, repeat(0)), np.int64, len(ids))
        latest_s = np.maximum(held_s, rows.starts_s).tolist()
        self.reach_s.update(zip(ids, latest_s, strict=True))
        self.latest_s.update(zip(ids, latest_s, strict=True))

    def apply_sheet(self, sheet: Sheet) -> None:
        """Take in histograms that were committed before."""
        self.windows.add_sheet(sheet)
        for place, start_s in zip(sheet.of.tolist(), sheet.starts_s.tolist(), strict=True):
            number = sheet.ids[place]
            self.reach_s[number] = max(self.reach_s.get(number, 0), start_s)
        self.seen.add_histograms(sheet.series)

    def take(self, entry: Entry) -> None:
        """Take in a commit of the journal, if it is the next one."""
        if entry.mark.seq == self.mark.seq + 1:
            self.apply(entry.deltas)
            self.mark = entry.mark

    def adopt(self, plan: Plan) -> bool:
        """Judge by `plan` from now on, if what is held answers for it: the windows are the same, and every objective
        decides good and bad as one of before did. Targets, tiers of those windows and owners change nothing held."""
        if _windows(plan) != _windows(self.plan) or not _judgements(plan) <= _judgements(self.plan):
            return False
        self.plan = plan
        self.windows.follow(plan)
        return True

    def forget_streams(self, *, before_s: int) -> None:
        """Drop cumulative streams that have not moved since: their senders are gone. So may be the names of their
        series, weeks after: so all of them are written once more. How far the rows of a series reach is known as long
        as one that is earlier may come."""
        self.latest_s.clear()
        oldest_s = self.windows.now_s - self.plan.horizon_s
        self.reach_s = {number: latest_s for number, latest_s in self.reach_s.items() if latest_s >= oldest_s}
        self.streams = {key: row for key, row in self.streams.items() if row.end_ns >= before_s * NS}


def empty(plan: Plan, *, now_s: int) -> Ledger:
    """The ledger of an empty database."""
    return Ledger(plan, Windows(plan, now_s=now_s), since_s=now_s)


async def recalled(connection: AnyConnection, plan: Plan, *, now_s: int) -> Ledger:
    """The ledger that the database gives; the connection must see one moment of it throughout."""
    ledger = empty(plan, now_s=now_s)
    ledger.mark = await connection.run_sync(journal.end)
    ledger.streams = await connection.run_sync(recall.streams)
    since_s = await connection.run_sync(recall.since_s)
    ledger.since_s = min(since_s or now_s, now_s)
    # What lies further ahead came while the clock was wrong: in the windows it would count at once, and for as long.
    oldest_s, latest_s = now_s - plan.horizon_s, now_s + FUTURE_S
    ledger.ahead_s = await connection.run_sync(partial(recall.ahead_s, latest_s=latest_s))
    async for deltas in recall.stored(connection, oldest_s=oldest_s, latest_s=latest_s):
        ledger.apply(deltas)
    async for sheet in recall.sheets(connection, oldest_s=oldest_s, latest_s=latest_s):
        ledger.apply_sheet(sheet)
    return ledger


def _windows(plan: Plan) -> tuple[object, ...]:
    """What a plan keeps."""
    by_service = {spec.service: plan.service_windows_s(spec.service) for spec in plan.specs}
    return plan.tick_s, plan.windows_s, by_service


def _judgements(plan: Plan) -> frozenset[tuple[str, ...]]:
    """What the objectives of a plan decide: their hashes cover every field that makes an event good or bad."""
    return frozenset(
        (spec.environment, spec.service, objective.name, objective.hash)
        for spec in plan.specs
        for objective in spec.objectives
    )
