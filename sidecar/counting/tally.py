"""What has been counted: counters and histograms by metric and attributes, with no clock and no lock.

Lives on the event loop's thread alone. Two readers take from it: the admin page reads totals since the start, the
exporter takes intervals (`take`). A label set that must exist before its first event is made by `create`, at 0: a
counter that is born at 1 loses that event to every `increase()`.

To find a series by its attributes takes longer than to count in it. Who counts in the same one for every request asks
for it once (`counter`, `latency`) and keeps it, until `keep` forgets it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sidecar.counting.exemplar import Trace
from sidecar.counting.histogram import ClassicHistogram, EdgeBuckets, LogBuckets, LogHistogram
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


class Counter:
    """One counter: `count` is its total, to be added to at will, and `taken` what an exporter has had of it."""

    __slots__ = ("count", "taken")

    def __init__(self) -> None:
        self.count = self.taken = 0


class Latency:
    """One latency, in both kinds of histogram."""

    __slots__ = ("classic", "log")

    def __init__(self, edges_s: Iterable[float]) -> None:
        self.classic, self.log = ClassicHistogram(edges_s), LogHistogram()

    def record(self, seconds: float, trace: Trace | None = None) -> None:
        """Count one value; ValueError when it is no latency, and nothing is counted."""
        self.log.add(seconds)
        self.classic.add(seconds, trace)

    def handed_over(self) -> "Latency":
        """What was recorded until now, of which nothing stays here."""
        taken = Latency(())
        taken.classic, taken.log = self.classic, self.log
        self.classic, self.log = ClassicHistogram(self.classic.edges), LogHistogram()
        return taken

    def merge(self, other: "Latency") -> None:
        """Add what another has recorded. Classic buckets between other edges are from before those changed here, when
        these began anew: they are left out."""
        self.log.merge(other.log)
        if self.classic.edges == other.classic.edges:
            self.classic.merge(other.classic)


@dataclass(frozen=True, slots=True)
class Increment:
    """What a tally has counted since it was last asked: only what there is, no zeros."""

    counters: tuple[Number, ...] = ()
    latencies: tuple[tuple[Metric, Attributes, Latency], ...] = ()


class Tally:
    """The counts of one process."""

    def __init__(self, edges_s: Callable[[Metric], Iterable[float]]) -> None:
        self._edges_s = edges_s
        self._counters: dict[str, dict[Attributes, Counter]] = {}
        self._latencies: dict[str, dict[Attributes, Latency]] = {}
        self._metrics: dict[str, Metric] = {}

    def counter(self, metric: Metric, attributes: Attributes) -> Counter:
        """The counter of these attributes; it exists from now on."""
        series = self._counters.get(metric.name)
        if series is None:
            self._metrics[metric.name] = metric
            series = self._counters[metric.name] = {}
        found = series.get(attributes)
        if found is None:
            found = series[attributes] = Counter()
        return found

    def latency(self, metric: Metric, attributes: Attributes) -> Latency:
        """The histograms of these attributes; they exist from now on."""
        series = self._latencies.get(metric.name)
        if series is None:
            self._metrics[metric.name] = metric
            series = self._latencies[metric.name] = {}
        found = series.get(attributes)
        if found is None:
            found = series[attributes] = Latency(self._edges_s(metric))
        return found

    def create(self, metric: Metric, attributes: Attributes) -> None:
        """Make a counter exist, at 0 if it does not yet."""
        self.counter(metric, attributes)

    def add(self, metric: Metric, attributes: Attributes, count: int = 1) -> None:
        """Count so many more."""
        self.counter(metric, attributes).count += count

    def record(self, metric: Metric, attributes: Attributes, seconds: float) -> None:
        """Count one latency, as `Latency.record`."""
        self.latency(metric, attributes).record(seconds)

    def keep(self, metric: Metric, wanted: Callable[[Attributes], bool]) -> None:
        """Forget the counters of `metric` that are not wanted any more, as those of a replaced objective."""
        series = self._counters.get(metric.name, {})
        for attributes in [key for key in series if not wanted(key)]:
            del series[attributes]

    def new_edges(self, edges_s: Callable[[Metric], Iterable[float]]) -> None:
        """Use other classic edges from now on; a histogram whose edges change starts again, as counters may."""
        self._edges_s = edges_s
        for name, series in self._latencies.items():
            for latency in series.values():
                latency.classic = latency.classic.moved_to(edges_s(self._metrics[name]))

    def total(self, metric: Metric, attributes: Attributes) -> int:
        """What a counter has counted since the start; 0 where there is none."""
        found = self._counters.get(metric.name, {}).get(attributes)
        return 0 if found is None else found.count

    def totals(self) -> Iterator[Number]:
        """Every counter since the start."""
        for name, series in self._counters.items():
            for attributes, counter in series.items():
                yield Number(self._metrics[name], attributes, counter.count)

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
            for attributes, counter in series.items():
                value = counter.count - counter.taken if delta else counter.count
                yield Number(self._metrics[name], attributes, value)
                counter.taken = counter.count

    def _take_latencies(self, *, delta: bool) -> Iterator[Distribution]:
        for name, series in self._latencies.items():
            for attributes, latency in series.items():
                if latency.log.count:
                    yield Distribution(self._metrics[name], attributes, latency.log.buckets())
                if delta:
                    latency.log = LogHistogram()

    # Of several tallies one sum.

    def increment(self) -> Increment:
        """What was counted since the last time, to be added to a tally elsewhere; nobody else may `take` from here."""
        latencies = tuple(
            (self._metrics[name], attributes, latency.handed_over())
            for name, series in self._latencies.items()
            for attributes, latency in series.items()
            if latency.log.count
        )
        return Increment(tuple(number for number in self._take_counters(delta=True) if number.value), latencies)

    def grow(self, increment: Increment) -> None:
        """Add what another tally has counted."""
        for number in increment.counters:
            self.add(number.metric, number.attributes, int(number.value))
        for metric, attributes, latency in increment.latencies:
            self.latency(metric, attributes).merge(latency)
