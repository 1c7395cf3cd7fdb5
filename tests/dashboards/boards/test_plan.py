"""A plan becomes the JSON of a dashboard."""

import pytest

from dashboards.boards.catalogue import source_of
from dashboards.boards.plan import OF_MODELS, Given, Plan, drawn
from dashboards.grafana.grid import Section
from dashboards.grafana.panels import text
from dashboards.model import DATASOURCES
from dashboards.questions import Source
from tests.dashboards.support import specs

WORDS = text("Words", "hello", height=3)


def sections(source: Source, given: Given) -> tuple[Section, ...]:
    return (Section("Full", (WORDS,)), Section(f"Empty of {given.objectives} {source.datasource.name}", ()))


PLAN = Plan("some-name", "Some name", "What it is.", OF_MODELS, sections, ("alerts", "drift"), shows_told=True)


@pytest.mark.parametrize(
    ("datasource", "uid", "title"),
    [
        ("prometheus", "firsttoken-some-name", "Some name"),
        ("sqlite", "firsttoken-some-name-sqlite", "Some name (SQLite)"),
    ],
)
def test_each_datasource_has_a_dashboard_of_its_own(datasource: str, uid: str, title: str) -> None:
    given = Given(specs())
    found = drawn(PLAN, source_of(PLAN, given, DATASOURCES[datasource]), given, min_step_s=30)
    assert (found["uid"], found["title"]) == (uid, title)
    assert found["tags"] == ["firsttoken", datasource]
    names = [one["name"] for one in found["templating"]["list"]]  # type: ignore[index,call-overload]
    assert names == ["datasource", *OF_MODELS]
    marks = [one["name"] for one in found["annotations"]["list"]]  # type: ignore[index,call-overload]
    assert marks == ["Firing alerts", "Drift", "Deploys told to Grafana"]


def test_a_section_without_panels_is_left_out() -> None:
    given = Given(specs())
    found = drawn(PLAN, source_of(PLAN, given, DATASOURCES["prometheus"]), given, min_step_s=30)
    assert [one["title"] for one in found["panels"]] == ["Full", "Words"]  # type: ignore[union-attr,index,call-overload]
    assert given.objectives == 6
