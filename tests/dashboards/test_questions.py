"""Both sources answer the same questions, each in the language of its datasource."""

import pytest

from dashboards.boards.catalogue import source_of
from dashboards.boards.plan import Given
from dashboards.boards.slo_overview import PLAN
from dashboards.model import DATASOURCES
from dashboards.promise import QUANTILES
from dashboards.questions import NOT_SPENT, STATES, Source
from slo.signals import E2E, KV_OCCUPANCY, REQUESTS, TTFT
from tests.dashboards.support import specs

SOURCES = [source_of(PLAN, Given(specs()), datasource) for datasource in DATASOURCES.values()]


def name(source: Source) -> str:
    return source.datasource.name


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_queries_are_of_the_source_and_of_the_shape_that_panels_need(source: Source) -> None:
    objectives, incidents, latencies = source.objectives, source.incidents, source.latencies
    latest = (objectives.state(), objectives.budget_left(), objectives.exhausted_in(), source.load.peak())
    tables = (*objectives.standing((3600,)), incidents.alerts(), incidents.past(), incidents.starts())
    tables = (*tables, incidents.contracts(), *source.health.instances())
    series = (objectives.coverage(), *objectives.burn(3600, 300), *latencies.percentiles(TTFT, QUANTILES))
    series = (*series, source.figures.gauge(KV_OCCUPANCY), source.figures.rate(REQUESTS), *source.load.concurrency())
    assert {query.shape for query in latest if name(source) == "prometheus"} <= {"latest"}
    assert {query.shape for query in tables} == {"table"}
    assert {query.shape for query in series} == {"series"}
    assert latencies.buckets(E2E).shape == "buckets"
    assert {query.datasource for query in (*latest, *tables, *series)} == {source.datasource}
    assert all(query.reads for query in (*latest, *tables, *series))


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_the_variables_are_those_that_alerts_link_to(source: Source) -> None:
    assert [variable.name for variable in source.frame.variables()] == [
        "environment",
        "service_name",
        "model_name",
        "objective",
    ]


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_a_chart_of_one_window_has_one_query(source: Source) -> None:
    assert [query.ref for query in source.objectives.burn(1800, 1800)] == ["long"]
    both = [(query.ref, query.look) for query in source.objectives.burn(3600, 300)]
    assert both == [("long", "plain"), ("short", "thin")]


def test_states_are_numbered_from_unknown_to_worst() -> None:
    assert STATES == ("no data", "kept", "burning", "spent")
    assert NOT_SPENT < 0
