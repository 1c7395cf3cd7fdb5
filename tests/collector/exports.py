"""What a sidecar would export, in short: whole messages with events, latencies and gauges of one step."""

from collections.abc import Sequence

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from slo import signals
from slo.objective import Objective, parse
from slo.signals import REQUEST_MODEL, SERVICE_INSTANCE, SERVICE_NAME, SOURCE
from tests.collector import messages
from tests.collector.messages import Value
from tests.collector.support import SPEC

RESOURCE: dict[str, Value] = {SERVICE_NAME: "chat", SERVICE_INSTANCE: "i1", SOURCE: "proxy"}


def objective(spec: str = SPEC) -> Objective:
    """The first objective of the spec."""
    return parse(spec)[0].objectives[0]


def events(
    *, good: int, bad: int, at_s: float, model: str = "m", of: Objective | None = None
) -> list[messages.wire.Metric]:
    """Events of one objective in the second before `at_s`."""
    of = of or objective()
    key: dict[str, Value] = {REQUEST_MODEL: model, signals.OBJECTIVE: of.name, signals.OBJECTIVE_HASH: of.hash}
    points = [
        messages.number(count, at_s=at_s, start_s=at_s - 1, attributes={**key, signals.RESULT: result})
        for result, count in ((signals.GOOD, good), (signals.BAD, bad))
    ]
    return [messages.counter(signals.SLO_EVENTS.name, *points)]


def latencies(values: Sequence[float], *, at_s: float, model: str = "m") -> list[messages.wire.Metric]:
    """First-token latencies in the second before `at_s`."""
    point = messages.exponential_point(values, at_s=at_s, start_s=at_s - 1, attributes={REQUEST_MODEL: model})
    return [messages.exponential(signals.TTFT.name, point)]


def by_prompt(values: Sequence[float], stratum: str, *, at_s: float, model: str = "m") -> list[messages.wire.Metric]:
    """First-token latencies of prompts of one class of lengths in the second before `at_s`."""
    attributes: dict[str, Value] = {REQUEST_MODEL: model, signals.PROMPT_TOKENS: stratum}
    point = messages.exponential_point(values, at_s=at_s, start_s=at_s - 1, attributes=attributes)
    return [messages.exponential(signals.TTFT_BY_PROMPT.name, point)]


def gauge(metric: signals.Metric, value: float, *, at_s: float, model: str = "m") -> list[messages.wire.Metric]:
    """One reading of a gauge."""
    return [messages.gauge(metric.name, messages.number(value, at_s=at_s, attributes={REQUEST_MODEL: model}))]


def heartbeat(*, at_s: float) -> list[messages.wire.Metric]:
    """One second lived."""
    return [messages.counter(signals.HEARTBEAT.name, messages.number(1, at_s=at_s, start_s=at_s - 1, attributes={}))]


def export(*metrics: list[messages.wire.Metric], instance: str = "i1") -> ExportMetricsServiceRequest:
    """One message of one sidecar."""
    return messages.metrics(
        *(one for some in metrics for one in some), resource=RESOURCE | {SERVICE_INSTANCE: instance}
    )


def second(*, good: int, bad: int, at_s: float, instance: str = "i1") -> ExportMetricsServiceRequest:
    """A second of traffic: every good request took 0.1 s, every bad one 2 s."""
    values = [0.1] * good + [2.0] * bad
    return export(
        events(good=good, bad=bad, at_s=at_s),
        latencies(values, at_s=at_s) if values else [],
        heartbeat(at_s=at_s),
        gauge(signals.KV_OCCUPANCY, 0.4, at_s=at_s),
        gauge(signals.ENGINE_WAITING, 3, at_s=at_s),
        instance=instance,
    )
