"""Lets people read the stored past without ever holding up who writes it.

Questions come from outside and may be about anything. Each has a time to be answered in, only a few are asked of the
database at once (its connections are few, and the writer needs one), and only so many wait behind them; whoever comes
beyond is told to come again. A question that takes too long is broken off in the database itself, so that no reader
keeps SQLite's log from shrinking.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import text
from sqlalchemy.engine import Connection

from collector.errors import UnavailableError
from collector.keeping.store import Store

MAX_READERS = 2
MAX_QUESTIONS = 32
PATIENCE_S = 5.0
STEPS_BETWEEN_LOOKS = 20_000

T = TypeVar("T")


class Reader:
    """The readers' way to the database behind a store."""

    def __init__(self, store: Store, *, patience_s: float = PATIENCE_S) -> None:
        self._store = store
        self._patience_s = patience_s
        self._turns = asyncio.Semaphore(MAX_READERS)
        self._asked = 0

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do the work in a transaction that takes no lock: statements, see `stacks`. Raises `UnavailableError`: too
        many ask, the database is away, or it took too long."""
        if self._asked >= MAX_QUESTIONS:
            raise UnavailableError("more is asked at once than can be answered: ask again later")
        self._asked += 1
        try:
            await self._turn()
            try:
                # The database breaks off what takes too long; one that does not answer at all is not waited for.
                async with asyncio.timeout(2 * self._patience_s):
                    return await self._answer(work)
            except TimeoutError:
                raise UnavailableError(f"the database did not answer within {2 * self._patience_s:g} s") from None
            finally:
                self._turns.release()
        finally:
            self._asked -= 1

    async def _turn(self) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._turns.acquire()
        except TimeoutError:
            raise UnavailableError("others ask for much at the moment: ask again later") from None

    async def _answer(self, work: Callable[[Connection], T]) -> T:
        started = time.monotonic()

        def bounded(connection: Connection) -> T:
            with _at_most(connection, self._patience_s):
                return work(connection)

        try:
            return await self._store.read(bounded)
        except UnavailableError:
            if time.monotonic() - started < self._patience_s:
                raise
            less = "ask for a shorter time, a longer step or one service"
            raise UnavailableError(f"the answer took longer than {self._patience_s:g} s: {less}") from None


@contextmanager
def _at_most(connection: Connection, seconds: float) -> Iterator[None]:
    """Have the database break off whatever of the block takes longer."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SET LOCAL statement_timeout = {int(seconds * 1000)}"))
        yield
        return
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    deadline = time.monotonic() + seconds
    driver.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        driver.set_progress_handler(None, 0)
