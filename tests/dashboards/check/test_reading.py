"""Ways through JSON that may be anything."""

from dashboards.check import reading

BOARD = {
    "panels": [
        {
            "type": "row",
            "panels": [{"type": "stat", "title": "In", "targets": [{"expr": "a"}, {"refId": "limit", "expr": "l"}]}],
        },
        {"type": "text"},
        {"type": "table", "targets": [{"rawSql": "b"}, {"queryText": "c"}, {}]},
    ],
    "templating": {"list": [{"type": "query", "name": "q"}, {"type": "datasource"}]},
}


def test_what_is_not_there_is_none_and_a_list_of_others_is_empty() -> None:
    assert reading.at(BOARD, "templating", "list", "x") is None
    assert reading.at(7, "x") is None
    assert reading.objects({"a": [1, {"b": 2}, None]}, "a") == [{"b": 2}]
    assert reading.objects({"a": 1}, "a") == []


def test_panels_inside_closed_rows_are_found_and_only_those_with_figures_asked() -> None:
    assert [panel.get("type") for panel in reading.panels(BOARD)] == ["row", "stat", "text", "table"]
    assert [panel.get("type") for panel in reading.figures(BOARD)] == ["stat", "table"]


def test_queries_are_read_in_every_language_and_limits_can_be_left_out() -> None:
    stat, table = reading.figures(BOARD)
    assert reading.queries(stat) == ["a", "l"]
    assert reading.queries(stat, with_limits=False) == ["a"]
    assert reading.queries(table) == ["b", "c", ""]
    assert reading.query_of({"datasource": {}}) == ""


def test_variables_are_found_by_kind_and_panels_by_title() -> None:
    assert [one["name"] for one in reading.variables(BOARD, "query")] == ["q"]
    assert len(reading.variables(BOARD)) == 2
    assert reading.title({}) == "a panel without a title"


def test_every_text_and_value_is_passed() -> None:
    value = {"a": ["x", {"b": None}]}
    assert sorted(reading.strings(value)) == ["a", "b", "x"]
    assert dict(reading.pairs(value))["/a/1/b"] is None
