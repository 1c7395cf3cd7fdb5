"""An SQLite file, from the event loop: a piece of work goes to a thread whole, and its answer comes back.

The usual driver for asyncio goes to its thread and back for each statement, and for each step of a cursor: some twenty
times a commit, which cost as much as all that a body of spans is otherwise. Here `run_sync` is one such trip, whatever
is done within, and a transaction of the writer is three. It has the few methods of SQLAlchemy's `AsyncEngine` and
`AsyncConnection` that the collector uses, so who works with a database sees no difference; under it is SQLAlchemy's
own engine and pool.

A piece of work whose asker goes away is broken off in the database, and waited for: its connection is nobody else's
until it has ended. Only one that does not end even so (a disk that hangs) is left behind, and closed when it does.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy.engine import Connection, Dialect, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

LEFT_BEHIND_S = 2.0
"""How long a piece of work that was broken off is waited for."""
BREAK_OFF_EVERY_S = 0.05
"""Between two statements there is nothing to break off: so it is said again."""

P = ParamSpec("P")
T = TypeVar("T")


class FileTransaction:
    """One transaction; whole once `commit` returns, and undone if the block that holds it ends before."""

    def __init__(self, connection: "FileConnection") -> None:
        self._connection = connection

    async def commit(self) -> None:
        await self._connection.commit()


class FileConnection:
    """One connection, used by one task at a time. It is opened by the first piece of work."""

    def __init__(self, engine: Engine, threads: ThreadPoolExecutor) -> None:
        self._engine, self._threads = engine, threads
        self._options: dict[str, object] = {}
        self._connection: Connection | None = None
        self._works: asyncio.Future[Any] | None = None

    async def execution_options(self, **options: object) -> Self:
        """Options of SQLAlchemy's, before the first piece of work."""
        self._options |= options
        return self

    async def run_sync(self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of `fn`, called with SQLAlchemy's connection in a thread."""
        work = functools.partial(self._worked, fn, *args, **kwargs)
        self._works = works = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(works)
        except asyncio.CancelledError:
            await self._break_off(works)
            raise

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[FileTransaction]:
        """A transaction, which the first piece of work begins."""
        try:
            transaction = FileTransaction(self)
            yield transaction
            await self.commit()
        finally:
            if self._is_free:
                await self._end(_roll_back)

    async def commit(self) -> None:
        """Make the transaction stay, if the first piece of work has begun one."""
        await self._end(_commit)

    async def _end(self, how: Callable[[Connection], None]) -> None:
        if self._in_transaction:
            await self.run_sync(how)

    async def close(self) -> None:
        """Let the connection go, which undoes what was not committed; also when whoever asks for it goes away."""
        if not self._is_free and self._works is not None:
            self._works.add_done_callback(lambda _: self._close_beside())
        elif self._in_transaction:
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._threads, self._close))
        else:
            self._close()

    def _close_beside(self) -> None:
        try:
            self._threads.submit(self._close)
        except RuntimeError:  # the engine has been disposed of meanwhile
            self._close()

    def _worked(self, fn: Callable[..., T], *args: object, **kwargs: object) -> T:
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(**self._options)
        if not self._connection.in_transaction():
            self._connection.begin()
        return fn(self._connection, *args, **kwargs)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def _in_transaction(self) -> bool:
        return self._connection is not None and self._connection.in_transaction()

    @property
    def _is_free(self) -> bool:
        return self._works is None or self._works.done()

    async def _break_off(self, works: asyncio.Future[T]) -> None:
        """Interrupt the database until the work has ended, within reason."""
        loop = asyncio.get_running_loop()
        give_up_s = loop.time() + LEFT_BEHIND_S
        works.add_done_callback(_looked_at)
        while not works.done() and loop.time() < give_up_s:
            if self._connection is not None and not self._connection.invalidated and not self._connection.closed:
                driver = self._connection.connection.dbapi_connection
                if driver is not None:
                    driver.interrupt()
            await asyncio.wait((works,), timeout=BREAK_OFF_EVERY_S)


class FileEngine:
    """The ways to one file; `connections` at once. Ended by `dispose`."""

    def __init__(self, engine: Engine, connections: int) -> None:
        self.sync_engine = engine
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="sqlite")

    @property
    def dialect(self) -> Dialect:
        return self.sync_engine.dialect

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[FileConnection]:
        """A connection, let go at the end of the block."""
        connection = FileConnection(self.sync_engine, self._threads)
        try:
            yield connection
        finally:
            await connection.close()

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[FileConnection]:
        """A connection in a transaction, which is committed at the end of the block."""
        async with self.connect() as connection, connection.begin():
            yield connection

    async def dispose(self) -> None:
        """Close what is open. Work that goes on keeps its connection until it ends."""
        await asyncio.get_running_loop().run_in_executor(None, self.sync_engine.dispose)
        self._threads.shutdown(wait=False)


AnyEngine = AsyncEngine | FileEngine
AnyConnection = AsyncConnection | FileConnection


def _commit(connection: Connection) -> None:
    connection.commit()


def _roll_back(connection: Connection) -> None:
    connection.rollback()


def _looked_at(works: "asyncio.Future[T]") -> None:
    """Nobody waits for it any more, so nobody would see what it raised."""
    if not works.cancelled():
        works.exception()
