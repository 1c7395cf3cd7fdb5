"""Both sources answer the same questions, each in the language of its datasource."""

import pytest

from dashboards.model import POSTGRES, PROMETHEUS, SQLITE
from dashboards.prometheus import PrometheusSource
from dashboards.promise import periods_s
from dashboards.source import NOT_SPENT, STATES, Source
from dashboards.sql import SqlSource
from slo.signals import TTFT
from tests.dashboards.support import built, figures, specs

SOURCES: list[Source] = [PrometheusSource(periods_s(specs())), SqlSource(POSTGRES, specs()), SqlSource(SQLITE, specs())]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.datasource.name)
def test_queries_are_of_the_source_and_of_the_shape_that_panels_need(source: Source) -> None:
    latest = (source.state(), source.budget_left(), source.exhausted_in())
    tables = (*source.standing((3600,)), source.alerts())
    series = (source.coverage(), source.budget_over_time(), *source.burn(3600, 300), *source.latency(TTFT, ()))
    assert {query.shape for query in latest} == {"latest"}
    assert {query.shape for query in tables} == {"table"}
    assert {query.shape for query in series} == {"series"}
    assert {query.datasource for query in (*latest, *tables, *series)} == {source.datasource}
    assert all(query.reads for query in (*latest, *tables, *series))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.datasource.name)
def test_the_variables_are_those_that_alerts_link_to(source: Source) -> None:
    assert [variable.name for variable in source.variables()] == [
        "environment",
        "service_name",
        "model_name",
        "objective",
    ]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.datasource.name)
def test_a_chart_of_one_window_has_one_query(source: Source) -> None:
    assert [query.ref for query in source.burn(1800, 1800)] == ["long"]
    assert [(query.ref, query.look) for query in source.burn(3600, 300)] == [("long", "plain"), ("short", "thin")]


def test_every_datasource_shows_the_same_panels() -> None:
    titles = {name: [panel["title"] for panel in figures(built(name))] for name in ("prometheus", "postgres", "sqlite")}
    assert titles["prometheus"] == titles["postgres"] == titles["sqlite"]
    assert len(titles["prometheus"]) == 22


def test_states_are_numbered_from_unknown_to_worst() -> None:
    assert STATES == ("no data", "kept", "burning", "spent")
    assert NOT_SPENT < 0
    assert PROMETHEUS.plugin == "prometheus"
