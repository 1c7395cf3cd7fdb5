"""The collector's `/metrics`: what the last tick found, and what the collector says of itself (`selfmetrics`).

A figure that is unknown or without traffic has no sample: never 0, never NaN. The numbers are those of SQL and the
status page, read from the same evaluation.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from collector.answering import samples
from collector.answering.selfmetrics import Family
from collector.judging.evaluate import Evaluation
from slo import signals
from slo.objective import Spec
from slo.signals import ENVIRONMENT_LABEL, SERVICE_LABEL


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to show at one moment."""

    evaluation: Evaluation | None
    specs: Sequence[Spec]
    reload_ok: bool
    own: Sequence[Family] = ()


def rendered(scene: Scene, accept: str) -> tuple[bytes, str]:
    """The page in the format that the scraper accepts, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(scene))
    encode, content_type = choose_encoder(accept)
    figures = b"" if scene.evaluation is None else samples.figures(scene.evaluation)
    return figures + encode(registry), content_type


class _Once(Collector):
    """prometheus_client asks an object for its families."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def collect(self) -> Iterable[Metric]:
        yield from _spec(self._scene)
        yield from _self(self._scene)


def _gauge(metric: signals.Metric, labels: Sequence[str] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric.prometheus, metric.description, labels=labels)


def _spec(scene: Scene) -> Iterator[Metric]:
    info = _gauge(signals.SPEC_INFO, (SERVICE_LABEL, ENVIRONMENT_LABEL, "hash"))
    for spec in scene.specs:
        info.add_metric((spec.service, spec.environment, spec.hash), 1)
    yield info
    reload_ok = _gauge(signals.CONFIG_RELOAD_OK)
    reload_ok.add_metric((), int(scene.reload_ok))
    yield reload_ok


def _self(scene: Scene) -> Iterator[Metric]:
    kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
    for one in scene.own:
        labels = (one.label,) if one.label else ()
        family = kinds[one.metric.kind](one.metric.prometheus, one.metric.description, labels=labels)
        for value, figure in sorted(one.samples.items()):
            family.add_metric((value,) if one.label else (), figure)
        yield family
