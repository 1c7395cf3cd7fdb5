"""The telemetry of one process, wherever its requests come from: what is counted, shown and sent, and when.

    requests ─▶ Eye ─▶ Tally ─▶ pages          the engine's own page ─▶ Poller ─▶ Eye     GPUs ─▶ GpuPoller ─▶ Tally
                 └──────┴─────▶ Emitter ─▶ OTLP

Who watches the requests is the shell's choice: an `Eye` in this process, a `WorkersEye` over those in several, or,
where none passes, an `EngineEye` over the engine's pages. Lives on one event loop: a shell makes it, calls `begin`, and
at the end `end`, or `close` where no loop runs any more.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Generic, Protocol, TypeVar

from sidecar import limits
from sidecar.configuration.plan import Plan, edges_s
from sidecar.counting.exemplar import Trace, callers_trace, own_trace
from sidecar.counting.tally import Interval, Tally
from sidecar.engine.engine_latencies import ENGINE
from sidecar.engine.engine_view import EngineView
from sidecar.engine.engines import Engine
from sidecar.engine.metrics_text import Page
from sidecar.engine.scrape import ServerSample
from sidecar.gpus.gpu import GpuPoller
from sidecar.guarding.queue_guard import QueueGuard
from sidecar.judging.deadline_timer import DeadlineTimer
from sidecar.judging.eye import Eye
from sidecar.judging.labels import ModelLabels
from sidecar.polling import poller
from sidecar.polling.backing import StateSight
from sidecar.polling.poller import OnPage, Poller
from sidecar.said.record import EndedRequest
from sidecar.serving.lifecycle import chore, every, read_again
from sidecar.telling import otlp_spans, otlp_wire, pages
from sidecar.telling.emit import Emitter
from slo.objective import Spec
from slo.signals import BY_NAME, ENVIRONMENT, HEARTBEAT, OTHER_MODEL, UNKNOWN_MODEL

log = logging.getLogger(__name__)

STOP_S = 1.0  # a chore may be inside a host that does not let itself be cancelled: it is left behind after this


class Watching(pages.Watching, poller.Watching, Protocol):
    """Whoever watches the requests, or the engine from outside."""

    tally: Tally

    def load(self, spec: Spec | None) -> None: ...

    def second(self, now_ns: int, *, kv_occupancy: float | None, waiting: float | None, heartbeats: int) -> None: ...


W = TypeVar("W", bound=Watching)


class Telemetry(Generic[W]):
    """All of it, wired.

    `make_poller` gives the poller of the engine whose requests these are, which calls what it is given with each page
    that it reads. `view` is given by a watcher that takes the pages itself.
    """

    def __init__(
        self,
        plan: Plan,
        loop: asyncio.AbstractEventLoop,
        eye: W,
        *,
        emitter: Emitter,
        make_poller: Callable[[W, OnPage], Poller],
        view: EngineView | None = None,
    ) -> None:
        self._plan, self._loop, self._spec, self._reload_ok = plan, loop, plan.spec, plan.config_ok
        self.eye, self.tally, self.emitter = eye, eye.tally, emitter
        self.eye.load(plan.spec)
        self._view = view or EngineView(self._engine_label)
        self._state_sight = StateSight()
        self.poller = make_poller(eye, self._page)
        self._gpu = GpuPoller(self.tally, on_loop=self._on_loop, visible=plan.visible_gpus) if plan.gpu else None
        self._chores: list[asyncio.Task[None]] = []
        self._began_s, self._seconds = time.monotonic(), 0
        self._start_ns = self._exported_ns = time.time_ns()

    @property
    def spec(self) -> Spec | None:
        """The spec in force."""
        return self._spec

    def sources(self) -> pages.Sources:
        """What the admin pages show."""
        return pages.Sources(
            service=self._plan.service,
            environment=str(self._plan.identity().get(ENVIRONMENT, "")),
            eye=self.eye,
            poller=self.poller,
            gpu=self._gpu,
            engine=self._view.latencies,
            emitter=self.emitter,
            spec=lambda: self._spec,
            reload_ok=lambda: self._reload_ok,
        )

    # Life.

    def begin(self, *more: Coroutine[None, None, None]) -> None:
        """Start the chores, and with them those that the shell has."""
        self.emitter.start()
        if self.spec is None:
            log.info("service %s has no objectives: nothing is judged (name slo.yaml with --slo)", self._plan.service)
        self._chores = [chore(act, look=self.eye.look) for act in (*self.chores(), *more)]

    async def end(self) -> None:
        """Stop the chores and send the last of everything."""
        for task in self._chores:
            task.cancel()
        if self._chores:
            await asyncio.wait(self._chores, timeout=STOP_S)
        if self._gpu is not None:
            await self._loop.run_in_executor(None, self._gpu.close)
        self.eye.look(self.eye.catch_up)
        if self.emitter.wants_metrics:
            self.eye.look(self._export)
        await self._loop.run_in_executor(None, self.emitter.close, limits.FLUSH_S)

    def close(self, within_s: float) -> None:
        """As `end`, where no loop runs any more and so nothing else counts; on any thread."""
        if self._gpu is not None:
            self._gpu.close()
        self.eye.look(self.eye.catch_up)
        if self.emitter.wants_metrics:
            self.eye.look(self._export)
        self.emitter.close(within_s)

    async def reload(self, *, others_ok: bool = True) -> bool:
        """Read slo.yaml again; whether it is in force now: a bad one changes nothing, but is said and shown.
        `others_ok`: what the shell has read again is in use."""
        spec = await read_again(self._plan.spec_paths, self._plan.service)
        self._reload_ok = spec is not None and others_ok
        if spec is None:
            return False
        self._spec = spec
        judge_by(spec, self.eye)
        log.info("reload: spec %s is in force", spec.hash)
        return True

    # Chores.

    def chores(self) -> Iterator[Coroutine[None, None, None]]:
        """What must run for ever beside the requests."""
        look, export = self.eye.look, self._plan.export
        yield every(1.0, self._second, look=look)
        if self._plan.models:
            yield self.poller.poll_models()
        if self._plan.scrape:
            yield self.poller.poll_metrics()
        if self._gpu is not None:
            yield self._gpu.poll()
        if self.emitter.wants_spans:
            yield every(export.span_delay_s, self.emitter.flush_spans, look=look)
        if self.emitter.wants_metrics:
            yield every(export.metric_interval_s, self._export, look=look)

    def _second(self) -> None:
        now_s = time.monotonic()
        lived = int(now_s - self._began_s)
        heartbeats, self._seconds = lived - self._seconds, lived
        sample = self.poller.fresh(now_s)
        self.eye.second(
            time.monotonic_ns(),
            kv_occupancy=None if sample is None else sample.kv_occupancy,
            waiting=None if sample is None else sample.waiting,
            heartbeats=heartbeats,
        )

    def _export(self) -> None:
        """Hand the emitter what was counted since the last time."""
        self.eye.catch_up()
        end_ns, now_s = max(time.time_ns(), self._exported_ns + 1), time.monotonic()
        delta = self._plan.export.delta
        start_ns = self._exported_ns if delta else self._start_ns
        counters, distributions = self.tally.take(delta=delta)
        engine = None
        if self._plan.source == ENGINE:
            distributions = self._view.latencies.take(delta=delta)
        else:
            lived_s = self.tally.total(HEARTBEAT, ())
            engine = self._view.interval(start_ns, end_ns, delta=delta, lived_s=lived_s)
        gauges = [*self.eye.gauges(time.monotonic_ns()), *self.poller.gauges(now_s)]
        if self._gpu is not None:
            gauges += self._gpu.gauges(now_s)
        self.emitter.offer_interval(
            Interval(
                start_ns,
                end_ns,
                delta=delta,
                counters=tuple(point for point in counters if point.metric.name in BY_NAME),
                gauges=tuple(point for point in gauges if point.metric.name in BY_NAME),
                distributions=distributions,
                engine=engine,
            )
        )
        self._exported_ns = end_ns

    def _page(self, page: Page, engine: Engine, sample: ServerSample) -> None:
        """A page of the engine that these requests go to."""
        self._view.page(page, engine)
        objectives = self._spec.objectives if self._spec is not None else ()
        self._state_sight.page(sample, objectives, models=self.eye.labels.served)

    def _engine_label(self, model: str | None) -> str:
        """The label of a model that the engine names; its counts exist, so that nobody reads them off its histogram."""
        label = self.eye.labels.of(model)
        if label in (OTHER_MODEL, UNKNOWN_MODEL):
            self.eye.introduce((label,))
        return label

    def _on_loop(self, act: Callable[..., object], *arguments: object) -> None:
        self._loop.call_soon_threadsafe(self.eye.look, act, *arguments)


def judge_by(spec: Spec | None, eye: Watching) -> None:
    """Let a watcher judge by another spec from now on, and count at its thresholds."""
    eye.load(spec)
    eye.tally.new_edges(lambda metric: edges_s(spec, metric))


def emitter_of(plan: Plan) -> Emitter:
    """The exporter of a plan."""
    beside = None if plan.source == ENGINE else otlp_wire.resource(plan.engine_identity().items())
    own = otlp_wire.resource(plan.identity().items())
    return Emitter(plan.export, resource=own, engine_resource=beside, version=plan.version)


def eye_of(plan: Plan, loop: asyncio.AbstractEventLoop, emitter: Emitter) -> Eye:
    """An eye over requests in this process, whose spans go to `emitter`."""

    wants_spans, ratio = emitter.wants_spans, plan.sample_ratio

    def ended(request: EndedRequest) -> Trace | None:
        over_ns = request.start_unix_ns + request.record.ended_at_ns - request.record.t0_ns
        if not wants_spans:
            return callers_trace(request.context, over_ns)
        is_kept = ratio >= 1 or otlp_spans.kept(request, ratio=ratio)
        if is_kept and emitter.offer_span(otlp_spans.encode(request)):
            return own_trace(request.context, over_ns)
        return None

    eye = Eye(
        DeadlineTimer(loop),
        tally=Tally(lambda metric: edges_s(plan.spec, metric)),
        labels=ModelLabels(plan.max_models),
        ended=ended,
        class_header=plan.class_header.lower().encode(),
    )
    eye.exports_spans = emitter.wants_spans
    eye.guard = None if plan.shed == "off" else QueueGuard(plan.shed)
    return eye


def of_requests(
    plan: Plan, loop: asyncio.AbstractEventLoop, make_poller: Callable[[Eye, OnPage], Poller]
) -> Telemetry[Eye]:
    """The telemetry of requests that pass through this process."""
    emitter = emitter_of(plan)
    return Telemetry(plan, loop, eye_of(plan, loop, emitter), emitter=emitter, make_poller=make_poller)
