"""Stores of our own for tests: on the database given, at a clock that the test moves."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from sqlalchemy import Connection, Table, func, insert, select, text

from collector import schema
from collector.decoding.otlp import decode_metrics
from collector.judging.evaluate import evaluate
from collector.keeping.store import Store, opened
from collector.storage.database import database_url, open_database
from collector.values.measurement import Batch
from collector.windowing.windows import Plan, plan
from slo.objective import parse
from slo.signals import ALL_MODELS
from tests.collector.support import SPEC

NOW_S = 1_800_000_000


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now_s: float = NOW_S

    def __call__(self) -> float:
        return self.now_s


def a_plan(spec: str = SPEC, *, tick_s: int = 10) -> Plan:
    return plan(parse(spec), tick_s=tick_s)


def batch(message: Message) -> Batch:
    return decode_metrics(message.SerializeToString(), json=False)


@asynccontextmanager
async def store(
    database: str, *, clock: Clock | None = None, spec: str = SPEC, tick_s: int = 10, max_series: int = 1000
) -> AsyncIterator[Store]:
    engine = await open_database(database_url(database))
    one = await opened(engine, a_plan(spec, tick_s=tick_s), max_series=max_series, clock=clock or Clock())
    try:
        yield one
    finally:
        await one.close()


def added(connection: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
    """Have the rows, in the order of the table's columns, in a table that no writer adds single rows to."""
    names = [column.name for column in table.columns]
    connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


def totals(connection: Connection) -> dict[str, Any]:
    """What stands in the tables that a double count would show in."""
    slo = connection.execute(select(func.sum(schema.slo_count.c.good), func.sum(schema.slo_count.c.bad))).one()
    return {
        "good": int(slo[0] or 0),
        "bad": int(slo[1] or 0),
        "values": int(connection.scalar(select(func.sum(schema.rollup.c.count))) or 0),
        "samples": int(connection.scalar(select(func.sum(schema.gauge.c.samples))) or 0),
        "beats": float(connection.scalar(select(func.sum(schema.counter.c.value))) or 0),
    }


def everything(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    return {
        table.name: sorted(map(tuple, connection.execute(text(f'SELECT * FROM "{table.name}"'))), key=repr)
        for table in schema.metadata.sorted_tables
    }


def remembered(one: Store, *, now_s: int = NOW_S, window_s: int = 600) -> tuple[int, int]:
    """Good and bad events over all models in memory, as an evaluation sees them."""
    windows = one.ledger.windows
    windows.advance(now_s)
    rows = evaluate(windows, alerts={}, now_s=now_s).burns
    return next((row.good, row.bad) for row in rows if (row.model, row.window_s) == (ALL_MODELS, window_s))
