"""Opening a database: URLs, what is made, and one clear line when it cannot be used."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from collector import schema
from collector.errors import UnusableDatabaseError
from collector.storage import partitions
from collector.storage.database import database_url, held_alone, open_database, reading, shown
from collector.storage.file_engine import AnyEngine

URLS = {
    "a plain path": ("runs/a.db", "sqlite+pysqlite:///runs/a.db"),
    "an absolute path": ("/var/a.db", "sqlite+pysqlite:////var/a.db"),
    "a sqlite URL": ("sqlite:///a.db", "sqlite+pysqlite:///a.db"),
    "another sqlite driver": ("sqlite+pysqlite:///a.db", "sqlite+pysqlite:///a.db"),
    "postgresql": ("postgresql://u@h/d", "postgresql+asyncpg://u@h/d"),
    "the short name": ("postgres://u@h:5433/d", "postgresql+asyncpg://u@h:5433/d"),
    "as clouds write it": ("postgresql://u@h/d?sslmode=require", "postgresql+asyncpg://u@h/d?ssl=require"),
}


@pytest.mark.parametrize("case", URLS)
def test_the_url_that_a_text_means(case: str) -> None:
    text, expected = URLS[case]
    assert database_url(text).render_as_string(hide_password=False) == expected


@pytest.mark.parametrize("text", ["mysql://h/d", "sqlite://", "sqlite:///:memory:", "://"])
def test_a_url_of_nothing_we_write_is_refused(text: str) -> None:
    with pytest.raises(UnusableDatabaseError, match=r"use|name a file"):
        database_url(text)


@pytest.mark.parametrize(
    "text", ["postgresql://h/d?password=secret&user=u", "postgresql://h/d?foo=bar", "sqlite:///a?b=c"]
)
def test_a_parameter_that_the_driver_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(
        UnusableDatabaseError, match=r"^the database's URL has a parameter (password|foo|b): "
    ) as caught:
        database_url(text)
    assert "secret" not in str(caught.value)


@pytest.mark.tools
@pytest.mark.parametrize("port", [0, 65_536, 99_999])
def test_a_port_that_is_none_is_said_so(port: int) -> None:
    with pytest.raises(
        UnusableDatabaseError, match=rf"^the database's URL has a port {port}: write one from 1 to 65535$"
    ):
        database_url(f"postgresql://u@h:{port}/d")
    assert database_url("postgresql://u@h:65535/d").port == 65_535


def test_how_a_database_is_reached_over_tls_is_said_in_its_url(postgresql_server: str) -> None:
    """This server knows no TLS: a mode that asks for it is refused, one that only prefers it is not."""

    async def scenario(mode: str) -> None:
        engine = await open_database(database_url(f"{postgresql_server}&sslmode={mode}"))
        await engine.dispose()

    asyncio.run(scenario("prefer"))
    with pytest.raises(UnusableDatabaseError, match="sslmode"):
        asyncio.run(scenario("nonsense"))


def test_a_password_is_never_shown() -> None:
    assert "secret" not in shown(database_url("postgresql://u:secret@h/d"))


async def _tables(engine: AnyEngine) -> set[str]:
    async with engine.connect() as connection:
        return await connection.run_sync(lambda c: set(c.dialect.get_table_names(c)))


def test_an_empty_database_gets_every_table_and_keeps_them(database: str) -> None:
    async def scenario() -> None:
        for _ in range(2):
            engine = await open_database(database_url(database))
            assert await _tables(engine) >= set(schema.metadata.tables)
            await engine.dispose()

    asyncio.run(scenario())


def test_two_collectors_may_open_an_empty_database_at_once(database: str) -> None:
    async def scenario() -> None:
        engines = await asyncio.gather(*(open_database(database_url(database)) for _ in range(4)))
        found = await asyncio.gather(*(_tables(engine) for engine in engines))
        assert all(tables >= set(schema.metadata.tables) for tables in found)
        await asyncio.gather(*(engine.dispose() for engine in engines))

    asyncio.run(scenario())


def test_tables_of_another_version_are_left_alone(database: str) -> None:
    async def scenario() -> None:
        engine = await open_database(database_url(database))
        async with engine.begin() as connection:
            await connection.run_sync(Connection.execute, text("UPDATE schema_version SET version_num = '9999'"))
        await engine.dispose()
        with pytest.raises(UnusableDatabaseError, match="9999"):
            await open_database(database_url(database))

    asyncio.run(scenario())


def test_what_cannot_be_a_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, only a text that is long enough to be read as a header" * 9)
    for path in (tmp_path / "missing" / "a.db", tmp_path, tmp_path / "text.db"):
        with pytest.raises(UnusableDatabaseError) as caught:
            asyncio.run(open_database(database_url(str(path))))
        message = str(caught.value)
        assert str(path) in message
        assert "\n" not in message


def test_an_absent_postgresql_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("asyncpg")
    with pytest.raises(UnusableDatabaseError, match="cannot be used"):
        asyncio.run(open_database(database_url(f"postgresql://u@/d?host={tmp_path}")))


def test_sqlite_writes_ahead_and_syncs_each_commit(tmp_path: Path) -> None:
    async def scenario() -> tuple[object, object]:
        engine = await open_database(database_url(f"{tmp_path}/a.db"))
        async with engine.connect() as connection:
            journal = await connection.run_sync(Connection.scalar, text("PRAGMA journal_mode"))
            synchronous = await connection.run_sync(Connection.scalar, text("PRAGMA synchronous"))
        await engine.dispose()
        return journal, synchronous

    assert asyncio.run(scenario()) == ("wal", 2)


def test_g01_a_reader_holds_no_writer_up(tmp_path: Path) -> None:
    """A reading transaction stays open while another connection writes."""

    async def scenario() -> None:
        engine = await open_database(database_url(f"{tmp_path}/a.db"))
        async with engine.connect() as connection:
            await reading(connection)
            await connection.run_sync(Connection.execute, text("SELECT count(*) FROM batch"))
            await asyncio.to_thread(_write, tmp_path / "a.db")
            assert await connection.run_sync(Connection.scalar, text("SELECT count(*) FROM batch")) == 0
        async with engine.connect() as connection:
            assert await connection.run_sync(Connection.scalar, text("SELECT count(*) FROM batch")) == 1
        await engine.dispose()

    asyncio.run(scenario())


def _write(path: Path) -> None:
    connection = sqlite3.connect(path, timeout=0.5)
    with connection:
        connection.execute("INSERT INTO batch VALUES (x'00', 1)")
    connection.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_deleted_or_replaced_takes_nothing_more(tmp_path: Path, replaced: bool) -> None:
    """SQLite would write on into the deleted one, and what was acknowledged would be lost."""

    async def scenario() -> None:
        path = tmp_path / "a.db"
        engine = await open_database(database_url(str(path)))
        path.rename(tmp_path / "moved.db")
        if replaced:
            path.write_bytes((tmp_path / "moved.db").read_bytes())
        with pytest.raises(OSError, match="deleted or replaced"):
            async with engine.begin() as connection:
                await connection.run_sync(Connection.execute, text("DELETE FROM batch"))
        path.unlink(missing_ok=True)
        (tmp_path / "moved.db").rename(path)
        async with engine.begin() as connection:
            await connection.run_sync(Connection.execute, text("DELETE FROM batch"))
        await engine.dispose()

    asyncio.run(scenario())


@pytest.mark.parametrize("replaced", [False, True])
def test_what_is_put_in_the_place_of_the_file_stays_as_it_was_put(tmp_path: Path, replaced: bool) -> None:
    """A connection to it would take the log beside it for its own, and write that over it."""
    path, backup = tmp_path / "a.db", tmp_path / "backup.db"

    async def scenario() -> None:
        engine = await open_database(database_url(str(path)))
        async with engine.begin() as connection:
            await connection.run_sync(Connection.execute, text("INSERT INTO batch VALUES (x'00', 1)"))
        path.unlink()
        if replaced:
            path.write_bytes(backup.read_bytes())
        for _ in range(3):
            with pytest.raises(OSError, match="deleted or replaced"):
                await _counted(engine)
        await engine.dispose()

    asyncio.run(_made(backup))
    asyncio.run(scenario())
    assert path.exists() == replaced
    if replaced:
        assert path.read_bytes() == backup.read_bytes()


async def _counted(engine: AnyEngine) -> None:
    async with engine.connect() as connection:
        await reading(connection)
        await connection.run_sync(Connection.execute, text("SELECT count(*) FROM batch"))


async def _made(path: Path) -> None:
    await (await open_database(database_url(str(path)))).dispose()


def test_a_file_has_one_collector_and_any_number_of_readers(tmp_path: Path) -> None:
    url = database_url(str(tmp_path / "a.db"))
    (tmp_path / "a.db").touch()
    with held_alone(url):
        with pytest.raises(UnusableDatabaseError, match="another collector"), held_alone(url):
            pass
        with sqlite3.connect(tmp_path / "a.db") as reader:
            reader.execute("CREATE TABLE batch (digest, at_s)")
        reader.close()
    with held_alone(url):
        pass


@pytest.mark.tools
def test_a_database_is_opened_with_the_pieces_of_now(shared_database: str) -> None:
    """Before anything is written: a row of now in the rest would keep them from being made."""

    async def scenario() -> list[int]:
        await (await open_database(database_url(shared_database), now_s=1_800_000_000)).dispose()
        engine = await open_database(database_url(shared_database))
        async with engine.connect() as connection:
            found = [await connection.run_sync(partitions.pieces, branch) for branch in partitions.all_branches()]
        await engine.dispose()
        return [min(piece.from_s for piece in pieces) for pieces in found]

    assert all(from_s <= 1_800_000_000 < from_s + partitions.LONGEST_PIECE_S for from_s in asyncio.run(scenario()))
