"""One collector's life: opens what it needs, serves until it is told to stop, and leaves nothing undone.

Order of the start: the address, the database, the past, one evaluation; only then is it announced. While the past is
read it answers already, that it is not ready. Order of the end: no new requests, those in hand are committed and
answered, the last figures are kept, receivers hear the last word, the database is let go.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from starlette.types import ASGIApp

from collector import garbage, spec_watch
from collector.answering.desk import Desk
from collector.answering.service import application
from collector.doors import listener
from collector.doors.address import Address
from collector.doors.gate import TokenGate
from collector.doors.intake import Reception, Room
from collector.doors.listener import Listener
from collector.doors.post import Post
from collector.doors.tls import Identity
from collector.errors import ListenError, TlsError
from collector.keeping import upkeep
from collector.keeping.store import Store
from collector.options import Settings
from collector.storage import sqlite_file
from collector.storage.database import held_alone, open_database
from collector.storage.file_engine import AnyEngine
from collector.storage.leader import leading
from collector.storage.retention import Limits
from collector.telling import receivers
from collector.telling.notified import Notified
from collector.telling.notify import Notifier
from collector.telling.receivers import Alertmanager, Receiver, Webhook
from collector.ticking.ticks import Ticks
from collector.windowing.windows import Plan, plan, too_short
from slo import objective
from slo.quantity import DAY_S
from slo.source import SpecError

if TYPE_CHECKING:
    from collector.doors.rpc import Rpc

LAST_WORD_S = 2.0

log = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """Collect until SIGTERM or SIGINT. Raises `CollectorError` when it cannot start."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read again, it must not be the end
    listener.raise_file_limit()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_Collector(settings).life())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


