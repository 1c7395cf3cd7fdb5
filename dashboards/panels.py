"""Typed panels, and the dashboard around them: the only room that knows grafanalib, and the JSON that Grafana takes.

grafanalib 0.7.1 writes the JSON of an older Grafana: schema 12 (which sets off migrations from 2016), nulls, keys long
gone, thresholds with texts for numbers, a datasource by its name. Whatever it gives is made plain here (`_plain`):
nothing null, nothing legacy, every datasource as `{type, uid: "${datasource}"}`. That uid is a variable of the
dashboard, so that one file works by import, by provisioning and through the API alike (Grafana fills `__inputs` in
its import dialogue only).

A panel is JSON without a place; `dashboard` gives it one, and an id.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import grafanalib.core as grafana

from dashboards import grid
from dashboards.grid import Panel, Section
from dashboards.model import (
    PROMETHEUS,
    SQLITE,
    About,
    Column,
    Datasource,
    Json,
    JsonObject,
    Marks,
    Query,
    Step,
    Variable,
    Word,
)

SCHEMA_VERSION = 39
GRAFANA_FLOOR = "10.4.0"
"""The first Grafana of that schema."""
REFRESH = "30s"
SHARED_CROSSHAIR = 1
ON_TIME_RANGE_CHANGE = 2
DATASOURCE_VARIABLE = "datasource"
NO_TRAFFIC = "No traffic"

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


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard without its panels. `min_step_s` is the finest step of any query: how often data come in, so that
    `$__rate_interval` always spans four of them."""

    uid: str
    title: str
    description: str
    datasource: Datasource
    variables: tuple[Variable, ...]
    marks: tuple[Marks, ...]
    tags: tuple[str, ...]
    min_step_s: int


def stat(about: About, query: Query, *, steps: Sequence[Step], words: Sequence[Word] = ()) -> Panel:
    """The value of each series as a tile, coloured by `steps`."""
    drawn = grafana.Stat(
        format=about.unit,
        noValue=about.empty,
        mappings=_mappings(words),
        reduceCalc="lastNotNull",
        graphMode="none",
        textMode="value_and_name",
        thresholds=_steps(steps),
        color={"mode": "thresholds"},
        transformations=_names((query,)),
        extraJson={"fieldConfig": {"defaults": _defaults(about, query.datasource)}, "options": {"wideLayout": True}},
    )
    return _panel(about, (query,), drawn)


def timeseries(
    about: About, queries: Sequence[Query], *, thresholds: Sequence[Decimal] = (), is_stacked: bool = False
) -> Panel:
    """Lines over time. A sole threshold is drawn as it is; of several, each is a query that looks like a limit, so
    that only those of the objectives chosen are drawn."""
    steps = (Step("green", Decimal(0)), *(Step("red", value) for value in thresholds))
    drawn = grafana.TimeSeries(
        unit=about.unit,
        mappings=_mappings(()),
        fillOpacity=30 if is_stacked else 0,
        lineWidth=1 if is_stacked else 2,
        stacking={"mode": "normal" if is_stacked else "none", "group": "A"},
        legendDisplayMode="table",
        legendCalcs=["lastNotNull", "max"],
        tooltipMode="multi",
        tooltipSort="desc",
        thresholds=_steps(steps),
        thresholdsStyleMode="dashed" if len(thresholds) == 1 else "off",
        overrides=[_look(query) for query in queries if query.look != "plain"],
        transformations=_names(queries),
        extraJson={
            "fieldConfig": {
                "defaults": {
                    "noValue": about.empty,
                    **_defaults(about, queries[0].datasource),
                    "custom": {"axisSoftMin": 0},
                },
            },
            "options": {"legend": {"showLegend": True}},
        },
    )
    return _panel(about, queries, drawn)


def table(about: About, queries: Sequence[Query], *, columns: Sequence[Column], sorted_by: str) -> Panel:
    """Rows of labels and figures, in the order of `columns`, the smallest of the column titled `sorted_by` first."""
    merge: list[JsonObject] = [{"id": "merge", "options": {}}] if len(queries) > 1 else []
    drawn = grafana.Table(
        unit=about.unit,
        filterable=True,
        sortBy=[grafana.TableSortByField(displayName=sorted_by, desc=False)],
        overrides=[override for column in columns if (override := _column(column))["properties"]],
        thresholds=_steps((Step("text", Decimal(0)),)),
        transformations=[*merge, _order(columns, queries)],
        extraJson={
            "fieldConfig": {"defaults": {"noValue": about.empty, "mappings": _mappings(()), **_bounds(about)}},
            "options": {"cellHeight": "sm"},
        },
    )
    return _panel(about, queries, drawn)


def text(title: str, markdown: str, *, height: int) -> Panel:
    """Words over the whole width."""
    drawn = grafana.Text(title=title, mode="markdown", content=markdown)
    return Panel(grid.COLUMNS, height, _bare(drawn))


