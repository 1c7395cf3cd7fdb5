"""One piece of work in a collector's database whose tables are those of this release; anything else is refused.

SQLite files are opened as they are and never made; a collector may be writing to them meanwhile.
"""

import argparse
import asyncio
import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from capacity.errors import DatabaseError
from capacity.options import add_flag
from slo.flags import variable
from slo.words import reason

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection

T = TypeVar("T")
WAIT_S = 10
MOST_PORT = 65_535
EXAMPLE = "write a path, sqlite:///firsttoken.db or postgresql://host/name"
KINDS = ("sqlite", "postgresql", "postgres")
PARAMETERS = {"host": "host", "port": "port", "sslmode": "ssl", "ssl": "ssl", "passfile": "passfile"}
"""What may stand behind the `?` of a PostgreSQL URL, and what the driver calls it."""


def add_database_flags(parser: argparse.ArgumentParser, environ: Mapping[str, str], purpose: str) -> None:
    """`--database` and `--database-file`; `purpose` says what for."""
    add_flag(parser, environ, "--database", metavar="URL", help=f"of a collector: {purpose}")
    add_flag(parser, environ, "--database-file", metavar="FILE", help="file that holds the database's URL")


def named_database(args: argparse.Namespace, environ: Mapping[str, str]) -> "URL | None":
    """The database that the flags name, if they name one. Raises DatabaseError."""
    by_variable = environ.get(variable("--database"))
    if args.database_file is not None and args.database not in (None, by_variable):
        raise DatabaseError("--database and --database-file both name the database: use one of them")
    text = args.database if args.database_file is None else _content(args.database_file)
    if text is None:
        return None
    url = _url(text)
    if url.password is not None and args.database_file is None and text != by_variable:
        raise DatabaseError("--database holds a password: put the URL into a file (--database-file) or the environment")
    return url


def asked(url: "URL", work: "Callable[[Connection], T]") -> T:
    """What the work gives, done in one transaction. Raises DatabaseError, whatever is wrong with the database."""
    try:
        return _in_file(url, work) if url.get_backend_name() == "sqlite" else asyncio.run(_in_server(url, work))
    except _faults() as error:
        raise DatabaseError(f"database {_shown(url)} cannot be used: {_reason(error)}") from error


def _in_file(url: "URL", work: "Callable[[Connection], T]") -> T:
    from sqlalchemy import create_engine

    engine = create_engine(url, connect_args={"timeout": WAIT_S})
    try:
        with engine.begin() as connection:
            _refuse_other_tables(connection)
            return work(connection)
    finally:
        engine.dispose()


async def _in_server(url: "URL", work: "Callable[[Connection], T]") -> T:
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url, connect_args={"timeout": WAIT_S})
    try:
        async with engine.begin() as connection:
            await connection.run_sync(_refuse_other_tables)
            return await connection.run_sync(work)
    finally:
        await engine.dispose()


def _refuse_other_tables(connection: "Connection") -> None:
    from sqlalchemy import inspect

    from collector import schema

    version = schema.schema_version
    has_tables = inspect(connection).has_table(version.name)
    found = connection.scalars(version.select()).first() if has_tables else None
    if found != schema.REVISION:
        holds = f"tables of revision {found}" if found else "no tables of a collector"
        raise DatabaseError(
            f"database {_shown(connection.engine.url)} holds {holds}, this release uses {schema.REVISION}: "
            "start a collector of the same release on it once"
        )


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123  also a pipe of the shell
            lines = file.read().split()
    except (OSError, UnicodeDecodeError) as error:
        raise DatabaseError(f"--database-file {path} cannot be read: {_reason(error)}") from None
    if len(lines) != 1:
        raise DatabaseError(f"--database-file {path}: it must hold one URL alone, as postgresql://user@host/name")
    return lines[0]


def _url(text: str) -> "URL":
    """The URL as the driver takes it."""
    if importlib.util.find_spec("sqlalchemy") is None:
        raise DatabaseError("--database needs SQLAlchemy: install firsttoken[collector]")
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text if "://" in text else f"sqlite:///{text}")
    except (ArgumentError, ValueError):
        raise DatabaseError(f"--database is no URL of a database: {EXAMPLE}") from None
    kind = url.drivername.partition("+")[0]
    if kind not in KINDS or not url.database:
        raise DatabaseError(f"--database {_shown(url)} is none that a collector writes: {EXAMPLE}")
    if kind == "sqlite":
        path = f"file:{quote(url.database)}"
        return url.set(drivername=kind, database=path, query={"mode": "rw", "uri": "true"})
    if importlib.util.find_spec("asyncpg") is None:
        raise DatabaseError(f"--database {_shown(url)} needs asyncpg: install firsttoken[postgres]")
    for port in (url.port, url.query.get("port")):
        if port is not None and not (str(port).isdecimal() and 0 < int(str(port)) <= MOST_PORT):
            raise DatabaseError(f"--database {_shown(url)}: port {port} is none: it must be from 1 to {MOST_PORT}")
    if strange := sorted(set(url.query) - set(PARAMETERS)):
        raise DatabaseError(f"--database has a parameter {strange[0]}: write {', '.join(PARAMETERS)}")
    query = {PARAMETERS[name]: value for name, value in url.query.items()}
    return url.set(drivername="postgresql+asyncpg", query=query)


def _faults() -> tuple[type[Exception], ...]:
    from sqlalchemy.exc import SQLAlchemyError

    found: tuple[type[Exception], ...] = (SQLAlchemyError, OSError, TimeoutError)
    if importlib.util.find_spec("asyncpg") is not None:
        driver = importlib.import_module("asyncpg")
        found += (driver.PostgresError, driver.InterfaceError)
    return found


def _shown(url: "URL") -> str:
    """The URL without its password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database).removeprefix("file:")
    return url.set(drivername=url.get_backend_name(), query={}).render_as_string(hide_password=True)


def _reason(error: Exception) -> str:
    """Of what a library has wrapped, what lies inside."""
    cause = getattr(error, "orig", None) or error
    return reason(cause.__cause__ or cause)
