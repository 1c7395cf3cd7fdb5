"""The tables that ClickHouse keeps of many collectors' counts: states that the engine merges itself.

A collector's own database stays what is true: its commits are transactions, and what was acknowledged is in there.
ClickHouse holds what those databases counted, side by side (`origin` tells them apart), as states that add up: a
latency histogram is one map from bucket to count, and `sumMap` of two of them is the histogram of the union, exactly.
Rows are inserted and never changed; that a row is there twice cannot be, see `mirror`.

The engine folds rows into longer steps as they age, at the ages at which the collector's own database does, and drops
them in the end. No count changes by that, and no question of `views` is answered differently: a window is read at the
steps that the collector itself holds it at.

On a cluster each table lies in shards, each of them replicated, and is asked through a distributed one. All that one
origin counted lies on one shard, so that an insert is one part on one shard: it happens as a whole or not at all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Table

from collector import schema
from slo.quantity import DAY_S, HOUR_S, MINUTE_S

FOLDS = ((MINUTE_S, 2 * HOUR_S), (600, 3 * DAY_S), (HOUR_S, 14 * DAY_S))
"""(step, age from which rows of shorter steps are folded into it), in seconds: as in the collector's own database."""
KEPT_S = 35 * DAY_S
INSTANCES_KEPT_S = 60 * DAY_S
"""Longer than a collector's database remembers them: what it still knows is not sent again and again."""
TOKENS_KEPT = 10_000
"""Inserts of which a table knows the tokens: of all origins of a shard together, so many minutes' worth."""
REPLICA = "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'"

_TEXT, _NAME, _WHOLE = "String", "LowCardinality(String)", "Int64"
_ADDED, _ADDED_REAL = "SimpleAggregateFunction(sum, UInt64)", "SimpleAggregateFunction(sum, Float64)"
_LEAST, _GREATEST = "SimpleAggregateFunction(min, Int64)", "SimpleAggregateFunction(max, Int64)"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the engine; `merged` is how rows of one key become one, '' for the key itself."""

    name: str
    type: str
    comment: str
    merged: str = ""


@dataclass(frozen=True, slots=True)
class EngineTable:
    """A table of states: `keys` tell rows apart, `columns` are merged. `stepped` ones have a start, and are folded by
    it as far as `folds` go. What is older than `kept_s` by the column `aged_by` is dropped."""

    name: str
    comment: str
    keys: tuple[Column, ...]
    columns: tuple[Column, ...] = ()
    folds: tuple[tuple[int, int], ...] = ()
    stepped: bool = True
    aged_by: str = ""
    kept_s: int = KEPT_S

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a row, in their order."""
        return tuple(column.name for column in self.every)

    @property
    def every(self) -> tuple[Column, ...]:
        return (*self.keys, *((_START,) if self.stepped else ()), *self.columns)


def _of(table: Table, *names: str, kind: str = _NAME) -> tuple[Column, ...]:
    """Columns that mean what those of the collector's own database mean."""
    return tuple(Column(name, kind, str(table.c[name].comment)) for name in names)


_ORIGIN = Column("origin", _NAME, "The collector's database that counted it, by the name its mirror was given.")
_START = Column("start_s", _WHOLE, "Start of the step.")
_INSTANCE = Column("instance", _TEXT, "service.instance.id of the sender.")

ROLLUP = EngineTable(
    "rollup",
    "Latency histograms by step: maps from bucket to count, which sumMap merges exactly.",
    keys=(
        *_of(schema.series, "environment", "service", "model", "signal", "source", "layout"),
        Column("censored", "UInt8", str(schema.series.c.censored.comment)),
        _INSTANCE,
        _ORIGIN,
    ),
    columns=(
        Column("count", _ADDED, str(schema.rollup.c["count"].comment), "sum"),
        Column("sum", _ADDED_REAL, str(schema.rollup.c["sum"].comment), "sum"),
        Column("min", "SimpleAggregateFunction(min, Nullable(Float64))", "Least value that a sender told.", "min"),
        Column("max", "SimpleAggregateFunction(max, Nullable(Float64))", "Greatest value that a sender told.", "max"),
        Column("zero_count", _ADDED, str(schema.rollup.c.zero_count.comment), "sum"),
        Column("bins", "SimpleAggregateFunction(sumMap, Map(Int32, UInt64))", "Counts by bucket.", "sumMap"),
    ),
    folds=FOLDS,
    aged_by="start_s",
)

