"""A database opened to be read: beside its writer, as one snapshot, and with no way to write."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select

from collector import schema
from collector.errors import UnusableDatabaseError
from collector.storage import commit
from collector.storage.database import database_url
from collector.storage.read_only import read_only
from collector.values.deltas import Deltas
from tests.collector import scene, stores
from tests.collector.scene import NOW_S


def known(connection: Connection) -> int:
    return int(connection.scalar(select(func.count()).select_from(schema.known)) or 0)


def test_it_reads_beside_a_collector_and_cannot_write(database: str) -> None:
    url = database_url(database)

    def write(connection: Connection) -> None:
        commit.write_digests(connection, [b"x" * 32], at_s=NOW_S)

    async def act() -> None:
        async with stores.store(database) as store:
            rows = Deltas(known=scene.known(NOW_S - 50, NOW_S))
            await store.write(lambda connection: commit.write_deltas(connection, rows, step_s=10, at_s=NOW_S))
            assert await read_only(url, known) == 5
            with pytest.raises(UnusableDatabaseError, match=r"cannot be read: .*read-?only"):
                await read_only(url, write)

    asyncio.run(act())


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    missing = tmp_path / "none here.db"
    with pytest.raises(UnusableDatabaseError, match=r"none here\.db cannot be read: unable to open"):
        asyncio.run(read_only(database_url(str(missing)), known))
    assert not missing.exists()


def test_a_file_that_is_no_database_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 50)
    with pytest.raises(UnusableDatabaseError, match="not a database"):
        asyncio.run(read_only(database_url(f"sqlite:///{tmp_path}/text.db"), known))


def test_a_server_that_is_away_is_one_line() -> None:
    url = database_url("postgresql://me:secret@127.0.0.1:1/none")
    with pytest.raises(UnusableDatabaseError, match=r"127\.0\.0\.1:1") as told:
        asyncio.run(read_only(url, known))
    assert "secret" not in str(told.value)
    assert "\n" not in str(told.value)
