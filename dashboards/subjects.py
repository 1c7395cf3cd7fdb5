"""Whom a metric speaks of, and so which of a dashboard's variables can choose among its series; kinds of outcomes."""

from typing import Literal

from slo.signals import (
    COLLECTOR_METRICS,
    ENGINE_PREEMPTIONS,
    ENGINE_RUNNING,
    ENGINE_WAITING,
    GPU_METRICS,
    HEARTBEAT,
    KV_CAPACITY,
    KV_OCCUPANCY,
    LAST_TOKEN_AGE,
    PREFIX_HIT_RATIO,
    SIDECAR_METRICS,
    Metric,
)

Subject = Literal["request", "engine", "instance", "gpu", "collector"]

OF_ENGINE = {ENGINE_RUNNING, ENGINE_WAITING, ENGINE_PREEMPTIONS, KV_OCCUPANCY, KV_CAPACITY, PREFIX_HIT_RATIO}
"""An engine that serves several models names none of them."""
OF_INSTANCE = {HEARTBEAT, LAST_TOKEN_AGE, *SIDECAR_METRICS}
REFUSED_OUTCOMES = ("rejected", "quota", "timeout")
"""Of requests that a service had no room for, or no time."""
NEVER_JUDGED_OUTCOMES = ("quota", "client_error")
"""Of requests that make no event of any objective."""


def subject(metric: Metric) -> Subject:
    """`request` metrics always carry a model, those of an `engine` where it serves one, the others never."""
    if metric in GPU_METRICS:
        return "gpu"
    if metric in COLLECTOR_METRICS:
        return "collector"
    if metric in OF_INSTANCE:
        return "instance"
    return "engine" if metric in OF_ENGINE else "request"
