"""Whom a metric speaks of."""

import pytest

from dashboards.subjects import NEVER_JUDGED_OUTCOMES, REFUSED_OUTCOMES, subject
from slo import signals


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (signals.REQUESTS, "request"),
        (signals.TTFT, "request"),
        (signals.KV_OCCUPANCY, "engine"),
        (signals.HEARTBEAT, "instance"),
        (signals.TELEMETRY_FAULTS, "instance"),
        (signals.GPU_POWER, "gpu"),
        (signals.TICKS, "collector"),
    ],
)
def test_a_metric_speaks_of_one(metric: signals.Metric, expected: str) -> None:
    assert subject(metric) == expected


def test_outcomes_are_outcomes() -> None:
    assert {*REFUSED_OUTCOMES, *NEVER_JUDGED_OUTCOMES} < set(signals.OUTCOMES)
