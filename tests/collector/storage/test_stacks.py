"""Where work between two statements runs, on real connections."""

import asyncio

import greenlet
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import Connection

from collector.storage.database import database_url, open_database
from collector.storage.stacks import on_own_stack


def is_lent() -> bool:
    """Whether this is a greenlet's stack."""
    return greenlet.getcurrent().parent is not None


def test_work_leaves_the_lent_stack_and_statements_go_on_behind_it(database: str) -> None:
    def work(connection: Connection) -> tuple[bool, bool, int | None]:
        return is_lent(), on_own_stack(connection, is_lent), connection.scalar(text("SELECT 7"))

    async def story() -> tuple[bool, bool, int | None]:
        engine = await open_database(database_url(database))
        try:
            async with engine.begin() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()

    lends = database.startswith("postgresql")  # a file's work has a thread, and its own stack there
    assert asyncio.run(story()) == (lends, False, 7)


def test_a_fault_comes_back_and_the_connection_stays_usable(database: str) -> None:
    def work(connection: Connection) -> int | None:
        with pytest.raises(ZeroDivisionError):
            on_own_stack(connection, lambda: 1 // 0)
        return connection.scalar(text("SELECT 7"))

    async def story() -> int | None:
        engine = await open_database(database_url(database))
        try:
            async with engine.begin() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()

    assert asyncio.run(story()) == 7


def test_a_connection_without_a_loop_lends_no_stack() -> None:
    with create_engine("sqlite://").connect() as connection:
        assert not on_own_stack(connection, is_lent)