def dashboard(board: Board, sections: Sequence[Section]) -> JsonObject:
    """The whole JSON of a dashboard; the same values give the same JSON."""
    panels = [_finished(panel, board) for panel in grid.placed(sections, _row)]
    drawn = grafana.Dashboard(
        title=board.title,
        uid=board.uid,
        description=board.description,
        tags=list(board.tags),
        schemaVersion=SCHEMA_VERSION,
        version=1,
        refresh=REFRESH,
        graphTooltip=SHARED_CROSSHAIR,
        timezone="browser",
        time=grafana.Time("now-6h", "now"),
        templating=grafana.Templating([_datasource_variable(board), *(_variable(v, board) for v in board.variables)]),
        annotations=grafana.Annotations([_annotation(marks, board.datasource) for marks in board.marks]),
        links=[_link(board.tags[0])],
        panels=panels,
    )
    return {**_plain(drawn, "dashboard"), "id": None, "timepicker": {}, "__requires": _requires(board, panels)}


def text_of(found: JsonObject) -> str:
    """A dashboard as the text of a file."""
    return json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(drawn: object, kind: Literal["dashboard", "panel", "variable"]) -> JsonObject:
    """What grafanalib drew as plain JSON, without nulls and without what Grafana no longer knows."""
    found = json.loads(json.dumps(drawn, default=lambda value: value.to_json_data()))
    found.get("fieldConfig", {}).get("defaults", {}).get("custom", {}).pop("displayMode", None)
    return {key: _full(value) for key, value in found.items() if value is not None and key not in LEGACY_KEYS[kind]}


def _full(value: Json) -> Json:
    """A value without the nulls in it."""
    if isinstance(value, dict):
        return {key: _full(inner) for key, inner in value.items() if inner is not None}
    return [_full(inner) for inner in value] if isinstance(value, list) else value


def _panel(about: About, queries: Sequence[Query], drawn: grafana.Panel) -> Panel:
    reads = sorted({name for query in queries for name in query.reads})
    body = {
        **_plain(drawn, "panel"),
        "title": about.title,
        "description": f"{about.description}\n\nReads: {', '.join(reads)}.",
        "datasource": _ref(queries[0].datasource),
        "targets": [_target(query) for query in queries],
    }
    return Panel(about.width, about.height, body)


def _ref(datasource: Datasource) -> JsonObject:
    return {"type": datasource.plugin, "uid": f"${{{DATASOURCE_VARIABLE}}}"}


def _target(query: Query) -> JsonObject:
    """A query in the keys of its own datasource."""
    found: dict[str, Json] = {"datasource": _ref(query.datasource), "refId": query.ref}
    is_table = query.shape == "table"
    if query.datasource is PROMETHEUS:
        instant = query.shape != "series"
        form = "table" if is_table else "time_series"
        return found | {
            "editorMode": "code", "expr": query.text, "format": form, "instant": instant, "range": not instant,
            "legendFormat": query.legend,
        }  # fmt: skip
    if query.datasource is SQLITE:
        kind = "table" if is_table else "time series"
        both = {"queryText": query.text, "rawQueryText": query.text}
        return found | both | {"queryType": kind, "timeColumns": ["time"]}
    form = "table" if is_table else "time_series"
    return found | {"editorMode": "code", "format": form, "rawQuery": True, "rawSql": query.text}


def _bounds(about: About) -> JsonObject:
    bounds = {"min": about.least, "max": about.most}
    return {key: _number(value) for key, value in bounds.items() if value is not None}


def _defaults(about: About, datasource: Datasource) -> JsonObject:
    """What holds for every series. The SQLite plugin names them by all that tells them apart: the name is enough."""
    named = {"displayName": "${__field.labels.metric}"} if datasource is SQLITE else {}
    return {**_bounds(about), **named}


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _steps(steps: Sequence[Step]) -> list[JsonObject]:
    return [{"color": step.color, "value": _number(step.start)} for step in steps]


def _mappings(words: Sequence[Word]) -> list[JsonObject]:
    """NaN is 0/0: nothing happened. Values with a meaning of their own are shown as it."""
    shown: dict[str, Json] = {
        str(word.value): {"text": word.text, "color": word.color, "index": place} for place, word in enumerate(words, 1)
    }
    nan: JsonObject = {"match": "nan", "result": {"text": NO_TRAFFIC, "color": "text", "index": 0}}
    found: list[JsonObject] = [{"type": "special", "options": nan}]
    return [*found, {"type": "value", "options": shown}] if words else found


def _names(queries: Sequence[Query]) -> list[JsonObject]:
    """Takes from the names of Prometheus series what says nothing: a label that is not there, and the model `*`."""
    if queries[0].datasource is not PROMETHEUS:
        return []
    return [{"id": "renameByRegex", "options": {"regex": r"/^\s*(.*?)(?:\s\*)?$/", "renamePattern": "$1"}}]


def _override(matcher: str, of: str, properties: JsonObject) -> JsonObject:
    listed: list[JsonObject] = [{"id": key, "value": value} for key, value in properties.items()]
    return {"matcher": {"id": matcher, "options": of}, "properties": listed}


