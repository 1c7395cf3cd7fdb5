"""The Prometheus text of everything counted, names and labels by `slo.signals` (DESIGN 4.3).

Takes points as they are at that moment; gives the text of them, then or later and on any thread, in the text format
0.0.4 or in OpenMetrics 1.0. Every sample of a metric has the same labels, the service's first; a label without a value
is empty, which Prometheus reads as absent. A value that is not finite is left out: unknown is absent, and some versions
lose a whole scrape on one bad number. Samples are the same in both formats. OpenMetrics names a counter's family
without its `_total`, shows exemplars, and says where the page ends.

The text is written here, byte for byte as prometheus_client would: that takes twenty times as long, and with a hundred
models every stream of the proxy stood still for most of a second at each scrape.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from prometheus_client.utils import floatToGoString

from sidecar.counting.exemplar import Exemplar
from sidecar.counting.histogram import Classic
from sidecar.counting.tally import Attributes, Number
from slo.signals import ENVIRONMENT, LABELS, REQUEST_MODEL, SERVICE_NAME, SOURCE, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_EDGE = "le"
_SMALL = 1_000_000  # from here on Go writes an exponent

Values = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Row:
    """One histogram as it was."""

    attributes: Attributes
    buckets: list[tuple[float, int]]
    sum: float | None
    exemplars: dict[int, Exemplar]


class Exposition:
    """One scrape's answer in the making. What is added is kept as it is now, whatever is counted afterwards."""

    def __init__(self, service: str, environment: str) -> None:
        self._base = {LABELS[SERVICE_NAME]: service}
        if environment:
            self._base[LABELS[ENVIRONMENT]] = environment
        # Told whether they are OpenMetrics. None is a method of the page: the two would hold each other.
        self._families: list[Callable[[bool], Iterator[str]]] = []

    def numbers(self, points: Iterable[Number]) -> None:
        """Add counters and gauges; points of one metric need not stand together."""
        by_name: dict[str, list[Number]] = {}
        for point in points:
            if math.isfinite(point.value):
                by_name.setdefault(point.metric.name, []).append(point)
        self._families += [partial(_numbers, self._base, group[0].metric, group) for group in by_name.values()]

    def histograms(self, found: Iterable[tuple[Metric, Attributes, Classic]]) -> None:
        """Add classic histograms; where any of them names its source, all of its metric have that label."""
        by_name: dict[str, tuple[Metric, list[_Row]]] = {}
        for metric, attributes, histogram in found:
            _, rows = by_name.setdefault(metric.name, (metric, []))
            rows.append(_Row(attributes, histogram.cumulative(), histogram.sum, dict(histogram.exemplars)))
        self._families += [partial(_histograms, self._base, metric, rows) for metric, rows in by_name.values()]

    def info(self, metric: Metric, label: str, value: str) -> None:
        """Add a gauge of 1 whose label is what it says."""
        line = f"{metric.prometheus}{{{_pairs(self._base | {label: value})}}} 1.0"
        self._families.append(
            lambda openmetrics: iter((*_opening(metric.prometheus, metric, openmetrics=openmetrics), line))
        )

    def text(self, *, openmetrics: bool = False) -> bytes:
        """The page. Takes long when it is long: not for a loop that streams."""
        lines = [line for family in self._families for line in family(openmetrics)]
        return "\n".join([*lines, *(("# EOF",) if openmetrics else ()), ""]).encode("utf-8", "replace")


def _numbers(base: Values, metric: Metric, points: list[Number], openmetrics: bool) -> Iterator[str]:
    # A counter's name ends in `_total`, whatever the signal's own is.
    name = family = metric.prometheus
    if metric.kind == "counter":
        family = name.removesuffix("_total")
        name = f"{family}_total"
    yield from _opening(family if openmetrics else name, metric, openmetrics=openmetrics)
    labels = _labels(base, metric)
    for point in points:
        yield f"{name}{{{_pairs(_values(base, labels, point.attributes))}}} {_value_text(point.value)}"


