"""What the engine says of its own requests, as it comes off the poller's pages: grown, labelled, and ready to go out.

Models get their labels here. Behind a proxy the engine may name one that no request asked for, as a stage of a
pipeline: it is `other`, so that nothing is read from the engine's histogram that requests are already counted for.
"""

from collections.abc import Callable

from sidecar.counting.tally import Interval, Number
from sidecar.engine.engine_growth import Grower, Growth
from sidecar.engine.engine_latencies import EngineLatencies
from sidecar.engine.engines import Engine
from sidecar.engine.metrics_text import Page
from slo.signals import HEARTBEAT, REQUEST_MODEL


class EngineView:
    """The engine's requests. `label` gives the label of a model that the engine names, or of None."""

    def __init__(self, label: Callable[[str | None], str]) -> None:
        self.latencies = EngineLatencies()
        self._label, self._grower = label, Grower()
        self._since_s: int | None = None
        self._told_s = 0

    def interval(self, start_ns: int, end_ns: int, *, delta: bool, lived_s: int) -> Interval | None:
        """What to export since the last time (`delta`) or the start, once the engine has shown a histogram.

        It has heartbeats of its own, of `lived_s` that the process has lived: an idle engine is not one that is lost.
        """
        if not self.latencies.is_known:
            return None
        if self._since_s is None:
            self._since_s = lived_s
        watched_s, before_s = lived_s - self._since_s, self._told_s
        self._told_s = watched_s
        beats = Number(HEARTBEAT, (), watched_s - before_s if delta else watched_s)
        found = self.latencies.take(delta=delta)
        return Interval(start_ns, end_ns, delta=delta, counters=(beats,), distributions=found)

    def page(self, page: Page, engine: Engine) -> Growth:
        """Count what a page brings. A series without a model that holds nothing waits: the model may be learned yet."""
        growth = self._grower.page(page, engine)
        for (metric, model), grown in growth.histograms.items():
            if grown.count or model is not None:
                self.latencies.add(metric, ((REQUEST_MODEL, self._label(model)),), grown)
        return growth
