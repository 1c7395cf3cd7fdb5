"""The collector's `/metrics`: what the last tick found, and what the collector says of itself (DESIGN 4.5).

A figure that is unknown or without traffic has no sample: never 0, never NaN. The numbers are those of SQL and the
status page, read from the same evaluation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from collector.evaluate import Evaluation
from collector.notify import Deliveries
from collector.store import Tallies
from collector.ticks import TickTallies
from slo import signals
from slo.objective import Spec
from slo.quantity import duration_text
from slo.signals import ENVIRONMENT_LABEL, LABELS, MODEL_LABEL, SERVICE_LABEL

_WHOM = (SERVICE_LABEL, MODEL_LABEL, ENVIRONMENT_LABEL)
_OBJECTIVE = LABELS[signals.OBJECTIVE]
_QUANTILES = {"p50": "0.5", "p90": "0.9", "p95": "0.95", "p99": "0.99", "p999": "0.999"}


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to show at one moment."""

    evaluation: Evaluation | None
    specs: Sequence[Spec]
    reload_ok: bool
    store: Tallies
    ticks: TickTallies
    deliveries: Mapping[str, Deliveries]
    refused: Mapping[int, int] = field(default_factory=dict)


def rendered(scene: Scene, accept: str) -> tuple[bytes, str]:
    """The page in the format that the scraper accepts, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(scene))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Once(Collector):
    """prometheus_client asks an object for its families."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def collect(self) -> Iterable[Metric]:
        if self._scene.evaluation is not None:
            yield from _figures(self._scene.evaluation)
        yield from _spec(self._scene)
        yield from _self(self._scene)


def _gauge(metric: signals.Metric, labels: Sequence[str] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric.prometheus, metric.description, labels=labels)


def _counter(metric: signals.Metric, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(metric.prometheus, metric.description, value=value)


def _counters(metric: signals.Metric, label: str, values: Mapping[str, float]) -> CounterMetricFamily:
    family = CounterMetricFamily(metric.prometheus, metric.description, labels=(label,))
    for name, value in sorted(values.items()):
        family.add_metric((name,), value)
    return family


def _figures(evaluation: Evaluation) -> Iterator[Metric]:
    burn = _gauge(signals.BURN_RATE, (*_WHOM, _OBJECTIVE, "window"))
    coverage = _gauge(signals.COVERAGE, (*_WHOM, _OBJECTIVE, "window"))
    for row in evaluation.burns:
        labels = (row.service, row.model, row.environment, row.objective, duration_text(row.window_s))
        coverage.add_metric(labels, row.coverage)
        if row.burn is not None:
            burn.add_metric(labels, row.burn)
    remaining = _gauge(signals.BUDGET_REMAINING, (*_WHOM, _OBJECTIVE))
    exhausted = _gauge(signals.BUDGET_EXHAUSTED_IN, (*_WHOM, _OBJECTIVE))
    for budget in evaluation.budgets:
        whom = (budget.service, budget.model, budget.environment, budget.objective)
        remaining.add_metric(whom, budget.remaining)
        if budget.exhausted_in_s is not None:
            exhausted.add_metric(whom, budget.exhausted_in_s)
    yield from (burn, coverage, remaining, exhausted, _latency(evaluation))


def _latency(evaluation: Evaluation) -> Metric:
    family = _gauge(signals.LATENCY, (*_WHOM, LABELS[signals.SIGNAL], LABELS[signals.SOURCE], "quantile", "window"))
    for row in evaluation.percentiles:
        of = (row.service, row.model, row.environment, row.signal, row.source)
        window = duration_text(row.window_s)
        for name, quantile in _QUANTILES.items():
            value = getattr(row, name)
            if value is not None:
                family.add_metric((*of, quantile, window), value)
    return family


def _spec(scene: Scene) -> Iterator[Metric]:
    info = _gauge(signals.SPEC_INFO, (SERVICE_LABEL, ENVIRONMENT_LABEL, "hash"))
    for spec in scene.specs:
        info.add_metric((spec.service, spec.environment, spec.hash), 1)
    yield info
    reload_ok = _gauge(signals.CONFIG_RELOAD_OK)
    reload_ok.add_metric((), int(scene.reload_ok))
    yield reload_ok


def _self(scene: Scene) -> Iterator[Metric]:
    store, ticks, reason = scene.store, scene.ticks, LABELS[signals.REASON]
    yield _counter(signals.INTAKE_BODIES, store.bodies)
    yield _counter(signals.INTAKE_REPEATED, store.repeated)
    yield _counters(signals.INTAKE_DROPPED, reason, store.dropped)
    yield _counters(signals.INTAKE_REFUSED, reason, {str(status): count for status, count in scene.refused.items()})
    yield _counter(signals.COMMITS, store.commits)
    yield _counter(signals.COMMIT_FAILURES, store.failures)
    yield _counter(signals.COMMIT_TIME, store.commit_s)
    yield _counter(signals.TICKS, ticks.ticks)
    yield _counter(signals.TICK_FAILURES, ticks.failures)
    duration = _gauge(signals.TICK_DURATION)
    duration.add_metric((), ticks.last_s)
    yield duration
    sent = {name: delivery.sent for name, delivery in scene.deliveries.items()}
    yield _counters(signals.NOTIFIED, "receiver", sent)
    failed = {name: delivery.failures for name, delivery in scene.deliveries.items()}
    yield _counters(signals.NOTIFY_FAILURES, "receiver", failed)