def _histograms(base: Values, metric: Metric, rows: list[_Row], openmetrics: bool) -> Iterator[str]:
    sourced = any(key == SOURCE for row in rows for key, _ in row.attributes)
    labels = [*_labels(base, metric), *([LABELS[SOURCE]] if sourced else ())]
    yield from _opening(metric.prometheus, metric, openmetrics=openmetrics)
    for row in rows:
        values = _values(base, labels, row.attributes)
        lines = _buckets(metric.prometheus, values, row.buckets)
        if openmetrics:
            for place, exemplar in row.exemplars.items():
                lines[place] += _exemplar(exemplar)
        yield from lines
        yield from _whole(metric.prometheus, values, row, openmetrics=openmetrics)


def _labels(base: Values, metric: Metric) -> list[str]:
    return [*base, LABELS[REQUEST_MODEL], *metric.labels]


def _values(base: Values, labels: list[str], attributes: Attributes) -> Values:
    values = base | {LABELS[key]: value for key, value in attributes}
    return {label: values.get(label, "") for label in labels}


def _opening(name: str, metric: Metric, *, openmetrics: bool) -> tuple[str, str]:
    told = metric.description.replace("\\", r"\\").replace("\n", r"\n")
    if openmetrics:
        told = told.replace('"', r"\"")
    return f"# HELP {name} {told}", f"# TYPE {name} {metric.kind}"


def _exemplar(exemplar: Exemplar) -> str:
    """What stands behind the bucket that holds it."""
    value, (trace_id, span_id, at_ns) = exemplar
    at_s = f"{at_ns // 1_000_000_000}.{at_ns % 1_000_000_000:09}"
    return f' # {{span_id="{span_id.hex()}",trace_id="{trace_id.hex()}"}} {_value_text(value)} {at_s}'


def _buckets(name: str, values: Values, buckets: list[tuple[float, int]]) -> list[str]:
    """A line for each bucket."""
    before = "".join(f"{pair}," for pair in _each({key: values[key] for key in values if key < _EDGE}))
    after = "".join(f",{pair}" for pair in _each({key: values[key] for key in values if key > _EDGE}))
    head, tail = f"{name}_bucket{{{before}{_EDGE}=", f"{after}}} "
    if buckets[-1][1] < _SMALL:  # the most frequent lines of all, and no bucket's count is higher
        return [f'{head}"{_edge_text(edge)}"{tail}{so_far}.0' for edge, so_far in buckets]
    return [f'{head}"{_edge_text(edge)}"{tail}{_value_text(so_far)}' for edge, so_far in buckets]


def _whole(name: str, values: Values, row: _Row, *, openmetrics: bool) -> Iterator[str]:
    """Count and sum of a histogram. OpenMetrics has both or neither; there the last bucket tells the count alone."""
    labels = _pairs(values)
    if row.sum is not None or not openmetrics:
        yield f"{name}_count{{{labels}}} {_value_text(row.buckets[-1][1])}"
    if row.sum is not None:
        yield f"{name}_sum{{{labels}}} {_value_text(row.sum)}"


def _each(values: Values) -> list[str]:
    return [f'{label}="{_escaped(value)}"' for label, value in sorted(values.items())]


def _pairs(values: Values) -> str:
    return ",".join(_each(values))


@lru_cache(maxsize=4096)
def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _value_text(value: float) -> str:
    """A number as Go writes it, and so prometheus_client: most are small counts."""
    if isinstance(value, int) and 0 <= value < _SMALL:
        return f"{value}.0"
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


@lru_cache(maxsize=1024)
def _edge_text(edge: float) -> str:
    """`le` as prometheus_client writes it (1.0, +Inf), so that two writers of one metric agree."""
    return str(floatToGoString(edge))  # type: ignore[no-untyped-call]
