"""Tables of every age end as those of this release, with all that was counted, or stay as they were."""

import asyncio
import logging
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Table, create_engine, insert, inspect, select, text
from sqlalchemy.ext.asyncio import create_async_engine

from collector import schema
from collector.errors import UnusableDatabaseError
from collector.storage import ddl, revisions
from collector.storage.database import database_url, open_database
from collector.storage.file_engine import FileEngine
from tests.collector.stores import everything

FIRST = {name: (revisions.SCRIPTS / f"0001.{name}.sql").read_text() for name in ddl.DIALECTS}
MARK = "CREATE TABLE schema_version (version_num TEXT NOT NULL, PRIMARY KEY (version_num));"
STAMP = "INSERT INTO schema_version VALUES ('0001');"
OLD_TABLES = (
    *("percentile", "burn_rate", "budget", "alert", "alert_event", "gauge", "counter", "series", "rollup"),
    *("slo_count", "known", "instance", "batch", "stream", "notification"),
)


HERE = "'public'::regnamespace"
SHAPE = (
    f"""SELECT relname, relkind::text, pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid), obj_description(oid),
    CASE WHEN relkind = 'v' THEN pg_get_viewdef(oid) END FROM pg_class WHERE relnamespace = {HERE}""",
    f"""SELECT relname, attname, attnum, format_type(atttypid, atttypmod), attnotnull, col_description(c.oid, attnum)
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = {HERE} AND attnum > 0""",
    f"""SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = {HERE}""",
    "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
)
"""What PostgreSQL says of tables, views and how they are cut; of columns; of constraints; of indexes."""


def ask(database: str, *works: Callable[[Connection], Any]) -> Any:
    """The answer of the last work, each in a transaction of its own, on a database that nobody prepares."""

    async def story() -> Any:
        url = database_url(database)
        is_file = url.get_backend_name() == "sqlite"
        engine = FileEngine(create_engine(url), 1) if is_file else create_async_engine(url)
        try:
            answer = None
            for work in works:
                async with engine.begin() as connection:
                    answer = await connection.run_sync(work)
            return answer
        finally:
            await engine.dispose()

    return asyncio.run(story())


def opened(database: str) -> None:
    async def story() -> None:
        await (await open_database(database_url(database))).dispose()

    asyncio.run(story())


def run_script(database: str, script: str) -> None:
    """Run a script as an administrator would."""
    if database.startswith("sqlite"):
        with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
            connection.executescript(script)
        connection.close()
        return

    async def story() -> None:
        connection = await asyncpg.connect(database)
        await connection.execute(script)
        await connection.close()

    asyncio.run(story())


def sample(table: Table, number: int) -> dict[str, Any]:
    """A row that every constraint takes, different for each number."""
    kinds = {int: number, float: number + 0.5, str: f"text {number}", bytes: b"%d" % number}
    return {column.name: kinds[column.type.python_type] for column in table.columns}


def an_old_release(database: str) -> dict[str, list[Any]]:
    """Have the tables of the first release in the database, with rows in each; the rows."""
    name = "sqlite" if database.startswith("sqlite") else "postgresql"
    # The comments of `schema_version` come before the table's own statement in none of the scripts.
    run_script(database, MARK + STAMP + FIRST[name])
    tables = [schema.metadata.tables[name] for name in OLD_TABLES]

    def fill(connection: Connection) -> None:
        for table in tables:
            connection.execute(insert(table), [sample(table, number) for number in (10, 1_800_000_000, 1_800_086_400)])

    return ask(database, fill, rows)  # type: ignore[no-any-return]


def rows(connection: Connection) -> dict[str, list[Any]]:
    """What the tables of the first release hold."""
    found = {}
    for name in OLD_TABLES:
        columns = [column.name for column in schema.metadata.tables[name].columns]
        listed = ", ".join(f'"{one}"' for one in columns)
        question = text(f"SELECT {listed} FROM {name}")
        found[name] = sorted(map(tuple, connection.execute(question)), key=repr)
    return found


def version(connection: Connection) -> Any:
    return connection.scalar(select(schema.schema_version.c.version_num))


def shape(connection: Connection) -> list[tuple[Any, ...]]:
    """Everything a database says of its own tables and views, as it says it."""
    if connection.dialect.name == "sqlite":
        question = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
        return [tuple(row) for row in connection.execute(text(question))]
    return sorted((tuple(row) for one in SHAPE for row in connection.execute(text(one))), key=repr)


