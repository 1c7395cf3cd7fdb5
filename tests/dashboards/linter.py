"""The rules that every dashboard keeps, each a sentence and a function that says where it is broken.

They come from what breaks dashboards elsewhere: data sources that are not found after provisioning, units a thousand
times off, rates over too few samples, panels over panels, one uid twice.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations

from tests.dashboards.support import Found, figures, pairs, panels, query_of, strings

PLUGINS = {"prometheus", "grafana-postgresql-datasource", "frser-sqlite-datasource"}
UID = "${datasource}"
LEGACY = {
    "rows", "hideControls", "sharedCrosshair", "style", "gnetId", "span", "minSpan", "cacheTimeout", "fontSize",
    "aliasColors", "seriesOverrides", "nullPointMode", "yaxes", "xaxis", "intervalFactor", "error", "useTags",
    "columns", "tagsQuery", "tagValuesQuery",
}  # fmt: skip
NEWEST_KNOWN_SCHEMA, OLDEST_CLEAN_SCHEMA = 42, 39
Rule = Callable[[Found], Iterator[str]]


def _schema(found: Found) -> Iterator[str]:
    if not OLDEST_CLEAN_SCHEMA <= found.get("schemaVersion", 0) <= NEWEST_KNOWN_SCHEMA:
        yield f"schemaVersion {found.get('schemaVersion')}"


def _nulls(found: Found) -> Iterator[str]:
    if found.get("id", 0) is not None:
        yield "the dashboard's id is not null"
    yield from (path for path, value in pairs(found) if value is None and path != "/id")
    yield from (path for path, value in pairs(found) if value in ("null", "NaN"))


def _legacy(found: Found) -> Iterator[str]:
    yield from (path for path, _ in pairs(found) if path.rsplit("/", 1)[-1] in LEGACY)


def _datasources(found: Found) -> Iterator[str]:
    for path, value in pairs(found):
        if path.endswith("/datasource") and value != {"type": _plugin(found), "uid": UID}:
            yield f"{path}: {value}"
    for one in figures(found):
        if any("datasource" not in of for of in (one, *one["targets"])):
            yield f"{one['title']} names no datasource"


def _plugin(found: Found) -> str:
    first = found["templating"]["list"][0]
    return str(first["query"]) if first["type"] == "datasource" else ""


def _datasource_variable(found: Found) -> Iterator[str]:
    of_type = [variable for variable in found["templating"]["list"] if variable["type"] == "datasource"]
    if [variable["name"] for variable in of_type] != ["datasource"] or of_type[0]["query"] not in PLUGINS:
        yield str(of_type)


def _inputs(found: Found) -> Iterator[str]:
    if "__inputs" in found:
        yield "__inputs"
    yield from (text for text in strings(found) if "${DS_" in text)


def _panel_ids(found: Found) -> Iterator[str]:
    seen = [panel.get("id") for panel in panels(found)]
    yield from (str(one) for one in set(seen) if not isinstance(one, int) or one < 1 or seen.count(one) > 1)


def _ref_ids(found: Found) -> Iterator[str]:
    for one in figures(found):
        refs = [target.get("refId", "") for target in one["targets"]]
        if not refs or len(set(refs)) < len(refs) or "" in refs:
            yield f"{one['title']}: {refs}"


def _grid(found: Found) -> Iterator[str]:
    levels = [found["panels"], *(panel["panels"] for panel in found["panels"] if panel.get("panels"))]
    for level in levels:
        for one in level:
            place = one["gridPos"]
            if place["x"] < 0 or place["w"] < 1 or place["h"] < 1 or place["x"] + place["w"] > 24:
                yield f"{one['title']}: {place}"
        yield from (f"{a['title']} and {b['title']}" for a, b in combinations(level, 2) if _overlap(a, b))


def _overlap(a: Found, b: Found) -> bool:
    p, q = a["gridPos"], b["gridPos"]
    across = p["x"] < q["x"] + q["w"] and q["x"] < p["x"] + p["w"]
    return bool(across and p["y"] < q["y"] + q["h"] and q["y"] < p["y"] + p["h"])


NAME = re.compile(r"\b(?:firsttoken:[a-z_]+:\w+|(?:firsttoken|gen_ai)_\w+|ALERTS\w*)")
READ = re.compile(r"\b(?:FROM|JOIN) ([a-z_]+)\b")


def _described(found: Found) -> Iterator[str]:
    for one in figures(found):
        description = one.get("description", "")
        for target in one["targets"]:
            text = query_of(target)
            names = {name.removesuffix("_bucket") for name in NAME.findall(text)} or set(READ.findall(text)) - {"seen"}
            silent = sorted(name for name in names if name not in description)
            yield from (f"{one['title']} does not name {name}" for name in silent)
        if len(description) < 20:
            yield f"{one['title']} says nothing"


def _field(one: Found, key: str) -> object:
    return one["fieldConfig"]["defaults"].get(key)


def _units(found: Found) -> Iterator[str]:
    yield from (one["title"] for one in figures(found) if not _field(one, "unit"))


def _true_units(found: Found) -> Iterator[str]:
    """F03: seconds are shown as seconds and shares as shares, unless the query makes something else of them."""
    for one in figures(found):
        if one["type"] == "table":
            continue
        text = " ".join(query_of(target) for target in one["targets"] if target["refId"] != "limit")
        wanted = _unit_of(text)
        if wanted and _field(one, "unit") != wanted:
            yield f"{one['title']}: {_field(one, 'unit')}, not {wanted}"


def _unit_of(text: str) -> str:
    if "rate(" in text and "_bucket" not in text:
        return "reqps" if "firsttoken_requests_total" in text else "eps"
    if re.search(r"_seconds|:seconds", text):
        return "s"
    return "percentunit" if re.search(r"_ratio\b|(?:remaining|coverage):ratio", text) and "group" not in text else ""


def _no_values(found: Found) -> Iterator[str]:
    yield from (one["title"] for one in figures(found) if not _field(one, "noValue"))


def _bounds(found: Found) -> Iterator[str]:
    for one in figures(found):
        custom = _field(one, "custom")
        soft = isinstance(custom, dict) and "axisSoftMin" in custom
        if _field(one, "min") is None and not soft and "budget" not in one["description"]:
            yield one["title"]


def _nan(found: Found) -> Iterator[str]:
    wanted = {"match": "nan", "result": {"text": "No traffic", "color": "text", "index": 0}}
    for one in figures(found):
        mappings = _field(one, "mappings")
        if not isinstance(mappings, list) or {"type": "special", "options": wanted} not in mappings:
            yield one["title"]


RATE = re.compile(r"(?:rate|irate|increase|delta)\([^\[]*\[([^\]]+)\]")


def _rates(found: Found) -> Iterator[str]:
    for one in figures(found):
        for target in one["targets"]:
            yield from (f"{one['title']}: {w}" for w in RATE.findall(query_of(target)) if w != "$__rate_interval")


def _min_step(found: Found) -> Iterator[str]:
    """F04: with a step of the scrape interval, `$__rate_interval` is four of them."""
    for one in figures(found):
        if not re.fullmatch(r"[1-9][0-9]*s", one.get("interval", "")):
            yield f"{one['title']}: {one.get('interval')}"


def _manners(found: Found) -> Iterator[str]:
    wanted = {"refresh": "30s", "graphTooltip": 1, "timezone": "browser", "editable": True}
    yield from (f"{key} {found.get(key)}" for key, value in wanted.items() if found.get(key) != value)
    if "firsttoken" not in found.get("tags", []):
        yield "no tag"


def _links(found: Found) -> Iterator[str]:
    for link in found.get("links") or [{}]:
        if (link.get("type"), link.get("includeVars"), link.get("keepTime")) != ("dashboards", True, True):
            yield str(link)
        elif not set(link["tags"]) <= set(found["tags"]):
            yield f"tags {link['tags']}"


def _variables(found: Found) -> Iterator[str]:
    for variable in found["templating"]["list"]:
        if variable["type"] == "query" and not (
            variable["multi"] and variable["includeAll"] and variable.get("allValue") and variable["refresh"] == 2
        ):
            yield variable["name"]


def _leaks(found: Found) -> Iterator[str]:
    everything = {"selected": True, "text": ["All"], "value": ["$__all"]}
    for variable in found["templating"]["list"]:
        if variable["current"] != ({} if variable["type"] == "datasource" else everything):
            yield f"{variable['name']}: {variable['current']}"


def _matchers(found: Found) -> Iterator[str]:
    """F02: a variable stands in `=~` in Grafana's own escaping; in SQL always as quoted strings."""
    names = "|".join(variable["name"] for variable in found["templating"]["list"] if variable["type"] == "query")
    for text in strings(found):
        for match in re.finditer(rf"\$\{{?(?:{names})\b(:\w+)?\}}?", text):
            is_sql = match[1] == ":sqlstring" and text[: match.start()].endswith("(")
            is_matcher = match[1] is None and re.search(r'=~"\(?$', text[: match.start()])
            if not (is_sql or is_matcher):
                yield text[max(0, match.start() - 20) : match.end()]


