"""The Prometheus text of everything counted, names and labels by `slo.signals` (DESIGN 4.3).

Takes points as they are at that moment; gives the text format 0.0.4 of them, then or later and on any thread. Every
sample of a metric has the same labels, the service's first; a label without a value is empty, which Prometheus reads
as absent. A value that is not finite is left out: unknown is absent, and some versions lose a whole scrape on one bad
number.

The text is written here, byte for byte as prometheus_client would: that takes twenty times as long, and with a hundred
models every stream of the proxy stood still for most of a second at each scrape.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial

from prometheus_client.utils import floatToGoString

from sidecar.histogram import Classic
from sidecar.tally import Attributes, Number
from slo.signals import ENVIRONMENT, LABELS, REQUEST_MODEL, SERVICE_NAME, SOURCE, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_EDGE = "le"
_SMALL = 1_000_000  # from here on Go writes an exponent

Values = dict[str, str]
Row = tuple[Attributes, list[tuple[float, int]], float | None]  # of a histogram: its buckets and its sum


class Page:
    """One scrape's answer in the making. What is added is kept as it is now, whatever is counted afterwards."""

    def __init__(self, service: str, environment: str) -> None:
        self._base = {LABELS[SERVICE_NAME]: service}
        if environment:
            self._base[LABELS[ENVIRONMENT]] = environment
        self._families: list[Callable[[], Iterator[str]]] = []

    def numbers(self, points: Iterable[Number]) -> None:
        """Add counters and gauges; points of one metric need not stand together."""
        by_name: dict[str, list[Number]] = {}
        for point in points:
            if math.isfinite(point.value):
                by_name.setdefault(point.metric.name, []).append(point)
        self._families += [partial(self._numbers, group[0].metric, group) for group in by_name.values()]

    def histograms(self, found: Iterable[tuple[Metric, Attributes, Classic]]) -> None:
        """Add classic histograms; where any of them names its source, all of its metric have that label."""
        by_name: dict[str, tuple[Metric, list[Row]]] = {}
        for metric, attributes, histogram in found:
            _, rows = by_name.setdefault(metric.name, (metric, []))
            rows.append((attributes, histogram.cumulative(), histogram.sum))
        self._families += [partial(self._histograms, metric, rows) for metric, rows in by_name.values()]

    def info(self, metric: Metric, label: str, value: str) -> None:
        """Add a gauge of 1 whose label is what it says."""
        line = f"{metric.prometheus}{{{_pairs(self._base | {label: value})}}} 1.0"
        self._families.append(lambda: iter((*_opening(metric.prometheus, "gauge", metric), line)))

    def text(self) -> bytes:
        """The page. Takes long when it is long: not for a loop that streams."""
        lines = [line for family in self._families for line in family()]
        return "\n".join([*lines, ""]).encode("utf-8", "replace")

    def _numbers(self, metric: Metric, points: list[Number]) -> Iterator[str]:
        # A counter's name ends in `_total`, whatever the signal's own is.
        name = metric.prometheus
        if metric.kind == "counter":
            name = f"{name.removesuffix('_total')}_total"
        yield from _opening(name, metric.kind, metric)
        labels = self._labels(metric)
        for point in points:
            yield f"{name}{{{_pairs(self._values(labels, point.attributes))}}} {_value_text(point.value)}"

    def _histograms(self, metric: Metric, rows: list[Row]) -> Iterator[str]:
        sourced = any(key == SOURCE for attributes, _, _ in rows for key, _ in attributes)
        labels = [*self._labels(metric), *([LABELS[SOURCE]] if sourced else ())]
        yield from _opening(metric.prometheus, "histogram", metric)
        for attributes, buckets, total in rows:
            yield from _histogram(metric.prometheus, self._values(labels, attributes), buckets, total)

    def _labels(self, metric: Metric) -> list[str]:
        return [*self._base, LABELS[REQUEST_MODEL], *metric.labels]

    def _values(self, labels: list[str], attributes: Attributes) -> Values:
        values = self._base | {LABELS[key]: value for key, value in attributes}
        return {label: values.get(label, "") for label in labels}


def _opening(name: str, kind: str, metric: Metric) -> tuple[str, str]:
    told = metric.description.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {told}", f"# TYPE {name} {kind}"


def _histogram(name: str, values: Values, buckets: list[tuple[float, int]], total: float | None) -> list[str]:
    count, labels = buckets[-1][1], _pairs(values)
    before = "".join(f"{pair}," for pair in _each({key: values[key] for key in values if key < _EDGE}))
    after = "".join(f",{pair}" for pair in _each({key: values[key] for key in values if key > _EDGE}))
    head, tail = f"{name}_bucket{{{before}{_EDGE}=", f"{after}}} "
    if count < _SMALL:  # the most frequent lines of all, and no bucket's count is higher
        lines = [f'{head}"{_edge_text(edge)}"{tail}{so_far}.0' for edge, so_far in buckets]
    else:
        lines = [f'{head}"{_edge_text(edge)}"{tail}{_value_text(so_far)}' for edge, so_far in buckets]
    lines.append(f"{name}_count{{{labels}}} {_value_text(count)}")
    if total is not None:
        lines.append(f"{name}_sum{{{labels}}} {_value_text(total)}")
    return lines


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
