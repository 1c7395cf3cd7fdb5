"""What an engine's own histograms have grown by: as intervals for export, and as totals for the Prometheus page.

Source `engine`, whatever the resource they go out under: an engine's latency and ours are never one series.
"""

from collections.abc import Iterator

from sidecar.counting.histogram import EdgeBuckets
from sidecar.counting.tally import Attributes, Distribution
from sidecar.engine.engine_histograms import added
from slo.signals import SOURCE, Metric

ENGINE = "engine"

_Of = tuple[Metric, Attributes]


class EngineLatencies:
    """Increases added up, by metric and attributes. An engine that comes back with other edges starts a new total, as
    counters may; what of the old ones was not exported yet still is."""

    def __init__(self) -> None:
        self._totals: dict[_Of, EdgeBuckets] = {}
        self._untaken: dict[_Of, dict[tuple[float, ...], EdgeBuckets]] = {}

    def add(self, metric: Metric, attributes: Attributes, grown: EdgeBuckets) -> None:
        """Count an increase; an empty one makes the histogram known."""
        of = metric, attributes
        total = self._totals.get(of)
        same = total is not None and total.bounds == grown.bounds
        self._totals[of] = added((total, grown)) if total is not None and same else grown
        if grown.count:
            untaken = self._untaken.setdefault(of, {})
            held = untaken.get(grown.bounds)
            untaken[grown.bounds] = grown if held is None else added((held, grown))

    @property
    def is_known(self) -> bool:
        """Whether any histogram has been seen."""
        return bool(self._totals)

    def take(self, *, delta: bool) -> tuple[Distribution, ...]:
        """Those since the last `take` (`delta`) that hold a value, or all since the start."""
        if not delta:
            return tuple(Distribution(*of, total) for of, total in self._totals.items())
        untaken, self._untaken = self._untaken, {}
        return tuple(Distribution(*of, grown) for of, held in untaken.items() for grown in held.values())

    def classics(self) -> Iterator[tuple[Metric, Attributes, EdgeBuckets]]:
        """All since the start, each with its source."""
        for (metric, attributes), total in self._totals.items():
            yield metric, (*attributes, (SOURCE, ENGINE)), total
