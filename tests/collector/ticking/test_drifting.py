"""The watch beside the ticks, on real databases: it learns what is stored, and a restart forgets nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import Connection, select, text

from collector import schema
from collector.errors import UnavailableError
from collector.judging.percentiles import PercentileRow
from collector.keeping.store import Store
from collector.storage import drift_past
from collector.ticking.drifting import Drifting
from collector.values.verdicts import DriftRow
from tests.collector.drift_scene import NOW_S, evaluation, latency, row
from tests.collector.latency_weeks import minutes
from tests.collector.stores import Clock, added, store

DAYS = 4
USUAL = minutes(4, days=DAYS)


def past() -> Iterator[PercentileRow]:
    for number, value in enumerate(USUAL):
        yield row(NOW_S - 60 * (len(USUAL) - number), value)


def stored(connection: Connection) -> None:
    names = [column.name for column in schema.percentile.columns]
    added(connection, schema.percentile, [tuple(getattr(one, name) for name in names) for one in past()])


@asynccontextmanager
async def drifting(database: str, *, at: int = 0) -> AsyncIterator[tuple[Store, Drifting]]:
    """A watch that was resumed and has learnt what there is `at` minutes after the days that are stored."""
    async with store(database, clock=Clock(NOW_S)) as one:
        watch = Drifting(one)
        await watch.resume()
        at_s = NOW_S + 60 * at
        watch.observe(evaluation(at_s, latency(at_s, USUAL[at])))
        await watch.settled()
        yield one, watch
        await watch.stop()


async def minutes_on(one: Store, watch: Drifting, first: int, count: int, *, factor: float) -> None:
    """Minutes of the day, each as the first days had it but for a factor; what changed is kept."""
    for number in range(first, first + count):
        at_s = NOW_S + 60 * number
        watch.observe(evaluation(at_s, latency(at_s, factor * USUAL[number])))
        rows = watch.unsaved
        await one.write(lambda connection, rows=rows: drift_past.write(connection, rows))
        watch.saved(rows)


async def kept(one: Store) -> Sequence[DriftRow]:
    return await one.read(lambda connection: [DriftRow(*found) for found in connection.execute(select(schema.drift))])


def test_what_is_stored_is_learnt_and_a_drift_found_at_once(database: str) -> None:
    async def story() -> None:
        async with store(database) as one:
            await one.write(stored)
        async with drifting(database) as (one, watch):
            await minutes_on(one, watch, 1, 30, factor=1)
            assert watch.open == ()
            await minutes_on(one, watch, 31, 30, factor=1.5)
            (found,) = await kept(one)
            assert (found,) == watch.open
            assert found.effect == pytest.approx(0.5, abs=0.15)

    asyncio.run(story())


def test_a_restart_forgets_nothing(database: str) -> None:
    async def story() -> None:
        async with store(database) as one:
            await one.write(stored)
        async with drifting(database) as (one, watch):
            await minutes_on(one, watch, 1, 60, factor=1.5)
            (before,) = await kept(one)
        async with drifting(database, at=61) as (one, watch):
            await minutes_on(one, watch, 62, 20, factor=1.5)
            (after,) = await kept(one)
            assert after.since_s == before.since_s
            assert after.count > before.count
            await minutes_on(one, watch, 82, 40, factor=1)
            (ended,) = await kept(one)
            assert ended.since_s == before.since_s
            assert ended.until_s is not None
            assert watch.open == ()
        async with drifting(database, at=130) as (_, watch):
            assert watch.open == ()

    asyncio.run(story())


def test_without_a_past_nothing_is_found(database: str) -> None:
    async def story() -> None:
        async with drifting(database) as (one, watch):
            await minutes_on(one, watch, 1, 90, factor=2)
            assert await kept(one) == []

    asyncio.run(story())


def test_what_burned_is_not_learnt(database: str) -> None:
    """Two days at twice the level that burned throughout: not the new normal."""

    first_s, last_s = NOW_S - 3 * 86400, NOW_S - 86400

    def burned(connection: Connection) -> None:
        stored(connection)
        double = text("UPDATE percentile SET p95 = 2 * p95 WHERE at_s >= :first_s AND at_s <= :last_s")
        connection.execute(double, {"first_s": first_s, "last_s": last_s})
        event = (last_s, "", "chat", "LLMTTFTBudgetBurn", "*", "ttft", "fast", "resolved", first_s, "{}", "{}")
        added(connection, schema.alert_event, [event])

    async def story() -> None:
        async with store(database) as one:
            await one.write(burned)
        async with drifting(database) as (one, watch):
            await minutes_on(one, watch, 1, 60, factor=1)
            assert await kept(one) == []

    asyncio.run(story())


def test_a_database_that_is_away_is_asked_again(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            await one.write(stored)
        async with drifting(f"{tmp_path}/a.db") as (one, watch):
            await watch.resume()
            read = one.read

            async def away(_: object) -> None:
                raise UnavailableError("gone")

            monkeypatch.setattr(one, "read", away)
            watch.observe(evaluation(NOW_S, latency(NOW_S, 0.4)))
            await watch.settled()
            monkeypatch.setattr(one, "read", read)
            watch.observe(evaluation(NOW_S + 60, latency(NOW_S + 60, 0.4)))
            await watch.settled()
            await minutes_on(one, watch, 2, 60, factor=1.5)
            assert len(watch.open) == 1

    asyncio.run(story())


def test_it_can_be_stopped_while_it_learns(tmp_path: object) -> None:
    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            watch = Drifting(one)
            await watch.stop()
            watch.observe(evaluation(NOW_S, latency(NOW_S, 0.4)))
            await watch.stop()
            await watch.settled()

    asyncio.run(story())
