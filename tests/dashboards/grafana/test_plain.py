"""What grafanalib writes, made plain."""

from decimal import Decimal

import grafanalib.core as grafana

from dashboards.check.reading import pairs
from dashboards.grafana.panels import stat, timeseries
from dashboards.grafana.plain import LEGACY_KEYS, number, ref
from dashboards.model import SQLITE
from tests.dashboards.grafana.scene import ABOUT, STEPS, built, query


def test_nothing_of_the_old_json_is_left() -> None:
    found = built(timeseries(ABOUT, (query(),)), stat(ABOUT, query(), steps=STEPS))
    legacy = {key for keys in LEGACY_KEYS.values() for key in keys}
    assert [path for path, value in pairs(found) if value is None] == ["/id"]
    # `targets`, `columns`, `mappings` and the like are gone where grafanalib puts them, and stand where they belong.
    assert {"rows", "style", "gnetId", "sharedCrosshair", "span"} <= legacy
    assert not {path.rsplit("/", 1)[-1] for path, _ in pairs(found)} & {"rows", "style", "gnetId", "span", "error"}
    assert found["schemaVersion"] == 39


def test_what_grafanalib_would_have_written_is_worth_the_trouble() -> None:
    assert grafana.Dashboard(title="x").to_json_data()["schemaVersion"] == 12
    assert grafana.Threshold("green", 0, 0.0).to_json_data()["value"] == "null"


def test_numbers_are_whole_where_they_are() -> None:
    assert repr(number(Decimal("2.0"))) == "2"
    assert repr(number(Decimal("0.5"))) == "0.5"


def test_a_datasource_is_the_one_that_the_variable_names() -> None:
    assert ref(SQLITE) == {"type": "frser-sqlite-datasource", "uid": "${datasource}"}
