"""The telemetry of one process, wherever its requests come from: what is counted, shown and sent, and when.

    requests ─▶ Eye ─▶ Tally ─▶ pages          the engine's own page ─▶ Poller ─▶ Eye
                 └──────┴─────▶ Emitter ─▶ OTLP

Lives on one event loop. A shell makes it, lets its `chores` run as tasks, and calls `close` at the end, from any
thread, once the chores are over.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Literal

from sidecar import limits, otlp_spans, otlp_wire, pages
from sidecar.alarm import Alarm
from sidecar.emit import Emitter, resource_attributes
from sidecar.engine_latencies import ENGINE
from sidecar.engine_view import EngineView
from sidecar.engines import Engine
from sidecar.eye import Eye
from sidecar.labels import ModelLabels
from sidecar.life import every
from sidecar.metrics_text import Page
from sidecar.otlp_settings import ExportSettings
from sidecar.poller import Poller
from sidecar.scrape import ServerSample
from sidecar.tally import Interval, Tally
from sidecar.watch import EndedRequest
from slo.objective import Spec
from slo.signals import (
    BY_NAME,
    CENSORED,
    ENVIRONMENT,
    HEARTBEAT,
    LATENCY_BUCKETS_S,
    OTHER_MODEL,
    SERVICE_INSTANCE,
    SERVICE_NAME,
    SIGNALS,
    SOURCE,
    UNKNOWN_MODEL,
    Metric,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What was decided about telemetry. `config_ok`: no part of the configuration had to be left out."""

    service: str
    version: str
    source: Literal["proxy", "middleware"]
    export: ExportSettings
    spec: Spec | None = None
    class_header: str = "x-firsttoken-class"
    max_models: int = limits.MAX_MODELS
    sample_ratio: float = 1.0
    scrape: bool = True
    config_ok: bool = True


def edges_s(spec: Spec | None, metric: Metric) -> tuple[float, ...]:
    """Classic bucket edges of a metric: the usual ones, and every threshold that is judged on it."""
    found = list(LATENCY_BUCKETS_S)
    for item in spec.objectives if spec is not None else ():
        judged = SIGNALS[item.signal]
        if judged.threshold == "duration" and item.threshold is not None and metric in (judged.metric, CENSORED):
            found.append(float(item.threshold))
    return tuple(found)


OnPage = Callable[[Page, Engine, ServerSample], object]


class Telemetry:
    """All of it, wired. `make_poller` gives the poller of the engine whose requests these are, which calls what it is
    given with each page that it reads."""

    def __init__(
        self, plan: Plan, loop: asyncio.AbstractEventLoop, make_poller: Callable[[Eye, OnPage], Poller]
    ) -> None:
        self._plan = plan
        self.tally = Tally(lambda metric: edges_s(plan.spec, metric))
        self.eye = Eye(
            Alarm(loop),
            tally=self.tally,
            labels=ModelLabels(plan.max_models),
            ended=self._ended,
            class_header=plan.class_header.lower().encode(),
        )
        self.eye.load(plan.spec)
        own, of_engine = (
            resource_attributes(_identity(plan, source), version=plan.version) for source in (plan.source, ENGINE)
        )
        self._environment = str(own.get(ENVIRONMENT, ""))
        self.emitter = Emitter(
            plan.export,
            resource=otlp_wire.resource(own.items()),
            engine_resource=otlp_wire.resource(of_engine.items()),
            version=plan.version,
        )
        self._engine = EngineView(self._engine_label)
        self.poller = make_poller(self.eye, lambda page, engine, _: self._engine.page(page, engine))
        self._began_s, self._seconds = time.monotonic(), 0
        self._start_ns = self._exported_ns = time.time_ns()

    def sources(self) -> pages.Sources:
        """What the admin pages show."""
        return pages.Sources(
            service=self._plan.service,
            environment=self._environment,
            door=None,
            eye=self.eye,
            poller=self.poller,
            engine=self._engine.latencies,
            emitter=self.emitter,
            spec=lambda: self._plan.spec,
            reload_ok=lambda: self._plan.config_ok,
        )

    def chores(self) -> Iterator[Coroutine[None, None, None]]:
        """What must run for ever beside the requests."""
        yield every(1.0, self._second, look=self.eye.look)
        if self._plan.scrape:
            yield self.poller.poll_models()
            yield self.poller.poll_metrics()
        if self.emitter.wants_spans:
            yield every(self._plan.export.span_delay_s, self.emitter.flush_spans, look=self.eye.look)
        if self.emitter.wants_metrics:
            yield every(self._plan.export.metric_interval_s, self._export, look=self.eye.look)

    def close(self, within_s: float) -> None:
        """Send the last of everything, waiting at most `within_s`."""
        if self.emitter.wants_metrics:
            self.eye.look(self._export)
        self.emitter.close(within_s)

    def _second(self) -> None:
        now_s = time.monotonic()
        lived = int(now_s - self._began_s)
        heartbeats, self._seconds = lived - self._seconds, lived
        self.eye.catch_up()
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
        end_ns = max(time.time_ns(), self._exported_ns + 1)
        delta = self._plan.export.delta
        counters, distributions = self.tally.take(delta=delta)
        start_ns = self._exported_ns if delta else self._start_ns
        self.emitter.offer_interval(
            Interval(
                start_ns,
                end_ns,
                delta=delta,
                counters=tuple(point for point in counters if point.metric.name in BY_NAME),
                gauges=(*self.eye.gauges(time.monotonic_ns()), *self.poller.gauges(time.monotonic())),
                distributions=distributions,
                engine=self._engine.interval(start_ns, end_ns, delta=delta, lived_s=self.tally.total(HEARTBEAT, ())),
            )
        )
        self._exported_ns = end_ns

    def _engine_label(self, model: str | None) -> str:
        """The label of a model that the engine names; its counts exist, so that nobody reads them off its histogram."""
        label = self.eye.labels.of(model)
        if label in (OTHER_MODEL, UNKNOWN_MODEL):
            self.eye.introduce((label,))
        return label

    def _ended(self, ended: EndedRequest) -> None:
        if self.emitter.wants_spans and otlp_spans.kept(ended, ratio=self._plan.sample_ratio):
            self.emitter.offer_span(otlp_spans.encode(ended))


def _identity(plan: Plan, source: str) -> dict[str, str]:
    own = {SERVICE_NAME: plan.service, SERVICE_INSTANCE: str(uuid.uuid4()), SOURCE: source}
    if plan.spec is not None and plan.spec.environment:
        own[ENVIRONMENT] = plan.spec.environment
    return own
