"""The one writer: acknowledges a body only once it is committed, and counts it once.

Everything that waits is committed as one group: while one transaction syncs, the next group gathers, so a sync is
paid once a group and not once a body. The digest of each body is written in the transaction that counts it; a body
delivered again, also at the same time or after kill -9, finds its digest and adds nothing. The ledger in memory takes
in what a transaction added right after its commit. Should a commit end in doubt (the connection broke while it was
asked for), the ledger is read anew from the database before anything else is counted.

On a shared database (PostgreSQL) every group is a row of the `journal` too. Each transaction, once it is its turn,
takes in what the other collectors committed before it folds anything: so a cumulative stream goes on whoever is sent
its next point, and the limit of series is one. There a commit in doubt needs no more than that either: if it took
place, the journal holds it.

When the database cannot commit, `UnavailableError` says so and nothing of the group is counted.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DataError, IntegrityError

from collector.decoding.points import Points
from collector.errors import GapError, UnavailableError
from collector.keeping import group as group_of
from collector.keeping.group import Body, Counted, Group, adds
from collector.keeping.ledger import empty, recalled
from collector.keeping.tallies import Tallies
from collector.keeping.worst import Worst
from collector.storage import commit, journal
from collector.storage.database import FAULTS, reading, reason
from collector.storage.file_engine import AnyConnection, AnyEngine
from collector.storage.journal import Entry, Mark
from collector.values.measurement import Batch
from collector.windowing.windows import Plan

MAX_WAITING = 512
MAX_GROUP = 128
GATHER_S = 0.01
"""How long a group gathers under load, at most. A body that comes alone waits for nobody."""
ATTEMPTS = 3
RETRY_PAUSE_S = 0.05
PATIENCE_S = 8.0
"""How long a body waits to be committed: senders themselves give up after ten seconds."""
CLOSE_S = 5.0
STOPPING = "the collector is stopping: send again later"
_MAY_PASS: tuple[type[Exception], ...] = (*FAULTS, GapError)
_UNHURRIED = text("SET LOCAL idle_in_transaction_session_timeout = '120s'")
"""Who reads the past holds nobody up, and makes sense of one page before it asks for the next."""
_OUR_FAULT = (IntegrityError, DataError)
"""What a body itself may be refused for. A table that is gone or may not be written is no body's fault."""

log = logging.getLogger(__name__)

T = TypeVar("T")
Clock = Callable[[], float]
Work = Callable[[AnyConnection], Awaitable[T]]
"""What is done within a transaction. Only statements run under `run_sync`: see `stacks`."""


@dataclass(slots=True)
class _Act:
    perform: Callable[[], Awaitable[Any]]
    done: asyncio.Future[Any]


