"""Panels as JSON: what grafanalib writes made plain, and what each kind of panel shows."""

from collections.abc import Sequence
from decimal import Decimal

import grafanalib.core as grafana
import pytest

from dashboards import panels
from dashboards.grid import Panel, Section
from dashboards.model import (
    POSTGRES,
    PROMETHEUS,
    SQLITE,
    About,
    Column,
    Datasource,
    JsonObject,
    Marks,
    Query,
    Step,
    Variable,
    Word,
)
from dashboards.panels import Board, dashboard, stat, table, text, text_of, timeseries
from tests.dashboards.support import Found, pairs

ABOUT = About("Title", "What it is.", "s", least=Decimal(0), most=Decimal("1.5"))
STEPS = (Step("green", Decimal(0)), Step("red", Decimal("0.5")))


def query(datasource: Datasource = PROMETHEUS, **changes: str) -> Query:
    return Query(datasource, "up", ("up", "down"), **changes)  # type: ignore[arg-type]


def body(panel: Panel) -> Found:
    return dict(panel.body)


def board(datasource: Datasource = PROMETHEUS) -> Board:
    variable = Variable("model_name", "Model", "label_values(up, model_name)", ".*", "Which model.")
    marks = Marks("Alerts", "ALERTS", "{{alertname}}", "{{objective}}", "severity")
    return Board("firsttoken-x", "X", "About x.", datasource, (variable,), (marks,), ("firsttoken", "slo"), 15)


def built(*made: Panel, datasource: Datasource = PROMETHEUS, is_open: bool = True) -> Found:
    return dict(dashboard(board(datasource), [Section("Section", made, is_open)]))


def test_nothing_of_the_old_json_is_left() -> None:
    found = built(timeseries(ABOUT, (query(),)), stat(ABOUT, query(), steps=STEPS))
    legacy = {key for keys in panels.LEGACY_KEYS.values() for key in keys}
    assert [path for path, value in pairs(found) if value is None] == ["/id"]
    # `targets`, `columns`, `mappings` and the like are gone where grafanalib puts them, and stand where they belong.
    assert {"rows", "style", "gnetId", "sharedCrosshair", "span"} <= legacy
    assert not {path.rsplit("/", 1)[-1] for path, _ in pairs(found)} & {"rows", "style", "gnetId", "span", "error"}
    assert found["schemaVersion"] == 39


def test_what_grafanalib_would_have_written_is_worth_the_trouble() -> None:
    assert grafana.Dashboard(title="x").to_json_data()["schemaVersion"] == 12
    assert grafana.Threshold("green", 0, 0.0).to_json_data()["value"] == "null"


@pytest.mark.parametrize(
    ("datasource", "shape", "expected"),
    [
        (PROMETHEUS, "series", {"expr": "up", "range": True, "instant": False, "format": "time_series"}),
        (PROMETHEUS, "latest", {"expr": "up", "range": False, "instant": True, "format": "time_series"}),
        (PROMETHEUS, "table", {"expr": "up", "range": False, "instant": True, "format": "table"}),
        (POSTGRES, "series", {"rawSql": "up", "rawQuery": True, "format": "time_series"}),
        (POSTGRES, "table", {"rawSql": "up", "rawQuery": True, "format": "table"}),
        (SQLITE, "latest", {"queryText": "up", "rawQueryText": "up", "queryType": "time series"}),
        (SQLITE, "table", {"queryText": "up", "queryType": "table", "timeColumns": ["time"]}),
    ],
)
def test_a_query_is_written_in_the_keys_of_its_datasource(
    datasource: Datasource, shape: str, expected: JsonObject
) -> None:
    (target,) = body(timeseries(ABOUT, (query(datasource, shape=shape),)))["targets"]
    assert target.items() >= {**expected, "refId": "A"}.items()
    assert target["datasource"] == {"type": datasource.plugin, "uid": "${datasource}"}


def test_a_panel_says_what_it_shows_and_what_it_reads() -> None:
    found = body(stat(ABOUT, query(), steps=STEPS))
    assert found["description"] == "What it is.\n\nReads: down, up."
    defaults = found["fieldConfig"]["defaults"]
    assert (defaults["unit"], defaults["noValue"], defaults["min"], defaults["max"]) == ("s", "No data", 0, 1.5)
    assert defaults["thresholds"]["steps"] == [{"color": "green", "value": 0}, {"color": "red", "value": 0.5}]


def test_a_figure_that_may_be_negative_has_no_least_value() -> None:
    found = body(stat(About("t", "d", "s", least=None), query(), steps=STEPS))
    assert "min" not in found["fieldConfig"]["defaults"]


