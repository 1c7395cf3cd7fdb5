"""The one writer: acknowledges a body only once it is committed, and counts it once.

Everything that waits is committed as one group: while one transaction syncs, the next group gathers, so a sync is
paid once a group and not once a body. The digest of each body is written in the transaction that counts it; a body
delivered again, also at the same time or after kill -9, finds its digest and adds nothing. The ledger in memory takes
in what a transaction added right after its commit; should a commit end in doubt (the connection broke while it was
asked for), the ledger is read anew from the database before anything else is counted.

When the database cannot commit, `UnavailableError` says so and nothing of the group is counted.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy.engine import Connection
from sqlalchemy.exc import DataError, IntegrityError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncEngine

from collector import commit
from collector.database import FAULTS, reading, reason
from collector.deltas import Deltas
from collector.errors import UnavailableError
from collector.ledger import Ledger, recalled
from collector.measurement import Batch, Tally
from collector.windows import Plan

MAX_WAITING = 512
MAX_GROUP = 128
MAX_REASONS = 100
ATTEMPTS = 3
RETRY_PAUSE_S = 0.05
PATIENCE_S = 8.0
"""How long a body waits to be committed: senders themselves give up after ten seconds."""
CLOSE_S = 5.0
_OUR_FAULT = (IntegrityError, DataError, ProgrammingError)

log = logging.getLogger(__name__)

T = TypeVar("T")
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Counted:
    """What became of a body: points refused and why; `again` when it had been counted before."""

    rejected: int = 0
    why: str = ""
    again: bool = False


@dataclass(slots=True)
class Tallies:
    """What the store has done since its start."""

    bodies: int = 0
    repeated: int = 0
    commits: int = 0
    failures: int = 0
    commit_s: float = 0.0
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, tallies: Iterable[Tally]) -> None:
        for tally in tallies:
            known = tally.reason in self.dropped or len(self.dropped) < MAX_REASONS
            reason = tally.reason if known else "other"
            self.dropped[reason] = self.dropped.get(reason, 0) + tally.count


@dataclass(slots=True, eq=False)
class _Body:
    digest: bytes
    batch: Batch
    done: asyncio.Future[Counted]


@dataclass(slots=True)
class _Act:
    work: Callable[[Connection], Any]
    done: asyncio.Future[Any]


class Store:
    """The committed past on `engine`, and the ledger that mirrors it. Made by `opened`, ended by `close`."""

    def __init__(self, engine: AsyncEngine, ledger: Ledger, *, max_series: int, clock: Clock) -> None:
        self.ledger = ledger
        self.tallies = Tallies()
        self.failing: str | None = None
        self._engine = engine
        self._max_series = max_series
        self._clock = clock
        self._waiting: deque[_Body | _Act] = deque()
        self._news = asyncio.Event()
        self._closing = False
        self._in_doubt = False
        self._writer = asyncio.create_task(self._write_on(), name="store")

    async def count(self, digest: bytes, batch: Batch) -> Counted:
        """Count the body once, and return when that is committed. Raises `UnavailableError`, also of a body that is in
        the middle of a commit that lasts: sent again, it counts once all the same."""
        if len(self._waiting) >= MAX_WAITING:
            raise UnavailableError("more bodies wait than can be committed: send again later")
        done: asyncio.Future[Counted] = asyncio.get_running_loop().create_future()
        body = _Body(digest, batch, done)
        self._enqueue(body)
        await asyncio.wait((done,), timeout=PATIENCE_S)
        if not done.done():
            if body in self._waiting:
                self._waiting.remove(body)
            done.cancel()
            self.failing = f"it did not commit within {PATIENCE_S:.0f} s"
            raise UnavailableError(f"the database cannot commit: {self.failing}")
        return await done

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Do the work in a write transaction of its own, between groups. Raises `UnavailableError`."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._enqueue(_Act(work, done))
        return await done

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do the work in a transaction that takes no lock. Raises `UnavailableError`."""
        try:
            async with self._engine.connect() as connection:
                await reading(connection)
                return await connection.run_sync(work)
        except FAULTS as error:
            raise UnavailableError(f"the database cannot be read: {reason(error)}") from error

    async def recall(self, plan: Plan) -> None:
        """Read the ledger anew under `plan`; nothing is counted meanwhile. Raises `UnavailableError`."""
        self.ledger = await self.write(lambda connection: self._recalled(connection, plan))

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

    def _enqueue(self, item: _Body | _Act) -> None:
        if self._closing:
            raise UnavailableError("the collector is stopping: send again later")
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
                await self._count_group([first, *self._followers()])

    def _followers(self) -> Iterator[_Body]:
        """The bodies that wait right behind, up to a whole group."""
        for _ in range(MAX_GROUP - 1):
            if not self._waiting or isinstance(self._waiting[0], _Act):
                return
            body = self._waiting.popleft()
            assert isinstance(body, _Body)
            yield body

    async def _perform(self, act: _Act) -> None:
        try:
            answer = await self._transact(act.work)
        except Exception as error:  # noqa: BLE001  whoever asked for the work is told; the writer goes on
            _fail(act.done, error)
        else:
            _succeed(act.done, answer)

    async def _count_group(self, group: Sequence[_Body]) -> None:
        """Count the bodies in one transaction; a body that spoils it is found by trying each alone."""
        try:
            total, answers = await self._transact(lambda connection: self._counted(connection, group))
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
            self._take_in(total, answers)
            for body, answer in zip(group, answers, strict=True):
                _succeed(body.done, answer)

    def _counted(self, connection: Connection, group: Sequence[_Body]) -> tuple[Deltas, list[Counted]]:
        now_s = int(self._clock())
        before = commit.counted(connection, {body.digest for body in group})
        fresh: dict[bytes, _Body] = {}
        for body in group:
            if body.digest not in before:
                fresh.setdefault(body.digest, body)
        batches = [body.batch for body in fresh.values()]
        total, parts = self.ledger.folded(batches, now_s=now_s, max_series=self._max_series)
        commit.write_deltas(connection, total, step_s=self.ledger.plan.tick_s, at_s=now_s)
        adding = [digest for digest, part in zip(fresh, parts, strict=True) if _adds(part)]
        commit.write_digests(connection, adding, at_s=now_s)
        told = {id(body): part for body, part in zip(fresh.values(), parts, strict=True)}
        return total, [_answer(told.get(id(body))) for body in group]

    def _take_in(self, total: Deltas, answers: Sequence[Counted]) -> None:
        self.ledger.apply(total)
        self.tallies.bodies += len(answers)
        self.tallies.repeated += sum(answer.again for answer in answers)
        self.tallies.drop((*total.rejected, *total.ignored))

    async def _transact(self, work: Callable[[Connection], T]) -> T:
        """The work in one transaction, tried again where that may help."""
        fault: Exception | None = None
        for attempt in range(ATTEMPTS):
            started = time.perf_counter()
            try:
                answer = await self._attempt(work)
            except _OUR_FAULT:
                raise
            except FAULTS as error:
                self.tallies.failures += 1
                fault, self.failing = error, reason(error)
                await asyncio.sleep(RETRY_PAUSE_S * (attempt + 1))
            else:
                self.tallies.commits += 1
                self.tallies.commit_s += time.perf_counter() - started
                self.failing = None
                return answer
        assert fault is not None
        log.error("the database cannot commit: %s", reason(fault))
        raise UnavailableError(f"the database cannot commit: {reason(fault)}") from fault

    async def _attempt(self, work: Callable[[Connection], T]) -> T:
        async with self._engine.connect() as connection, connection.begin() as transaction:
            await connection.run_sync(commit.take_turn)
            if self._in_doubt:
                plan = self.ledger.plan
                self.ledger = await connection.run_sync(lambda inner: self._recalled(inner, plan))
                self._in_doubt = False
            answer = await connection.run_sync(work)
            try:
                await transaction.commit()
            except BaseException:
                self._in_doubt = True
                raise
        return answer

    def _recalled(self, connection: Connection, plan: Plan) -> Ledger:
        return recalled(connection, plan, now_s=int(self._clock()))


async def opened(engine: AsyncEngine, plan: Plan, *, max_series: int, clock: Clock) -> Store:
    """The store on a database, its ledger filled with what was committed before."""
    now_s = int(clock())
    async with engine.connect() as connection:
        await reading(connection)
        ledger = await connection.run_sync(lambda inner: recalled(inner, plan, now_s=now_s))
    return Store(engine, ledger, max_series=max_series, clock=clock)


def _adds(part: Deltas) -> bool:
    """Whether the part leaves anything behind; what does not may come again as often as it likes."""
    return any((part.latencies, part.slo, part.gauges, part.counters, part.known, part.instances, part.streams))


def _answer(part: Deltas | None) -> Counted:
    if part is None:
        return Counted(again=True)
    return Counted(part.rejected_count, part.rejected_text)


def _succeed(done: asyncio.Future[T], answer: T) -> None:
    if not done.done():
        done.set_result(answer)


def _fail(done: asyncio.Future[Any], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
