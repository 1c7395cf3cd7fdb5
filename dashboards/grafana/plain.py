"""What grafanalib draws, made plain: JSON without nulls and without what Grafana has given up.

grafanalib 0.7.1 writes the JSON of an older Grafana: schema 12 (which sets off migrations from 2016), nulls, keys long
gone, thresholds with texts for numbers, a datasource by its name. All of that ends here: nothing null, nothing legacy,
every datasource as `{type, uid: "${datasource}"}`. That uid is a variable of the dashboard, so that one file works by
import, by provisioning and through the API alike (Grafana fills `__inputs` in its import dialogue only).
"""

import json
from decimal import Decimal
from typing import Literal

from dashboards.model import Datasource, Json, JsonObject

DATASOURCE_VARIABLE = "datasource"
LEGACY_KEYS = {
    "dashboard": {"__inputs", "gnetId", "hideControls", "rows", "sharedCrosshair", "style"},
    "panel": {
        "cacheTimeout", "color", "columns", "editable", "error", "fontSize", "height", "hideTimeOverride", "links",
        "mappings", "maxDataPoints", "minSpan", "span", "targets", "transparent",
    },
    "variable": {
        "auto", "auto_count", "auto_min", "options", "tagValuesQuery", "tagsQuery", "useTags",
    },
}  # fmt: skip
"""What grafanalib writes and Grafana has given up, or fills itself."""


def plain(drawn: object, kind: Literal["dashboard", "panel", "variable"]) -> JsonObject:
    """What grafanalib drew as plain JSON, without nulls and without what Grafana no longer knows."""
    found = json.loads(json.dumps(drawn, default=lambda value: value.to_json_data()))
    found.get("fieldConfig", {}).get("defaults", {}).get("custom", {}).pop("displayMode", None)
    return {key: _full(value) for key, value in found.items() if value is not None and key not in LEGACY_KEYS[kind]}


def ref(datasource: Datasource) -> JsonObject:
    """The data source that the dashboard's variable names."""
    return {"type": datasource.plugin, "uid": f"${{{DATASOURCE_VARIABLE}}}"}


def number(value: Decimal) -> int | float:
    """A number as JSON has it, whole where it is."""
    return int(value) if value == value.to_integral_value() else float(value)


def _full(value: Json) -> Json:
    """A value without the nulls in it."""
    if isinstance(value, dict):
        return {key: _full(inner) for key, inner in value.items() if inner is not None}
    return [_full(inner) for inner in value] if isinstance(value, list) else value