def test_words_stand_for_values_and_for_what_is_not_a_number() -> None:
    found = body(stat(ABOUT, query(), steps=STEPS, words=(Word(-1, "never", "green"),)))
    special, own = found["fieldConfig"]["defaults"]["mappings"]
    assert special["options"]["match"] == "nan"
    assert special["options"]["result"]["text"] == "No traffic"
    assert own["options"] == {"-1": {"text": "never", "color": "green", "index": 1}}


def style(thresholds: Sequence[Decimal]) -> tuple[str, list[float]]:
    defaults = body(timeseries(ABOUT, (query(),), thresholds=thresholds))["fieldConfig"]["defaults"]
    return defaults["custom"]["thresholdsStyle"]["mode"], [s["value"] for s in defaults["thresholds"]["steps"][1:]]


def test_a_sole_threshold_is_drawn_and_several_are_left_to_their_queries() -> None:
    assert style([]) == ("off", [])
    assert style([Decimal("0.5")]) == ("dashed", [0.5])
    assert style([Decimal("0.5"), Decimal(2)]) == ("off", [0.5, 2])


def test_limits_are_dashed_red_and_companions_thin() -> None:
    queries = (query(), query(ref="short", look="thin"), query(ref="limit", look="limit"))
    overrides = body(timeseries(ABOUT, queries))["fieldConfig"]["overrides"]
    shown = {one["matcher"]["options"]: {p["id"]: p["value"] for p in one["properties"]} for one in overrides}
    assert set(shown) == {"short", "limit"}
    assert shown["short"] == {"custom.lineWidth": 1, "custom.fillOpacity": 0}
    assert shown["limit"]["color"] == {"mode": "fixed", "fixedColor": "red"}
    assert shown["limit"]["custom.lineStyle"]["fill"] == "dash"


def test_lines_are_named_by_the_datasource_and_cleared_of_what_says_nothing() -> None:
    (change,) = body(timeseries(ABOUT, (query(),)))["transformations"]
    assert change["id"] == "renameByRegex"
    assert body(timeseries(ABOUT, (query(POSTGRES),)))["transformations"] == []
    of_sqlite = body(timeseries(ABOUT, (query(SQLITE),)))["fieldConfig"]["defaults"]
    assert of_sqlite["displayName"] == "${__field.labels.metric}"
    assert "displayName" not in body(timeseries(ABOUT, (query(POSTGRES),)))["fieldConfig"]["defaults"]


def order(*queries: Query) -> Found:
    columns = (Column("state", "State", words=(Word(1, "kept", "green"),)), Column("service", "Service"))
    (*_, organize) = body(table(ABOUT, queries, columns=columns, sorted_by="State"))["transformations"]
    options = organize["options"]
    assert isinstance(options, dict)
    return options


def test_the_columns_of_a_table_are_named_by_the_queries_that_give_them() -> None:
    state, other = query(ref="state", shape="table"), query(ref="other", shape="table")
    assert order(state, other)["renameByName"] == {"Value #state": "State", "service": "Service"}
    assert order(state)["renameByName"] == {"Value": "State", "service": "Service"}
    assert order(query(POSTGRES, shape="table"))["renameByName"] == {"state": "State", "service": "Service"}
    assert order(state)["indexByName"] == {"Value": 0, "service": 1}


def test_only_columns_that_differ_are_overridden() -> None:
    columns = (Column("a", "A"), Column("b", "B", "percentunit", STEPS, cell="gauge"))
    found = body(table(ABOUT, (query(),), columns=columns, sorted_by="A"))
    (override,) = found["fieldConfig"]["overrides"]
    assert override["matcher"] == {"id": "byName", "options": "B"}
    shown = {p["id"]: p["value"] for p in override["properties"]}
    assert shown["custom.cellOptions"] == {"type": "gauge", "mode": "basic"}
    assert (shown["min"], shown["max"], shown["unit"]) == (0, 1, "percentunit")
    assert "displayMode" not in found["fieldConfig"]["defaults"]["custom"]


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
    assert (link["tags"], link["includeVars"], link["keepTime"]) == (["firsttoken"], True, True)


def test_a_variable_of_sql_is_a_text() -> None:
    found = built(stat(ABOUT, query(POSTGRES), steps=STEPS), datasource=POSTGRES)
    assert found["templating"]["list"][1]["query"] == "label_values(up, model_name)"


def test_the_same_values_give_the_same_bytes() -> None:
    one, two = (text_of(built(stat(ABOUT, query(), steps=STEPS))) for _ in range(2))
    assert one == two
    assert one.endswith("}\n")
