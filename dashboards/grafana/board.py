"""The dashboard around its panels: variables, marks, links, and what must be installed; ready for every way in."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import grafanalib.core as grafana

from dashboards.grafana import grid
from dashboards.grafana.grid import Section
from dashboards.grafana.panels import row
from dashboards.grafana.plain import DATASOURCE_VARIABLE, plain, ref
from dashboards.model import PROMETHEUS, SQLITE, Datasource, Json, JsonObject, Marks, Variable

SCHEMA_VERSION = 39
GRAFANA_FLOOR = "10.4.0"
"""The first Grafana of that schema."""
PLUGIN_FLOORS = {SQLITE.plugin: "3.4.0"}
"""The first release of a plugin that can do all that is asked of it; marks came late."""
REFRESH = "30s"
SHARED_CROSSHAIR = 1
ON_TIME_RANGE_CHANGE = 2
TOLD = "Deploys told to Grafana"
TOLD_TAG = "deploy"


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard without its panels. `min_step_s` is the finest step of any query: how often data come in. Each query
    of Prometheus says it too, for that, not the panel's, is what `$__rate_interval` spans four of; where it does not,
    Grafana takes the data source's, which is 15 s until somebody sets it."""

    uid: str
    title: str
    description: str
    datasource: Datasource
    variables: tuple[Variable, ...]
    marks: tuple[Marks, ...]
    tags: tuple[str, ...]
    min_step_s: int
    shows_told: bool = False
    """Also mark the deploys that a pipeline has told Grafana of."""


def dashboard(board: Board, sections: Sequence[Section]) -> JsonObject:
    """The whole JSON of a dashboard; the same values give the same JSON."""
    panels = [_finished(panel, board) for panel in grid.placed(sections, row)]
    marks = [_annotation(found, board) for found in board.marks]
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
        annotations=grafana.Annotations([*marks, *([_told()] if board.shows_told else [])]),
        links=[_link(board)],
        panels=panels,
    )
    return {**plain(drawn, "dashboard"), "id": None, "timepicker": {}, "__requires": _requires(board, panels)}


def text_of(found: JsonObject) -> str:
    """A dashboard as the text of a file."""
    return json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _finished(panel: JsonObject, board: Board) -> JsonObject:
    """The panel with the finest step of its queries, and so each panel inside it."""
    inner, asked = panel.get("panels"), panel.get("targets")
    if isinstance(inner, list):
        return {**panel, "panels": [_finished(one, board) for one in inner]}
    if not isinstance(asked, list):
        return panel
    step: JsonObject = {"interval": f"{board.min_step_s}s"}
    of_query = step if board.datasource is PROMETHEUS else {}
    return {**panel, **step, "targets": [{**query, **of_query} for query in asked]}


def _datasource_variable(board: Board) -> JsonObject:
    title = board.datasource.title
    drawn = grafana.Template(
        DATASOURCE_VARIABLE, board.datasource.plugin, type="datasource", label="Data source", regex=""
    )
    found = {key: value for key, value in plain(drawn, "variable").items() if key != "current"}
    return {**found, "description": f"Which {title} to read from."}


def _variable(variable: Variable, board: Board) -> JsonObject:
    drawn = grafana.Template(
        variable.name,
        variable.query,
        label=variable.label,
        dataSource=ref(board.datasource),
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
    return {**plain(drawn, "variable"), **own}


def _annotation(marks: Marks, board: Board) -> JsonObject:
    datasource, step = board.datasource, f"{board.min_step_s}s"
    common: JsonObject = {"name": marks.name, "datasource": ref(datasource), "enable": True, "iconColor": marks.color}
    if datasource is PROMETHEUS:
        told = {"titleFormat": marks.title, "textFormat": marks.text, "tagKeys": marks.tags}
        target: JsonObject = {"expr": marks.query, "interval": step, "refId": "marks"}
        return {**common, **told, "expr": marks.query, "step": step, "target": target}
    if datasource is SQLITE:
        text: JsonObject = {"queryText": marks.query, "rawQueryText": marks.query}
        form: JsonObject = {"queryType": "table", "timeColumns": ["time", "timeend"]}
        return {**common, "target": {**text, **form, "refId": "marks"}}
    of_sql: JsonObject = {"editorMode": "code", "format": "table", "rawQuery": True, "rawSql": marks.query}
    return {**common, "target": {**of_sql, "refId": "marks"}}


def _told() -> JsonObject:
    """What a pipeline has posted to Grafana's own store of annotations under a tag."""
    return {
        "name": TOLD,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "iconColor": "blue",
        "target": {"type": "tags", "tags": [TOLD_TAG], "matchAny": True, "limit": 100, "refId": "marks"},
    }


def _link(board: Board) -> grafana.DashboardLink:
    """To the other dashboards of the same data source, with the same variables and time."""
    return grafana.DashboardLink(
        title=board.tags[0], tags=list(board.tags), type="dashboards", asDropdown=True, includeVars=True, keepTime=True
    )


def _requires(board: Board, panels: Sequence[JsonObject]) -> list[JsonObject]:
    """What must be installed, as the import dialogue checks it."""
    kinds = sorted({str(panel["type"]) for panel in _every(panels)} - {"row"})
    plugin, title = board.datasource.plugin, board.datasource.title
    return [
        {"type": "grafana", "id": "grafana", "name": "Grafana", "version": GRAFANA_FLOOR},
        {"type": "datasource", "id": plugin, "name": title, "version": PLUGIN_FLOORS.get(plugin, "1.0.0")},
        *({"type": "panel", "id": kind, "name": kind, "version": ""} for kind in kinds),
    ]


def _every(panels: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for panel in panels:
        yield panel
        inner = panel.get("panels")
        yield from _every(inner if isinstance(inner, list) else [])
