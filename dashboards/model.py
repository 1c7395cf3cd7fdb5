"""The words in which dashboards and their sources speak: queries, variables and columns, as plain values.

Nothing here knows Grafana's JSON (that is `grafana`) or where a figure is read (that is a source): a dashboard asks a
source for queries and hands them to a panel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

Json: TypeAlias = str | int | float | bool | Sequence["Json"] | Mapping[str, "Json"] | None
JsonObject: TypeAlias = Mapping[str, Json]

SHARE = "percentunit"
YES_NO = "bool_yes_no"
TOKENS_A_SECOND = "count:tok/s"
"""Units, as Grafana names them."""

Shape = Literal["series", "latest", "table", "buckets"]
"""Over the range, at its end as one value a series, at its end as rows, or over the range as the buckets of a
histogram."""
Fold = Literal["sum", "max", "min"]
"""How what has one name on a chart becomes one line."""
Look = Literal["plain", "thin", "limit"]
"""How a line is drawn: as any other, thin beside the one it belongs to, or dashed as the limit of the others."""


@dataclass(frozen=True, slots=True)
class Datasource:
    """A kind of data source: its name on the command line, for people, and Grafana's id of its plugin."""

    name: str
    title: str
    plugin: str


PROMETHEUS = Datasource("prometheus", "Prometheus", "prometheus")
POSTGRES = Datasource("postgres", "PostgreSQL", "grafana-postgresql-datasource")
SQLITE = Datasource("sqlite", "SQLite", "frser-sqlite-datasource")
DATASOURCES: Mapping[str, Datasource] = {found.name: found for found in (PROMETHEUS, POSTGRES, SQLITE)}


@dataclass(frozen=True, slots=True)
class Query:
    """A question to a datasource, in its own language.

    `reads` names the metrics or tables asked, for the panel's description. `ref` tells the queries of one panel
    apart; the figures of a table are named by it. `legend` is for languages that do not name their series themselves.
    `exemplars`: also ask for the requests that stand for the figures.
    """

    datasource: Datasource
    text: str
    reads: tuple[str, ...]
    ref: str = "A"
    legend: str = ""
    shape: Shape = "series"
    look: Look = "plain"
    exemplars: bool = False


@dataclass(frozen=True, slots=True)
class About:
    """What every panel says of itself. `width` is in 24ths of the page, `height` in grid rows of 30 pixels.

    `least` is the smallest value that makes sense, None where values may be negative; `empty` is shown for no data.
    """

    title: str
    description: str
    unit: str
    width: int = 8
    height: int = 8
    empty: str = "No data"
    least: Decimal | None = Decimal(0)
    most: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A colour from a value on; the first step of several also holds for everything below it."""

    color: str
    start: Decimal


@dataclass(frozen=True, slots=True)
class Word:
    """A value that is shown as a word."""

    value: int
    text: str
    color: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: `field` is a label or the `ref` of the query that gives it."""

    field: str
    title: str
    unit: str = ""
    steps: tuple[Step, ...] = ()
    words: tuple[Word, ...] = ()
    cell: Literal["auto", "color-text", "color-background", "gauge"] = "auto"


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice on top of a dashboard; several values may be chosen, or All, which stands as `every` in queries."""

    name: str
    label: str
    query: str
    every: str
    description: str


@dataclass(frozen=True, slots=True)
class Marks:
    """Events that are marked on every chart.

    A Prometheus query gives a sample while an event lasts: `title` and `text` are templates over its labels, `tags`
    names labels. One in SQL gives rows of time, timeend, text and tags in epoch seconds, and needs none of these.
    """

    name: str
    query: str
    color: str
    title: str = ""
    text: str = ""
    tags: str = ""
