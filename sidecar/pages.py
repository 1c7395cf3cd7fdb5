"""The pages of the admin address, made from what the process knows at that moment."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from sidecar import exposition
from sidecar.admin import Answer, Pages
from sidecar.emit import Emitter
from sidecar.eye import Eye
from sidecar.poller import Poller
from sidecar.proxy import Door
from sidecar.tally import Number
from slo.objective import Spec
from slo.signals import CONFIG_RELOAD_OK, EXPORT_DROPPED, REASON, SIGNAL, SPEC_INFO


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the pages look. `spec` and `reload_ok` ask for what is in force now."""

    service: str
    environment: str
    door: Door
    eye: Eye
    poller: Poller
    emitter: Emitter
    spec: Callable[[], Spec | None]
    reload_ok: Callable[[], bool]


def pages(sources: Sources) -> Pages:
    """Every page by its path."""
    return {
        b"/metrics": lambda: metrics(sources),
        b"/healthz": lambda: Answer(200, b"ok\n"),
        b"/readyz": lambda: ready(sources.door),
    }


def ready(door: Door) -> Answer:
    """Ready once the server behind was reached, until the draining begins."""
    if door.draining:
        return Answer(503, b"draining\n")
    if not door.pool.reached:
        return Answer(503, b"the server behind has not been reached yet\n")
    return Answer(200, b"ready\n")


def metrics(sources: Sources) -> Answer:
    """The Prometheus page."""
    eye, page = sources.eye, exposition.Page(sources.service, sources.environment)
    page.histograms(eye.tally.classics())
    page.numbers(eye.tally.totals())
    page.numbers(eye.gauges(time.monotonic_ns()))
    page.numbers(sources.poller.gauges(time.monotonic()))
    page.numbers(
        Number(EXPORT_DROPPED, ((SIGNAL, lane), (REASON, reason)), count)
        for (lane, reason), count in sources.emitter.drops().items()
    )
    page.numbers([Number(CONFIG_RELOAD_OK, (), int(sources.reload_ok()))])
    if (spec := sources.spec()) is not None:
        page.info(SPEC_INFO, "hash", spec.hash)
    return Answer(200, page.text(), exposition.CONTENT_TYPE)
