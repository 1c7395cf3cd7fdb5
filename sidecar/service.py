"""The sidecar in one process: what stands where, what happens each second, how it begins and how it ends.

    clients ─▶ Door ─▶ Relay ─▶ Pool ─▶ the server         Poller ─▶ the server's metrics and models
                         └─▶ Eye ─▶ Tally ─▶ admin page      └─▶ Eye
                              └─▶ Emitter ─▶ OTLP

Everything but the emitter's lanes runs on one event loop.
"""

import asyncio
import gc
import logging
import signal
import sys
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sidecar import limits, otlp_spans, otlp_wire, pages
from sidecar.admin import AdminDoor
from sidecar.alarm import Alarm
from sidecar.emit import Emitter, resource_attributes
from sidecar.engine_latencies import ENGINE
from sidecar.engine_view import EngineView
from sidecar.eye import Eye
from sidecar.gpu import GpuPoller
from sidecar.labels import ModelLabels
from sidecar.life import ListenError, OneAtATime, announce, chore, every, listen, raise_file_limit, read_again
from sidecar.otlp_settings import ExportSettings
from sidecar.poller import Poller
from sidecar.proxy import Door, Manners
from sidecar.settings import Address
from sidecar.tally import Interval, Tally
from sidecar.telemetry import edges_s
from sidecar.upstream import Pool, Target
from sidecar.usage_policy import Mode, UsagePolicy
from sidecar.watch import EndedRequest
from slo.objective import Spec
from slo.signals import (
    BY_NAME,
    ENVIRONMENT,
    HEARTBEAT,
    OTHER_MODEL,
    SERVICE_INSTANCE,
    SERVICE_NAME,
    SOURCE,
    UNKNOWN_MODEL,
)

log = logging.getLogger(__name__)

GIL_SWITCH_S = 0.0005  # an exporting thread hands the interpreter back to the loop after this, not after 5 ms


@dataclass(frozen=True, slots=True)
class Scrape:
    """Whether and how the engine's own metrics are read; `url` None is the server's own page."""

    on: bool = True
    url: str | None = None
    engine: str = "auto"
    interval_s: float = limits.SCRAPE_INTERVAL_S


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line decided. `upstream` None: no request passes, the engine's page alone is read."""

    upstream: Target | None
    listen: Address
    admin: Address
    service: str
    version: str
    export: ExportSettings
    spec: Spec | None = None
    spec_paths: tuple[Path, ...] = ()
    scrape: Scrape = field(default_factory=Scrape)
    manners: Manners = field(default_factory=Manners)
    class_header: str = "x-firsttoken-class"
    max_models: int = limits.MAX_MODELS
    sample_ratio: float = 1.0
    connect_s: float = limits.CONNECT_S
    drain_s: float = limits.DRAIN_S
    admin_token: str | None = None
    inject_usage: Mode = "auto"
    gpu: bool = True
    visible_gpus: str | None = None