class Store:
    """The committed past on `engine`, and the ledger that mirrors it, empty until the first `recall`. Ended by
    `close`."""

    def __init__(self, engine: AnyEngine, plan: Plan, *, max_series: int, clock: Clock) -> None:
        self.ledger = empty(plan, now_s=int(clock()))
        self.tallies = Tallies()
        self.worst = Worst(int(clock()))
        self.failing: str | None = None
        self.is_recalling = False
        self._engine = engine
        self._max_series = max_series
        self._clock = clock
        self._waiting: deque[Body | _Act] = deque()
        self._news = asyncio.Event()
        self._closing = False
        self._is_shared = engine.dialect.name == "postgresql"
        self._in_doubt = True
        self._complained: str | None = None
        self._writer = asyncio.create_task(self._write_on(), name="store")

    @property
    def waiting(self) -> int:
        """Bodies and other writes that wait for their turn."""
        return len(self._waiting)

    async def count(self, digest: bytes, read: Batch | Points) -> Counted:
        """Count the body once, and return when that is committed. Raises `UnavailableError`, also of a body that is in
        the middle of a commit that lasts: sent again, it counts once all the same."""
        if len(self._waiting) >= MAX_WAITING:
            raise UnavailableError("more bodies wait than can be committed: send again later")
        done: asyncio.Future[Counted] = asyncio.get_running_loop().create_future()
        body = Body(digest, read, done)
        self._enqueue(body)
        await asyncio.wait((done,), timeout=PATIENCE_S)
        if not done.done():
            if body in self._waiting:
                self._waiting.remove(body)
            done.cancel()
            if self.is_recalling:
                raise UnavailableError("the past is being read: send again later")
            self.failing = f"it did not commit within {PATIENCE_S:.0f} s"
            raise UnavailableError(f"the database cannot commit: {self.failing}")
        return await done

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Do the work in a write transaction of its own, between groups: statements, see `stacks`. Raises
        `UnavailableError`."""
        return await self._between_groups(partial(self._transact, lambda connection: connection.run_sync(work)))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do the work in a transaction that takes no lock: statements, see `stacks`. Raises `UnavailableError`."""
        try:
            async with self._engine.connect() as connection:
                await reading(connection)
                return await connection.run_sync(work)
        except FAULTS as error:
            raise UnavailableError(f"the database cannot be read: {reason(error)}") from error

    async def recall(self, plan: Plan) -> None:
        """Read the ledger anew under `plan`; nothing is counted meanwhile. Raises `UnavailableError`."""
        await self._between_groups(partial(self._read_anew, plan))

    async def follow(self, plan: Plan) -> None:
        """Judge by `plan` from now on, and read the ledger anew only where what it holds cannot answer for it. Raises
        `UnavailableError`."""
        if self._in_doubt or not self.ledger.adopt(plan):
            await self.recall(plan)

    async def catch_up(self) -> None:
        """Take in what other collectors committed. Raises `UnavailableError`."""
        if self._is_shared:
            try:
                while self._take(await self.read(self._others)):
                    pass
            except GapError as error:
                log.warning("%s: everything is read anew", error)
                await self.recall(self.ledger.plan)

    async def close(self) -> None:
        """Commit what waits, then let the database go. One that cannot commit within `CLOSE_S` holds nobody up: what
        is given up was acknowledged to nobody."""
        self._closing = True
        self._news.set()
        await asyncio.wait((self._writer,), timeout=CLOSE_S)
        if not self._writer.done():
            log.error("the database does not commit: %d pieces of work were given up", len(self._waiting) + 1)
            self._writer.cancel()
            await asyncio.wait((self._writer,), timeout=CLOSE_S)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._engine.dispose()
        except TimeoutError:
            log.error("the database does not let go")

    async def _between_groups(self, perform: Callable[[], Awaitable[T]]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._enqueue(_Act(perform, done))
        return await done

    def _enqueue(self, item: Body | _Act) -> None:
        if self._closing:
            raise UnavailableError(STOPPING)
        self._waiting.append(item)
        self._news.set()

    async def _write_on(self) -> None:
        while self._waiting or not self._closing:
            if not self._waiting:
                self._news.clear()
                await self._news.wait()
            elif isinstance(first := self._waiting.popleft(), _Act):
                await self._perform(first)
            else:
                group = [first, *self._followers()]
                await self._count_group(group)
                # Who was answered together sends again together: one group of them all costs less than two that
                # take turns.
                if (expected := len(group) + len(self._waiting)) > 1:
                    await self._gathered(min(expected, MAX_GROUP))

    async def _gathered(self, expected: int) -> None:
        """Wait a moment, if need be, for as many to wait as are expected."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GATHER_S):
                while len(self._waiting) < expected and not self._closing:
                    self._news.clear()
                    await self._news.wait()

    def _followers(self) -> Iterator[Body]:
        """The bodies that wait right behind, up to a whole group."""
        for _ in range(MAX_GROUP - 1):
            if not self._waiting or isinstance(self._waiting[0], _Act):
                return
            body = self._waiting.popleft()
            assert isinstance(body, Body)
            yield body

    async def _perform(self, act: _Act) -> None:
        try:
            answer = await act.perform()
        except Exception as error:  # noqa: BLE001  whoever asked for the work is told; the writer goes on
            _fail(act.done, error)
        else:
            _succeed(act.done, answer)

    async def _count_group(self, group: Sequence[Body]) -> None:
        """Count the bodies in one transaction; a body that spoils it is found by trying each alone."""
        try:
            await group_of.read(group)
            counted = await self._transact(partial(self._counted, group=group))
        except UnavailableError as error:
            for body in group:
                _fail(body.done, error)
        except Exception as error:
            if len(group) > 1:
                for body in group:
                    await self._count_group([body])
                return
            log.exception("a body cannot be stored")
            _fail(group[0].done, error)
        else:
            self._take_in(counted)
            for body, answer in zip(group, counted.answers, strict=True):
                if not answer.again:
                    self.tallies.take(body.batch)
                    self.worst.take(body.batch.worst, now_s=int(self._clock()))
                _succeed(body.done, answer)

    async def _counted(self, connection: AnyConnection, *, group: Sequence[Body]) -> Group:
        """Hardly any body comes again, so all are folded before the database is asked which did: where some have, the
        others are folded once more, and nothing was written before that is known."""
        now_s = int(self._clock())
        fresh: dict[bytes, Body] = {}
        for body in group:
            fresh.setdefault(body.digest, body)
        again: set[bytes] | None = None
        while again is None or again:
            fresh = {digest: body for digest, body in fresh.items() if digest not in (again or ())}
            batches = [body.batch for body in fresh.values()]
            total, parts = self.ledger.folded(batches, now_s=now_s, max_series=self._max_series)
            adding = [digest for digest, part in zip(fresh, parts, strict=True) if adds(part)]
            entry = Entry(self.ledger.mark, total)
            if self._is_shared and adds(total):
                entry = Entry(Mark(self.ledger.mark.seq + 1, secrets.randbits(62)), total)
            again = await connection.run_sync(self._write, entry, fresh.keys(), adding, at_s=now_s)
        told = {id(body): part for body, part in zip(fresh.values(), parts, strict=True)}
        return Group(entry, [group_of.answer(told.get(id(body))) for body in group])

    def _write(
        self, connection: Connection, entry: Entry, digests: Collection[bytes], adding: Sequence[bytes], *, at_s: int
    ) -> set[bytes]:
        """Write what the bodies of the digests add, unless some were counted before: those."""
        again = commit.counted(connection, digests)
        if not again:
            latest_s, step_s = self.ledger.latest_s, self.ledger.plan.tick_s
            commit.write_deltas(connection, entry.deltas, step_s=step_s, at_s=at_s, latest_s=latest_s)
            commit.write_digests(connection, adding, at_s=at_s)
            if self._is_shared:
                if entry.mark != self.ledger.mark:
                    journal.append(connection, entry, at_s=at_s)
            else:  # here and now, for each way to the file's thread and back costs as much as a statement
                self._in_doubt = True
                connection.commit()
        return again

    def _take_in(self, group: Group) -> None:
        total, answers = group.entry.deltas, group.answers
        if self._is_shared:
            self.ledger.take(group.entry)
        else:
            self.ledger.apply(total)
        self.tallies.bodies += len(answers)
        self.tallies.repeated += sum(answer.again for answer in answers)
        self.tallies.add(total)

    async def _transact(self, work: Work[T]) -> T:
        """The work in one transaction, tried again where that may help."""
        fault: Exception | None = None
        for attempt in range(ATTEMPTS):
            started = time.perf_counter()
            try:
                answer = await self._attempt(work)
            except _OUR_FAULT:
                raise
            except _MAY_PASS as error:
                self.tallies.failures += 1
                fault, self.failing = error, reason(error)
                await asyncio.sleep(RETRY_PAUSE_S * (attempt + 1))
            else:
                self.tallies.commits += 1
                self.tallies.commit_s += time.perf_counter() - started
                self.failing = None
                self._complain(None)
                return answer
        assert fault is not None
        self._complain(reason(fault))
        raise UnavailableError(f"the database cannot commit: {reason(fault)}") from fault

    def _complain(self, why: str | None) -> None:
        """Log that the database cannot commit, or can again: once, and not for each sender that tries."""
        if why == self._complained:
            return
        self._complained = why
        if why is None:
            log.info("the database commits again")
        else:
            log.error("the database cannot commit: %s", why)

    async def _attempt(self, work: Work[T]) -> T:
        if self._in_doubt:
            await self._read_anew(self.ledger.plan)
        async with self._engine.connect() as connection, connection.begin() as transaction:
            if self._is_shared:
                await connection.run_sync(commit.take_turn)
                await self._follow_journal(connection)
            answer = await work(connection)
            self._in_doubt = not self._is_shared
            await transaction.commit()
        self._in_doubt = False
        return answer

    async def _follow_journal(self, connection: AnyConnection) -> None:
        """Take in what was committed since."""
        try:
            while self._take(await connection.run_sync(self._others)):
                pass
        except GapError:
            self._in_doubt = True
            raise

    def _others(self, connection: Connection) -> Sequence[Entry]:
        """The next commits that the ledger lacks. Raises `GapError` when the journal does not tell."""
        return journal.after(connection, self.ledger.mark)

    def _take(self, entries: Sequence[Entry]) -> bool:
        """Take the commits in; whether more may follow."""
        for entry in entries:
            self.ledger.take(entry)
        return len(entries) == journal.ENTRIES_PER_PAGE

    async def _read_anew(self, plan: Plan) -> None:
        """Read the ledger as of one moment. What others commit meanwhile stands in the journal after its mark; without
        a journal the turn is ours until all is read."""
        now_s = int(self._clock())
        self.is_recalling = True
        try:
            async with self._engine.connect() as connection:
                if self._is_shared:
                    await connection.execution_options(isolation_level="REPEATABLE READ")
                async with connection.begin():
                    if self._is_shared:
                        await connection.run_sync(lambda inner: inner.execute(_UNHURRIED))
                    self.ledger = await recalled(connection, plan, now_s=now_s)
        except FAULTS as error:
            raise UnavailableError(f"the past cannot be read: {reason(error)}") from error
        finally:
            self.is_recalling = False
        self._in_doubt = False


async def opened(engine: AnyEngine, plan: Plan, *, max_series: int, clock: Clock) -> Store:
    """The store on a database, its ledger filled with what was committed before. Raises `UnavailableError`."""
    store = Store(engine, plan, max_series=max_series, clock=clock)
    try:
        await store.recall(plan)
    except BaseException:
        await store.close()
        raise
    return store


def _succeed(done: asyncio.Future[T], answer: T) -> None:
    if not done.done():
        done.set_result(answer)


def _fail(done: asyncio.Future[Any], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
