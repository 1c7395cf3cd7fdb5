"""The sidecar in one process: what stands where, what happens each second, how it begins and how it ends.

    clients ─▶ Door ─▶ Relay ─▶ Pool ─▶ the server         Poller ─▶ the server's metrics and models
                         └─▶ Eye ─▶ Tally ─▶ admin page      └─▶ Eye
                              └─▶ Emitter ─▶ OTLP

Everything but the emitter's lanes runs on one event loop.
"""

import asyncio
import gc
import logging
import os
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
from sidecar.eye import Eye
from sidecar.labels import ModelLabels
from sidecar.otlp_settings import ExportSettings
from sidecar.poller import Poller
from sidecar.proxy import Door, Manners
from sidecar.tally import Interval, Tally
from sidecar.upstream import Pool, Target
from sidecar.watch import EndedRequest
from slo import objective
from slo.objective import Spec
from slo.signals import (
    BY_NAME,
    CENSORED,
    ENVIRONMENT,
    LATENCY_BUCKETS_S,
    SERVICE_INSTANCE,
    SERVICE_NAME,
    SIGNALS,
    SOURCE,
    Metric,
)
from slo.source import SpecError

log = logging.getLogger(__name__)

GIL_SWITCH_S = 0.0005  # an exporting thread hands the interpreter back to the loop after this, not after 5 ms
BACKLOG = 1024


class ListenError(Exception):
    """An address that cannot be listened on; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Scrape:
    """Whether and how the engine's own metrics are read; `url` None is the server's own page."""

    on: bool = True
    url: str | None = None
    engine: str = "auto"
    interval_s: float = limits.SCRAPE_INTERVAL_S


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line decided."""

    upstream: Target
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


def edges_s(spec: Spec | None, metric: Metric) -> tuple[float, ...]:
    """Classic bucket edges of a metric: the usual ones, and every threshold that is judged on it."""
    found = list(LATENCY_BUCKETS_S)
    for item in spec.objectives if spec is not None else ():
        judged = SIGNALS[item.signal]
        if judged.threshold == "duration" and item.threshold is not None and metric in (judged.metric, CENSORED):
            found.append(float(item.threshold))
    return tuple(found)


