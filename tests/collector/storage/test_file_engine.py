"""A file from the event loop: whole transactions, and nothing left behind by who goes away."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import QueuePool

from collector.storage import file_engine
from collector.storage.database import database_url, open_database, reading
from collector.storage.file_engine import FileEngine

FOREVER = text("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c")
ADD = text("INSERT INTO batch VALUES (:digest, 1)")


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[FileEngine]:
    engine = await open_database(database_url(f"{folder}/a.db"))
    assert isinstance(engine, FileEngine)
    try:
        yield engine
    finally:
        await engine.dispose()


def run(folder: Path, story: Callable[[FileEngine], Awaitable[None]]) -> None:
    async def told() -> None:
        async with opened(folder) as engine:
            await story(engine)

    asyncio.run(told())


def add(connection: Connection, digest: bytes) -> None:
    connection.execute(ADD, {"digest": digest})


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not happened():  # noqa: ASYNC110  another thread's time
            await asyncio.sleep(0.01)


def held_by_somebody(engine: FileEngine) -> bool:
    pool = engine.sync_engine.pool
    assert isinstance(pool, QueuePool)
    return pool.checkedout() > 0


def forever(connection: Connection) -> None:
    connection.execute(FOREVER)


async def both(engine: FileEngine, *works: Callable[[Connection], object]) -> None:
    """Pieces of work in one transaction."""
    async with engine.begin() as connection:
        for work in works:
            await connection.run_sync(work)


def held(folder: Path) -> list[bytes]:
    """What anybody else sees in the file."""
    with sqlite3.connect(folder / "a.db") as connection:
        found = [digest for (digest,) in connection.execute("SELECT digest FROM batch ORDER BY digest")]
    connection.close()
    return found


def test_pieces_of_work_are_one_transaction_until_it_is_committed(tmp_path: Path) -> None:
    async def story(engine: FileEngine) -> None:
        async with engine.connect() as connection, connection.begin() as transaction:
            await connection.run_sync(add, b"a")
            await connection.run_sync(add, digest=b"b")
            assert held(tmp_path) == []
            await transaction.commit()
            assert held(tmp_path) == [b"a", b"b"]

    run(tmp_path, story)


def test_a_block_commits_at_its_end_and_undoes_what_failed(tmp_path: Path) -> None:
    async def story(engine: FileEngine) -> None:
        async with engine.begin() as connection:
            await connection.run_sync(add, b"a")
        with pytest.raises(ZeroDivisionError):
            await both(engine, lambda connection: add(connection, b"b"), lambda _: 1 // 0)
        async with engine.begin():
            pass  # nothing was done, so nothing was begun
        async with engine.begin() as connection:
            await connection.run_sync(add, b"c")

    run(tmp_path, story)
    assert held(tmp_path) == [b"a", b"c"]


def test_what_is_let_go_without_a_commit_is_undone(tmp_path: Path) -> None:
    async def story(engine: FileEngine) -> None:
        async with engine.connect() as connection:
            await connection.run_sync(add, b"a")
        async with engine.begin() as connection:
            await connection.run_sync(add, b"b")

    run(tmp_path, story)
    assert held(tmp_path) == [b"b"]


def test_the_loop_goes_on_while_the_file_works(tmp_path: Path) -> None:
    turns, gate = 0, threading.Event()

    async def story(engine: FileEngine) -> None:
        nonlocal turns
        async with engine.connect() as connection:
            working = asyncio.create_task(connection.run_sync(lambda _: gate.wait(30)))
            for _ in range(10):
                await asyncio.sleep(0)
                turns += 1
            assert not working.done()
            gate.set()
            assert await working

    run(tmp_path, story)
    assert turns == 10


def test_a_fault_of_the_database_is_sqlalchemys_and_the_connection_goes_on(tmp_path: Path) -> None:
    async def story(engine: FileEngine) -> None:
        async with engine.begin() as connection:
            with pytest.raises(OperationalError, match="no such table"):
                await connection.run_sync(Connection.execute, text("SELECT * FROM nowhere"))
            await connection.run_sync(add, b"a")

    run(tmp_path, story)
    assert held(tmp_path) == [b"a"]


def test_who_goes_away_has_the_work_broken_off_and_holds_nobody_up(tmp_path: Path) -> None:
    async def story(engine: FileEngine) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await both(engine, lambda connection: add(connection, b"a"), forever)
        async with asyncio.timeout(30), engine.begin() as connection:
            await connection.run_sync(add, b"b")

    run(tmp_path, story)
    assert held(tmp_path) == [b"b"]


def test_it_is_broken_off_between_two_statements_too(tmp_path: Path) -> None:
    """An interruption meets only a statement that runs, so it is said until one does."""

    def work(connection: Connection) -> None:
        time.sleep(3 * file_engine.BREAK_OFF_EVERY_S)
        forever(connection)

    async def story(engine: FileEngine) -> None:
        async with engine.connect() as connection:
            await reading(connection)
            working = asyncio.create_task(connection.run_sync(work))
            await asyncio.sleep(file_engine.BREAK_OFF_EVERY_S)
            working.cancel()
            async with asyncio.timeout(30):
                with pytest.raises(asyncio.CancelledError):
                    await working

    run(tmp_path, story)


def test_work_that_does_not_end_is_left_behind_and_undone_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_engine, "LEFT_BEHIND_S", 0.1)
    gate, ended = threading.Event(), threading.Event()

    def hangs(connection: Connection) -> None:
        add(connection, b"a")
        gate.wait(30)
        ended.set()

    async def story(engine: FileEngine) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), engine.begin() as connection:
                await connection.run_sync(hangs)
        assert not ended.is_set()
        gate.set()
        async with asyncio.timeout(30), engine.begin() as connection:
            await connection.run_sync(add, b"b")  # waits for the lock that the other one holds until it is undone

    run(tmp_path, story)
    assert held(tmp_path) == [b"b"]


def test_a_connection_is_given_back_though_whoever_lets_it_go_goes_away(tmp_path: Path) -> None:
    gate = threading.Event()

    async def reads(engine: FileEngine) -> None:
        async with engine.connect() as connection:
            await connection.run_sync(Connection.scalar, text("SELECT 7"))
            engine._threads.submit(gate.wait, 30)  # the only thread has something else to do

    async def story() -> None:
        engine = FileEngine(create_engine(f"sqlite:///{tmp_path}/a.db", poolclass=QueuePool), 1)
        leaving = asyncio.create_task(reads(engine))
        await until(lambda: held_by_somebody(engine) and engine._threads._work_queue.qsize() > 0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        gate.set()
        await until(lambda: not held_by_somebody(engine))
        await engine.dispose()

    asyncio.run(story())
