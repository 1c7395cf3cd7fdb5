"""The dashboard around its panels, ready for every way in."""

import pytest

from dashboards.grafana.board import text_of
from dashboards.grafana.panels import stat, text
from dashboards.model import POSTGRES, SQLITE, Datasource
from tests.dashboards.grafana.scene import ABOUT, STEPS, built, query


def test_a_closed_section_holds_its_panels_and_words_have_no_figures() -> None:
    found = built(text("Words", "# hello", height=4), stat(ABOUT, query(), steps=STEPS), is_open=False)
    (row,) = found["panels"]
    words, figure = row["panels"]
    assert (row["type"], row["collapsed"]) == ("row", True)
    assert words["options"] == {"content": "# hello", "mode": "markdown"}
    assert "fieldConfig" not in words
    assert "interval" not in words
    assert figure["interval"] == "15s"
    assert {one["id"] for one in found["__requires"]} == {"grafana", "prometheus", "stat", "text"}


def test_a_dashboard_is_ready_for_every_way_in() -> None:
    found = built(stat(ABOUT, query(), steps=STEPS))
    datasource, variable = found["templating"]["list"]
    assert (found["id"], found["uid"], found["refresh"], found["graphTooltip"]) == (None, "firsttoken-x", "30s", 1)
    assert (datasource["name"], datasource["type"], datasource["query"]) == ("datasource", "datasource", "prometheus")
    assert (variable["allValue"], variable["multi"], variable["includeAll"]) == (".*", True, True)
    assert variable["query"]["query"] == "label_values(up, model_name)"
    (marks,) = found["annotations"]["list"]
    assert marks["expr"] == marks["target"]["expr"] == "ALERTS"
    (link,) = found["links"]
    assert (link["tags"], link["includeVars"], link["keepTime"]) == (["firsttoken", "prometheus"], True, True)


def test_each_query_of_prometheus_says_how_often_figures_come() -> None:
    """Grafana reckons `$__rate_interval` from the query's step, not the panel's."""
    (_, figure) = built(stat(ABOUT, query(), steps=STEPS))["panels"]
    (marks,) = built(stat(ABOUT, query(), steps=STEPS))["annotations"]["list"]
    assert (figure["interval"], figure["targets"][0]["interval"]) == ("15s", "15s")
    assert (marks["step"], marks["target"]["interval"]) == ("15s", "15s")
    (_, of_sql) = built(stat(ABOUT, query(POSTGRES), steps=STEPS), datasource=POSTGRES)["panels"]
    assert "interval" not in of_sql["targets"][0]


def test_a_variable_of_sql_is_a_text() -> None:
    found = built(stat(ABOUT, query(POSTGRES), steps=STEPS), datasource=POSTGRES)
    assert found["templating"]["list"][1]["query"] == "label_values(up, model_name)"


def test_the_same_values_give_the_same_bytes() -> None:
    one, two = (text_of(built(stat(ABOUT, query(), steps=STEPS))) for _ in range(2))
    assert one == two
    assert one.endswith("}\n")


def test_marks_in_sql_are_rows_with_times() -> None:
    (of_postgres,) = built(stat(ABOUT, query(POSTGRES), steps=STEPS), datasource=POSTGRES)["annotations"]["list"]
    assert (of_postgres["target"]["rawSql"], of_postgres["target"]["format"]) == ("ALERTS", "table")
    (of_sqlite,) = built(stat(ABOUT, query(SQLITE), steps=STEPS), datasource=SQLITE)["annotations"]["list"]
    assert of_sqlite["target"]["queryText"] == "ALERTS"
    assert of_sqlite["target"]["timeColumns"] == ["time", "timeend"]
    assert "expr" not in of_sqlite


def test_deploys_that_a_pipeline_told_grafana_of_are_marked_where_asked_for() -> None:
    panel = stat(ABOUT, query(), steps=STEPS)
    assert len(built(panel)["annotations"]["list"]) == 1
    told = built(panel, shows_told=True)["annotations"]["list"][-1]
    assert told["datasource"] == {"type": "grafana", "uid": "-- Grafana --"}
    assert (told["target"]["type"], told["target"]["tags"]) == ("tags", ["deploy"])


@pytest.mark.parametrize(("datasource", "floor"), [(POSTGRES, "1.0.0"), (SQLITE, "3.4.0")])
def test_the_plugin_is_required_in_a_release_that_can_do_it(datasource: Datasource, floor: str) -> None:
    required = built(stat(ABOUT, query(datasource), steps=STEPS), datasource=datasource)["__requires"]
    assert {one["id"]: one["version"] for one in required}[datasource.plugin] == floor