class Sidecar:
    """All of it, wired."""

    def __init__(self, options: Options, loop: asyncio.AbstractEventLoop) -> None:
        self._options, self._loop, self._spec = options, loop, options.spec
        self._reload_ok = True
        self._reloading: asyncio.Task[None] | None = None
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
        self._door = Door(Pool(options.upstream, connect_s=options.connect_s), self._eye, options.manners)
        own = resource_attributes(self._identity(), version=options.version)
        self._emitter = Emitter(options.export, resource=otlp_wire.resource(own.items()), version=options.version)
        self._poller = self._make_poller(options.scrape)
        sources = pages.Sources(
            service=options.service,
            environment=str(own.get(ENVIRONMENT, "")),
            door=self._door,
            eye=self._eye,
            poller=self._poller,
            emitter=self._emitter,
            spec=lambda: self._spec,
            reload_ok=lambda: self._reload_ok,
        )
        self._admin = AdminDoor(pages.pages(sources), token=options.admin_token)
        self._began_s, self._seconds = time.monotonic(), 0
        self._start_ns = self._exported_ns = time.time_ns()

    def _identity(self) -> dict[str, str]:
        own = {
            SERVICE_NAME: self._options.service,
            SERVICE_INSTANCE: str(uuid.uuid4()),
            SOURCE: "proxy",
        }
        if self._spec is not None and self._spec.environment:
            own[ENVIRONMENT] = self._spec.environment
        return own

    def _make_poller(self, scrape: Scrape) -> Poller:
        poller = Poller(
            self._options.upstream, self._eye, url=scrape.url, engine=scrape.engine, interval_s=scrape.interval_s
        )
        poller.on_reached = self._reached
        return poller

    def _reached(self) -> None:
        self._door.pool.reached = True

    # Life.

    async def run(self) -> None:
        """Serve until a signal, then drain and send the last telemetry. ListenError: nothing has begun."""
        proxy = await self._listen(self._door, self._options.listen, "--listen")
        try:
            admin = await self._listen(self._admin, self._options.admin, "--admin")
        except ListenError:
            proxy.close()
            raise
        self._handle_signals()
        self._emitter.start()
        chores = [self._loop.create_task(chore) for chore in self._chores()]
        gc.collect()
        gc.freeze()  # what lives as long as the process need not be searched again and again
        sys.setswitchinterval(GIL_SWITCH_S)
        for what, server in (("proxy", proxy), ("admin", admin)):
            host, port = server.sockets[0].getsockname()[:2]
            print(f"{what}: http://{Address(host, port)}", flush=True)
        await self._stop.wait()
        await self._end(proxy, chores)
        admin.close()
        self._admin.close()

    async def _listen(self, door: Door | AdminDoor, address: Address, flag: str) -> asyncio.Server:
        try:
            return await self._loop.create_server(door, address.host, address.port, backlog=BACKLOG)
        except OSError as error:
            # asyncio words this error at length; a name that cannot be resolved has a negative number of its own.
            number = error.errno or 0
            reason = (os.strerror(number) if number > 0 else error.strerror or str(error)).lower()
            raise ListenError(f"cannot listen on {address} ({flag}): {reason}: choose another address") from None

    def _handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self.stop)
        self._loop.add_signal_handler(signal.SIGHUP, self._on_hup)

    def stop(self) -> None:
        """Begin to end; asked a second time, end without waiting for requests in flight."""
        if self._stop.is_set():
            self._door.hurry()
        self._stop.set()

    def _on_hup(self) -> None:
        self._reloading = self._loop.create_task(self.reload())

    async def _end(self, proxy: asyncio.Server, chores: list[asyncio.Task[None]]) -> None:
        proxy.close()
        drain_s = self._options.drain_s
        if broken_off := await self._door.drain(drain_s):
            log.warning("%d requests were still in flight after %g s and were broken off", broken_off, drain_s)
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        if self._emitter.wants_metrics:
            self._eye.look(self._export)
        await self._loop.run_in_executor(None, self._emitter.close, limits.FLUSH_S)

    # Chores.

    def _chores(self) -> Iterator[Coroutine[None, None, None]]:
        yield self._every(1.0, self._second)
        yield self._poller.poll_models()
        if self._options.scrape.on:
            yield self._poller.poll_metrics()
        if self._emitter.wants_spans:
            yield self._every(self._options.export.span_delay_s, self._emitter.flush_spans)
        if self._emitter.wants_metrics:
            yield self._every(self._options.export.metric_interval_s, self._export)

    async def _every(self, interval_s: float, act: Callable[[], None]) -> None:
        """Do `act` each interval, on a grid that does not drift; a fault in it is telemetry's own."""
        next_s = time.monotonic()
        while True:
            next_s = max(next_s + interval_s, time.monotonic())
            await asyncio.sleep(next_s - time.monotonic())
            self._eye.look(act)

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
        gauges = [*self._eye.gauges(time.monotonic_ns()), *self._poller.gauges(time.monotonic())]
        self._emitter.offer_interval(
            Interval(
                start_ns=self._exported_ns if delta else self._start_ns,
                end_ns=end_ns,
                delta=delta,
                counters=tuple(point for point in counters if point.metric.name in BY_NAME),
                gauges=tuple(gauges),
                distributions=distributions,
            )
        )
        self._exported_ns = end_ns

    def _ended(self, ended: EndedRequest) -> None:
        if self._emitter.wants_spans and otlp_spans.kept(ended, ratio=self._options.sample_ratio):
            self._emitter.offer_span(otlp_spans.encode(ended))

    # Reload.

    async def reload(self) -> None:
        """Read slo.yaml again; a bad one changes nothing but is said and shown."""
        try:
            specs = await self._loop.run_in_executor(None, objective.load, self._options.spec_paths)
        except SpecError as error:
            self._reload_ok = False
            for problem in error.problems:
                log.error("reload: %s", problem)
            return
        spec = next((spec for spec in specs if spec.service == self._options.service), None)
        if spec is None:
            self._reload_ok = False
            log.error("reload: no spec of service %s: the old one stays", self._options.service)
            return
        self._reload_ok, self._spec = True, spec
        self._eye.load(spec)
        self._tally.new_edges(lambda metric: edges_s(spec, metric))
        log.info("reload: spec %s is in force", spec.hash)
