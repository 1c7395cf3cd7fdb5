"""Sends what a collector's database counted to ClickHouse: all of it, and nothing twice, whatever breaks in between.

The mirror remembers nothing. It asks both sides what they hold of a stretch of time and inserts the difference, so it
may be stopped, killed or away for days, late data finds its way, and a ClickHouse that lost its latest inserts is
filled again. It only reads the collector's database, in short transactions, and holds nobody up.

An insert may be on its way still when the connection broke or the mirror died: were it sent anew, it might count
twice. So inserts of an origin into a table are numbered, and the number is the token that ClickHouse knows an insert
by. Number n+1 is made of what both sides hold *after* n was acknowledged; whoever inserts n+1 second, with whatever in
it, changes nothing, for his sight of things was as old. `mirrored` holds the numbers: one that was not written there
is only used again, and then what it would have brought is found missing once more. So two mirrors of one origin at the
same time do no harm either.
"""

# ruff: noqa: S608  our own names, whole numbers and checked literals are all that goes into these texts

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, func, select
from sqlalchemy.engine import URL, Connection

from collector import schema
from collector.clickhouse import difference, promises, questions, relations
from collector.clickhouse.blocks import Block, blocks
from collector.clickhouse.engine import Engine, Row
from collector.clickhouse.relations import RELATIONS, Relation, Totals
from collector.clickhouse.tables import INSTANCE, KEPT_S, MIRRORED, OBJECTIVE
from collector.storage import recall
from collector.storage.read_only import read_only
from slo.objective import Spec
from slo.quantity import DAY_S

STEPS_AT_ONCE = 20
"""Steps whose rows are compared and sent together, unless they hold more values than `ROWS_AT_ONCE`."""
ROWS_AT_ONCE = 20_000
MARGIN_S = 2 * DAY_S
"""What ClickHouse drops soon is sent no more, or it would be found missing again."""


@dataclass(slots=True)
class Sent:
    """Rows that were sent, by table; `fallen` hold less than was sent before."""

    rows: dict[str, int] = field(default_factory=dict)
    fallen: int = 0

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{count} of {name}" for name, count in sorted(self.rows.items()) if count)
        return parts or "nothing"


