"""The lease on a real PostgreSQL: one holder at a time, taken over when it runs out, and no writer of an older term."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from collector.errors import LostLeadError
from collector.storage import leader
from collector.storage.database import database_url, open_database
from collector.storage.leader import LEASE_S, Alone, Elected, leading

pytestmark = pytest.mark.tools


@dataclass
class Monotonic:
    """A clock that stands still until it is moved."""

    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Field:
    """A database, and two that would lead on it."""

    engine: AsyncEngine
    clock: Monotonic = field(default_factory=Monotonic)

    def __post_init__(self) -> None:
        self.one = Elected(self.engine, "one", monotonic=self.clock)
        self.other = Elected(self.engine, "other", monotonic=self.clock)

    async def set_lease(self, until_s: str) -> None:
        """Have the lease end at a moment of the database."""
        async with self.engine.begin() as connection:
            await connection.execute(text(f"UPDATE leader SET until_s = {until_s}"))


@asynccontextmanager
async def field_of(database: str) -> AsyncIterator[Field]:
    engine = await open_database(database_url(database))
    found = Field(engine)
    try:
        yield found
    finally:
        await found.one.release()
        await found.other.release()
        await engine.dispose()


def test_one_leads_and_goes_on_leading(shared_database: str) -> None:
    async def story() -> None:
        async with field_of(shared_database) as there:
            for _ in range(2):
                await there.one.ask()
                await there.other.ask()
                assert (there.one.term, there.other.term) == (1, None)

    asyncio.run(story())


@pytest.mark.parametrize(
    "until_s", ["floor(extract(epoch FROM now()))::bigint - 1", "floor(extract(epoch FROM now()))::bigint + 99"]
)
def test_a_lease_that_ran_out_or_runs_too_long_is_taken_over(shared_database: str, until_s: str) -> None:
    """Longer than any lease is one of before the database's clock was set back: its holder may be long gone."""

    async def story() -> None:
        async with field_of(shared_database) as there:
            await there.one.ask()
            await there.set_lease(until_s)
            await there.other.ask()
            assert there.other.term == 2
            await there.one.ask()
            assert (there.one.term, there.other.term) == (None, 2)

    asyncio.run(story())


def test_a_holder_whose_lease_ran_out_and_was_not_taken_goes_on_in_its_term(shared_database: str) -> None:
    async def story() -> None:
        async with field_of(shared_database) as there:
            await there.one.ask()
            await there.set_lease("0")
            await there.one.ask()
            assert there.one.term == 1

    asyncio.run(story())


def test_a_lease_given_back_is_free_at_once(shared_database: str) -> None:
    async def story() -> None:
        async with field_of(shared_database) as there:
            await there.one.ask()
            await there.other.release()
            await there.one.release()
            assert there.one.term is None
            await there.other.ask()
            assert there.other.term == 2

    asyncio.run(story())


def test_a_holder_that_was_stopped_knows_that_it_may_have_been_replaced(shared_database: str) -> None:
    async def story() -> None:
        async with field_of(shared_database) as there:
            await there.one.ask()
            there.clock.now_s += LEASE_S - 0.1
            assert there.one.term == 1
            there.clock.now_s += 0.1
            assert there.one.term is None

    asyncio.run(story())


def test_a_write_of_an_older_term_fails(shared_database: str) -> None:
    async def story() -> None:
        async with field_of(shared_database) as there:
            await there.one.ask()
            await there.set_lease("0")
            await there.other.ask()
            async with there.engine.begin() as connection:
                await connection.run_sync(there.other.fence)
                with pytest.raises(LostLeadError):
                    await connection.run_sync(there.one.fence)
            assert there.one.term is None

    asyncio.run(story())


def test_a_hand_over_waits_for_a_write_that_is_being_committed(shared_database: str) -> None:
    async def story() -> None:
        async with field_of(shared_database) as there:
            await there.one.ask()
            await there.set_lease("0")
            async with there.engine.begin() as connection:
                await connection.run_sync(there.one.fence)
                asking = asyncio.create_task(there.other.ask())
                waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
                async with asyncio.timeout(30):
                    while not await connection.scalar(waits):  # noqa: ASYNC110  another process's time
                        await asyncio.sleep(0.01)
                assert there.other.term is None
            await asking
            assert there.other.term == 2

    asyncio.run(story())


def test_without_an_answer_nobody_leads_and_with_one_again(
    shared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader, "PATIENCE_S", 0.2)

    async def story() -> None:
        async with field_of(shared_database) as there:
            await there.one.ask()
            async with there.engine.begin() as connection:
                await connection.execute(text("LOCK TABLE leader"))
                await there.one.ask()
                assert there.one.term == 1
                there.clock.now_s += LEASE_S
                await there.one.ask()
                assert there.one.term is None
            monkeypatch.setattr(leader, "PATIENCE_S", 30.0)
            await there.one.ask()
            assert there.one.term == 1

    asyncio.run(story())


def test_whoever_waits_to_lead_hears_of_it(shared_database: str) -> None:
    async def story() -> None:
        async with field_of(shared_database) as there:
            await there.one.until_leading(0.01)
            waiting = asyncio.create_task(there.one.until_leading(math.inf))
            await there.one.ask()
            async with asyncio.timeout(30):
                await waiting

    asyncio.run(story())


def test_a_process_leads_until_it_ends(shared_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "ASK_S", 0.01)

    async def story() -> None:
        engine = await open_database(database_url(shared_database))
        async with leading(engine) as one:
            assert one.term == 1
            async with leading(engine) as other:
                await asyncio.sleep(0.1)
                assert (one.term, other.term) == (1, None)
        async with leading(engine) as again:
            assert again.term == 2
        await engine.dispose()

    asyncio.run(story())


def test_the_only_collector_of_a_file_always_leads(tmp_path: object) -> None:
    async def story() -> None:
        engine = await open_database(database_url(f"{tmp_path}/a.db"))
        async with leading(engine) as one, engine.begin() as connection:
            assert isinstance(one, Alone)
            assert one.term is not None
            await connection.run_sync(one.fence)
            await one.until_leading(0.01)
        await engine.dispose()

    asyncio.run(story())
