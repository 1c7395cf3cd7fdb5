"""A collector's database, opened to be read by others than the collector: nothing here can write.

An SQLite file is opened as it is and never made; readers of a file in WAL mode hold no writer up. PostgreSQL is told
that every transaction only reads. One snapshot is read, whatever is committed meanwhile.
"""

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import create_engine
from sqlalchemy.engine import URL, Connection
from sqlalchemy.ext.asyncio import create_async_engine

from collector.errors import UnusableDatabaseError
from collector.storage.database import CONNECT_TIMEOUT_S, FAULTS, reason, shown

T = TypeVar("T")


async def read_only(url: URL, work: Callable[[Connection], T]) -> T:
    """Do the work over a database. Raises `UnusableDatabaseError`, whatever is wrong with it."""
    try:
        return _read_file(url, work) if url.get_backend_name() == "sqlite" else await _read_server(url, work)
    except UnusableDatabaseError as error:
        raise UnusableDatabaseError(f"database {shown(url)}: {error}") from error
    except FAULTS as error:
        raise UnusableDatabaseError(
            f"database {shown(url)} cannot be read: {reason(error)}: is it the collector's?"
        ) from error


def _read_file(url: URL, work: Callable[[Connection], T]) -> T:
    path = f"file:{quote(str(url.database))}"
    engine = create_engine(URL.create("sqlite", database=path, query={"mode": "ro", "uri": "true"}))
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")  # the driver itself begins none to read
            return work(connection)
    finally:
        engine.dispose()


async def _read_server(url: URL, work: Callable[[Connection], T]) -> T:
    settings = {"default_transaction_read_only": "on", "application_name": "firsttoken replay"}
    engine = create_async_engine(
        url,
        isolation_level="REPEATABLE READ",
        connect_args={"server_settings": settings, "timeout": CONNECT_TIMEOUT_S},
    )
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(work)
    finally:
        await engine.dispose()