def _look(query: Query) -> JsonObject:
    """How the lines of a query differ from the others."""
    shown: dict[str, Json] = {"custom.lineWidth": 1, "custom.fillOpacity": 0}
    if query.look == "limit":
        shown["custom.lineStyle"] = {"fill": "dash", "dash": [8, 8]}
        shown["color"] = {"mode": "fixed", "fixedColor": "red"}
    return _override("byFrameRefID", query.ref, shown)


def _column(column: Column) -> JsonObject:
    shown: dict[str, Json] = {"unit": column.unit} if column.unit else {}
    if column.steps:
        shown["thresholds"] = {"mode": "absolute", "steps": _steps(column.steps)}
    if column.words:
        shown["mappings"] = _mappings(column.words)
    if column.cell != "auto":
        shown["custom.cellOptions"] = {"type": column.cell}
    if column.cell == "gauge":
        shown |= {"custom.cellOptions": {"type": "gauge", "mode": "basic"}, "min": 0, "max": 1}
    return _override("byName", column.title, shown)


def _order(columns: Sequence[Column], queries: Sequence[Query]) -> JsonObject:
    """Names and orders the columns. Prometheus calls the value of a query `Value #ref`, of a sole one `Value`."""
    figures = {query.ref for query in queries}
    is_sole = len(queries) == 1

    def raw(field: str) -> str:
        if field not in figures or queries[0].datasource is not PROMETHEUS:
            return field
        return "Value" if is_sole else f"Value #{field}"

    names = {raw(column.field): column.title for column in columns}
    places = {field: place for place, field in enumerate(names)}
    options: JsonObject = {"excludeByName": {"Time": True}, "renameByName": names, "indexByName": places}
    return {"id": "organize", "options": options}


def _row(title: str, panels: Sequence[JsonObject]) -> JsonObject:
    """A heading; with panels it is a closed one that holds them until it is opened."""
    drawn = grafana.RowPanel(title=title, collapsed=bool(panels), panels=list(panels))
    return _bare(drawn)


def _bare(drawn: grafana.Panel) -> JsonObject:
    """A panel that shows no figures."""
    return {
        key: value for key, value in _plain(drawn, "panel").items() if key not in ("fieldConfig", "transformations")
    }


def _finished(panel: JsonObject, board: Board) -> JsonObject:
    """The panel with the finest step of its queries, and so each panel inside it."""
    inner = panel.get("panels")
    if isinstance(inner, list):
        return {**panel, "panels": [_finished(one, board) for one in inner]}
    return {**panel, "interval": f"{board.min_step_s}s"} if "targets" in panel else panel


def _datasource_variable(board: Board) -> JsonObject:
    title = board.datasource.title
    drawn = grafana.Template(
        DATASOURCE_VARIABLE, board.datasource.plugin, type="datasource", label="Data source", regex=""
    )
    return {**_plain(drawn, "variable"), "current": {}, "description": f"Which {title} to read from."}


def _variable(variable: Variable, board: Board) -> JsonObject:
    drawn = grafana.Template(
        variable.name,
        variable.query,
        label=variable.label,
        dataSource=_ref(board.datasource),
        includeAll=True,
        multi=True,
        allValue=variable.every,
        refresh=ON_TIME_RANGE_CHANGE,
        regex="",
    )
    query: Json = variable.query
    if board.datasource is PROMETHEUS:
        query = {"query": variable.query, "refId": f"variable-{variable.name}"}
    everything: JsonObject = {"selected": True, "text": ["All"], "value": ["$__all"]}
    own = {"query": query, "current": everything, "description": variable.description}
    return {**_plain(drawn, "variable"), **own}


def _annotation(marks: Marks, datasource: Datasource) -> JsonObject:
    return {
        "name": marks.name,
        "datasource": _ref(datasource),
        "enable": True,
        "iconColor": "red",
        "expr": marks.query,
        "target": {"expr": marks.query, "interval": "1m", "refId": "marks"},
        "titleFormat": marks.title,
        "textFormat": marks.text,
        "tagKeys": marks.tags,
        "step": "1m",
    }


def _link(tag: str) -> grafana.DashboardLink:
    """To the other dashboards of the tag, with the same variables and time."""
    return grafana.DashboardLink(
        title=tag, tags=[tag], type="dashboards", asDropdown=True, includeVars=True, keepTime=True
    )


def _requires(board: Board, panels: Sequence[JsonObject]) -> list[JsonObject]:
    """What must be installed, as the import dialogue checks it."""
    kinds = sorted({str(panel["type"]) for panel in _every(panels)} - {"row"})
    plugin, title = board.datasource.plugin, board.datasource.title
    return [
        {"type": "grafana", "id": "grafana", "name": "Grafana", "version": GRAFANA_FLOOR},
        {"type": "datasource", "id": plugin, "name": title, "version": "1.0.0"},
        *({"type": "panel", "id": kind, "name": kind, "version": ""} for kind in kinds),
    ]


def _every(panels: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for panel in panels:
        yield panel
        inner = panel.get("panels")
        yield from _every(inner if isinstance(inner, list) else [])
