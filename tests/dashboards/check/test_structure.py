"""What the rules of the whole say, where the table of rules does not show it."""

from dashboards.check import structure


def test_the_plugin_is_that_of_the_datasource_variable() -> None:
    found = {"templating": {"list": [{"type": "datasource", "name": "datasource", "query": "prometheus"}]}}
    assert structure.plugin(found) == "prometheus"
    assert structure.plugin({}) == ""
    assert list(structure.datasource_variable(found)) == []
    assert list(structure.datasource_variable({})) == ["[] of no plugin"]


def test_a_fault_names_its_place() -> None:
    assert list(structure.nulls({"id": None, "panels": [{"max": None}]})) == ["/panels/0/max"]
    assert list(structure.legacy({"panels": [{"span": 4}]})) == ["/panels/0/span"]
    over = {"x": 0, "y": 0, "w": 12, "h": 4}
    assert list(structure.grid({"panels": [{"title": "A", "gridPos": over}, {"title": "B", "gridPos": over}]})) == [
        "A and B"
    ]


def test_marks_of_grafanas_own_store_are_of_deploys_and_nothing_else() -> None:
    told = {"datasource": structure.GRAFANAS_OWN, "target": {"type": "tags"}}
    assert list(structure.datasources({"annotations": {"list": [told]}})) == []
    assert list(structure.datasources({"annotations": {"list": [{**told, "target": {}}]}})) != []
