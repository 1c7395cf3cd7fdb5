"""Traffic as it was recorded: five days of it, of several services, models, instances and kinds of histograms.

Sums fold as they age, latencies come in exponential and in explicit buckets, some requests end without a value, one
model's events nobody judges, and a rule is changed on the way.
"""

import random
from collections.abc import Iterator

from google.protobuf.message import Message
from opentelemetry.proto.metrics.v1 import metrics_pb2 as wire

from slo import signals
from slo.objective import Objective, parse
from slo.quantity import DAY_S, HOUR_S
from slo.signals import REQUEST_MODEL, SERVICE_INSTANCE, SERVICE_NAME, SIGNAL, SOURCE
from tests.collector import exports, messages
from tests.collector.messages import Value

SPEC = """\
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, window: 28d}
  - {name: ttft-small, signal: ttft, percentile: 90, threshold: 300ms, window: 7d, match: {model: "small-[ab]*"}}
  - {name: tpot, signal: tpot, percentile: 99, threshold: 50ms, window: 3d}
  - {name: answered, signal: availability, target: 99.9%}
  - {name: unheard, signal: queue, threshold: 10, target: 99%}
"""
EARLIER = SPEC.replace("500ms", "400ms")
MODELS = ("large", "small-a1")
BOUNDS = (0.0, 0.005, 0.025, 0.1, 1.0)


def traffic(*, until_s: int, moments: int = 60) -> Iterator[tuple[int, Message]]:
    """Each message with its moment, ascending: dense towards the end."""
    dice = random.Random(4318)
    ages_s = sorted((5 * DAY_S * dice.random() ** 6 for _ in range(moments)), reverse=True)
    for number, age_s in enumerate(ages_s):
        at_s = until_s - int(age_s)
        rules = parse(EARLIER if age_s > HOUR_S else SPEC)[0].objectives
        yield at_s, _ours(dice, at_s, rules, instance=f"i{number % 3}")
        yield at_s, _engines(dice, at_s)


def _ours(dice: random.Random, at_s: int, rules: tuple[Objective, ...], *, instance: str) -> Message:
    """What one sidecar measured, of each model."""
    found = []
    for model in MODELS:
        values = [dice.lognormvariate(-1.2, 0.6) for _ in range(dice.randrange(1, 40))]
        found.append(exports.latencies(values, at_s=at_s, model=model))
        for rule in rules:
            if rule.signal in ("ttft", "availability") and rule.match.holds_model(model):
                bad = sum(value > (rule.threshold or 1) for value in values)
                found.append(exports.events(good=len(values) - bad, bad=bad, at_s=at_s, model=model, of=rule))
        if dice.random() < 0.4:
            found.append(_waits([dice.uniform(0.5, 9) for _ in range(dice.randrange(1, 4))], at_s=at_s, model=model))
    return exports.export(*found, exports.heartbeat(at_s=at_s), instance=instance)


def _waits(values: list[float], *, at_s: int, model: str) -> list[wire.Metric]:
    of: dict[str, Value] = {REQUEST_MODEL: model, SIGNAL: "ttft"}
    point = messages.exponential_point(values, scale=4, at_s=at_s, start_s=at_s - 1, attributes=of)
    return [messages.exponential(signals.CENSORED.name, point)]


def _engines(dice: random.Random, at_s: int) -> Message:
    """What an engine says of itself, in buckets of its own."""
    when = {"at_s": at_s, "start_s": at_s - 1}
    counts = [0, *(dice.randrange(9) for _ in BOUNDS)]
    found = [
        messages.explicit(metric.name, messages.explicit_point(BOUNDS, counts, **when))
        for metric in (signals.TPOT, signals.TTFT)
    ]
    of: dict[str, Value] = {SERVICE_NAME: "chat", SERVICE_INSTANCE: "engine-1", SOURCE: "engine"}
    return messages.metrics(*found, resource=of)
