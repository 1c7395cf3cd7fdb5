"""Readers on real databases: bounded in time and number, and in nobody's way."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import Connection, text

from collector.errors import UnavailableError
from collector.keeping.reader import MAX_QUESTIONS, MAX_READERS, Reader
from collector.storage import commit
from tests.collector import stores

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT (x + 1) % 1000 FROM c) SELECT count(*) FROM c"


def endless(connection: Connection) -> Any:
    return connection.scalar(text(ENDLESS))


def one(connection: Connection) -> Any:
    return connection.scalar(text("SELECT 1"))


def test_a_question_that_takes_too_long_is_broken_off_and_the_next_one_is_answered(database: str) -> None:
    async def act() -> None:
        async with stores.store(database) as store:
            reader = Reader(store, patience_s=0.3)
            for _ in range(2):
                with pytest.raises(UnavailableError, match=r"took longer than 0\.3 s: ask for a shorter time"):
                    await reader.read(endless)
                assert await reader.read(one) == 1

    asyncio.run(act())


def test_slow_readers_hold_up_no_writer(database: str) -> None:
    async def act() -> None:
        async with stores.store(database) as store:
            reader = Reader(store, patience_s=4.0)
            slow = [asyncio.create_task(reader.read(endless)) for _ in range(MAX_READERS + 1)]
            await asyncio.sleep(0.2)
            for number in range(3):
                await store.write(lambda c, n=number: commit.write_digests(c, [bytes([n]) * 32], at_s=1))  # type: ignore[misc]
            assert not any(task.done() for task in slow)
            answers = await asyncio.gather(*slow, return_exceptions=True)
            assert [type(answer) for answer in answers] == [UnavailableError] * len(slow), answers

    asyncio.run(act())


def test_more_questions_than_can_wait_are_refused(database: str) -> None:
    async def act() -> None:
        async with stores.store(database) as store:
            reader = Reader(store, patience_s=0.3)
            asked = [asyncio.create_task(reader.read(endless)) for _ in range(MAX_QUESTIONS)]
            await asyncio.sleep(0)
            with pytest.raises(UnavailableError, match="more is asked at once"):
                await reader.read(one)
            await asyncio.gather(*asked, return_exceptions=True)
            assert await reader.read(one) == 1

    asyncio.run(act())


def test_whoever_waits_too_long_for_a_turn_is_told(database: str) -> None:
    async def act() -> None:
        async with stores.store(database) as store:
            patient, hasty = Reader(store, patience_s=2.0), Reader(store, patience_s=0.2)
            hasty._turns = patient._turns
            slow = [asyncio.create_task(patient.read(endless)) for _ in range(MAX_READERS)]
            await asyncio.sleep(0.1)
            with pytest.raises(UnavailableError, match="others ask for much"):
                await hasty.read(one)
            await asyncio.gather(*slow, return_exceptions=True)

    asyncio.run(act())


def test_whoever_asks_and_leaves_gives_their_turn_back(database: str) -> None:
    async def act() -> None:
        async with stores.store(database) as store:
            reader = Reader(store, patience_s=1.0)
            asked = [asyncio.create_task(reader.read(endless)) for _ in range(MAX_READERS)]
            await asyncio.sleep(0.1)
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            assert await reader.read(one) == 1

    asyncio.run(act())


def test_what_the_database_says_is_passed_on(database: str) -> None:
    async def act() -> None:
        async with stores.store(database) as store:
            with pytest.raises(UnavailableError, match=r"cannot be read: .*nowhere"):
                await Reader(store).read(lambda connection: connection.scalar(text("SELECT 1 FROM nowhere")))

    asyncio.run(act())