def migrated(connection: Connection) -> None:
    revisions.upgrade(connection)


def test_the_latest_revision_is_the_head_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(revisions.SCRIPTS))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_current_head() == revisions.LATEST
    assert {script.revision for script in scripts.walk_revisions()} == {*revisions.EARLIER, revisions.LATEST}


def test_migrating_from_nothing_makes_the_tables_of_the_schema(database: str) -> None:
    """By alembic's own comparison, and by what the database itself says of them."""

    def differences(connection: Connection) -> list[Any]:
        names = {*schema.metadata.tables, *schema.views.tables}
        partitions = set(inspect(connection).get_table_names()) - names

        def ours(name: str | None, kind: str, _parents: Any) -> bool:
            return kind != "table" or name not in partitions

        context = MigrationContext.configure(
            connection, opts={"version_table": schema.schema_version.name, "include_name": ours}
        )
        return list(compare_metadata(context, schema.metadata))

    assert ask(database, migrated, differences) == []
    by_migrations = ask(database, shape)
    ask(database, wiped, ddl.create)
    assert [one for one in ask(database, shape) if one not in by_migrations] == []
    assert ask(database, shape) == by_migrations


def wiped(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
        return
    for name in [*schema.metadata.tables, *schema.views.tables]:
        kind = "VIEW" if name in schema.views.tables else "TABLE"
        connection.execute(text(f"DROP {kind} {name}"))


def test_a_database_of_the_first_release_is_taken_up_without_loss(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = an_old_release(database)
    with caplog.at_level(logging.INFO, logger="collector"):
        opened(database)
    assert ask(database, version) == revisions.LATEST
    assert ask(database, rows) == before
    assert [r.getMessage().split(" in ")[0] for r in caplog.records if r.name == revisions.__name__] == [
        f"tables of revision 0001 were brought to {revisions.LATEST}"
    ]
    caplog.clear()
    opened(database)
    assert [r for r in caplog.records if r.name == revisions.__name__] == []


def test_collectors_that_start_at_once_migrate_once(database: str) -> None:
    before = an_old_release(database)

    async def story() -> None:
        engines = await asyncio.gather(*(open_database(database_url(database)) for _ in range(3)))
        await asyncio.gather(*(engine.dispose() for engine in engines))

    asyncio.run(story())
    assert ask(database, rows) == before


KILLED = """
import asyncio, os, signal, sys
from collector.migrations import script
from collector.storage import database

database_text, statements = sys.argv[1], int(sys.argv[2])
done = 0

def counted(run):
    class Counting:
        def __init__(self, connection):
            self._connection = connection
        def __getattr__(self, name):
            return getattr(self._connection, name)
        def exec_driver_sql(self, statement):
            global done
            if done == statements:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
            return self._connection.exec_driver_sql(statement)
    return lambda connection, revision: run(Counting(connection), revision)

script.run = counted(script.run)
asyncio.run(database.open_database(database.database_url(database_text)))
"""


@pytest.mark.parametrize("statements", [0, 5, 14, 10_000])
def test_a_migration_that_is_killed_leaves_either(database: str, statements: int) -> None:
    """Old tables with old rows, whole; the next start brings them on."""
    before = an_old_release(database)
    done = subprocess.run([sys.executable, "-c", KILLED, database, str(statements)], capture_output=True, timeout=120)
    if statements < 10_000:
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        assert ask(database, version) == "0001"
        assert ask(database, rows) == before
    opened(database)
    assert ask(database, version) == revisions.LATEST
    assert ask(database, rows) == before


@pytest.mark.parametrize("found", ["0006", "9999", "x"])
def test_tables_of_a_later_release_are_left_alone(database: str, found: str) -> None:
    opened(database)
    ask(database, lambda c: c.execute(text(f"UPDATE schema_version SET version_num = '{found}'")))
    before = ask(database, everything)
    with pytest.raises(UnusableDatabaseError, match=f"revision {found}.*matching release") as caught:
        opened(database)
    assert "\n" not in str(caught.value)
    assert ask(database, everything) == before


def test_tables_of_somebody_else_are_left_alone(database: str) -> None:
    ask(database, lambda c: c.execute(text("CREATE TABLE alert (mine INTEGER)")))
    with pytest.raises(UnusableDatabaseError, match="alert"):
        opened(database)
    assert ask(database, lambda c: inspect(c).get_table_names()) == ["alert"]
