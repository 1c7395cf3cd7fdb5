"""The store on real databases: acknowledged is committed, and a body counts once whatever happens around it."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from collector.errors import UnavailableError
from collector.keeping import ledger
from collector.keeping.store import MAX_WAITING, Store
from collector.storage import commit, journal
from collector.storage.database import database_url, open_database
from collector.storage.journal import Mark
from collector.values.measurement import Batch
from slo import signals
from tests.collector import exports, messages, stores
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


def test_what_came_again_is_left_out_of_its_group_and_the_rest_counts_in_its_order(database: str) -> None:
    """The points of a stream, of which those of the first body are counted already."""

    def reading(beats: int) -> tuple[bytes, Batch]:
        one = messages.number(beats, at_s=NOW_S - 9 + beats, start_s=NOW_S - 9, attributes={})
        metric = messages.counter(signals.HEARTBEAT.name, one, temporality=messages.CUMULATIVE)
        return b"%d" % beats, batch(exports.export([metric]))

    async def story() -> None:
        async with store(database) as one:
            assert not (await one.count(*reading(1))).again
            answers = await asyncio.gather(*(one.count(*reading(beats)) for beats in (1, 2, 4, 7, 1)))
            assert [answer.again for answer in answers] == [True, False, False, False, True]
            assert (await one.read(totals))["beats"] == 7

    asyncio.run(story())


def test_who_was_answered_together_is_counted_together_again(tmp_path: Path) -> None:
    """A sender that waits for its answer, as several do: they end up in one group, and do not take turns."""

    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            await asyncio.gather(*(count(one, f"first {number}") for number in range(4)))
            before = one.tallies.commits

            async def send(sender: int) -> None:
                for number in range(10):
                    await count(one, f"{sender} {number}")

            await asyncio.gather(*(send(sender) for sender in range(4)))
            assert one.tallies.commits - before <= 12

    asyncio.run(story())


def test_who_comes_while_others_are_committed_is_counted_with_them_from_then_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:

            async def send(sender: int) -> None:
                for number in range(10):
                    await count(one, f"{sender} {number}")

            before = one.tallies.commits
            early = asyncio.gather(*(send(sender) for sender in range(3)))
            await asyncio.sleep(0)
            await asyncio.gather(early, send(3))
            assert one.tallies.commits - before <= 13

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


def test_a_database_that_fails_for_long_is_one_line_of_the_log(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write = commit.write_digests

    def fails(connection: Connection, *args: object, **more: object) -> None:
        raise OSError("disk full")

    async def story() -> None:
        async with store(database) as one:
            monkeypatch.setattr(commit, "write_digests", fails)
            for sender in "abc":
                with pytest.raises(UnavailableError):
                    await count(one, sender)
            monkeypatch.setattr(commit, "write_digests", write)
            await count(one, "a")
            await count(one, "b")

    with caplog.at_level("INFO", "collector.keeping.store"):
        asyncio.run(story())
    assert caplog.messages == ["the database cannot commit: disk full", "the database commits again"]


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


def test_a_table_that_is_gone_is_the_databases_fault_and_no_bodys(database: str) -> None:
    """Senders are told to come again: what they hold counts once somebody has put it right."""

    async def story() -> None:
        async with store(database) as one:
            await one.write(lambda connection: connection.execute(text("ALTER TABLE slo_count RENAME TO away")))
            with pytest.raises(UnavailableError, match="slo_count"):
                await count(one, "a")
            assert "slo_count" in (one.failing or "")
            await one.write(lambda connection: connection.execute(text("ALTER TABLE away RENAME TO slo_count")))
            assert await count(one, "a")
            assert one.failing is None

    asyncio.run(story())


def test_a_locked_database_is_waited_for_and_then_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.storage.database.BUSY_TIMEOUT_S", 0.2)
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


def test_a_database_that_is_held_by_another_is_told_before_senders_give_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.keeping.store.PATIENCE_S", 0.3)

    async def story() -> None:
        async with store(f"{tmp_path}/a.db") as one:
            holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            told = await asyncio.gather(*(count(one, name) for name in "abc"), return_exceptions=True)
            assert [type(error) for error in told] == [UnavailableError] * 3
            assert one.failing is not None
            holder.execute("ROLLBACK")
            holder.close()
            monkeypatch.setattr("collector.keeping.store.PATIENCE_S", 30.0)
            for name in "abc":
                await count(one, name)
            assert remembered(one) == (9, 3)
            assert (await one.read(totals))["good"] == 9
            assert one.failing is None

    asyncio.run(story())


def held(one: Store) -> tuple[tuple[int, int], set[tuple[str, ...]], list[str]]:
    return remembered(one), one.ledger.seen, sorted(one.ledger.streams)


@pytest.mark.tools
def test_collectors_of_one_database_remember_the_same(shared_database: str) -> None:
    async def story() -> None:
        async with store(shared_database) as one, store(shared_database) as other:
            for number in range(9):
                await count((one, other)[number % 2], f"{number}", instance=f"i{number}", at_s=NOW_S - 30 * number)
            await one.catch_up()
            await other.catch_up()
            assert remembered(one) == (27, 9)
            assert held(one) == held(other)
            async with store(shared_database) as third:
                assert held(third) == held(one)

    asyncio.run(story())


@pytest.mark.tools
def test_a_body_sent_to_two_collectors_at_once_counts_once(shared_database: str) -> None:
    async def story() -> None:
        async with store(shared_database) as one, store(shared_database) as other:
            for number in range(20):
                new = await asyncio.gather(*(count(store, f"{number}") for store in (one, other, one)))
                assert sum(new) == 1
            assert (await one.read(totals))["good"] == 60
            for each in (one, other):
                await each.catch_up()
                assert remembered(each) == (60, 20)

    asyncio.run(story())


@pytest.mark.tools
@pytest.mark.parametrize("at_once", [False, True])
def test_a_cumulative_stream_goes_on_whoever_is_sent_its_points(shared_database: str, at_once: bool) -> None:
    """What a load balancer spreads over collectors is one stream all the same."""
    points = [beats(value, at_s=NOW_S - 100 + 2 * number) for number, value in enumerate((5, 10, 10, 30, 34, 2, 7))]

    async def story() -> None:
        async with store(shared_database) as one, store(shared_database) as other:
            for number, point in enumerate(points):
                asked = [store.count(b"%d" % number, point) for store in ((one, other)[number % 2],) * (1 + at_once)]
                await asyncio.gather(*asked)
            assert (await one.read(totals))["beats"] == 34 + 7

    asyncio.run(story())


def beats(value: int, *, at_s: float) -> Batch:
    point = messages.number(value, at_s=at_s, start_s=NOW_S - 150, attributes={})
    return batch(exports.export([messages.counter(signals.HEARTBEAT.name, point, temporality=messages.CUMULATIVE)]))


@pytest.mark.tools
def test_the_limit_of_series_is_that_of_all_collectors_together(shared_database: str) -> None:
    async def story() -> None:
        async with store(shared_database, max_series=3) as one, store(shared_database, max_series=3) as other:
            for number in range(6):
                body = batch(exports.export(exports.events(good=1, bad=0, at_s=NOW_S - 5, model=f"m{number}")))
                await (one, other)[number % 2].count(b"%d" % number, body)
            found = await one.read(lambda c: c.execute(text("SELECT model, good FROM slo_count ORDER BY model")).all())
            assert [tuple(row) for row in found] == [("m0", 1), ("m1", 1), ("m2", 1), ("other", 3)]

    asyncio.run(story())


AWAY = {
    "it was away for longer than the journal reaches": "DELETE FROM journal WHERE seq < (SELECT max(seq) FROM journal)",
    "the database was restored and went on otherwise": "UPDATE journal SET stamp = stamp + 1",
    "the latest commits were lost": "DELETE FROM journal",
}


@pytest.mark.tools
@pytest.mark.parametrize("through", ["a tick", "a body"])
@pytest.mark.parametrize("what", AWAY)
def test_what_the_journal_does_not_tell_is_read_anew(shared_database: str, what: str, through: str) -> None:
    async def story() -> None:
        async with store(shared_database) as one:
            async with store(shared_database) as other:
                await count(one, "a")
                for name in "bcd":
                    await count(other, name)
            await one.write(lambda connection: connection.execute(text("SELECT 1")))
            await count(one, "e")
            async with one._engine.begin() as connection:
                await connection.run_sync(Connection.execute, text("DELETE FROM slo_count"))
                await connection.run_sync(Connection.execute, text("DELETE FROM rollup"))
                await connection.run_sync(Connection.execute, text(AWAY[what]))
            one.ledger.mark = Mark(2, one.ledger.mark.stamp)
            if through == "a body":
                await count(one, "f")
                assert remembered(one) == (3, 1)
            else:
                await one.catch_up()
                assert remembered(one) == (0, 0)
            assert await one.read(journal.end) == one.ledger.mark

    asyncio.run(story())


@pytest.mark.tools
def test_a_tick_that_reads_a_commit_of_ours_before_we_know_of_it_counts_it_once(
    shared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with store(shared_database) as one:
            attempt = one._attempt

            async def ticks_before_it_returns(work: object) -> object:
                answer = await attempt(work)  # type: ignore[arg-type]
                await one.catch_up()
                return answer

            monkeypatch.setattr(one, "_attempt", ticks_before_it_returns)
            assert await count(one, "a")
            assert remembered(one) == (3, 1)
            assert await count(one, "b")
            assert remembered(one) == (6, 2)

    asyncio.run(story())


def test_a_recall_that_fails_is_made_up_for_before_anything_is_counted(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ledger.recalled

    async def fails(*_: object, **__: object) -> object:
        raise OSError("gone while reading")

    async def story() -> None:
        async with store(database) as one:
            await count(one, "a")
        engine = await open_database(database_url(database))
        again = Store(engine, stores.a_plan(), max_series=9, clock=Clock())
        monkeypatch.setattr("collector.keeping.store.recalled", fails)
        with pytest.raises(UnavailableError, match="gone while reading"):
            await again.recall(stores.a_plan())
        with pytest.raises(UnavailableError, match="gone while reading"):
            await count(again, "b")
        monkeypatch.setattr("collector.keeping.store.recalled", whole)
        assert await count(again, "b")
        assert remembered(again) == (6, 2)
        await again.close()

    asyncio.run(story())


def test_while_the_past_is_read_senders_are_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.keeping.store.PATIENCE_S", 0.1)
    gate = asyncio.Event()

    async def waits(*args: object, **more: object) -> object:
        await gate.wait()
        return await ledger.recalled(*args, **more)  # type: ignore[arg-type]

    async def story() -> None:
        monkeypatch.setattr("collector.keeping.store.recalled", waits)
        engine = await open_database(database_url(f"{tmp_path}/a.db"))
        one = Store(engine, stores.a_plan(), max_series=9, clock=Clock())
        reading = asyncio.create_task(one.recall(stores.a_plan()))
        with pytest.raises(UnavailableError, match="the past is being read"):
            await count(one, "a")
        gate.set()
        await reading
        assert one.failing is None
        await count(one, "a")
        assert remembered(one) == (3, 1)
        await one.close()

    asyncio.run(story())
