"""What has been counted: counters and histograms by metric and attributes, with no clock and no lock.

Lives on the event loop's thread alone. Two readers take from it: the admin page reads totals since the start, the
exporter takes intervals (`take`). A label set that must exist before its first event is made by `create`, at 0: a
counter that is born at 1 loses that event to every `increase()`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from sidecar.histogram import ClassicHistogram, EdgeBuckets, LogBuckets, LogHistogram
from slo.signals import Metric

Attributes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Number:
    """One point of a counter or a gauge."""

    metric: Metric
    attributes: Attributes
    value: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """One point of a histogram."""

    metric: Metric
    attributes: Attributes
    buckets: LogBuckets | EdgeBuckets


@dataclass(frozen=True, slots=True)
class Interval:
    """Everything of one export: counts of [start, end) when `delta`, of all time since `start_ns` otherwise.

    `engine`: what the engine says of the same requests, which goes out beside it under a resource of its own."""

    start_ns: int
    end_ns: int
    delta: bool
    counters: tuple[Number, ...] = ()
    gauges: tuple[Number, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    engine: "Interval | None" = None


@dataclass(slots=True)
class _Latency:
    classic: ClassicHistogram
    log: LogHistogram = field(default_factory=LogHistogram)


class Tally:
    """The counts of one process."""

    def __init__(self, edges_s: Callable[[Metric], Iterable[float]]) -> None:
        self._edges_s = edges_s
        self._counters: dict[str, dict[Attributes, int]] = {}
        self._taken: dict[str, dict[Attributes, int]] = {}
        self._latencies: dict[str, dict[Attributes, _Latency]] = {}
        self._metrics: dict[str, Metric] = {}

    def create(self, metric: Metric, attributes: Attributes) -> None:
        """Make a counter exist, at 0 if it does not yet."""
        self.add(metric, attributes, 0)

    def add(self, metric: Metric, attributes: Attributes, count: int = 1) -> None:
        series = self._counters.get(metric.name)
        if series is None:
            self._metrics[metric.name] = metric
            series = self._counters[metric.name] = {}
        series[attributes] = series.get(attributes, 0) + count

    def record(self, metric: Metric, attributes: Attributes, seconds: float) -> None:
        """Count one latency; ValueError when it is none, and nothing is counted."""
        self._latency(metric, attributes).log.add(seconds)
        self._latency(metric, attributes).classic.add(seconds)

    def create_latency(self, metric: Metric, attributes: Attributes) -> None:
        self._latency(metric, attributes)

    def _latency(self, metric: Metric, attributes: Attributes) -> _Latency:
        series = self._latencies.get(metric.name)
        if series is None:
            self._metrics[metric.name] = metric
            series = self._latencies[metric.name] = {}
        if attributes not in series:
            series[attributes] = _Latency(ClassicHistogram(self._edges_s(metric)))
        return series[attributes]

    def keep(self, metric: Metric, wanted: Callable[[Attributes], bool]) -> None:
        """Forget the counters of `metric` that are not wanted any more, as those of a replaced objective."""
        for table in (self._counters, self._taken):
            series = table.get(metric.name, {})
            for attributes in [key for key in series if not wanted(key)]:
                del series[attributes]

    def new_edges(self, edges_s: Callable[[Metric], Iterable[float]]) -> None:
        """Use other classic edges from now on; a histogram whose edges change starts again, as counters may."""
        self._edges_s = edges_s
        for name, series in self._latencies.items():
            for latency in series.values():
                latency.classic = latency.classic.moved_to(edges_s(self._metrics[name]))

    def total(self, metric: Metric, attributes: Attributes) -> int:
        return self._counters.get(metric.name, {}).get(attributes, 0)

    def totals(self) -> Iterator[Number]:
        """Every counter since the start."""
        for name, series in self._counters.items():
            for attributes, value in series.items():
                yield Number(self._metrics[name], attributes, value)

    def classics(self) -> Iterator[tuple[Metric, Attributes, ClassicHistogram]]:
        """Every classic histogram since the start."""
        for name, series in self._latencies.items():
            for attributes, latency in series.items():
                yield self._metrics[name], attributes, latency.classic

    def take(self, *, delta: bool) -> tuple[tuple[Number, ...], tuple[Distribution, ...]]:
        """Counters and histograms since the last `take` (`delta`), or since the start."""
        return tuple(self._take_counters(delta=delta)), tuple(self._take_latencies(delta=delta))

    def _take_counters(self, *, delta: bool) -> Iterator[Number]:
        for name, series in self._counters.items():
            taken = self._taken.setdefault(name, {})
            for attributes, value in series.items():
                yield Number(self._metrics[name], attributes, value - taken.get(attributes, 0) if delta else value)
                taken[attributes] = value

    def _take_latencies(self, *, delta: bool) -> Iterator[Distribution]:
        for name, series in self._latencies.items():
            for attributes, latency in series.items():
                if latency.log.count:
                    yield Distribution(self._metrics[name], attributes, latency.log.buckets())
                if delta:
                    latency.log = LogHistogram()
