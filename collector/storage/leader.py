"""Who of several collectors on one database evaluates, writes figures and notifies: one of them, by a lease.

The lease is one row of the database (`schema.leader`): its holder, until when by the database's own clock, and a term
that counts the hand-overs. The holder renews it every two seconds; whoever asks once it has run out gets it. So it is
taken over within about ten seconds from a holder that was killed, that hangs or that the network cut off, and at once
from one that ended in order. (A lock of a session would be given up faster by a killed holder alone, never by a hung
one, and breaks behind a connection pooler.)

Two holders never write: each transaction of figures looks at the row and holds it (`fence`) until it is committed, so
one of an older term fails, and a hand-over waits for one that is being committed. Nor do two notify: a holder knows by
its own monotonic clock when the lease may have run out, also if it was stopped meanwhile, and is none from then on.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol
from uuid import uuid4

from sqlalchemy import BigInteger, ColumnElement, case, cast, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.sql.dml import ReturningInsert

from collector.errors import LostLeadError
from collector.schema import leader as lease
from collector.storage.database import FAULTS, reason
from collector.storage.file_engine import AnyEngine, FileEngine

ROLE = "evaluator"
LEASE_S = 8
ASK_S = 2.0
PATIENCE_S = 5.0

log = logging.getLogger(__name__)


class Leader(Protocol):
    """Whether this collector leads: `term` is None while it does not. `fence` raises `LostLeadError` unless it does
    until the transaction ends; `until_leading` returns after `timeout_s`, or as soon as it begins to lead."""

    @property
    def term(self) -> int | None: ...

    def fence(self, connection: Connection, /) -> None: ...

    async def until_leading(self, timeout_s: float, /) -> None: ...


class Alone:
    """The only collector of its database: it always leads."""

    term: int | None = 0

    def fence(self, _connection: Connection, /) -> None:
        pass

    async def until_leading(self, timeout_s: float, /) -> None:
        await asyncio.sleep(timeout_s)


class Elected:
    """One of several; `name` tells it from the others. `ask` once before anything else, then `run`."""

    def __init__(self, engine: AsyncEngine, name: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._name = name
        self._monotonic = monotonic
        self._connection: AsyncConnection | None = None
        self._until_s = -math.inf
        self._term = 0
        self._began = asyncio.Event()
        self._ends = asyncio.Event()
        self._led = False
        self._failing = False

    @property
    def term(self) -> int | None:
        return self._term if self._monotonic() < self._until_s else None

    def fence(self, connection: Connection, /) -> None:
        """Hold the lease until the transaction ends. Raises `LostLeadError` when another has it by now."""
        mine = select(lease.c.term).where(lease.c.collector == self._name, lease.c.term == self._term)
        if connection.execute(mine.with_for_update(read=True)).first() is None:
            self._until_s = -math.inf
            raise LostLeadError("another collector evaluates now")

    async def until_leading(self, timeout_s: float, /) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._began.wait()
        except TimeoutError:
            return
        self._began.clear()

    async def run(self) -> None:
        """Renew the lease, or wait for it, until `end`; no question is broken off in its middle."""
        while not self._ends.is_set():
            try:
                await asyncio.wait_for(self._ends.wait(), ASK_S)
            except TimeoutError:
                await self.ask()

    async def ask(self) -> None:
        """Renew the lease, or take it when it is free. A database that does not answer gives none."""
        asked_s = self._monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = (await (await self._connected()).execute(_asked(self._name))).scalar()
        except FAULTS as error:
            if not self._failing:
                log.warning("the lease cannot be renewed: %s", reason(error))
            self._failing = True
            await self._disconnect()
            return
        self._failing = False
        self._holds(found, until_s=asked_s + LEASE_S)

    def _holds(self, term: int | None, *, until_s: float) -> None:
        """Note the answer; None when another holds the lease."""
        led, self._led = self._led, term is not None
        if term is None:
            self._until_s = -math.inf
            if led:
                log.warning("another collector evaluates now")
            return
        self._term, self._until_s = term, until_s
        if not led:
            log.info("this collector evaluates now: term %d", term)
            self._began.set()

    def end(self) -> None:
        """Ask no more."""
        self._ends.set()

    async def release(self) -> None:
        """Give the lease back, for the end of the process."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                if self.term is not None:
                    mine = (lease.c.collector == self._name, lease.c.term == self._term)
                    await (await self._connected()).execute(update(lease).where(*mine).values(until_s=0))
        except FAULTS as error:
            log.warning("the lease is not given back, it runs out: %s", reason(error))
        self._until_s = -math.inf
        await self._disconnect()

    async def _connected(self) -> AsyncConnection:
        """A connection of its own, so that no crowd of readers delays the lease; each statement is a transaction."""
        if self._connection is None:
            connection = await self._engine.connect()
            self._connection = await connection.execution_options(isolation_level="AUTOCOMMIT")
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                await connection.invalidate()
                await connection.close()
        except FAULTS as error:
            log.debug("a broken connection does not close: %s", reason(error))


@asynccontextmanager
async def leading(engine: AnyEngine) -> AsyncIterator[Leader]:
    """Whether this process leads on its database, asked once at the start and renewed until the block ends; then the
    lease is given back. A database that only one collector can hold needs none."""
    if isinstance(engine, FileEngine):
        yield Alone()
        return
    one = Elected(engine, uuid4().hex)
    await one.ask()
    renewal = asyncio.create_task(one.run(), name="lease")
    try:
        yield one
    finally:
        one.end()
        await renewal
        await one.release()


def _asked(name: str) -> ReturningInsert[int]:
    """Take the lease when it is ours, has run out, or runs longer than any does: the database's clock was set back."""
    now_s: ColumnElement[int] = cast(func.floor(func.extract("epoch", func.clock_timestamp())), BigInteger)
    asked = insert(lease).values(role=ROLE, collector=name, term=1, until_s=now_s + LEASE_S)
    is_free = or_(lease.c.collector == name, lease.c.until_s < now_s, lease.c.until_s > now_s + LEASE_S)
    taken = {"collector": name, "term": lease.c.term + case((lease.c.collector == name, 0), else_=1)}
    return asked.on_conflict_do_update(
        index_elements=[lease.c.role],
        set_=taken | {"until_s": asked.excluded.until_s},
        where=is_free,
    ).returning(lease.c.term)
