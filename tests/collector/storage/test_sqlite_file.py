"""A real file: its log comes back from a reader that stayed, and the file from what retention dropped."""

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import Connection

from collector.storage import sqlite_file, upsert
from collector.storage.database import JOURNAL_LIMIT_BYTES, database_url
from tests.collector.storage.test_commit import after
from tests.collector.stores import store

_times = count()
MIB = 1 << 20
LONG = 3_000


@contextmanager
def a_reader(path: Path) -> Iterator[None]:
    """Somebody whose transaction stays open."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM stream").fetchall()
        yield


def streams(connection: Connection, first: int, rows: int) -> None:
    """Write so many rows, or write them over: with other words each time, for SQLite leaves alone what is the same."""
    words = f"{next(_times):010}" * (LONG // 10)
    upsert.STREAM.write(connection, [(f"{number}", 1, 2, words, 3) for number in range(first, first + rows)])


def size(path: Path) -> int:
    return path.stat().st_size


def test_g02_the_log_shrinks_once_the_reader_has_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.db"
    url, log = database_url(str(path)), sqlite_file.log_of(database_url(str(path)))

    async def story() -> None:
        async with store(str(path)) as one:
            for number in range(40):
                await one.write(lambda c, number=number: streams(c, 500 * number, 500))  # type: ignore[misc]
            assert size(log) <= JOURNAL_LIMIT_BYTES + MIB
            with a_reader(path):
                for number in range(40):
                    await one.write(lambda c, number=number: streams(c, 500 * number, 500))  # type: ignore[misc]
                assert size(log) > sqlite_file.WARN_BYTES
                assert sqlite_file.cut_log(url) is True
                assert sqlite_file.cut_log(url, warned=True) is True
                assert size(log) > sqlite_file.WARN_BYTES
            assert sqlite_file.cut_log(url, warned=True) is False
            assert size(log) <= JOURNAL_LIMIT_BYTES

    with caplog.at_level(logging.WARNING, logger=sqlite_file.__name__):
        asyncio.run(story())
    (told,) = [r.getMessage() for r in caplog.records if r.name == sqlite_file.__name__]
    assert str(log) in told
    assert "reader" in told


def test_commits_alone_bring_the_log_back(tmp_path: Path) -> None:
    """Also where nobody watches: the next commits after the reader do."""
    path = tmp_path / "a.db"
    log = sqlite_file.log_of(database_url(str(path)))

    async def story() -> None:
        async with store(str(path)) as one:
            with a_reader(path):
                for number in range(10):
                    await one.write(lambda c, number=number: streams(c, 500 * number, 500))  # type: ignore[misc]
                assert size(log) > JOURNAL_LIMIT_BYTES
            for number in range(3):
                await one.write(lambda c, number=number: streams(c, number, 1))  # type: ignore[misc]
            assert size(log) <= JOURNAL_LIMIT_BYTES

    asyncio.run(story())


def test_the_watch_looks_until_it_is_told_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "LOOK_S", 0.01)
    (tmp_path / "a.db").touch()
    seen: list[bool] = []

    def cut(_url: object, *, warned: bool) -> bool:
        seen.append(warned)
        return True

    async def story() -> None:
        monkeypatch.setattr(sqlite_file, "cut_log", cut)
        watching = asyncio.create_task(sqlite_file.watch(database_url(str(tmp_path / "a.db"))))
        async with asyncio.timeout(30):
            while len(seen) < 3:  # noqa: ASYNC110  the loop under test tells nobody
                await asyncio.sleep(0.01)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(story())
    assert seen[:3] == [False, True, True]


@pytest.mark.tools
def test_postgresql_has_no_log_of_ours(shared_database: str) -> None:
    asyncio.run(asyncio.wait_for(sqlite_file.watch(database_url(shared_database)), timeout=30))


def empty(connection: Connection, *, below: str) -> None:
    connection.exec_driver_sql(f"DELETE FROM stream WHERE stream < '{below}'")


def test_the_file_gives_back_what_was_dropped(tmp_path: Path) -> None:
    """Beside a collector, piece by piece; the log is written back by the commits that follow."""
    path = tmp_path / "a.db"
    pieces = 0

    async def story() -> None:
        nonlocal pieces
        async with store(str(path)) as one:
            await one.write(lambda c: streams(c, 0, 20_000))
            assert size(path) + size(sqlite_file.log_of(database_url(str(path)))) > 60 * MIB
            await one.write(lambda c: empty(c, below="x"))
            while sqlite_file.give_back(database_url(str(path))):
                pieces += 1

    asyncio.run(story())
    assert pieces >= 5
    assert size(path) < 20 * MIB
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_few_free_pages_are_kept_for_what_comes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    after(str(path), lambda c: streams(c, 0, 10_000), lambda c: empty(c, below="2"))
    full = size(path)
    assert sqlite_file.give_back(database_url(str(path))) is False
    assert size(path) == full


def test_a_file_that_is_no_database_is_nobodys_fault_here(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("nothing of the sort" * 100)
    assert sqlite_file.give_back(database_url(str(tmp_path / "a.db"))) is False


def test_a_file_that_was_put_in_the_place_of_another_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, looked = tmp_path / "a.db", list[object]()
    after(str(path))
    monkeypatch.setattr(sqlite_file, "LOOK_S", 0.01)
    monkeypatch.setattr(sqlite_file, "give_back", looked.append)

    async def story() -> None:
        watching = asyncio.create_task(sqlite_file.watch(database_url(str(path))))
        while not looked:  # noqa: ASYNC110  the loop under test tells nobody
            await asyncio.sleep(0.01)
        path.rename(tmp_path / "moved.db")
        await asyncio.sleep(0.05)
        looked.clear()
        path.write_bytes(b"another")
        await asyncio.sleep(0.1)
        watching.cancel()

    asyncio.run(story())
    assert looked == []
