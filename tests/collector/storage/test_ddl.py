"""The statements that are printed make the tables and views that a collector makes."""

import asyncio
import sqlite3

import asyncpg
import pytest

from collector import schema
from collector.storage import ddl
from tests.collector.storage.test_revisions import ask, opened, shape, wiped

NAMES = {*schema.metadata.tables, *schema.views.tables}


def test_the_printed_statements_make_every_table_and_view_in_sqlite() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(ddl.ddl("sqlite"))
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        for name in NAMES:
            assert connection.execute(f"SELECT * FROM {name}").fetchall() == []
    connection.close()
    assert names >= NAMES


@pytest.mark.tools
def test_the_printed_statements_make_what_a_collector_makes_in_postgresql(shared_database: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(shared_database)
        await connection.execute(ddl.ddl("postgresql"))
        await connection.close()

    asyncio.run(run())
    printed = ask(shared_database, shape)
    ask(shared_database, wiped)
    opened(shared_database)
    assert ask(shared_database, shape) == printed
    assert not any("%%" in str(one) for one in printed)


def test_postgresql_statements_carry_every_comment_as_it_is() -> None:
    printed = ddl.ddl("postgresql")
    both = (*schema.metadata.tables.values(), *schema.views.tables.values())
    assert printed.count("COMMENT ON COLUMN") == sum(len(table.columns) for table in both)
    for table in both:
        for column in table.columns:
            assert "'" + str(column.comment).replace("'", "''") + "'" in printed
