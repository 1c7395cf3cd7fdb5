"""What was decided about the telemetry of a process, and who it says it is."""

import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sidecar import limits
from sidecar.engine.engine_latencies import ENGINE
from sidecar.guarding.queue_guard import Shedding
from sidecar.otlp_settings import ExportSettings
from sidecar.telling.emit import resource_attributes
from sidecar.telling.otlp_wire import Value
from slo.objective import Spec
from slo.signals import (
    CENSORED,
    CLASS_HEADER,
    ENVIRONMENT,
    LATENCY_BUCKETS_S,
    SERVICE_INSTANCE,
    SERVICE_NAME,
    SIGNALS,
    SOURCE,
    TTFT_BY_PROMPT,
    Metric,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What was decided about telemetry.

    `models`: the server is asked what it serves; `scrape`: its metrics page is read. `visible_gpus`: a
    CUDA_VISIBLE_DEVICES. `config_ok`: no part of the configuration had to be left out. `instance`:
    `service.instance.id`, new at each start.
    """

    service: str
    version: str
    source: Literal["proxy", "middleware", "engine"]
    export: ExportSettings
    spec: Spec | None = None
    spec_paths: tuple[Path, ...] = ()
    class_header: str = CLASS_HEADER
    max_models: int = limits.MAX_MODELS
    sample_ratio: float = 1.0
    shed: Shedding = "shadow"
    models: bool = True
    scrape: bool = True
    gpu: bool = True
    visible_gpus: str | None = None
    config_ok: bool = True
    instance: str = field(default_factory=lambda: str(uuid.uuid4()))

    def identity(self) -> dict[str, Value]:
        """The resource attributes of what this process counts."""
        return self._identity(self.source, self.instance)

    def engine_identity(self) -> dict[str, Value]:
        """Those of what the engine counts, which is an instance of its own: the two are never one stream."""
        return self._identity(ENGINE, str(uuid.uuid4()))

    def _identity(self, source: str, instance: str) -> dict[str, Value]:
        own = {SERVICE_NAME: self.service, SERVICE_INSTANCE: instance, SOURCE: source}
        if self.spec is not None and self.spec.environment:
            own[ENVIRONMENT] = self.spec.environment
        return resource_attributes(own, version=self.version)


def edges_s(spec: Spec | None, metric: Metric) -> tuple[float, ...]:
    """Classic bucket edges of a metric: the usual ones, and every threshold that is judged on it. What is told by
    prompt length has none: a page then shows how many and how long together, and nobody judges by it."""
    if metric == TTFT_BY_PROMPT:  # not `is`: a worker names it over a pipe
        return ()
    found = list(LATENCY_BUCKETS_S)
    for item in spec.objectives if spec is not None else ():
        judged = SIGNALS[item.signal]
        if judged.threshold == "duration" and item.threshold is not None and metric in (judged.metric, CENSORED):
            found.append(float(item.threshold))
    return tuple(found)
