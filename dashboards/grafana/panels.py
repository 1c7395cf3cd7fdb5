"""One panel as JSON without a place: figures, charts, heatmaps, tables and words.

Each takes what it says of itself, the queries, and how they look; `board` gives it its place and its id.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType

import grafanalib.core as grafana

from dashboards.grafana.grid import COLUMNS, Panel
from dashboards.grafana.plain import number, plain, ref
from dashboards.model import PROMETHEUS, SHARE, SQLITE, About, Column, Datasource, Json, JsonObject, Query, Step, Word

NO_TRAFFIC = "No traffic"
WIDE = COLUMNS // 2
"""From this width on a legend has room beside the chart; under it, it would halve its height."""
MARGIN = Decimal("1.05")
LEAST_COLUMN_PX = 80
NO_COLORS: Mapping[str, str] = MappingProxyType({})


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
    about: About,
    queries: Sequence[Query],
    *,
    thresholds: Sequence[Decimal] = (),
    is_stacked: bool = False,
    colors: Mapping[str, str] = NO_COLORS,
) -> Panel:
    """Lines over time. A sole threshold is drawn as it is; of several, each is a query that looks like a limit, so
    that only those of the objectives chosen are drawn. `colors` are those of lines whose names mean something.
    What is stacked is drawn as areas without lines, for the line of what is 0 would lie on that of what is under it."""
    steps = (Step("green", Decimal(0)), *(Step("red", value) for value in thresholds))
    drawn = grafana.TimeSeries(
        unit=about.unit,
        mappings=_mappings(()),
        fillOpacity=70 if is_stacked else 0,
        lineWidth=0 if is_stacked else 2,
        showPoints="never" if is_stacked else "auto",
        stacking={"mode": "normal" if is_stacked else "none", "group": "A"},
        legendDisplayMode="table",
        legendCalcs=["lastNotNull", "max"],
        tooltipMode="multi",
        tooltipSort="desc",
        thresholds=_steps(steps),
        thresholdsStyleMode="dashed" if len(thresholds) == 1 else "off",
        overrides=[
            *(_look(query) for query in queries if query.look != "plain"),
            *(_override("byName", name, {"color": _fixed(color)}) for name, color in colors.items()),
        ],
        transformations=_names(queries),
        extraJson={
            "fieldConfig": {
                "defaults": {
                    "noValue": about.empty,
                    **_defaults(about, queries[0].datasource),
                    "custom": {"axisSoftMin": 0, **_soft_most(about, thresholds)},
                },
            },
            "options": {"legend": {"showLegend": True, "placement": "right" if about.width >= WIDE else "bottom"}},
        },
    )
    return _panel(about, queries, drawn)


def heatmap(about: About, query: Query, *, axis_unit: str) -> Panel:
    """How many fell into each bucket over time; `axis_unit` is that of the buckets' edges."""
    drawn = grafana.Panel(title=about.title)
    own = {
        "type": "heatmap",
        "fieldConfig": {
            "defaults": {
                "unit": about.unit,
                "noValue": about.empty,
                "mappings": _mappings(()),
                "thresholds": {"mode": "absolute", "steps": _steps((Step("green", Decimal(0)),))},
                **_bounds(about),
                "custom": {"scaleDistribution": {"type": "linear"}},
            },
            "overrides": [],
        },
        "options": {
            "calculate": False,
            "cellGap": 1,
            "cellValues": {"unit": about.unit},
            "color": {"mode": "scheme", "scheme": "Blues", "steps": 64, "exponent": 0.5, "scale": "exponential",
                      "fill": "dark-blue", "reverse": False},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "showValue": "never",
            "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": False},
            "yAxis": {"axisPlacement": "left", "reverse": False, "unit": axis_unit},
        },
    }  # fmt: skip
    return _panel(about, (query,), drawn.panel_json(own))


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
            "fieldConfig": {
                "defaults": {
                    "noValue": about.empty,
                    "mappings": _mappings(()),
                    **_bounds(about),
                    "custom": {"minWidth": LEAST_COLUMN_PX},
                },
            },
            "options": {"cellHeight": "sm"},
        },
    )
    return _panel(about, queries, drawn)


def text(title: str, markdown: str, *, height: int) -> Panel:
    """Words over the whole width."""
    drawn = grafana.Text(title=title, mode="markdown", content=markdown)
    return Panel(COLUMNS, height, bare(drawn))


def row(title: str, panels: Sequence[JsonObject]) -> JsonObject:
    """A heading; with panels it is a closed one that holds them until it is opened."""
    drawn = grafana.RowPanel(title=title, collapsed=bool(panels), panels=list(panels))
    return bare(drawn)


def bare(drawn: grafana.Panel) -> JsonObject:
    """A panel that shows no figures."""
    return {key: value for key, value in plain(drawn, "panel").items() if key not in ("fieldConfig", "transformations")}


def target(query: Query) -> JsonObject:
    """A query in the keys of its own datasource."""
    found: dict[str, Json] = {"datasource": ref(query.datasource), "refId": query.ref}
    is_table = query.shape == "table"
    if query.datasource is PROMETHEUS:
        instant = query.shape in ("latest", "table")
        form = {"table": "table", "buckets": "heatmap"}.get(query.shape, "time_series")
        exemplars = {"exemplar": True} if query.exemplars else {}
        return found | exemplars | {
            "editorMode": "code", "expr": query.text, "format": form, "instant": instant, "range": not instant,
            "legendFormat": query.legend,
        }  # fmt: skip
    if query.datasource is SQLITE:
        kind = "table" if is_table else "time series"
        both = {"queryText": query.text, "rawQueryText": query.text}
        return found | both | {"queryType": kind, "timeColumns": ["time"]}
    form = "table" if is_table else "time_series"
    return found | {"editorMode": "code", "format": form, "rawQuery": True, "rawSql": query.text}


def _panel(about: About, queries: Sequence[Query], drawn: object) -> Panel:
    reads = sorted({name for query in queries for name in query.reads})
    body = {
        **plain(drawn, "panel"),
        "title": about.title,
        "description": f"{about.description}\n\nReads: {', '.join(reads)}.",
        "datasource": ref(queries[0].datasource),
        "targets": [target(query) for query in queries],
    }
    return Panel(about.width, about.height, body)


def _bounds(about: About) -> JsonObject:
    bounds = {"min": about.least, "max": about.most}
    return {key: number(value) for key, value in bounds.items() if value is not None}


def _defaults(about: About, datasource: Datasource) -> JsonObject:
    """What holds for every series. The SQLite plugin names them by all that tells them apart: the name is enough."""
    named = {"displayName": "${__field.labels.metric}"} if datasource is SQLITE else {}
    return {**_bounds(about), **named}


def _steps(steps: Sequence[Step]) -> list[JsonObject]:
    return [{"color": step.color, "value": number(step.start)} for step in steps]


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
        shown["color"] = _fixed("red")
    return _override("byFrameRefID", query.ref, shown)


def _fixed(color: str) -> JsonObject:
    return {"mode": "fixed", "fixedColor": color}


def _soft_most(about: About, thresholds: Sequence[Decimal]) -> JsonObject:
    """How far an axis reaches at least: to the threshold, which is not seen otherwise, or to the whole of a share."""
    if about.most is not None or len(thresholds) > 1:
        return {}
    if thresholds:
        return {"axisSoftMax": number(thresholds[0] * MARGIN)}
    return {"axisSoftMax": 1} if about.unit == SHARE else {}


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
