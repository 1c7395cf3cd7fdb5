"""The pages of the admin address, made from what the process knows at that moment."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Protocol

from sidecar.counting.tally import Number, Tally
from sidecar.engine.engine_latencies import EngineLatencies
from sidecar.gpus.gpu import GpuPoller
from sidecar.polling.poller import Poller
from sidecar.telling.admin import Answer, Later, Pages
from sidecar.telling.emit import Emitter
from sidecar.telling.exposition import CONTENT_TYPE, OPENMETRICS_TYPE, Exposition
from slo.objective import Spec
from slo.signals import CONFIG_RELOAD_OK, GPU_COLLECTOR_UP, REASON, SIGNAL, SPEC_INFO

READY = Answer(200, b"ready\n")


class Watching(Protocol):
    """Whoever watches the requests, as far as it is shown."""

    tally: Tally

    def catch_up(self) -> None: ...

    def gauges(self, now_ns: int) -> list[Number]: ...


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the pages look. `spec` and `reload_ok` ask for what is in force now; `ready` answers `/readyz`: yes, unless
    a shell knows better."""

    service: str
    environment: str
    eye: Watching
    poller: Poller
    emitter: Emitter
    spec: Callable[[], Spec | None]
    reload_ok: Callable[[], bool]
    ready: Callable[[], Answer] = lambda: READY
    gpu: GpuPoller | None = None
    engine: EngineLatencies | None = None


def pages(sources: Sources) -> Pages:
    """Every page by its path."""
    return {
        b"/metrics": lambda: _metrics(_gathered(sources)),
        b"/healthz": lambda: Answer(200, b"ok\n"),
        b"/readyz": sources.ready,
    }


def _metrics(page: Exposition) -> Later:
    """The Prometheus page, in the form that its reader asks for."""
    return Later(partial(_text, page), partial(_openmetrics, page))


def _text(page: Exposition) -> Answer:
    return Answer(200, page.text(), CONTENT_TYPE)


def _openmetrics(page: Exposition) -> Answer:
    return Answer(200, page.text(openmetrics=True), OPENMETRICS_TYPE)


def _gathered(sources: Sources) -> Exposition:
    """All that the Prometheus page shows, as it is now."""
    eye, page = sources.eye, Exposition(sources.service, sources.environment)
    eye.catch_up()
    engine = () if sources.engine is None else sources.engine.classics()
    page.histograms(chain(eye.tally.classics(), engine))
    page.numbers(eye.tally.totals())
    page.numbers(eye.gauges(time.monotonic_ns()))
    page.numbers(sources.poller.gauges(time.monotonic()))
    if sources.gpu is not None:
        page.numbers(sources.gpu.gauges(time.monotonic()))
        page.numbers([Number(GPU_COLLECTOR_UP, (), int(sources.gpu.up(time.monotonic())))])
    page.numbers(
        Number(metric, ((SIGNAL, lane), (REASON, reason)), count)
        for (metric, lane, reason), count in sources.emitter.counts().items()
    )
    page.numbers([Number(CONFIG_RELOAD_OK, (), int(sources.reload_ok()))])
    if (spec := sources.spec()) is not None:
        page.info(SPEC_INFO, "hash", spec.hash)
    return page
