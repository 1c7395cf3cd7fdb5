"""The sidecar that stands before nothing: it reads an engine's metrics page, and that is all it knows.

    the engine's metrics page ─▶ Poller ─▶ Onlooker ─▶ Tally, EngineLatencies ─▶ admin page, OTLP (source `engine`)

No request passes through it, so it costs the engine a page a second and nothing else. What it cannot know it says in
the log once the first page was read: see `backing`.
"""

import asyncio
import logging
import signal
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator

from sidecar import limits, otlp_wire, pages
from sidecar.admin import AdminDoor, Answer, Pages
from sidecar.emit import Emitter, resource_attributes
from sidecar.engine_latencies import ENGINE
from sidecar.gpu import GpuPoller
from sidecar.labels import ModelLabels
from sidecar.life import OneAtATime, announce, chore, every, listen, read_again
from sidecar.onlooker import Onlooker
from sidecar.poller import Poller, page_of
from sidecar.service import Options
from sidecar.tally import Interval, Tally
from slo.signals import BY_NAME, ENVIRONMENT, SERVICE_INSTANCE, SERVICE_NAME, SOURCE

log = logging.getLogger(__name__)


class ScrapeOnly:
    """All of it, wired. `options` names a page to scrape."""

    def __init__(self, options: Options, loop: asyncio.AbstractEventLoop) -> None:
        assert options.scrape.url is not None, "there is a page to scrape"
        self._options, self._loop, self._spec = options, loop, options.spec
        self._reload_ok = True
        self._stop = asyncio.Event()
        self._tally = Tally(lambda _: ())
        self._onlooker = Onlooker(tally=self._tally, labels=ModelLabels(options.max_models))
        self._onlooker.load(options.spec)
        own = resource_attributes(self._identity(), version=options.version)
        self._emitter = Emitter(options.export, resource=otlp_wire.resource(own.items()), version=options.version)
        target, _ = page_of(options.scrape.url, options.scrape.engine)
        self._poller = Poller(
            target,
            self._onlooker,
            url=options.scrape.url,
            engine=options.scrape.engine,
            interval_s=options.scrape.interval_s,
            on_page=self._onlooker.page,
        )
        self._gpu = GpuPoller(self._tally, on_loop=self._on_loop, visible=options.visible_gpus) if options.gpu else None
        self._admin = AdminDoor(self._pages(str(own.get(ENVIRONMENT, ""))), token=options.admin_token)
        self._began_s, self._seconds = time.monotonic(), 0
        self._start_ns = self._exported_ns = time.time_ns()

    def _identity(self) -> dict[str, str]:
        own = {SERVICE_NAME: self._options.service, SERVICE_INSTANCE: str(uuid.uuid4()), SOURCE: ENGINE}
        if self._spec is not None and self._spec.environment:
            own[ENVIRONMENT] = self._spec.environment
        return own

    def _on_loop(self, act: Callable[..., object], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(self._onlooker.look, act, *arguments)

    def _pages(self, environment: str) -> Pages:
        sources = pages.Sources(
            service=self._options.service,
            environment=environment,
            door=None,
            eye=self._onlooker,
            poller=self._poller,
            emitter=self._emitter,
            spec=lambda: self._spec,
            reload_ok=lambda: self._reload_ok,
            gpu=self._gpu,
            engine=self._onlooker.view.latencies,
        )
        return {**pages.pages(sources), b"/readyz": self._ready}

    def _ready(self) -> Answer:
        """Ready once a page of the engine was read."""
        if self._onlooker.has_seen:
            return Answer(200, b"ready\n")
        return Answer(503, b"no metrics page of a known engine has been read yet\n")

    # Life.

    async def run(self) -> None:
        """Watch until a signal, then send the last telemetry. ListenError: nothing has begun."""
        admin = await listen(self._admin, self._options.admin, flag="--admin")
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop.set)
        self._loop.add_signal_handler(signal.SIGHUP, OneAtATime(self.reload))
        self._emitter.start()
        chores = [chore(act, look=self._onlooker.look) for act in self._chores()]
        announce("admin", admin)
        await self._stop.wait()
        for task in chores:
            task.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        if self._gpu is not None:
            await self._loop.run_in_executor(None, self._gpu.close)
        if self._emitter.wants_metrics:
            self._onlooker.look(self._export)
        await self._loop.run_in_executor(None, self._emitter.close, limits.FLUSH_S)
        admin.close()
        self._admin.close()

    def _chores(self) -> Iterator[Coroutine[None, None, None]]:
        yield every(1.0, self._second, look=self._onlooker.look)
        yield self._poll()
        if self._gpu is not None:
            yield self._gpu.poll()
        if self._emitter.wants_metrics:
            yield every(self._options.export.metric_interval_s, self._export, look=self._onlooker.look)

    async def _poll(self) -> None:
        """Learn the served models first: an engine's page may name none."""
        await self._poller.models_once()
        await asyncio.gather(self._poller.poll_models(), self._poller.poll_metrics())

    def _second(self) -> None:
        now_s = time.monotonic()
        lived = int(now_s - self._began_s)
        heartbeats, self._seconds = lived - self._seconds, lived
        sample = self._poller.fresh(now_s)
        self._onlooker.second(
            time.monotonic_ns(),
            kv_occupancy=None if sample is None else sample.kv_occupancy,
            waiting=None if sample is None else sample.waiting,
            heartbeats=heartbeats,
        )

    def _export(self) -> None:
        """Hand the emitter what was counted since the last time."""
        end_ns = max(time.time_ns(), self._exported_ns + 1)
        delta, now_s = self._options.export.delta, time.monotonic()
        counters, _ = self._tally.take(delta=delta)
        gauges = [*self._poller.gauges(now_s), *(() if self._gpu is None else self._gpu.gauges(now_s))]
        self._emitter.offer_interval(
            Interval(
                self._exported_ns if delta else self._start_ns,
                end_ns,
                delta=delta,
                counters=tuple(point for point in counters if point.metric.name in BY_NAME),
                gauges=tuple(gauges),
                distributions=self._onlooker.view.latencies.take(delta=delta),
            )
        )
        self._exported_ns = end_ns

    # Reload.

    async def reload(self) -> None:
        """Read slo.yaml again; a bad one changes nothing but is said and shown."""
        spec = await read_again(self._options.spec_paths, self._options.service)
        self._reload_ok = spec is not None
        if spec is not None:
            self._spec = spec
            self._onlooker.load(spec)
            log.info("reload: spec %s is in force", spec.hash)
