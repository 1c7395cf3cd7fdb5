"""The Prometheus text of everything counted, names and labels by `slo.signals` (DESIGN 4.3).

Takes points, gives the text format 0.0.4 through prometheus_client. Every sample of a metric has the same labels, the
service's first; a label without a value is empty, which Prometheus reads as absent. A value that is not finite is left
out: unknown is absent, and some versions lose a whole scrape on one bad number.
"""

import math
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.utils import floatToGoString

from sidecar.histogram import Classic
from sidecar.tally import Attributes, Number
from slo.signals import ENVIRONMENT, LABELS, REQUEST_MODEL, SERVICE_NAME, SOURCE, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Page:
    """One scrape's answer in the making."""

    def __init__(self, service: str, environment: str) -> None:
        self._base = {LABELS[SERVICE_NAME]: service}
        if environment:
            self._base[LABELS[ENVIRONMENT]] = environment
        self._families: list[Family] = []

    def numbers(self, points: Iterable[Number]) -> None:
        """Add counters and gauges; points of one metric need not stand together."""
        by_name: dict[str, list[Number]] = {}
        for point in points:
            if math.isfinite(point.value):
                by_name.setdefault(point.metric.name, []).append(point)
        for group in by_name.values():
            metric, labels = group[0].metric, self._labels(group[0].metric)
            family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            rows = family(metric.prometheus.removesuffix("_total"), metric.description, labels=labels)
            for point in group:
                rows.add_metric(self._values(labels, point.attributes), point.value)
            self._families.append(rows)

    def histograms(self, found: Iterable[tuple[Metric, Attributes, Classic]]) -> None:
        """Add classic histograms; where any of them names its source, all of its metric have that label."""
        rows, families = list(found), dict[str, HistogramMetricFamily]()
        sourced = {metric.name for metric, attributes, _ in rows if SOURCE in dict(attributes)}
        for metric, attributes, histogram in rows:
            labels = [*self._labels(metric), *([LABELS[SOURCE]] if metric.name in sourced else ())]
            if metric.name not in families:
                families[metric.name] = HistogramMetricFamily(metric.prometheus, metric.description, labels=labels)
            buckets = [(_edge_text(edge), float(count)) for edge, count in histogram.cumulative()]
            families[metric.name].add_metric(self._values(labels, attributes), buckets, histogram.sum)
        self._families.extend(families.values())

    def info(self, metric: Metric, label: str, value: str) -> None:
        """Add a gauge of 1 whose label is what it says."""
        rows = GaugeMetricFamily(metric.prometheus, metric.description, labels=[*self._base, label])
        rows.add_metric([*self._base.values(), value], 1)
        self._families.append(rows)

    def text(self) -> bytes:
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Family]:
        """What prometheus_client asks a collector for."""
        yield from self._families

    def _labels(self, metric: Metric) -> list[str]:
        return [*self._base, LABELS[REQUEST_MODEL], *metric.labels]

    def _values(self, labels: list[str], attributes: Attributes) -> list[str]:
        values = self._base | {LABELS[key]: value for key, value in attributes}
        return [values.get(label, "") for label in labels]


def _edge_text(edge: float) -> str:
    """`le` as prometheus_client writes it (1.0, +Inf), so that two writers of one metric agree."""
    return str(floatToGoString(edge))  # type: ignore[no-untyped-call]
