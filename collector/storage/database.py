"""Where the tables live: a path or URL in, a ready asynchronous engine out.

SQLite runs in WAL mode with `synchronous=FULL`: what was acknowledged survives kill -9 and a power cut (one fsync per
group commit, see `store`). Write transactions start with BEGIN IMMEDIATE, so they wait their turn instead of failing
when a reader's snapshot is old; readers say `reading()` and never hold one up.
"""

import asyncio
import fcntl
import importlib
import importlib.util
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import create_engine, event, make_url
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from collector.errors import UnusableDatabaseError
from collector.storage import partitions, revisions
from collector.storage.file_engine import AnyConnection, AnyEngine, FileEngine

BUSY_TIMEOUT_S = 5
CONNECT_TIMEOUT_S = 10
COMMAND_TIMEOUT_S = 20
IDLE_IN_TRANSACTION_S = 6
"""After which the server ends the transaction of a collector that was stopped or cut off in the middle of it: others
wait for its locks."""
PREPARE_TIMEOUT_S = 3600
JOURNAL_LIMIT_BYTES = 8 << 20
POOL_SIZE = 5
_DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}
_PARAMETERS: dict[str, dict[str, str]] = {
    "sqlite": {},
    "postgresql": {
        "host": "host",
        "port": "port",
        "sslmode": "ssl",
        "ssl": "ssl",
        "passfile": "passfile",
        "target_session_attrs": "target_session_attrs",
    },
}
"""What may stand behind the `?` of a URL, and what the driver calls it."""
_READING = "firsttoken_reading"


def _faults() -> tuple[type[Exception], ...]:
    """asyncpg's own errors reach us as they are when it cannot connect: SQLAlchemy wraps those of a connection only."""
    found: tuple[type[Exception], ...] = (SQLAlchemyError, OSError, TimeoutError)
    if importlib.util.find_spec("asyncpg") is not None:
        driver = importlib.import_module("asyncpg")
        found += (driver.PostgresError, driver.InterfaceError)
    return found


_LAST_PORT = 65_535

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
    if url.port is not None and not 0 < url.port <= _LAST_PORT:
        raise UnusableDatabaseError(f"the database's URL has a port {url.port}: write one from 1 to {_LAST_PORT}")
    return _understood(url.set(drivername=_DRIVERS[backend]))


def _understood(url: URL) -> URL:
    """The URL with its parameters in the driver's words; raises `UnusableDatabaseError` for one that it does not know:
    it would take it for an argument of its own."""
    known = _PARAMETERS[url.get_backend_name()]
    strange = sorted(set(url.query) - set(known))
    if strange:
        right = (
            f"write {', '.join(known)}; the rest by libpq's variables, as PGSSLROOTCERT" if known else "leave it out"
        )
        raise UnusableDatabaseError(f"the database's URL has a parameter {strange[0]}: {right}")
    return url.set(query={known[name]: value for name, value in url.query.items()})


async def open_database(url: URL, *, now_s: int | None = None) -> AnyEngine:
    """An engine on a database whose tables are there and of this version, and with them the pieces of `now_s`.

    Raises `UnusableDatabaseError` and leaves nothing open and nothing half made.
    """
    if url.get_backend_name() == "sqlite":
        await asyncio.to_thread(_probe, url)
    # Moving the tables of an older release takes its time, and so does waiting for a collector that does.
    engine = _engine(url, command_timeout_s=PREPARE_TIMEOUT_S)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(revisions.prepare)
            while now_s is not None and await connection.run_sync(partitions.make_ahead, now_s=now_s):
                pass
    except FAULTS as error:
        raise UnusableDatabaseError(f"database {shown(url)} cannot be used: {reason(error)}") from error
    finally:
        await engine.dispose()
    return _engine(url, command_timeout_s=COMMAND_TIMEOUT_S)


@contextmanager
def held_alone(url: URL) -> Iterator[None]:
    """Hold an SQLite file against other collectors until the block ends: each would see only what was sent to itself,
    and they would write their figures over each other's. Readers are not held up.

    Comes before `open_database`: the tables of a collector that runs are not changed under it. Makes the file where
    there is none. Raises `UnusableDatabaseError` when that cannot be, or another collector holds it.
    """
    if url.get_backend_name() != "sqlite":
        yield
        return
    try:
        file = os.open(str(url.database), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        right = "name a file in a folder that is there, where this user may write"
        raise UnusableDatabaseError(f"database {shown(url)} cannot be used: {error.strerror}: {right}") from error
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


async def reading(connection: AnyConnection) -> AnyConnection:
    """The connection, set to read: its transaction takes no write lock."""
    return await connection.execution_options(**{_READING: True})


def _probe(url: URL) -> None:
    """Open the file once without the driver, whose thread outlives the loop when its first connection fails, and set
    what the file itself remembers."""
    try:
        with closing(sqlite3.connect(str(url.database), timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
            # Heeded by a new file alone: what is dropped can be given back, see `upkeep`.
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            _write_ahead(connection)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise UnusableDatabaseError(f"database {shown(url)} cannot be used: {error}") from error


def _engine(url: URL, *, command_timeout_s: float) -> AnyEngine:
    if url.get_backend_name() != "sqlite":
        return create_async_engine(
            url,
            pool_size=POOL_SIZE,
            pool_pre_ping=True,
            pool_timeout=CONNECT_TIMEOUT_S,
            connect_args={
                "timeout": CONNECT_TIMEOUT_S,
                "command_timeout": command_timeout_s,
                "server_settings": {
                    "application_name": "firsttoken",
                    "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_S * 1000),
                },
            },
        )
    # A connection has one user at a time, but its work is done by whichever thread is free.
    arguments = {"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}
    engine = create_engine(url, poolclass=QueuePool, pool_size=POOL_SIZE, connect_args=arguments)
    look = in_place(str(url.database))
    event.listen(engine, "do_connect", lambda *_: look())
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", partial(_begin_in_place, look))
    event.listen(engine, "begin", _begin_sqlite)
    return FileEngine(engine, POOL_SIZE)


def in_place(path: str) -> Callable[[], None]:
    """A look whether the file of this moment still lies there; raises OSError where it does not.

    Asked before each transaction, for SQLite would go on writing into a file that was deleted, and what was
    acknowledged would be gone; and before each connection, for one to the file that replaced it would take the log
    beside it for its own, and write what is in there over that file.
    """

    def file() -> tuple[int, int] | None:
        try:
            found = Path(path).stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    started_with = file()

    def look() -> None:
        if started_with is None or file() != started_with:
            right = f"put it back; or stop the collector, remove {path}-wal and {path}-shm, and start it again"
            raise OSError(f"the file {path} was deleted or replaced: {right}")

    return look


def _begin_in_place(look: Callable[[], None], connection: Connection) -> None:
    try:
        look()
    except OSError:
        connection.invalidate()  # it may be one to the file that lies there now, and outlive it
        raise


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Have the file keep a log. Two that ask so of a new file at once do not wait for each other: one is refused."""
    give_up_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_s:
                raise
            time.sleep(0.02)
        else:
            return


def _configure_sqlite(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    cursor = connection.cursor()
    for pragma in (
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