SLO_COUNT = EngineTable(
    "slo_count",
    str(schema.slo_count.comment),
    keys=(*_of(schema.slo_count, "environment", "service", "model", "objective", "objective_hash"), _ORIGIN),
    columns=(
        Column("good", _ADDED, str(schema.slo_count.c.good.comment), "sum"),
        Column("bad", _ADDED, str(schema.slo_count.c.bad.comment), "sum"),
    ),
    folds=FOLDS,
    aged_by="start_s",
)

COUNTER = EngineTable(
    "counter",
    str(schema.counter.comment),
    keys=(
        *_of(schema.counter, "environment", "service", "model", "source", "name"),
        *_of(schema.counter, "attributes", kind=_TEXT),
        _INSTANCE,
        _ORIGIN,
    ),
    columns=(Column("value", _ADDED_REAL, str(schema.counter.c.value.comment), "sum"),),
    folds=FOLDS,
    aged_by="start_s",
)

KNOWN = EngineTable(
    "known",
    str(schema.known.comment),
    keys=(*_of(schema.known, "environment", "service"), _ORIGIN),
    aged_by="start_s",
    folds=FOLDS[:1],  # known steps say which minutes count as covered
)

INSTANCE = EngineTable(
    "instance",
    str(schema.instance.comment),
    keys=(*_of(schema.instance, "environment", "service", "source"), _INSTANCE),
    columns=(
        Column("first_s", _LEAST, str(schema.instance.c.first_s.comment), "min"),
        Column("last_s", _GREATEST, str(schema.instance.c.last_s.comment), "max"),
        Column("periodic", _GREATEST, str(schema.instance.c.periodic.comment), "max"),
    ),
    stepped=False,
    aged_by="last_s",
    kept_s=INSTANCES_KEPT_S,
)

OBJECTIVE = EngineTable(
    "objective",
    "What slo.yaml promises, as a mirror was told it: of each service the rows written last.",
    keys=(
        Column("service", _NAME, "OpenTelemetry service.name."),
        Column("objective", _NAME, "Name of the objective in slo.yaml."),
        Column("written_s", _WHOLE, "When the spec was told."),
        Column("environment", _NAME, "Environment that it is judged in; '' for all that the service is heard from."),
        Column("objective_hash", _NAME, "Hash over every field that decides good or bad."),
        Column("signal", _NAME, "What is measured."),
        Column("threshold_s", "Float64", "Threshold of a latency in seconds; 0 of what is none."),
        Column("allowed_bad", "Float64", "Share of events that may be bad: 1 - target."),
        Column("window_s", _WHOLE, "Period of the error budget."),
        Column("models", _TEXT, "Regular expression that the models it speaks of match."),
        Column("readable", "UInt8", "1 when a histogram can answer where nobody judged: no class, no prompt size."),
        Column("elastic", "UInt8", "1 when the service may scale to zero, so that its silence says nothing."),
    ),
    stepped=False,
)

MIRRORED = EngineTable(
    "mirrored",
    "How far each origin's mirror has come: the number of its last insert, by table.",
    keys=(_ORIGIN, Column("relation", _NAME, "The table.")),
    columns=(Column("number", "SimpleAggregateFunction(max, UInt64)", "Of the last insert acknowledged.", "max"),),
    stepped=False,
)

TABLES = (ROLLUP, SLO_COUNT, COUNTER, KNOWN, INSTANCE, OBJECTIVE, MIRRORED)


