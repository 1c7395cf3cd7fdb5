"""The pages of the admin address, made from what the process knows at that moment."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from sidecar import exposition
from sidecar.admin import Answer, Later, Pages
from sidecar.emit import Emitter
from sidecar.engine_latencies import EngineLatencies
from sidecar.gpu import GpuPoller
from sidecar.poller import Poller
from sidecar.tally import Number, Tally
from slo.objective import Spec
from slo.signals import CONFIG_RELOAD_OK, EXPORT_DROPPED, GPU_COLLECTOR_UP, REASON, SIGNAL, SPEC_INFO

if TYPE_CHECKING:
    from sidecar.proxy import Door


class Watching(Protocol):
    """Whoever watches the requests, as far as it is shown."""

    tally: Tally

    def catch_up(self) -> None: ...

    def gauges(self, now_ns: int) -> list[Number]: ...


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the pages look. `spec` and `reload_ok` ask for what is in force now; no `door`: no server stands behind."""

    service: str
    environment: str
    door: "Door | None"
    eye: Watching
    poller: Poller
    emitter: Emitter
    spec: Callable[[], Spec | None]
    reload_ok: Callable[[], bool]
    gpu: GpuPoller | None = None
    engine: EngineLatencies | None = None


def pages(sources: Sources) -> Pages:
    """Every page by its path."""
    return {
        b"/metrics": lambda: later(gathered(sources)),
        b"/healthz": lambda: Answer(200, b"ok\n"),
        b"/readyz": lambda: ready(sources.door),
    }


def ready(door: "Door | None") -> Answer:
    """Ready once the server behind was reached, until the draining begins; at once where there is none."""
    if door is None:
        return Answer(200, b"ready\n")
    if door.draining:
        return Answer(503, b"draining\n")
    if not door.pool.reached:
        return Answer(503, b"the server behind has not been reached yet\n")
    return Answer(200, b"ready\n")


def metrics(sources: Sources) -> Answer:
    """The Prometheus page."""
    return _shown(gathered(sources))


def later(page: exposition.Page) -> Later:
    """A Prometheus page, in the form that its reader asks for."""
    return Later(partial(_shown, page), partial(_openmetrics, page))


def _shown(page: exposition.Page) -> Answer:
    return Answer(200, page.text(), exposition.CONTENT_TYPE)


def _openmetrics(page: exposition.Page) -> Answer:
    return Answer(200, page.text(openmetrics=True), exposition.OPENMETRICS_TYPE)


def gathered(sources: Sources) -> exposition.Page:
    """All that the Prometheus page shows, as it is now."""
    eye, page = sources.eye, exposition.Page(sources.service, sources.environment)
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
        Number(EXPORT_DROPPED, ((SIGNAL, lane), (REASON, reason)), count)
        for (lane, reason), count in sources.emitter.drops().items()
    )
    page.numbers([Number(CONFIG_RELOAD_OK, (), int(sources.reload_ok()))])
    if (spec := sources.spec()) is not None:
        page.info(SPEC_INFO, "hash", spec.hash)
    return page
