"""A drift's whole way: bodies in, ticks, rows in SQL, a ticket or none; and every collector shows the same."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
import pytest
from sqlalchemy import Connection, select, text

from collector import schema
from collector.keeping.store import Store
from collector.storage.leader import Elected
from collector.ticking.ticks import Ticks
from collector.values.verdicts import DriftRow
from slo.trouble import DRIFT
from tests.collector import exports
from tests.collector.drift_scene import NOW_S, row
from tests.collector.stores import Clock, added, batch, store
from tests.collector.ticking.test_ticks import Ears

SHORT, LONG = "to_256", "to_16k"
SHORT_S, LONG_S = 0.1, 0.4
DAYS = 2
A_MINUTE = 120


@dataclass
class Traffic:
    """Requests of a minute: of short prompts and of long ones, of which there are a share, at a factor of their usual
    time to first token. The p95 is that of the long ones while they are more than one in twenty."""

    share: float = 0.5
    factor: float = 1.0

    def minute(self, seed: int) -> Mapping[str, Sequence[float]]:
        random = np.random.default_rng(seed)
        number = round(A_MINUTE * self.share)
        return {
            SHORT: (SHORT_S * self.factor * random.lognormal(0, 0.1, A_MINUTE - number)).tolist(),
            LONG: (LONG_S * self.factor * random.lognormal(0, 0.1, number)).tolist(),
        }


USUAL = Traffic(share=0.04)
"""Few are long, so that the p95 lies among the short ones."""


def body(traffic: Traffic, at_s: float) -> object:
    found = traffic.minute(int(at_s))
    values = [value for some in found.values() for value in some]
    strata = [exports.by_prompt(some, stratum, at_s=at_s) for stratum, some in found.items() if some]
    return exports.export(exports.latencies(values, at_s=at_s), *strata, exports.heartbeat(at_s=at_s))


def past(connection: Connection) -> None:
    """Some days as usual, of which the figures were kept."""
    names = [column.name for column in schema.percentile.columns]
    levels = 0.125 * np.random.default_rng(3).lognormal(0, 0.03, DAYS * 1440)
    rows = (row(NOW_S - 60 * number, value, count=5 * A_MINUTE) for number, value in enumerate(levels.tolist(), 1))
    added(connection, schema.percentile, [tuple(getattr(one, name) for name in names) for one in rows])


@dataclass
class Side:
    """One collector."""

    store: Store
    ticks: Ticks
    clock: Clock
    ears: Ears

    async def minutes(self, count: int, traffic: Traffic) -> None:
        for _ in range(count):
            for _ in range(2):
                self.clock.now_s += 30
                one = batch(body(traffic, self.clock.now_s - 5))  # type: ignore[arg-type]
                await self.store.count(b"%d" % self.clock.now_s, one)
            await self.tick()

    async def tick(self) -> None:
        await self.ticks.tick()
        await self.ticks.settled()
        await self.ticks.drifting.settled()

    def tickets(self) -> list[str]:
        return [dict(one.annotations)["description"] for one in self.ticks.alerts if one.key.name == DRIFT]

    async def kept(self) -> list[DriftRow]:
        table = schema.drift
        question = select(table).where(table.c.signal == "ttft").order_by(table.c.since_s)
        return await self.store.read(lambda connection: [DriftRow(*found) for found in connection.execute(question)])


@asynccontextmanager
async def side(database: str, clock: Clock) -> AsyncIterator[Side]:
    async with store(database, clock=clock, tick_s=10) as one:
        ears = Ears()
        ticks = Ticks(one, ears, "http://c", clock)
        await ticks.resume()
        yield Side(one, ticks, clock, ears)
        await ticks.stop()


@pytest.mark.parametrize(
    ("traffic", "kind", "tickets"),
    [(Traffic(share=0.04, factor=1.5), "server", 1), (Traffic(share=0.3), "mix", 0)],
    ids=["a slower server", "longer prompts"],
)
def test_a_slower_server_is_a_ticket_and_longer_prompts_are_none(
    database: str, traffic: Traffic, kind: str, tickets: int
) -> None:
    async def story() -> None:
        clock = Clock(NOW_S)
        async with side(database, clock) as one:
            await one.store.write(past)
            await one.minutes(60, USUAL)
            assert await one.kept() == []
            await one.minutes(20, traffic)
            (found,) = await one.kept()
            assert (found.kind, found.until_s) == (kind, None)
            assert len(one.tickets()) == tickets
            told = [notice for notice in one.ears.heard[-1] if notice.label("alertname") == DRIFT]
            assert len(told) == tickets
        async with side(database, clock) as one:
            await one.minutes(3, traffic)
            assert len(one.tickets()) == tickets
            (after,) = await one.kept()
            assert (after.since_s, after.kind) == (found.since_s, kind)
            await one.minutes(25, USUAL)
            assert one.tickets() == []
            (ended,) = await one.kept()
            assert ended.until_s is not None

    asyncio.run(story())


@pytest.mark.tools
def test_one_collector_finds_it_and_all_show_it(shared_database: str) -> None:
    async def story() -> None:
        clock = Clock(NOW_S)
        async with side(shared_database, clock) as one, side(shared_database, clock) as other:
            for each, name in ((one, "one"), (other, "other")):
                each.ticks.leader = Elected(each.store._engine, name)
                await each.ticks.leader.ask()
            await one.store.write(past)
            await one.minutes(20, USUAL)
            await one.minutes(20, Traffic(share=0.04, factor=1.5))
            await other.tick()
            assert len(one.tickets()) == 1
            assert other.tickets() == one.tickets()
            assert other.ticks.drifting.unsaved == ()
            await one.store.write(lambda connection: connection.execute(text("UPDATE leader SET until_s = 0")))
            await other.ticks.leader.ask()  # type: ignore[attr-defined]
            (before,) = await other.kept()
            await other.minutes(3, Traffic(share=0.04, factor=1.5))
            (after,) = await other.kept()
            assert other.ticks.tallies.leads
            assert (after.since_s, after.until_s) == (before.since_s, None)
            assert after.count > before.count
            for each in (one, other):
                await each.ticks.leader.release()  # type: ignore[attr-defined]

    asyncio.run(story())
