"""Rules of the dashboard as a whole: schema, data sources, ids, places, links, what must be installed."""

import re
from collections.abc import Iterator
from itertools import combinations

from dashboards.check.reading import at, figures, objects, pairs, panels, strings, title, variables
from dashboards.model import DATASOURCES, Json, JsonObject

PLUGINS = {found.plugin for found in DATASOURCES.values()}
UID = "${datasource}"
GRAFANAS_OWN: JsonObject = {"type": "grafana", "uid": "-- Grafana --"}
"""The store of annotations that every Grafana has under that name."""
LEGACY = {
    "rows", "hideControls", "sharedCrosshair", "style", "gnetId", "span", "minSpan", "cacheTimeout", "fontSize",
    "aliasColors", "seriesOverrides", "nullPointMode", "yaxes", "xaxis", "intervalFactor", "error", "useTags",
    "columns", "tagsQuery", "tagValuesQuery",
}  # fmt: skip
OLDEST_CLEAN_SCHEMA, NEWEST_KNOWN_SCHEMA = 39, 42
MAX_PANELS = 60
COLUMNS = 24


def schema(found: JsonObject) -> Iterator[str]:
    number = found.get("schemaVersion")
    if not isinstance(number, int) or not OLDEST_CLEAN_SCHEMA <= number <= NEWEST_KNOWN_SCHEMA:
        yield f"schemaVersion {number}"


def nulls(found: JsonObject) -> Iterator[str]:
    if found.get("id", 0) is not None:
        yield "the dashboard's id is not null"
    yield from (path for path, value in pairs(found) if value is None and path != "/id")
    yield from (path for path, value in pairs(found) if value in ("null", "NaN"))


def legacy(found: JsonObject) -> Iterator[str]:
    yield from (path for path, _ in pairs(found) if path.rsplit("/", 1)[-1] in LEGACY)


def datasources(found: JsonObject) -> Iterator[str]:
    ours: JsonObject = {"type": plugin(found), "uid": UID}
    told = [marks for marks in objects(found, "annotations", "list") if at(marks, "target", "type") == "tags"]
    for path, value in pairs({**found, "told": [{**marks, "datasource": "told"} for marks in told]}):
        is_told = path.startswith("/annotations/") and value == GRAFANAS_OWN and bool(told)
        if path.endswith("/datasource") and not path.startswith("/told") and value != ours and not is_told:
            yield f"{path}: {value}"
    for one in figures(found):
        if any("datasource" not in of for of in (one, *objects(one, "targets"))):
            yield f"{title(one)} names no datasource"


def plugin(found: JsonObject) -> str:
    """The plugin that the variable `datasource` chooses among; '' when there is none."""
    return next((str(one.get("query")) for one in variables(found, "datasource")), "")


def datasource_variable(found: JsonObject) -> Iterator[str]:
    names = [one.get("name") for one in variables(found, "datasource")]
    if names != ["datasource"] or plugin(found) not in PLUGINS:
        yield f"{names} of {plugin(found) or 'no plugin'}"


def inputs(found: JsonObject) -> Iterator[str]:
    if "__inputs" in found:
        yield "__inputs"
    yield from (text for text in strings(found) if "${DS_" in text)


def panel_ids(found: JsonObject) -> Iterator[str]:
    seen = [panel.get("id") for panel in panels(found)]
    yield from (str(one) for one in seen if not isinstance(one, int) or one < 1 or seen.count(one) > 1)


def few_panels(found: JsonObject) -> Iterator[str]:
    yield from (f"{title(panel)} repeats" for panel in panels(found) if "repeat" in panel)
    count = sum(1 for _ in panels(found))
    if count > MAX_PANELS:
        yield f"{count} panels"


def grid(found: JsonObject) -> Iterator[str]:
    top = objects(found, "panels")
    for level in (top, *(objects(panel, "panels") for panel in top)):
        places = [(title(panel), _place(panel)) for panel in level]
        for name, (x, _, width, height) in places:
            if x < 0 or width < 1 or height < 1 or x + width > COLUMNS:
                yield f"{name}: {width} x {height} at {x}"
        yield from (f"{a} and {b}" for (a, p), (b, q) in combinations(places, 2) if _overlap(p, q))


def _place(panel: JsonObject) -> tuple[int, int, int, int]:
    x, y, width, height = (at(panel, "gridPos", key) for key in "xywh")
    return _whole(x), _whole(y), _whole(width), _whole(height)


def _whole(value: Json) -> int:
    return value if isinstance(value, int) else -1


def _overlap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> bool:
    across = a[0] < b[0] + b[2] and b[0] < a[0] + a[2]
    return across and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def manners(found: JsonObject) -> Iterator[str]:
    wanted: JsonObject = {"refresh": "30s", "graphTooltip": 1, "timezone": "browser", "editable": True}
    yield from (f"{key} {found.get(key)}" for key, value in wanted.items() if found.get(key) != value)
    if "firsttoken" not in _texts(found.get("tags")):
        yield "no tag"


def links(found: JsonObject) -> Iterator[str]:
    for link in objects(found, "links") or [{}]:
        if (link.get("type"), link.get("includeVars"), link.get("keepTime")) != ("dashboards", True, True):
            yield f"link {link.get('title')}"
        elif not _texts(link.get("tags")) <= _texts(found.get("tags")):
            yield f"tags {link.get('tags')}"


def uid(found: JsonObject) -> Iterator[str]:
    if not re.fullmatch(r"firsttoken-[a-z-]{1,29}", str(found.get("uid"))):
        yield str(found.get("uid"))


def requires(found: JsonObject) -> Iterator[str]:
    needed = {str(panel.get("type")) for panel in panels(found)} - {"row"} | {plugin(found), "grafana"}
    yield from sorted(needed ^ {str(one.get("id")) for one in objects(found, "__requires")})


def _texts(value: Json) -> set[str]:
    return {str(one) for one in value} if isinstance(value, list) else set()
