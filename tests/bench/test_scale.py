"""The bench of fleets: its bodies are what it says, its fit finds what is there, a fleet that costs more is named."""

import dataclasses
import time

import pytest
from collector_parts import decode
from fleet import plan
from fleet.costs import RUNS, Costs, Units, fit
from fleet.driving import Asked
from fleet.recording import Recording, spec
from fleet.replica import INSTANCE, NS, Voice, voice
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from scale import Trial

from slo import signals
from slo.objective import parse

TRUE = Units(standing=0.04, service=1e-4, replica=1e-5, body=5e-4, export=2e-4, span=2e-6)


@pytest.fixture(scope="module")
def spoken() -> Voice:
    return voice(
        Recording(decode.sidecar_points(time.time_ns()), decode.sidecar_spans()), services=2, rps=3, every_s=10
    )


def test_replicas_speak_with_names_and_times_of_their_own(spoken: Voice) -> None:
    for replica in (0, 7, 9_999):
        end_ns = 1_796_000_000 * NS + replica
        (told,) = ExportMetricsServiceRequest.FromString(spoken.metrics_of(replica, end_ns)).resource_metrics
        names = {one.key: one.value.string_value for one in told.resource.attributes}
        assert names[signals.SERVICE_INSTANCE] == INSTANCE.format(replica)
        points = [p for s in told.scope_metrics for m in s.metrics for p in m.exponential_histogram.data_points]
        assert len(points) == spoken.points
        assert {(p.start_time_unix_nano, p.time_unix_nano) for p in points} == {(end_ns - 10 * NS, end_ns)}


def test_spans_are_as_many_as_half_an_interval_has(spoken: Voice) -> None:
    (told,) = ExportTraceServiceRequest.FromString(spoken.spans_of(3, 1_796_000_000 * NS)).resource_spans
    (scope,) = told.scope_spans
    assert len(scope.spans) == 3 * 10 / 2


def test_the_spec_has_as_many_services_as_asked_for() -> None:
    assert [one.service for one in parse(spec(3))] == ["fleet-000", "fleet-001", "fleet-002"]


def test_the_fit_finds_what_is_there() -> None:
    found = fit(RUNS, [TRUE.of(asked) for asked in RUNS])
    assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(TRUE), rel=1e-6)


def test_nothing_costs_less_than_nothing() -> None:
    measured = [TRUE.of(asked) for asked in RUNS]
    measured[-1] = measured[0] * 0.9  # fifty services came cheaper than one
    found = fit(RUNS, measured)
    assert min(dataclasses.astuple(found)) >= 0
    assert found.service == 0


@pytest.mark.parametrize(
    ("cpu", "late", "failed", "kept"), [(0.6, 0, 0, True), (0.74, 0, 0, True), (0.8, 0, 0, False), (0.6, 0.5, 0, False)]
)
def test_a_fleet_is_judged_by_what_it_cost(cpu: float, late: float, failed: int, *, kept: bool) -> None:
    trial = Trial(Asked(2_000, 20, 1), 1, 0.6, 0.5, cpu, late, failed)
    assert trial.kept == kept
    assert str(trial).startswith("kept" if kept else "NOT KEPT")


@pytest.mark.parametrize(("failed", "kept"), [(0, False), (7, True)])
def test_a_fleet_that_was_foretold_to_be_too_much_must_be(failed: int, *, kept: bool) -> None:
    assert Trial(Asked(10_000, 20, 1), 1, 1.8, 1.2, 1.0, 0.0, failed).kept == kept


def test_the_table_says_how_many_collectors_a_site_needs() -> None:
    lines = list(plan.table(Costs(TRUE, TRUE, TRUE, TRUE, TRUE)))
    assert len(lines) == 2 + 2 * len(plan.SITES)
    counts = [int(line.split("|")[5]) for line in lines[2:]]
    assert counts[0] == 1
    assert counts[-2] >= counts[-1] >= 1