@dataclass(frozen=True, slots=True)
class _Doors:
    """Where bodies come in: HTTP, and gRPC unless it is off."""

    url: str
    http: socket.socket
    rpc: "Rpc | None"

    def announce(self) -> None:
        """Say where, a line each, to whoever still listens: one that read the first line may have gone."""
        told = [f"collector: {self.url}"] + ([] if self.rpc is None else [f"otlp grpc: {self.rpc.url}"])
        try:
            for line in told:
                print(line, flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else it fails again at the end


@asynccontextmanager
async def _doors(settings: Settings) -> AsyncIterator[_Doors]:
    """Both addresses, before anything else is touched. Raises `ListenError`."""
    with listener.listening("--listen", settings.listen) as bound:
        async with _rpc(settings.grpc, settings.identity) as rpc:
            yield _Doors(listener.url(bound, settings.identity), bound, rpc)


@asynccontextmanager
async def _rpc(address: Address | None, identity: Identity | None) -> AsyncIterator["Rpc | None"]:
    """The gRPC listener; None when it is off, or when the address that nobody named is taken."""
    if address is None:
        yield None
        return

    from collector.doors import rpc

    async with AsyncExitStack() as stack:
        found = None
        try:
            found = await stack.enter_async_context(rpc.bound(address, identity))
        except ListenError as error:
            if not address.is_usual:
                raise
            log.warning("no OTLP over gRPC: %s, or --grpc off", error)
        yield found


class _Collector:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._specs = tuple(settings.specs)
        self._reloading = asyncio.Lock()

    async def life(self) -> None:
        settings = self._settings
        async with _doors(settings) as doors:
            with held_alone(settings.database):
                engine = await open_database(settings.database, now_s=int(time.time()))
                try:
                    await self._work(doors, engine)
                finally:
                    await engine.dispose()

    async def _work(self, doors: _Doors, engine: AnyEngine) -> None:
        self._warn()
        store = Store(engine, self._plan(), max_series=self._settings.max_series, clock=time.time)
        try:
            async with receivers.http_client() as client, leading(engine) as leader:
                external_url = self._settings.external_url or doors.url
                notifier = Notifier(
                    self._receivers(store, client, external_url), may_tell=lambda: leader.term is not None
                )
                ticks = Ticks(store, notifier, external_url, leader=leader)
                try:
                    await self._until_told(doors, Desk(store, ticks, self._settings.version))
                finally:
                    await ticks.stop()
                await notifier.last_word(LAST_WORD_S)
        finally:
            await store.close()

    def _plan(self) -> Plan:
        return plan(self._specs, tick_s=self._settings.tick_s)

    def _warn(self) -> None:
        for line in too_short(self._plan()):
            log.warning("%s", line)

    async def _judge(self, doors: _Doors, desk: Desk, listens: asyncio.Event) -> None:
        """Read the past, evaluate once and say so; then evaluate, tell and sweep until cancelled."""
        store, ticks, leader = desk.store, desk.ticks, desk.ticks.leader
        await store.recall(self._plan())
        await ticks.tick()
        garbage.settle()
        await listens.wait()
        doors.announce()
        sweeps = upkeep.sweep_on(
            store, lambda: self._limits(store), clock=time.time, leads=lambda: leader.term is not None
        )
        log_watch = sqlite_file.watch(self._settings.database)
        await asyncio.gather(ticks.run(), ticks.notifier.run(), sweeps, log_watch)

    def _limits(self, store: Store) -> Limits:
        """How long what is kept, under the spec that is in force."""
        return Limits(counts_s=max(self._settings.retention_s, store.ledger.plan.horizon_s + DAY_S))

    def _receivers(self, store: Store, client: httpx.AsyncClient, external_url: str) -> list[Receiver]:
        if self._settings.alertmanagers:
            return [Alertmanager(client, url) for url in self._settings.alertmanagers]
        if self._settings.webhook is None:
            return []
        memory = Notified(store, receivers.called(self._settings.webhook, with_path=False))
        return [Webhook(client, self._settings.webhook, external_url=external_url, memory=memory)]

    async def _until_told(self, doors: _Doors, desk: Desk) -> None:
        settings, started, listens = self._settings, set[asyncio.Task[None]](), asyncio.Event()
        reception = Reception(desk.store, desk.refused, Room())
        app: ASGIApp = Post(application(desk), reception)
        if settings.token is not None:
            app = TokenGate(app, settings.token)
        server = Listener(app, settings.identity, drain_s=settings.drain_s, announce=listens.set)
        if doors.rpc is not None:
            await doors.rpc.start(reception, settings.token)

        def stop() -> None:
            server.should_exit = True
            desk.stopping.set()
            _start(started, desk.ticks.wake())
            if doors.rpc is not None:
                _start(started, doors.rpc.stop(settings.drain_s))

        def reload() -> None:
            _start(started, self._reload(desk))

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        loop.add_signal_handler(signal.SIGHUP, reload)
        judging = asyncio.create_task(self._judge(doors, desk, listens), name="judging")
        judging.add_done_callback(lambda _: stop())  # it ends by a fault alone
        works = [] if settings.watched is None else [spec_watch.watch(settings.watched, reload)]
        try:
            async with _background(works):
                await server.serve(sockets=[doors.http])
            if judging.done():
                judging.result()
        finally:
            judging.cancel()
            await asyncio.wait((judging,))
            await asyncio.gather(*started, return_exceptions=True)

    async def _reload(self, desk: Desk) -> None:
        """Read specs and certificates anew; a faulty file changes nothing but is told."""
        async with self._reloading:
            desk.reload_ok = all((await self._renewed(), await self._reread(desk)))

    async def _renewed(self) -> bool:
        """Whether the certificates are as their files say now."""
        if self._settings.identity is not None:
            try:
                await asyncio.to_thread(self._settings.identity.reload)
            except TlsError as error:
                log.error("the certificates are kept as they were: %s", error)
                return False
        return True

    async def _reread(self, desk: Desk) -> bool:
        """Whether the specs are as their files say now."""
        before = self._specs
        try:
            self._specs = await asyncio.to_thread(objective.load, self._settings.slo)
            await desk.store.follow(self._plan())
        except SpecError as error:
            log.error("the spec is kept as it was: %s", "; ".join(map(str, error.problems)))
            return False
        except Exception:
            self._specs = before
            log.exception("the spec is kept as it was")
            return False
        self._warn()
        log.info("the spec was read anew: it speaks of %s", ", ".join(spec.service for spec in self._specs))
        return True


def _start(tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
    """Start the work; a task that nobody holds may vanish."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


@asynccontextmanager
async def _background(works: Sequence[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """The works go on until the block ends."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
