"""One collector's life: opens what it needs, serves until it is told to stop, and leaves nothing undone.

Order of the start: the address, the database, the past, one evaluation; only then is it announced. Order of the end:
no new requests, those in hand are committed and answered, the last figures are kept, receivers hear the last word,
the database is let go.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.types import ASGIApp

from collector import notify, recall, upkeep, upsert, webhook
from collector.connection import Connection as HttpConnection
from collector.database import held_alone, open_database
from collector.errors import ListenError
from collector.gate import TokenGate
from collector.notify import Alertmanager, Notifier, Receiver, Webhook
from collector.options import Settings
from collector.retention import Limits
from collector.service import Desk, application
from collector.store import Store, opened
from collector.ticks import Ticks
from collector.windows import Plan, plan
from slo import objective
from slo.source import SpecError

DAY_S = 86400
KEEP_ALIVE_S = 75
BACKLOG = 2048
MAX_CONNECTIONS = 2048
LAST_WORD_S = 2.0

log = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """Collect until SIGTERM or SIGINT. Raises `CollectorError` when it cannot start."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_Collector(settings).life())


def listening(host: str, port: int) -> socket.socket:
    """A bound socket. Raises `ListenError`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ListenError(f"--listen {host}:{port}: {error.strerror or error}") from error
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise ListenError(f"--listen {host}:{port}: {error.strerror or error}: choose another address") from error
    return bound


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


class _Server(uvicorn.Server):
    """uvicorn that says when it listens, and leaves signals to us: its own handlers end the process by the signal."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._announce()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Collector:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._specs = tuple(settings.specs)

    async def life(self) -> None:
        settings = self._settings
        with listening(settings.host, settings.port) as bound:
            url = _url(bound)
            engine = await open_database(settings.database)
            try:
                with held_alone(settings.database):
                    await self._work(bound, url, engine)
            finally:
                await engine.dispose()

    async def _work(self, bound: socket.socket, url: str, engine: AsyncEngine) -> None:
        store = await opened(engine, self._plan(), max_series=self._settings.max_series, clock=time.time)
        try:
            async with notify.http_client() as client:
                await self._serve(bound, url, store, client)
        finally:
            await store.close()

    def _plan(self) -> Plan:
        return plan(self._specs, tick_s=self._settings.tick_s)

    async def _serve(self, bound: socket.socket, url: str, store: Store, client: httpx.AsyncClient) -> None:
        external_url = self._settings.external_url or url
        notifier = Notifier(await self._receivers(store, client, external_url))
        ticks = Ticks(store, notifier, external_url)
        await ticks.resume()
        await ticks.tick()
        desk = Desk(store, ticks, self._settings.version)
        limits = Limits(counts_s=max(self._settings.retention_s, store.ledger.plan.horizon_s + DAY_S))
        works = (ticks.run(), notifier.run(), upkeep.sweep_on(store, limits, clock=time.time))
        async with _background(works):
            await self._until_told(bound, url, desk)
        await ticks.settled()
        await notifier.last_word(LAST_WORD_S)

    async def _receivers(self, store: Store, client: httpx.AsyncClient, external_url: str) -> list[Receiver]:
        if self._settings.alertmanagers:
            return [Alertmanager(client, url) for url in self._settings.alertmanagers]
        if self._settings.webhook is None:
            return []
        told = await store.read(recall.notifications)
        name = notify.name_of(self._settings.webhook)
        mine = {group: status for (receiver, group), status in told.items() if receiver == name}
        url = self._settings.webhook
        return [Webhook(client, url, external_url=external_url, told=mine, remember=_remember(store))]

    async def _until_told(self, bound: socket.socket, url: str, desk: Desk) -> None:
        app: ASGIApp = application(desk)
        if self._settings.token is not None:
            app = TokenGate(app, self._settings.token)
        config = uvicorn.Config(
            app,
            http=HttpConnection,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=self._settings.drain_s,
            limit_concurrency=MAX_CONNECTIONS,
        )
        server = _Server(config, lambda: print(f"collector: {url}", flush=True))
        loop = asyncio.get_running_loop()
        started: set[asyncio.Task[None]] = set()

        def stop() -> None:
            server.should_exit = True
            desk.stopping.set()
            _start(started, desk.ticks.wake())

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: _start(started, self._reload(desk)))
        await server.serve(sockets=[bound])
        await asyncio.gather(*started, return_exceptions=True)

    async def _reload(self, desk: Desk) -> None:
        """Read the specs anew; a faulty file changes nothing but is told."""
        try:
            specs = objective.load(self._settings.slo)
        except SpecError as error:
            desk.reload_ok = False
            log.error("the spec is kept as it was: %s", error)
            return
        before = self._specs
        self._specs = specs
        try:
            await desk.store.recall(self._plan())
        except Exception:
            self._specs, desk.reload_ok = before, False
            log.exception("the spec is kept as it was")
        else:
            desk.reload_ok = True
            log.info("the spec was read anew: %d services", len(specs))


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


def _remember(store: Store) -> notify.Remember:
    async def remember(receiver: str, group: str, status: webhook.Status) -> None:
        row = (receiver, group, status, int(time.time()))

        def work(connection: Connection) -> None:
            upsert.NOTIFICATION.write(connection, [row])

        await store.write(work)

    return remember


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
