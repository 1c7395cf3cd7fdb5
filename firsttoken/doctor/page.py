"""The Prometheus page of a sidecar or a collector, asked for by our own metrics."""

from collections.abc import Iterator, Mapping

from firsttoken.doctor.facts import Reach
from sidecar.engine.metrics_text import Page, Sample, read_page
from slo import signals
from slo.signals import ENVIRONMENT_LABEL, IN_FLIGHT, LABELS, MODEL_LABEL, SERVICE_LABEL, SPEC_INFO, Metric

_OURS = frozenset(
    metric.prometheus
    for metric in (*signals.WIRE_METRICS, *signals.SIDECAR_METRICS, *signals.COLLECTOR_METRICS)
    if metric.kind != "histogram"
) | {f"{metric.prometheus}_{part}" for metric in signals.LATENCY_METRICS for part in ("bucket", "count")}
HASH = "hash"


def read_own(body: bytes) -> Page:
    """The samples of a page that are ours to read."""
    return read_page(body, _OURS)


def samples(page: Page, metric: Metric, **labels: str) -> Iterator[Sample]:
    """The samples of a metric with these labels."""
    for sample in page.samples.get(metric.prometheus, ()):
        if all(sample.labels.get(label, "") == value for label, value in labels.items()):
            yield sample


def value(page: Page, metric: Metric, **labels: str) -> float | None:
    """The sum of those samples; None where there are none."""
    found = [sample.value for sample in samples(page, metric, **labels)]
    return sum(found) if found else None


def by_label(page: Page, metric: Metric, label: str) -> Mapping[str, float]:
    """The sum of a metric for each value of a label."""
    found: dict[str, float] = {}
    for sample in samples(page, metric):
        key = sample.labels.get(label, "")
        found[key] = found.get(key, 0.0) + sample.value
    return found


def services(page: Page) -> frozenset[tuple[str, str]]:
    """The (environment, service) pairs that a page speaks of."""
    return frozenset(
        (sample.labels.get(ENVIRONMENT_LABEL, ""), sample.labels[SERVICE_LABEL])
        for of_metric in page.samples.values()
        for sample in of_metric
        if sample.labels.get(SERVICE_LABEL)
    )


def spec_hashes(page: Page) -> Mapping[str, str]:
    """The hash of the spec in force, by service."""
    return {sample.labels.get(SERVICE_LABEL, ""): sample.labels.get(HASH, "") for sample in samples(page, SPEC_INFO)}


def sees_requests(page: Page) -> bool:
    """Whether requests pass by whoever made the page: a proxy or a middleware, and no sidecar that only scrapes."""
    return IN_FLIGHT.prometheus in page


def objectives(page: Page) -> frozenset[tuple[str, str]]:
    """The (service, objective) pairs of which good and bad are counted."""
    label = LABELS[signals.OBJECTIVE]
    return frozenset(
        (sample.labels.get(SERVICE_LABEL, ""), sample.labels.get(label, ""))
        for sample in samples(page, signals.SLO_EVENTS)
    )


def reaches(page: Page) -> Iterator[Reach]:
    """How far the latency histograms of a page reach, those that the sidecar itself has measured."""
    for metric in signals.LATENCY_METRICS:
        edges: dict[str, dict[float, float]] = {}
        for sample in page.samples.get(f"{metric.prometheus}_bucket", ()):
            if not sample.labels.get(LABELS[signals.SOURCE]):
                of_model = edges.setdefault(sample.labels.get(MODEL_LABEL, ""), {})
                edge_s = float(sample.labels.get("le", "inf"))
                of_model[edge_s] = of_model.get(edge_s, 0.0) + sample.value
        for model, counts in edges.items():
            *_, last_s, whole = sorted(counts) if len(counts) > 1 else (0.0, 0.0)
            count, within = int(counts.get(whole, 0)), int(counts.get(last_s, 0))
            yield Reach(metric.sql, model, last_s, count, count - within)
