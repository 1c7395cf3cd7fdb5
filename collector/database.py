"""Where the tables live: a path or URL in, a ready asynchronous engine out.

SQLite runs in WAL mode with `synchronous=FULL`: what was acknowledged survives kill -9 and a power cut (one fsync per
group commit, see `store`). Write transactions start with BEGIN IMMEDIATE, so they wait their turn instead of failing
when a reader's snapshot is old; readers say `reading()` and never hold one up.
"""

import fcntl
import importlib
import importlib.util
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import event, make_url, text
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from collector import schema
from collector.errors import UnusableDatabaseError

BUSY_TIMEOUT_S = 5
CONNECT_TIMEOUT_S = 10
COMMAND_TIMEOUT_S = 20
JOURNAL_LIMIT_BYTES = 8 << 20
POOL_SIZE = 5
SCHEMA_LOCK = 4_318_001
_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}
_READING = "firsttoken_reading"


def _faults() -> tuple[type[Exception], ...]:
    """asyncpg's own errors reach us as they are when it cannot connect: SQLAlchemy wraps those of a connection only."""
    found: tuple[type[Exception], ...] = (SQLAlchemyError, OSError, TimeoutError)
    if importlib.util.find_spec("asyncpg") is not None:
        driver = importlib.import_module("asyncpg")
        found += (driver.PostgresError, driver.InterfaceError)
    return found


FAULTS = _faults()
"""What a database that is away, full, locked or wrongly named raises."""


def database_url(text: str) -> URL:
    """The URL that a path or a SQLAlchemy URL means; raises `UnusableDatabaseError` for what is neither."""
    if "://" not in text:
        return URL.create(_DRIVERS["sqlite"], database=text)
    try:
        url = make_url(text)
    except ArgumentError:
        example = "use a path, sqlite:///file.db or postgresql://host/name"
        raise UnusableDatabaseError(f"not a database URL: {example}") from None
    backend = url.drivername.partition("+")[0]
    if backend not in _DRIVERS:
        raise UnusableDatabaseError(f"{backend} is no database this collector writes: use sqlite or postgresql")
    if backend == "sqlite" and url.database in (None, "", ":memory:"):
        raise UnusableDatabaseError("a database in memory keeps no promise: name a file, as sqlite:///firsttoken.db")
    if backend != "sqlite" and importlib.util.find_spec("asyncpg") is None:
        raise UnusableDatabaseError("PostgreSQL needs asyncpg: install firsttoken[postgres]")
    return url.set(drivername=_DRIVERS[backend])


async def open_database(url: URL) -> AsyncEngine:
    """An engine on a database whose tables are there and of this version.

    Raises `UnusableDatabaseError` and leaves nothing open and nothing half made.
    """
    if url.get_backend_name() == "sqlite":
        _probe(url)
    engine = _engine(url)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_prepare)
    except FAULTS as error:
        await engine.dispose()
        raise UnusableDatabaseError(f"database {shown(url)} cannot be used: {reason(error)}") from error
    except BaseException:
        await engine.dispose()
        raise
    return engine


@contextmanager
def held_alone(url: URL) -> Iterator[None]:
    """Hold an SQLite file against other collectors until the block ends: each would see only what was sent to itself,
    and they would write their figures over each other's. Readers are not held up.

    The file must be there. Raises `UnusableDatabaseError` when another collector holds it.
    """
    if url.get_backend_name() != "sqlite":
        yield
        return
    file = os.open(str(url.database), os.O_RDONLY)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UnusableDatabaseError(
                f"database {shown(url)} is in use by another collector: stop that one or name another file"
            ) from None
        yield
    finally:
        os.close(file)


def shown(url: URL) -> str:
    """The URL as people may see it: without its password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)


def reason(error: Exception) -> str:
    """The driver's own words, on one line."""
    cause: BaseException = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        cause = error.orig.__cause__ or error.orig
    return " ".join(str(cause).split()) or type(cause).__name__


async def reading(connection: AsyncConnection) -> AsyncConnection:
    """The connection, set to read: its transaction takes no write lock."""
    return await connection.execution_options(**{_READING: True})


def _probe(url: URL) -> None:
    """Open the file once without a thread: a driver's thread whose first connection fails outlives the loop."""
    try:
        with closing(sqlite3.connect(str(url.database), timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise UnusableDatabaseError(f"database {shown(url)} cannot be used: {error}") from error


def _engine(url: URL) -> AsyncEngine:
    if url.get_backend_name() != "sqlite":
        return create_async_engine(
            url,
            pool_size=POOL_SIZE,
            pool_pre_ping=True,
            pool_timeout=CONNECT_TIMEOUT_S,
            connect_args={
                "timeout": CONNECT_TIMEOUT_S,
                "command_timeout": COMMAND_TIMEOUT_S,
                "server_settings": {"application_name": "firsttoken"},
            },
        )
    engine = create_async_engine(url, pool_size=POOL_SIZE, connect_args={"timeout": BUSY_TIMEOUT_S})
    event.listen(engine.sync_engine, "connect", _configure_sqlite)
    event.listen(engine.sync_engine, "begin", _in_place(str(url.database)))
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _in_place(path: str) -> Callable[[Connection], None]:
    """A look, before each transaction, whether the file of the start still lies there: SQLite would go on writing into
    one that was deleted or replaced, and what was acknowledged would be gone."""

    def file() -> tuple[int, int]:
        found = Path(path).stat()
        return found.st_dev, found.st_ino

    started_with = file()

    def look(_connection: Connection) -> None:
        try:
            gone = file() != started_with
        except FileNotFoundError:
            gone = True
        if gone:
            raise OSError(f"the file {path} was deleted or replaced: put it back, or restart the collector")

    return look


def _configure_sqlite(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        f"journal_size_limit={JOURNAL_LIMIT_BYTES}",
        "wal_autocheckpoint=1000",
        "temp_store=MEMORY",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get(_READING, False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _prepare(connection: Connection) -> None:
    """Make the tables where there are none, and refuse those of another version."""
    if connection.dialect.name == "postgresql":
        # Two collectors may start at once on an empty database.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})"))
    if connection.dialect.has_table(connection, schema.schema_version.name):
        found = connection.scalars(schema.schema_version.select()).first()
        if found != schema.VERSION:
            raise UnusableDatabaseError(
                f"the database holds tables of version {found}, this collector writes {schema.VERSION}: "
                "use the matching release or another database"
            )
        # A write proves that the file is writable now and not at the first batch.
        connection.execute(schema.schema_version.update().values(version_num=schema.VERSION))
        return
    schema.metadata.create_all(connection)
    connection.execute(schema.schema_version.insert().values(version_num=schema.VERSION))
