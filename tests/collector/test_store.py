"""The store on real databases: acknowledged is committed, and a body counts once whatever happens around it."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from collector import commit
from collector.database import database_url, open_database
from collector.errors import UnavailableError
from collector.measurement import Tally
from collector.store import MAX_REASONS, MAX_WAITING, Store, Tallies
from tests.collector import exports, stores
from tests.collector.stores import NOW_S, Clock, batch, remembered, store, totals


async def count(one: Store, name: str, **what: object) -> bool:
    """Count a second of traffic under a digest of that name; whether it was new."""
    message = exports.second(**{"good": 3, "bad": 1, "at_s": NOW_S - 5, **what})  # type: ignore[arg-type]
    return not (await one.count(name.encode(), batch(message))).again


def test_what_is_counted_stands_in_the_database_and_in_memory(database: str) -> None:
    async def story() -> None:
        async with store(database) as one:
            assert await count(one, "a")
            assert await count(one, "b", instance="i2")
            expected = {"good": 6, "bad": 2, "values": 8, "samples": 4, "beats": 2.0}
            assert await one.read(totals) == expected
            assert remembered(one) == (6, 2)
        async with store(database) as again:
            assert await again.read(totals) == expected
            assert remembered(again) == (6, 2)

    asyncio.run(story())


def test_e01_a_body_that_comes_many_times_at_once_counts_once(database: str) -> None:
    async def story() -> None:
        async with store(database) as one:
            new = await asyncio.gather(*(count(one, "a") for _ in range(20)), count(one, "b"))
            assert sum(new) == 2
            assert not await count(one, "a")
            assert (await one.read(totals))["good"] == 6
            assert (one.tallies.bodies, one.tallies.repeated) == (22, 20)
        async with store(database) as again:
            assert not await count(again, "a")

    asyncio.run(story())


def test_bodies_that_wait_together_are_committed_together(database: str) -> None:
    async def story() -> None:
        async with store(database) as one:
            await asyncio.gather(*(count(one, f"{number}") for number in range(60)))
            assert one.tallies.commits <= 3
            assert (await one.read(totals))["good"] == 180

    asyncio.run(story())


def test_g05_two_collectors_on_one_database_add_up(database: str) -> None:
    """Both write the same rows of the same steps, over and over: no deadlock, no lost update."""

    async def writes(one: Store, who: str) -> None:
        for number in range(15):
            await asyncio.gather(*(count(one, f"{who}{number}{part}", at_s=NOW_S - 10 * part) for part in range(3)))

    async def story() -> None:
        async with store(database) as one, store(database) as other:
            await asyncio.gather(writes(one, "a"), writes(other, "b"))
            assert await one.read(totals) == {"good": 270, "bad": 90, "values": 360, "samples": 180, "beats": 90.0}

    asyncio.run(story())


def test_a_failed_commit_counts_nothing_and_can_come_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write = commit.write_digests

    def fails(connection: Connection, *args: object, **more: object) -> None:
        raise OSError("disk gone")

    async def story() -> None:
        async with store(database) as one:
            monkeypatch.setattr(commit, "write_digests", fails)
            with pytest.raises(UnavailableError, match="disk gone"):
                await count(one, "a")
            assert one.failing == "disk gone"
            assert (await one.read(totals))["good"] == 0
            monkeypatch.setattr(commit, "write_digests", write)
            assert await count(one, "a")
            assert one.failing is None
            assert (await one.read(totals))["good"] == 3

    asyncio.run(story())


def test_a_commit_in_doubt_that_took_place_is_not_counted_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks right after the database has committed: the retry finds the digest, and memory is read
    anew, so both have the body once."""
    broken = []

    async def story() -> None:
        async with store(database) as one:
            attempt = one._attempt

            async def breaks(work: object) -> object:
                answer = await attempt(work)  # type: ignore[arg-type]
                if not broken:
                    broken.append(answer)
                    one._in_doubt = True
                    raise ConnectionResetError("gone while committing")
                return answer

            monkeypatch.setattr(one, "_attempt", breaks)
            assert not await count(one, "a")
            assert (await one.read(totals))["good"] == 3
            assert remembered(one) == (3, 1)

    asyncio.run(story())