def statements(cluster: str | None = None) -> Iterator[str]:
    """What makes the tables, on one server or on every server of a cluster."""
    for table in TABLES:
        yield _create(table, cluster)
        if cluster is not None:
            yield _distributed(table, cluster)


def on_cluster(cluster: str | None) -> str:
    """What a statement says to be done everywhere."""
    return "" if cluster is None else f" ON CLUSTER {quoted(cluster)}"


def quoted(name: str) -> str:
    """A name as ClickHouse reads it, whatever it is made of."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def literal(text: str) -> str:
    """A text as ClickHouse reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _create(table: EngineTable, cluster: str | None) -> str:
    """The statement that makes a table; on a cluster that of each shard."""
    columns = ",\n".join(f"    {quoted(one.name)} {one.type} COMMENT {literal(one.comment)}" for one in table.every)
    name = table.name if cluster is None else _local(table)
    engine = "AggregatingMergeTree" if cluster is None else f"ReplicatedAggregatingMergeTree({REPLICA})"
    window = "non_replicated_deduplication_window" if cluster is None else "replicated_deduplication_window"
    lines = (
        f"CREATE TABLE IF NOT EXISTS {quoted(name)}{on_cluster(cluster)} (\n{columns}\n)",
        f"ENGINE = {engine}",
        *([f"PARTITION BY intDiv(start_s, {DAY_S})"] if table.stepped else ()),
        f"ORDER BY ({', '.join(_order(table))})",
        *([f"TTL {_ages(table)}"] if table.aged_by else ()),
        f"SETTINGS {window} = {TOKENS_KEPT}",
        f"COMMENT {literal(table.comment)}",
    )
    return "\n".join(lines)


def _distributed(table: EngineTable, cluster: str) -> str:
    """The table that asks and fills all shards. What has no origin is small, and lies where it was written."""
    shard = "sipHash64(origin)" if _ORIGIN in table.keys else "0"
    where = f"{quoted(cluster)}, currentDatabase(), {quoted(_local(table))}, {shard}"
    return (
        f"CREATE TABLE IF NOT EXISTS {quoted(table.name)}{on_cluster(cluster)} AS {quoted(_local(table))}\n"
        f"ENGINE = Distributed({where})\nCOMMENT {literal(table.comment)}"
    )


def _local(table: EngineTable) -> str:
    return f"{table.name}_local"


def _order(table: EngineTable) -> tuple[str, ...]:
    """The key: rows of one series lie together, and within it those that are folded together."""
    keys = tuple(quoted(one.name) for one in table.keys)
    longer = tuple(_number(step_s) for step_s, _ in reversed(table.folds))
    return (*keys, *longer, *(("start_s",) if table.stepped else ()))


def _number(step_s: int) -> str:
    return f"intDiv(start_s, {step_s})"


def _ages(table: EngineTable) -> str:
    """When rows are folded and dropped: a fold's rows are those that share the front of the key, up to its step."""
    rules = [_fold(table, step_s, age_s) for step_s, age_s in table.folds]
    return ",\n    ".join((*rules, f"{_since(table.kept_s, table.aged_by)} DELETE"))


def _fold(table: EngineTable, step_s: int, age_s: int) -> str:
    longer = [_number(longer_s) for longer_s, _ in reversed(table.folds) if longer_s >= step_s]
    keys = ", ".join((*(quoted(one.name) for one in table.keys), *longer))
    start = f"start_s = min(start_s) - min(start_s) % {step_s}"
    merged = (f"{quoted(one.name)} = {one.merged}({quoted(one.name)})" for one in table.columns)
    return f"{_since(age_s)} GROUP BY {keys} SET {', '.join((start, *merged))}"


def _since(age_s: int, column: str = "start_s") -> str:
    return f"toDateTime({column}) + toIntervalSecond({age_s})"


def column_names(columns: Iterable[Column]) -> str:
    """The columns as a list in SQL."""
    return ", ".join(quoted(one.name) for one in columns)
