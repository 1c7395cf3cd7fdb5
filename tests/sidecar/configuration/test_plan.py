"""Who a process says it is, and which edges its histograms have."""

import pytest

from sidecar.configuration.plan import Plan, edges_s
from sidecar.otlp_settings import ExportSettings
from slo.objective import parse
from slo.signals import (
    CENSORED,
    E2E,
    ENVIRONMENT,
    LATENCY_BUCKETS_S,
    SERVICE_INSTANCE,
    SERVICE_NAME,
    SERVICE_VERSION,
    SOURCE,
    TPOT,
    TTFT,
    TTFT_BY_PROMPT,
)
from tests.sidecar.rig import spec

NOWHERE = ExportSettings(traces=None, metrics=None)


def test_every_threshold_is_an_edge_of_the_metric_it_is_judged_on() -> None:
    judged = spec(
        "{name: a, signal: ttft, percentile: 95, threshold: 123ms}",
        "{name: b, signal: tpot, percentile: 95, threshold: 7ms}",
        "{name: c, signal: queue, target: 95%, threshold: 10}",
        "{name: d, signal: availability, target: 95%}",
    )
    usual = LATENCY_BUCKETS_S
    assert edges_s(judged, TTFT) == (*usual, 0.123)
    assert edges_s(judged, TPOT) == (*usual, 0.007)
    assert edges_s(judged, E2E) == usual
    assert edges_s(judged, CENSORED) == (*usual, 0.123, 0.007)
    assert edges_s(None, TTFT) == usual


def test_what_is_told_by_prompt_length_has_no_edges() -> None:
    assert edges_s(spec("{name: a, signal: ttft, percentile: 95, threshold: 123ms}"), TTFT_BY_PROMPT) == ()


def test_a_process_says_the_same_of_itself_each_time_and_the_engine_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES", raising=False)
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    plan = Plan("chat", "1.2", "proxy", NOWHERE)
    own, engine = plan.identity(), plan.engine_identity()
    assert own == plan.identity()
    assert (own[SERVICE_NAME], own[SERVICE_VERSION], own[SOURCE]) == ("chat", "1.2", "proxy")
    assert own[SERVICE_INSTANCE] == plan.instance
    assert (engine[SERVICE_NAME], engine[SOURCE]) == ("chat", "engine")
    assert len({plan.instance, engine[SERVICE_INSTANCE], Plan("chat", "1.2", "proxy", NOWHERE).instance}) == 3
    assert ENVIRONMENT not in own


def test_the_environment_is_the_specs() -> None:
    (judged,) = parse("service: chat\nenvironment: prod\nobjectives:\n  - {name: a, signal: availability, target: 99%}")
    assert Plan("chat", "1", "proxy", NOWHERE, spec=judged).identity()[ENVIRONMENT] == "prod"
