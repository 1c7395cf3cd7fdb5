"""Sweeps between commits: nothing counted is lost, and a fault costs one piece."""

import asyncio

import pytest
from sqlalchemy import Connection, select

from collector import schema
from collector.keeping import upkeep
from collector.storage import recall, retention
from collector.storage.retention import Limits
from collector.values.deltas import StreamRow
from tests.collector import exports
from tests.collector.stores import NOW_S, Clock, batch, remembered, store, totals

LIMITS = Limits(counts_s=86400)
A_DAY = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, window: 1d}
"""


def test_a_sweep_folds_what_is_old_while_bodies_are_counted(database: str) -> None:
    async def story() -> None:
        clock = Clock(NOW_S - 3 * 3600)
        async with store(database, clock=clock, spec=A_DAY) as one:
            for number in range(12):
                body = batch(exports.second(good=4, bad=1, at_s=clock.now_s - 10 * number))
                await one.count(b"%d" % number, body)
            before = await one.read(totals)
            clock.now_s = NOW_S
            late = exports.second(good=4, bad=1, at_s=NOW_S - 1)
            await asyncio.gather(upkeep.sweep(one, LIMITS, now_s=NOW_S, whole=True), one.count(b"late", batch(late)))
            assert await one.read(lambda c: recall.steps(c, schema.slo_count)) == [10, 60]
            assert (await one.read(totals))["good"] == before["good"] + 4
        async with store(database, clock=clock, spec=A_DAY) as again:
            assert remembered(again, window_s=86400) == (52, 13)

    asyncio.run(story())


def test_a_piece_that_fails_is_left_to_the_next_sweep(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = retention.pieces

    def faulty(*args: object, **more: object) -> object:
        def fails(connection: Connection) -> bool:
            raise OSError("no space left")

        yield fails
        yield from pieces(*args, **more)  # type: ignore[arg-type]

    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            monkeypatch.setattr(retention, "pieces", faulty)
            assert await upkeep.sweep(one, LIMITS, now_s=NOW_S, whole=True) > 5
            assert await one.read(lambda c: c.execute(select(schema.batch)).all()) == []

    asyncio.run(story())


def test_it_sweeps_until_it_is_told_to_stop(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "SWEEP_S", 0.01)
    seen = []

    async def sweep(*_: object, whole: bool, **__: object) -> int:
        seen.append(whole)
        return 0

    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            monkeypatch.setattr(upkeep, "sweep", sweep)
            running = asyncio.create_task(upkeep.sweep_on(one, lambda: LIMITS, clock=Clock()))
            async with asyncio.timeout(30):
                while len(seen) < 3:  # noqa: ASYNC110  the loop under test tells nobody
                    await asyncio.sleep(0.01)
            running.cancel()

    asyncio.run(story())
    assert seen[:3] == [True, False, False]


def test_who_does_not_lead_sweeps_no_tables_but_its_own_memory(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "FOLLOW_S", 0.01)
    leads = False
    swept = asyncio.Event()

    async def sweep(*_: object, **__: object) -> int:
        swept.set()
        return 0

    async def story() -> None:
        nonlocal leads
        async with store(f"{tmp_path}/a.db") as one:
            one.ledger.streams = {"gone": StreamRow("gone", 0, 1, 1.0)}
            monkeypatch.setattr(upkeep, "sweep", sweep)
            sweeping = asyncio.create_task(upkeep.sweep_on(one, lambda: LIMITS, clock=Clock(), leads=lambda: leads))
            async with asyncio.timeout(30):
                while one.ledger.streams:  # noqa: ASYNC110  what is waited for is another task
                    await asyncio.sleep(0.01)
                assert not swept.is_set()
                leads = True
                await swept.wait()
            sweeping.cancel()

    asyncio.run(story())
