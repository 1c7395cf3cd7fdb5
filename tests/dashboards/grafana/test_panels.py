"""What each kind of panel shows, and how a query is asked."""

from collections.abc import Sequence
from decimal import Decimal

import pytest

from dashboards.grafana.panels import heatmap, row, stat, table, target, timeseries
from dashboards.model import POSTGRES, PROMETHEUS, SQLITE, About, Column, Datasource, JsonObject, Query, Word
from tests.dashboards.grafana.scene import ABOUT, STEPS, body, query
from tests.dashboards.support import Found


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
        (PROMETHEUS, "buckets", {"expr": "up", "range": True, "format": "heatmap"}),
        (POSTGRES, "buckets", {"rawSql": "up", "format": "time_series"}),
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


@pytest.mark.parametrize(
    ("about", "thresholds", "expected"),
    [
        (About("t", "d", "s"), [Decimal(6)], 6.3),
        (About("t", "d", "s"), [Decimal(6), Decimal(8)], None),
        (About("t", "d", "s"), [], None),
        (About("t", "d", "percentunit"), [], 1),
        (About("t", "d", "percentunit", most=Decimal(1)), [Decimal("0.9")], None),
    ],
)
def test_an_axis_reaches_to_the_threshold_and_a_share_to_the_whole(
    about: About, thresholds: list[Decimal], expected: float | None
) -> None:
    defaults = body(timeseries(about, (query(),), thresholds=thresholds))["fieldConfig"]["defaults"]
    assert defaults["custom"].get("axisSoftMax") == expected
    assert defaults["custom"]["axisSoftMin"] == 0


def test_a_legend_stands_beside_a_wide_chart_and_under_a_narrow_one() -> None:
    placed = {
        width: body(timeseries(About("t", "d", "s", width=width), (query(),)))["options"]["legend"]["placement"]
        for width in (8, 12, 24)
    }
    assert placed == {8: "bottom", 12: "right", 24: "right"}


def test_areas_have_the_colours_of_their_names_and_no_lines() -> None:
    found = body(timeseries(ABOUT, (query(),), is_stacked=True, colors={"ok": "green"}))["fieldConfig"]
    (override,) = found["overrides"]
    assert override["matcher"] == {"id": "byName", "options": "ok"}
    assert override["properties"] == [{"id": "color", "value": {"mode": "fixed", "fixedColor": "green"}}]
    custom = found["defaults"]["custom"]
    assert (custom["lineWidth"], custom["fillOpacity"], custom["showPoints"]) == (0, 70, "never")


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


def test_a_heatmap_shows_counts_in_the_unit_of_its_edges() -> None:
    found = body(heatmap(About("t", "d", "short"), query(shape="buckets"), axis_unit="s"))
    assert (found["type"], found["options"]["calculate"]) == ("heatmap", False)
    assert found["options"]["yAxis"]["unit"] == "s"
    assert found["fieldConfig"]["defaults"]["unit"] == "short"


def test_requests_that_stand_for_figures_are_asked_for() -> None:
    assert target(query(exemplars=True))["exemplar"] is True
    assert "exemplar" not in target(query())


def test_a_row_is_closed_when_it_holds_panels() -> None:
    assert row("Title", [])["collapsed"] is False
    closed = row("Title", [{"type": "stat"}])
    assert (closed["collapsed"], closed["panels"]) == (True, [{"type": "stat"}])
    assert "fieldConfig" not in closed
