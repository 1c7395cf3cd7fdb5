"""The tick: alerts fire, are told, survive a restart and resolve; a fault costs one tick."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from unittest import mock

import pytest
from sqlalchemy import select, text

from collector import schema
from collector.keeping.store import Store
from collector.storage import commit, leader
from collector.storage.leader import Elected
from collector.telling.notice import Notice
from collector.telling.notify import Notifier
from collector.ticking import ticks
from collector.ticking.ticks import STEP_BACK_S, Ticks
from tests.collector import exports
from tests.collector.stores import NOW_S, Clock, batch, store
from tests.collector.support import SPEC


class Ears(Notifier):
    """Keeps what each tick told."""

    def __init__(self) -> None:
        super().__init__(())
        self.heard: list[Sequence[Notice]] = []

    def tell(self, notices: Sequence[Notice]) -> None:
        self.heard.append(notices)


@asynccontextmanager
async def ticking(database: str, clock: Clock, *, spec: str = SPEC) -> AsyncIterator[tuple[Store, Ticks, Ears]]:
    async with store(database, clock=clock, tick_s=1, spec=spec) as one:
        ears = Ears()
        loop = Ticks(one, ears, "http://c", clock)
        await loop.resume()
        yield one, loop, ears
        await loop.stop()


async def seconds(one: Store, loop: Ticks, clock: Clock, *, count: int, good: int, bad: int) -> None:
    """Seconds of traffic, with a tick at the end of all of them and a second before."""
    for length in filter(None, (count - 1, 1)):
        times = [clock.now_s + number + 1 for number in range(length)]
        bodies = [batch(exports.second(good=good, bad=bad, at_s=at_s)) for at_s in times]
        await asyncio.gather(*(one.count(b"%d" % at_s, body) for at_s, body in zip(times, bodies, strict=True)))
        clock.now_s += length
        await loop.tick()


def states(loop: Ticks) -> set[str]:
    return {alert.state for alert in loop.alerts if alert.key.objective == "ttft" and alert.key.tier}


async def events(one: Store) -> list[str]:
    table = schema.alert_event.c
    question = select(table.state).where(table.model == "*", table.tier == "fast").order_by(table.at_s)
    return list(await one.read(lambda c: c.scalars(question).all()))


def test_an_incident_fires_is_told_once_and_resolves_also_over_a_restart(database: str) -> None:
    clock = Clock()

    async def story() -> None:
        async with ticking(database, clock) as (one, loop, ears):
            await seconds(one, loop, clock, count=30, good=10, bad=0)
            assert not loop.alerts
            assert ears.heard[-1] == []
            await seconds(one, loop, clock, count=40, good=0, bad=10)
            assert states(loop) == {"firing"}
            began_s = {alert.fired_s for alert in loop.alerts if alert.key.tier}
        async with ticking(database, clock) as (one, loop, ears):
            assert states(loop) == {"firing"}
            await seconds(one, loop, clock, count=1, good=0, bad=10)
            told = [notice for notice in ears.heard[-1] if notice.label("burn_tier") == "fast"]
            assert {notice.label("model_name") for notice in told} == {"*", "m"}
            assert all(notice.fires for notice in told)
            assert {notice.starts_at_s for notice in told} == began_s
            await seconds(one, loop, clock, count=40, good=200, bad=0)
            assert not loop.alerts
            assert {notice.fires for notice in ears.heard[-1]} == {False}
            await loop.settled()
            told_of = await events(one)
            assert (told_of.count("firing"), told_of[-1]) == (1, "resolved")
        async with ticking(database, clock) as (one, loop, ears):
            await loop.tick()
            assert {notice.fires for notice in ears.heard[-1]} == {False}
            clock.now_s += ticks.KEPT_ENDED_S
            await loop.tick()
            assert not any(notice.label("burn_tier") for notice in ears.heard[-1])

    asyncio.run(story())


def test_a_fault_costs_one_tick(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = ticks.evaluate

    def fails(*_: object, **__: object) -> object:
        raise ZeroDivisionError("a fault of ours")

    async def story() -> None:
        async with ticking(database, Clock()) as (_, loop, _ears):
            monkeypatch.setattr(ticks, "evaluate", fails)
            await loop.tick()
            assert loop.latest is None
            assert (loop.tallies.ticks, loop.tallies.failures) == (1, 1)
            assert loop.tallies.last_error == "a fault of ours"
            monkeypatch.setattr(ticks, "evaluate", evaluate)
            await loop.tick()
            assert loop.latest is not None
            assert loop.tallies.last_error is None

    asyncio.run(story())


def test_transitions_wait_for_the_database_and_verdicts_do_not(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write = commit.write_alerts

    def away(*_: object, **__: object) -> None:
        raise OSError("database gone")

    async def story() -> None:
        clock = Clock()
        async with ticking(database, clock) as (one, loop, ears):
            monkeypatch.setattr(commit, "write_alerts", away)
            await seconds(one, loop, clock, count=20, good=0, bad=10)
            assert states(loop) == {"firing"}
            assert any(notice.fires for notice in ears.heard[-1])
            assert await events(one) == []
            assert loop.tallies.unsaved > 0
            monkeypatch.setattr(commit, "write_alerts", write)
            await loop.settled()
            clock.now_s += 1
            await loop.tick()
            await loop.settled()
            assert "firing" in await events(one)

    asyncio.run(story())


def test_a_clock_that_steps_back_rewrites_no_later_figure(database: str) -> None:
    async def story() -> None:
        clock = Clock()
        async with ticking(database, clock) as (_, loop, _ears):
            await loop.tick()
            clock.now_s -= STEP_BACK_S
            await loop.tick()
            assert loop.latest is not None
            assert loop.latest.at_s == NOW_S

    asyncio.run(story())


def test_a_clock_that_was_far_ahead_is_followed_back(database: str) -> None:
    """Windows only move on: without a new start nothing would be evaluated until the wrong time has come. What was
    counted at that time would stay in every window until then."""

    async def story() -> None:
        clock = Clock(NOW_S + 86400)
        async with ticking(database, clock) as (one, loop, _ears):
            await seconds(one, loop, clock, count=3, good=100, bad=0)
            await loop.settled()
            clock.now_s = NOW_S
            await seconds(one, loop, clock, count=20, good=0, bad=10)
            await loop.settled()
            assert loop.latest is not None
            assert loop.latest.at_s == NOW_S + 20
            assert {row.good for row in loop.latest.burns} == {0}
            assert states(loop) == {"firing"}
            assert all(alert.fired_s is None or alert.fired_s <= clock.now_s for alert in loop.alerts)
            latest = await one.read(lambda connection: connection.scalar(text("SELECT max(at_s) FROM burn_rate")))
            assert latest == NOW_S + 20

    asyncio.run(story())


def test_what_lay_ahead_counts_once_its_time_has_come(database: str) -> None:
    """The clock was right, set back, and is right again: what was counted while it was right is not lost to windows."""

    async def story() -> None:
        clock = Clock(NOW_S + 600)
        async with ticking(database, clock) as (one, loop, _ears):
            await seconds(one, loop, clock, count=3, good=100, bad=0)
            await loop.settled()
            clock.now_s = NOW_S
            await seconds(one, loop, clock, count=2, good=0, bad=10)
            assert goods(loop) == {0}
            clock.now_s = NOW_S + 604
            await loop.tick()
            assert goods(loop) == {300}
            assert one.ledger.ahead_s is None

    asyncio.run(story())


def goods(loop: Ticks) -> set[float]:
    """How many good events the windows hold that reach far back."""
    assert loop.latest is not None
    return {row.good for row in loop.latest.burns if row.window_s >= 3600}


def test_whoever_waits_hears_of_the_next_tick(tmp_path: object) -> None:
    async def story() -> None:
        async with ticking(f"{tmp_path}/a.db", Clock()) as (_, loop, _ears):
            assert not await loop.next_tick(0.01)
            waiting = asyncio.create_task(loop.next_tick(30))
            await asyncio.sleep(0)
            await loop.tick()
            assert await waiting

    asyncio.run(story())


def test_it_ticks_until_it_is_told_to_stop(tmp_path: object) -> None:
    import time

    async def story() -> None:
        async with ticking(f"{tmp_path}/a.db", Clock()) as (_, loop, _ears):
            loop.clock = time.time
            running = asyncio.create_task(loop.run())
            async with asyncio.timeout(30):
                while loop.tallies.ticks < 3:
                    await loop.next_tick(10)
            running.cancel()

    asyncio.run(story())


@dataclass
class Side:
    """One of two collectors."""

    store: Store
    ticks: Ticks
    ears: Ears
    lease: Elected

    async def tick(self) -> None:
        """A tick that has heard who leads: on a slow machine that takes longer than one waits for it."""
        await self.lease.ask()
        await self.ticks.tick()
        while self.ticks.tallies.leads != (self.lease.term is not None):
            await self.ticks.settled()
            await self.ticks.tick()
        await self.ticks.settled()


@asynccontextmanager
async def side(database: str, clock: Clock, name: str) -> AsyncIterator[Side]:
    async with ticking(database, clock) as (one, loop, ears):
        lease = Elected(one._engine, name)
        loop.leader = lease
        await lease.ask()
        try:
            yield Side(one, loop, ears, lease)
        finally:
            await lease.release()


@asynccontextmanager
async def two(database: str, clock: Clock) -> AsyncIterator[tuple[Side, Side]]:
    """Two collectors on one database; the first asked first and leads, for as long as a slow machine takes."""
    with mock.patch.object(leader, "LEASE_S", 600):
        async with side(database, clock, "one") as one, side(database, clock, "other") as other:
            yield one, other


async def stretch(one: Side, other: Side, clock: Clock, *, count: int, good: int, bad: int) -> None:
    """Seconds of traffic, spread over both, and a tick of each at the end."""
    for number in range(count):
        clock.now_s += 1
        body = batch(exports.second(good=good, bad=bad, at_s=clock.now_s))
        await (one, other)[number % 2].store.count(b"%d" % clock.now_s, body)
    for each in (other, one, other):
        await each.tick()


@pytest.mark.tools
def test_all_show_the_same_and_one_writes_and_tells(shared_database: str) -> None:
    async def story() -> None:
        clock = Clock()
        async with two(shared_database, clock) as (one, other):
            await stretch(one, other, clock, count=30, good=10, bad=0)
            await stretch(one, other, clock, count=40, good=0, bad=10)
            assert states(one.ticks) == states(other.ticks) == {"firing"}
            assert one.ticks.latest is not None
            assert one.ticks.latest.burns == other.ticks.latest.burns  # type: ignore[union-attr]
            assert one.ticks.latest.percentiles == other.ticks.latest.percentiles  # type: ignore[union-attr]
            assert (one.ticks.tallies.leads, other.ticks.tallies.leads) == (True, False)
            assert any(notice.fires for notice in one.ears.heard[-1])
            assert other.ears.heard == []
            assert (await events(one.store)).count("firing") == 1

    asyncio.run(story())


@pytest.mark.tools
@pytest.mark.parametrize("in_order", [True, False])
def test_who_takes_over_goes_on_where_the_other_was(shared_database: str, in_order: bool) -> None:
    """Also one that led before, lost the lease unnoticed and got it back: what it remembers of alerts is old."""

    async def story() -> None:
        clock = Clock()
        async with two(shared_database, clock) as (one, other):
            await stretch(one, other, clock, count=30, good=10, bad=0)
            await stretch(one, other, clock, count=40, good=0, bad=10)
            fired_s = {alert.fired_s for alert in one.ticks.alerts if alert.key.tier}
            if in_order:
                await one.lease.release()
            else:
                await one.store.write(lambda connection: connection.execute(text("UPDATE leader SET until_s = 0")))
            await other.tick()
            assert other.ticks.tallies.leads
            assert {alert.fired_s for alert in other.ticks.alerts if alert.key.tier} == fired_s
            assert {n.starts_at_s for n in other.ears.heard[-1] if n.label("burn_tier")} == fired_s
            await stretch(other, other, clock, count=40, good=200, bad=0)
            assert not other.ticks.alerts
            await other.lease.release()
            told = len(one.ears.heard)
            await one.tick()
            assert one.ticks.tallies.leads
            assert not one.ticks.alerts
            assert {notice.fires for heard in one.ears.heard[told:] for notice in heard} == {False}
            assert (await events(one.store)).count("firing") == 1

    asyncio.run(story())


@pytest.mark.tools
def test_one_whose_lease_was_taken_writes_nothing_more(shared_database: str) -> None:
    """It evaluates before it knows; the database refuses its figures and its transitions."""

    async def story() -> None:
        clock = Clock()
        async with two(shared_database, clock) as (one, other):
            await stretch(one, other, clock, count=1, good=5, bad=0)
            await other.store.write(lambda connection: connection.execute(text("UPDATE leader SET until_s = 0")))
            await other.lease.ask()
            clock.now_s += 100
            await one.ticks.tick()
            await one.ticks.settled()
            assert one.ticks.tallies.unsaved == 1
            latest = await one.store.read(lambda c: c.scalar(text("SELECT max(at_s) FROM burn_rate")))
            assert latest == NOW_S + 1
            assert one.lease.term is None
            await one.ticks.tick()
            assert not one.ticks.tallies.leads

    asyncio.run(story())


@pytest.mark.tools
def test_the_journal_is_pruned_by_who_leads(shared_database: str) -> None:
    async def story() -> None:
        clock = Clock()
        async with two(shared_database, clock) as (one, other):
            await stretch(one, other, clock, count=6, good=5, bad=0)
            clock.now_s = (clock.now_s // 60 + 20) * 60
            await other.tick()
            rows = text("SELECT count(*) FROM journal")
            assert await one.store.read(lambda c: c.scalar(rows)) == 6
            await one.tick()
            assert await one.store.read(lambda c: c.scalar(rows)) == 1

    asyncio.run(story())
