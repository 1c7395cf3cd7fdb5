"""Which of a collector's tables are mirrored, and the questions by which both sides say what they hold of a stretch.

Both answer in the same words: by step, how much there is (`totals`), which is cheap and mostly the same; then, of the
steps at which there is more in the collector's database than was sent, every row.
"""

# ruff: noqa: S608  our own names, whole numbers and checked literals are all that goes into these texts

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Select, Table, func, select

from collector import schema
from collector.clickhouse import difference
from collector.clickhouse.blocks import Block
from collector.clickhouse.difference import Cells, Key, Missing, Number, merged
from collector.clickhouse.engine import Row
from collector.clickhouse.tables import COUNTER, KNOWN, ROLLUP, SLO_COUNT, EngineTable, quoted
from slo.quantity import MINUTE_S

Totals = dict[int, tuple[Number, ...]]


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of the collector's database, with those that name its rows, and the engine's table of the same."""

    table: EngineTable
    stored: Table
    named_by: Table | None = None

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def keys(self) -> tuple[str, ...]:
        """What tells rows apart, the origin and the step aside."""
        return tuple(one.name for one in self.table.keys if one.name != "origin")

    @property
    def is_histogram(self) -> bool:
        return self.table is ROLLUP

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that are summed up to say how much there is."""
        return ("count",) if self.is_histogram else tuple(one.name for one in self.table.columns)

    def grain_s(self, block: Block) -> int:
        """The step at which a stretch is compared: known steps are folded to the minute and no further."""
        return min(block.grain_s, MINUTE_S) if self.table is KNOWN else block.grain_s


ROLLUPS = Relation(ROLLUP, schema.rollup, schema.series)
RELATIONS = (
    ROLLUPS,
    Relation(SLO_COUNT, schema.slo_count),
    Relation(COUNTER, schema.counter),
    Relation(KNOWN, schema.known),
)


# The collector's database.


def stored_totals(of: Relation, block: Block, steps: Sequence[int]) -> Select[Any]:
    """How much it holds, by step; where rows may hold nothing, also how many there are."""
    start: ColumnElement[Any] = _start(of, block)
    sums = [func.sum(of.stored.c[name]) for name in of.added]
    inside = _inside(of, block, steps)
    if of.is_histogram:
        return select(start, *sums).where(*inside).group_by(start)
    keys = [of.stored.c[name] for name in of.keys]
    rows = select(start.label("start_s"), *(one.label(f"v{n}") for n, one in enumerate(sums)))
    each = rows.where(*inside).group_by(start, *keys).subquery()
    values = [func.sum(each.c[f"v{n}"]) for n, _ in enumerate(sums)]
    return select(each.c.start_s, func.count(), *values).group_by(each.c.start_s)


def stored_rows(of: Relation, block: Block, steps: Sequence[int], starts_s: Sequence[int]) -> Select[Any]:
    """Its rows at some of the steps: their key, their step, and what they hold."""
    start, inside = _start(of, block), _inside(of, block, steps)
    wanted = (*inside, start.in_(starts_s))
    if of.named_by is not None:
        keys = [of.named_by.c[name] for name in of.keys]
        held = [of.stored.c[name] for name in ("count", "sum", "min", "max", "zero_count", "bin_offset", "bins")]
        return select(*keys, start, *held).join(of.named_by, of.named_by.c.id == of.stored.c.series_id).where(*wanted)
    keys = [of.stored.c[name] for name in of.keys]
    return (
        select(*keys, start, *(func.sum(of.stored.c[name]) for name in of.added)).where(*wanted).group_by(start, *keys)
    )


def _start(of: Relation, block: Block) -> ColumnElement[int]:
    start = of.stored.c.start_s
    return start - start % of.grain_s(block)


def _inside(of: Relation, block: Block, steps: Sequence[int]) -> tuple[ColumnElement[bool], ...]:
    """Steps come first in the key of every table."""
    of_steps: ColumnElement[bool] = of.stored.c.step_s.in_(steps)
    return of_steps, of.stored.c.start_s >= block.from_s, of.stored.c.start_s < block.until_s


# The engine.


def sent_totals(of: Relation, block: Block) -> str:
    """How much was sent of `{origin}`, by step."""
    start = _sent_start(of, block)
    sums = "".join(f", sum({quoted(name)}) AS v{n}" for n, name in enumerate(of.added))
    if of.is_histogram:
        return f"SELECT {start} AS floored{sums} FROM {of.name} WHERE {_sent(block)} GROUP BY floored"
    keys = "".join(f", {quoted(name)}" for name in of.keys)
    values = "".join(f", sum(v{n})" for n, _ in enumerate(of.added))
    each = f"SELECT {start} AS floored{sums} FROM {of.name} WHERE {_sent(block)} GROUP BY floored{keys}"
    return f"SELECT floored, count(){values} FROM ({each}) GROUP BY floored"


def sent_rows(of: Relation, block: Block) -> str:
    """The rows that were sent of `{origin}`, at the steps of `{starts}`, in the words of `stored_rows`."""
    start, keys = _sent_start(of, block), ", ".join(map(quoted, of.keys))
    held = "".join(f", {one.merged}({quoted(one.name)})" for one in of.table.columns)
    where = f"{_sent(block)} AND floored IN {{starts:Array(Int64)}}"
    return f"SELECT {keys}, {start} AS floored{held} FROM {of.name} WHERE {where} GROUP BY {keys}, floored"


def _sent_start(of: Relation, block: Block) -> str:
    return f"start_s - start_s % {of.grain_s(block)}"


def _sent(block: Block) -> str:
    return f"origin = {{origin:String}} AND start_s >= {block.from_s} AND start_s < {block.until_s}"


# Both.


def totals(rows: Iterable[Sequence[Any]]) -> Totals:
    """How much there is, by step, from the rows that say so."""
    return {int(start_s): tuple(map(_number, values)) for start_s, *values in rows}


def missing(of: Relation, stored: Iterable[Row], sent: Iterable[Row], *, origin: str) -> Missing:
    """The rows to send, from the rows that either side answered with."""
    if of.is_histogram:
        held, before = _cells(stored, _stored_cells), _cells(sent, _sent_cells)
        return difference.of_cells(held, before, origin=origin)
    width = len(of.keys) + 1
    return difference.of_sums(_sums(stored, width), _sums(sent, width), origin=origin)


def _sums(rows: Iterable[Row], width: int) -> Mapping[Key, tuple[Number, ...]]:
    return {tuple(row[:width]): tuple(map(_number, row[width:])) for row in rows}


def _cells(rows: Iterable[Row], read: Callable[[Row], Cells]) -> dict[Key, Cells]:
    found: dict[Key, Cells] = {}
    width = len(ROLLUPS.keys) + 1
    for row in rows:
        key, one = tuple(row[:width]), read(row[width:])
        found[key] = merged(found[key], one) if key in found else one
    return found


def _stored_cells(row: Row) -> Cells:
    count, total, least, greatest, zero_count, offset, bins = row
    held = {offset + place: held for place, held in enumerate(orjson.loads(bins)) if held}
    return Cells(int(count), total, least, greatest, int(zero_count), held)


def _sent_cells(row: Row) -> Cells:
    count, total, least, greatest, zero_count, bins = row
    return Cells(count, total, least, greatest, zero_count, bins)


def _number(value: Any) -> Number:
    """PostgreSQL sums whole numbers into decimals."""
    return value if isinstance(value, int | float) else int(value)