def test_a_body_that_cannot_be_stored_spoils_no_other(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write = commit.write_digests

    def refuses(connection: Connection, digests: list[bytes], *, at_s: int) -> None:
        if b"bad" in digests:
            connection.execute(text("INSERT INTO batch (digest, at_s) VALUES (NULL, 1)"))
        write(connection, digests, at_s=at_s)

    async def story() -> None:
        async with store(database) as one:
            monkeypatch.setattr(commit, "write_digests", refuses)
            names = ("a", "bad", "c")
            answers = await asyncio.gather(*(count(one, name) for name in names), return_exceptions=True)
            assert [isinstance(answer, Exception) for answer in answers] == [False, True, False]
            assert (await one.read(totals))["good"] == 6

    asyncio.run(story())


def test_a_locked_database_is_waited_for_and_then_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.database.BUSY_TIMEOUT_S", 0.2)
    path = tmp_path / "a.db"

    async def story() -> None:
        async with store(str(path)) as one:
            blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            blocker.execute("BEGIN IMMEDIATE")
            with pytest.raises(UnavailableError, match="locked"):
                await count(one, "a")
            threading.Timer(0.1, lambda: blocker.execute("COMMIT")).start()
            assert await count(one, "a")
            blocker.close()

    asyncio.run(story())


def test_more_than_can_wait_is_sent_away(tmp_path: Path) -> None:
    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            asks = [asyncio.create_task(count(one, f"{number}")) for number in range(MAX_WAITING + 50)]
            answers = await asyncio.gather(*asks, return_exceptions=True)
            away = [answer for answer in answers if isinstance(answer, UnavailableError)]
            assert len(away) == 50
            assert away[0].retry_after_s > 0
            assert (await one.read(totals))["good"] == 3 * MAX_WAITING

    asyncio.run(story())


def test_close_commits_what_waits_and_takes_nothing_more(database: str) -> None:
    async def story() -> None:
        engine = await open_database(database_url(database))
        one = await stores.opened(engine, stores.a_plan(), max_series=9, clock=Clock())
        asks = [asyncio.create_task(count(one, f"{number}")) for number in range(5)]
        await asyncio.sleep(0)
        await one.close()
        assert all(await asyncio.gather(*asks))
        with pytest.raises(UnavailableError, match="stopping"):
            await count(one, "late")
        async with store(database) as again:
            assert (await again.read(totals))["good"] == 15

    asyncio.run(story())


def test_beyond_the_limit_of_series_counts_go_to_other(database: str) -> None:
    async def story() -> None:
        async with store(database, max_series=2) as one:
            for number in range(5):
                events = exports.events(good=1, bad=0, at_s=NOW_S - 5, model=f"m{number}")
                await one.count(b"%d" % number, batch(exports.export(events)))
            found = await one.read(lambda c: c.execute(text("SELECT model, good FROM slo_count ORDER BY model")).all())
            assert [tuple(row) for row in found] == [("m0", 1), ("m1", 1), ("other", 3)]

    asyncio.run(story())


def test_a_body_that_adds_nothing_leaves_nothing(database: str) -> None:
    async def story() -> None:
        async with store(database) as one:
            await one.count(b"empty", batch(exports.export()))
            assert await one.read(lambda c: c.scalar(text("SELECT count(*) FROM batch"))) == 0

    asyncio.run(story())


def test_reasons_of_drops_are_bounded() -> None:
    tallies = Tallies()
    tallies.drop(Tally(f"reason {number}", 2) for number in range(MAX_REASONS + 7))
    assert len(tallies.dropped) == MAX_REASONS + 1
    assert tallies.dropped["other"] == 14


def test_a_database_that_is_held_by_another_is_told_before_senders_give_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.store.PATIENCE_S", 0.3)

    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            told = await asyncio.gather(*(count(one, name) for name in "abc"), return_exceptions=True)
            assert [type(error) for error in told] == [UnavailableError] * 3
            assert one.failing is not None
            holder.execute("ROLLBACK")
            holder.close()
            monkeypatch.setattr("collector.store.PATIENCE_S", 30.0)
            for name in "abc":
                await count(one, name)
            assert remembered(one) == (9, 3)
            assert (await one.read(totals))["good"] == 9
            assert one.failing is None

    asyncio.run(story())