class Mirror:
    """The mirror of one database, named `origin` in ClickHouse for good."""

    def __init__(self, database: URL, engine: Engine, *, origin: str, clock: Callable[[], float] = time.time) -> None:
        self._database, self._engine, self._origin, self._clock = database, engine, origin, clock
        self._numbers: dict[str, int] = {}

    async def send(self, *, since_s: int = 0, stopped: Callable[[], bool] = lambda: False) -> Sent:
        """Send what is missing of the time since then, or until it is `stopped`. Raises `UnavailableError` or
        `UnusableDatabaseError`."""
        sent = Sent()
        self._numbers = self._acknowledged()
        reach = await self._read(_reach)
        if reach is not None:
            first_s, last_s = reach
            now_s = max(int(self._clock()), last_s, self._engine.now_s())
            await self._send_instances(sent)
            oldest_s = now_s - KEPT_S + MARGIN_S
            for block in blocks(max(first_s, since_s, oldest_s), last_s + 1, now_s=now_s):
                if stopped():
                    break
                await self._send_block(block, sent)
        return sent

    def tell(self, specs: Sequence[Spec]) -> None:
        """Have ClickHouse judge by these objectives."""
        judging = self._engine.ask(questions.objectives())
        rows = promises.rows(specs, written_s=max(int(self._clock()), promises.latest_s(judging) + 1))
        if not promises.told(rows, judging):
            self._engine.insert(OBJECTIVE, rows, token=None)

    async def _send_block(self, block: Block, sent: Sent) -> None:
        held = await self._read(lambda connection: [_totals(connection, one, block) for one in RELATIONS])
        for of, (steps, totals) in zip(RELATIONS, held, strict=True):
            if totals:
                before = relations.totals(self._ask(relations.sent_totals(of, block)))
                for starts_s in _together(difference.grown(totals, before), totals):
                    await self._send_steps(of, block, steps, starts_s, sent)

    async def _send_steps(
        self, of: Relation, block: Block, steps: Sequence[int], starts_s: Sequence[int], sent: Sent
    ) -> None:
        """Insert what is missing at some steps, as seen after the insert before was acknowledged."""
        question = relations.stored_rows(of, block, steps, starts_s)
        held = await self._read(lambda connection: _answers(connection, question))
        before = self._ask(relations.sent_rows(of, block), starts=list(starts_s))
        missing = relations.missing(of, held, before, origin=self._origin)
        sent.fallen += missing.fallen
        if missing.rows:
            number = self._numbers.get(of.name, 0) + 1
            self._engine.insert(of.table, missing.rows, token=f"{self._origin} {of.name} {number}")
            # To say that twice changes nothing; and it must be said anew where people emptied the tables.
            self._engine.insert(MIRRORED, [(self._origin, of.name, number)], token=None)
            self._numbers[of.name] = number
            sent.rows[of.name] = sent.rows.get(of.name, 0) + len(missing.rows)

    async def _send_instances(self, sent: Sent) -> None:
        """Who sends, and when each was heard: to say that again changes nothing."""
        names = INSTANCE.names
        columns = [schema.instance.c[name] for name in names]
        held = await self._read(lambda connection: _answers(connection, select(*columns)))
        known = set(self._engine.ask(f"SELECT {_merged(names)} FROM {INSTANCE.name} GROUP BY {_keys()}"))
        rows = sorted(set(held) - known)
        if rows:
            self._engine.insert(INSTANCE, rows, token=None)
            sent.rows[INSTANCE.name] = len(rows)

    def _acknowledged(self) -> dict[str, int]:
        question = (
            f"SELECT relation, max(number) FROM {MIRRORED.name} WHERE origin = {{origin:String}} GROUP BY relation"
        )
        return dict(self._ask(question))

    def _ask(self, question: str, **given: object) -> Sequence[Any]:
        return self._engine.ask(question, origin=self._origin, **given)

    async def _read(self, work: Callable[[Connection], Any]) -> Any:
        return await read_only(self._database, work)


def _merged(names: Sequence[str]) -> str:
    by_name = {one.name: one.merged for one in INSTANCE.every}
    return ", ".join(f"{by_name[name]}({name}) AS {name}" if by_name[name] else name for name in names)


def _keys() -> str:
    return ", ".join(one.name for one in INSTANCE.keys)


def _reach(connection: Connection) -> tuple[int, int] | None:
    """From when to when anything is stored."""
    firsts, lasts = [], []
    for of in RELATIONS:
        start = of.stored.c.start_s
        for step_s in recall.steps(connection, of.stored):
            first_s, last_s = connection.execute(
                select(func.min(start), func.max(start)).where(of.stored.c.step_s == step_s)
            ).one()
            firsts.append(first_s)
            lasts.append(last_s)
    return (min(firsts), max(lasts)) if firsts else None


def _totals(connection: Connection, of: Relation, block: Block) -> tuple[Sequence[int], Totals]:
    """The lengths of steps that the table holds, and how much lies at each step of the block."""
    steps = recall.steps(connection, of.stored)
    return steps, relations.totals(_answers(connection, relations.stored_totals(of, block, steps)))


def _answers(connection: Connection, question: Select[Any]) -> list[Row]:
    return [tuple(row) for row in connection.execute(question)]


def _together(starts_s: Sequence[int], totals: Totals) -> Iterator[list[int]]:
    """The steps in bunches that are sent at once."""
    bunch: list[int] = []
    weight = 0.0
    for start_s in starts_s:
        much = totals[start_s][0]
        if bunch and (len(bunch) >= STEPS_AT_ONCE or weight + much > ROWS_AT_ONCE):
            yield bunch
            bunch, weight = [], 0.0
        bunch.append(start_s)
        weight += much
    if bunch:
        yield bunch