class Sidecar:
    """All of it, wired."""

    def __init__(self, options: Options, loop: asyncio.AbstractEventLoop) -> None:
        assert options.upstream is not None, "without an upstream there is nothing to stand before"
        self._options, self._loop, self._spec = options, loop, options.spec
        self._reload_ok = True
        self._stop = asyncio.Event()
        self._tally = Tally(lambda metric: edges_s(self._spec, metric))
        self._eye = Eye(
            Alarm(loop),
            tally=self._tally,
            labels=ModelLabels(options.max_models),
            ended=self._ended,
            class_header=options.class_header.lower().encode(),
        )
        self._eye.load(options.spec)
        self._eye.usage = UsagePolicy(options.inject_usage, options.scrape.engine)
        self._door = Door(Pool(options.upstream, connect_s=options.connect_s), self._eye, options.manners)
        own, of_engine = (
            resource_attributes(self._identity(source), version=options.version) for source in ("proxy", ENGINE)
        )
        self._emitter = Emitter(
            options.export,
            resource=otlp_wire.resource(own.items()),
            engine_resource=otlp_wire.resource(of_engine.items()),
            version=options.version,
        )
        self._engine = EngineView(self._engine_label)
        self._poller = self._make_poller(options.upstream, options.scrape)
        self._gpu = self._make_gpu_poller() if options.gpu else None
        sources = pages.Sources(
            service=options.service,
            environment=str(own.get(ENVIRONMENT, "")),
            door=self._door,
            eye=self._eye,
            poller=self._poller,
            gpu=self._gpu,
            engine=self._engine.latencies,
            emitter=self._emitter,
            spec=lambda: self._spec,
            reload_ok=lambda: self._reload_ok,
        )
        self._admin = AdminDoor(pages.pages(sources), token=options.admin_token)
        self._began_s, self._seconds = time.monotonic(), 0
        self._start_ns = self._exported_ns = time.time_ns()

    def _identity(self, source: str) -> dict[str, str]:
        own = {
            SERVICE_NAME: self._options.service,
            SERVICE_INSTANCE: str(uuid.uuid4()),
            SOURCE: source,
        }
        if self._spec is not None and self._spec.environment:
            own[ENVIRONMENT] = self._spec.environment
        return own

    def _make_poller(self, target: Target, scrape: Scrape) -> Poller:
        poller = Poller(
            target,
            self._eye,
            url=scrape.url,
            engine=scrape.engine,
            interval_s=scrape.interval_s,
            on_page=lambda page, engine, _: self._engine.page(page, engine),
        )
        poller.on_reached = self._reached
        return poller

    def _engine_label(self, model: str | None) -> str:
        """The label of a model that the engine names; its counts exist, so that nobody reads them off its histogram."""
        label = self._eye.labels.of(model)
        if label in (OTHER_MODEL, UNKNOWN_MODEL):
            self._eye.introduce((label,))
        return label

    def _make_gpu_poller(self) -> GpuPoller:
        def on_loop(act: Callable[..., object], *arguments: object) -> None:
            self._loop.call_soon_threadsafe(self._eye.look, act, *arguments)

        return GpuPoller(self._tally, on_loop=on_loop, visible=self._options.visible_gpus)

    def _reached(self) -> None:
        self._door.pool.reached = True

    # Life.

    async def run(self) -> None:
        """Serve until a signal, then drain and send the last telemetry. ListenError: nothing has begun."""
        raise_file_limit()
        proxy = await listen(self._door, self._options.listen, flag="--listen")
        try:
            admin = await listen(self._admin, self._options.admin, flag="--admin")
        except ListenError:
            proxy.close()
            raise
        self._handle_signals()
        self._emitter.start()
        chores = [chore(act, look=self._eye.look) for act in self._chores()]
        gc.collect()
        gc.freeze()  # what lives as long as the process need not be searched again and again
        sys.setswitchinterval(GIL_SWITCH_S)
        announce("proxy", proxy)
        announce("admin", admin)
        await self._stop.wait()
        await self._end(proxy, chores)
        admin.close()
        self._admin.close()

    def _handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.stop)
        self._loop.add_signal_handler(signal.SIGHUP, OneAtATime(self.reload))

    def stop(self) -> None:
        """Begin to end; asked a second time, end without waiting for requests in flight."""
        if self._stop.is_set():
            self._door.hurry()
        self._stop.set()

    async def _end(self, proxy: asyncio.Server, chores: list[asyncio.Task[None]]) -> None:
        proxy.close()
        began_s = time.monotonic()
        if broken_off := await self._door.drain(self._options.drain_s):
            took_s = time.monotonic() - began_s
            log.warning("%d requests were still in flight after %.1f s and were broken off", broken_off, took_s)
        for task in chores:
            task.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        if self._gpu is not None:
            await self._loop.run_in_executor(None, self._gpu.close)
        if self._emitter.wants_metrics:
            self._eye.look(self._export)
        await self._loop.run_in_executor(None, self._emitter.close, limits.FLUSH_S)

    # Chores.

    def _chores(self) -> Iterator[Coroutine[None, None, None]]:
        yield every(1.0, self._second, look=self._eye.look)
        yield self._poller.poll_models()
        if self._options.scrape.on:
            yield self._poller.poll_metrics()
        if self._gpu is not None:
            yield self._gpu.poll()
        if self._emitter.wants_spans:
            yield every(self._options.export.span_delay_s, self._emitter.flush_spans, look=self._eye.look)
        if self._emitter.wants_metrics:
            yield every(self._options.export.metric_interval_s, self._export, look=self._eye.look)

    def _second(self) -> None:
        now_s = time.monotonic()
        lived = int(now_s - self._began_s)
        heartbeats, self._seconds = lived - self._seconds, lived
        sample = self._poller.fresh(now_s)
        self._eye.second(
            time.monotonic_ns(),
            kv_occupancy=None if sample is None else sample.kv_occupancy,
            waiting=None if sample is None else sample.waiting,
            heartbeats=heartbeats,
        )
        self._door.sweep()

    def _export(self) -> None:
        """Hand the emitter what was counted since the last time."""
        end_ns = max(time.time_ns(), self._exported_ns + 1)
        delta = self._options.export.delta
        counters, distributions = self._tally.take(delta=delta)
        now_s = time.monotonic()
        gauges = [*self._eye.gauges(time.monotonic_ns()), *self._poller.gauges(now_s)]
        if self._gpu is not None:
            gauges += self._gpu.gauges(now_s)
        start_ns = self._exported_ns if delta else self._start_ns
        self._emitter.offer_interval(
            Interval(
                start_ns,
                end_ns,
                delta=delta,
                counters=tuple(point for point in counters if point.metric.name in BY_NAME),
                gauges=tuple(gauges),
                distributions=distributions,
                engine=self._engine.interval(start_ns, end_ns, delta=delta, lived_s=self._tally.total(HEARTBEAT, ())),
            )
        )
        self._exported_ns = end_ns

    def _ended(self, ended: EndedRequest) -> None:
        if self._emitter.wants_spans and otlp_spans.kept(ended, ratio=self._options.sample_ratio):
            self._emitter.offer_span(otlp_spans.encode(ended))

    # Reload.

    async def reload(self) -> None:
        """Read slo.yaml again; a bad one changes nothing but is said and shown."""
        spec = await read_again(self._options.spec_paths, self._options.service)
        self._reload_ok = spec is not None
        if spec is None:
            return
        self._spec = spec
        self._eye.load(spec)
        self._tally.new_edges(lambda metric: edges_s(spec, metric))
        log.info("reload: spec %s is in force", spec.hash)
