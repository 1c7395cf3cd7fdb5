"""Ways through the JSON of a dashboard, which may be anything: what is not there is None, or none. Pure."""

from collections.abc import Iterator, Mapping

from dashboards.model import Json, JsonObject

QUERY_KEYS = ("expr", "rawSql", "queryText")
"""Where a target keeps its query, whatever its language."""


def at(value: Json, *path: str) -> Json:
    """What lies behind the keys."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def objects(value: Json, *path: str) -> list[JsonObject]:
    """The objects of the list behind the keys."""
    found = at(value, *path)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def panels(found: JsonObject) -> Iterator[JsonObject]:
    """Every panel, those inside closed rows too."""
    for panel in objects(found, "panels"):
        yield panel
        yield from objects(panel, "panels")


def figures(found: JsonObject) -> Iterator[JsonObject]:
    """Every panel that asks a datasource."""
    return (panel for panel in panels(found) if panel.get("type") not in ("row", "text"))


def variables(found: JsonObject, kind: str = "") -> list[JsonObject]:
    """The variables, of one kind or all."""
    return [one for one in objects(found, "templating", "list") if not kind or one.get("type") == kind]


def title(panel: JsonObject) -> str:
    """What a panel is called when it is to be found again."""
    return str(panel.get("title", "a panel without a title"))


def query_of(target: JsonObject) -> str:
    """The text of a target in whatever language; '' when it has none."""
    return next((str(target[key]) for key in QUERY_KEYS if key in target), "")


def queries(panel: JsonObject, *, with_limits: bool = True) -> list[str]:
    """The texts of a panel's queries."""
    targets = objects(panel, "targets")
    return [query_of(target) for target in targets if with_limits or target.get("refId") != "limit"]


def strings(value: Json) -> Iterator[str]:
    """Every text anywhere in JSON, keys included."""
    if isinstance(value, Mapping):
        yield from value
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def pairs(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every value anywhere in JSON with the way to it."""
    yield path, value
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from pairs(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from pairs(inner, f"{path}/{index}")