def _uid(found: Found) -> Iterator[str]:
    if not re.fullmatch(r"firsttoken-[a-z-]{1,29}", str(found.get("uid"))):
        yield str(found.get("uid"))


def _steps(found: Found) -> Iterator[str]:
    for path, value in pairs(found):
        if path.endswith("/steps") and isinstance(value, list):
            starts = [step["value"] for step in value]
            if starts != sorted(starts) or not starts:
                yield f"{path}: {starts}"


def _requires(found: Found) -> Iterator[str]:
    needed = {str(panel["type"]) for panel in panels(found)} - {"row"} | {_plugin(found), "grafana"}
    yield from sorted(needed ^ {one["id"] for one in found.get("__requires", [])})


RULES: Mapping[str, Rule] = {
    "the schema is one that no old migration touches": _schema,
    "nothing is null but the id that Grafana gives": _nulls,
    "no key is one that Grafana has given up": _legacy,
    "every datasource is the one that the variable names": _datasources,
    "the datasource is a variable of its type": _datasource_variable,
    "nothing waits for the import dialogue to fill it in": _inputs,
    "every panel has an id of its own": _panel_ids,
    "the queries of a panel are told apart": _ref_ids,
    "no panel covers another or leaves the page": _grid,
    "every panel says what it shows and names what it reads": _described,
    "every panel has a unit": _units,
    "the unit is that of the figures": _true_units,
    "every panel has words for no data": _no_values,
    "every panel has a least value, or shows a budget that can be overspent": _bounds,
    "not a number is shown as no traffic": _nan,
    "rates are taken over the interval that Grafana reckons": _rates,
    "no step is finer than figures come in": _min_step,
    "it refreshes, shares the crosshair, and shows the reader's own time": _manners,
    "links lead to its siblings and keep variables and time": _links,
    "every variable takes several values, and All": _variables,
    "no choice of its maker's is left in it": _leaks,
    "variables stand where their values are escaped": _matchers,
    "the uid is short, stable and ours": _uid,
    "thresholds ascend": _steps,
    "it names every plugin that it needs": _requires,
}


def faults(found: Found) -> dict[str, list[str]]:
    """What breaks which rule."""
    broken = {sentence: list(rule(found)) for sentence, rule in RULES.items()}
    return {sentence: where for sentence, where in broken.items() if where}
