"""Rows that meet rows already there, on real databases."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from collector.storage import upsert
from collector.storage.database import database_url, open_database
from collector.storage.upsert import ROWS_PER_STATEMENT, Row, Upsert


def written(database: str, what: Upsert, *parts: list[Row]) -> list[Any]:
    """The table after the parts were written, one after the other."""

    def work(connection: Connection) -> list[Any]:
        for part in parts:
            assert what.write(connection, part) == len(part)
        return [tuple(row) for row in connection.execute(select(what.table).order_by(*what.table.primary_key))]

    async def story() -> list[Any]:
        engine = await open_database(database_url(database))
        try:
            async with engine.begin() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()

    return asyncio.run(story())


SLO = (10, 100, "", "chat", "m", "ttft", "h")


def test_counts_add_up(database: str) -> None:
    other = (10, 110, *SLO[2:])
    found = written(database, upsert.SLO_COUNT, [(*SLO, 3, 1), (*other, 0, 0)], [(*SLO, 4, 2)])
    assert found == [(*SLO, 7, 3), (*other, 0, 0)]


def test_gauges_keep_their_extremes_their_mean_and_the_latest_value(database: str) -> None:
    key = (10, 100, "", "chat", "m", "i1", "queue", "")
    first = (*key, 2.0, 4.0, 3.0, 4.0, 50, 2)
    late = (*key, 0.0, 9.0, 6.0, 0.0, 40, 1)
    new = (*key, 5.0, 5.0, 5.0, 5.0, 60, 1)
    assert written(database, upsert.GAUGE, [first], [late]) == [(*key, 0.0, 9.0, 4.0, 4.0, 50, 3)]
    assert written(database, upsert.GAUGE, [new])[0][-3:] == (5.0, 60, 4)


def test_instances_live_from_the_first_to_the_last_word(database: str) -> None:
    key = ("", "chat", "i1")
    found = written(
        database, upsert.INSTANCE, [(*key, "otel", 5, 6, 0)], [(*key, "proxy", 3, 9, 1)], [(*key, "proxy", 4, 4, 0)]
    )
    assert found == [(*key, "proxy", 3, 9, 1)]


def test_known_steps_stand_once(database: str) -> None:
    row = (10, 100, "", "chat")
    assert written(database, upsert.KNOWN, [row], [row]) == [row]


def test_more_rows_than_one_statement_takes(database: str) -> None:
    rows = [(10, 10 * number, "", "chat") for number in range(ROWS_PER_STATEMENT + 3)]
    assert len(written(database, upsert.KNOWN, rows)) == len(rows)


def test_nothing_to_write_is_nothing_done(database: str) -> None:
    assert written(database, upsert.KNOWN, []) == []


def test_merges_are_named_for_existing_columns() -> None:
    found: list[Upsert] = [value for value in vars(upsert).values() if isinstance(value, Upsert)]
    assert len(found) >= 11
    for one in found:
        assert set(one.merge) <= {column.name for column in one.table.columns if not column.primary_key}
        merges: list[Callable[..., Any]] = list(one.merge.values())
        assert all(map(callable, merges))


def test_a_row_that_the_database_refuses_is_an_error_of_sqlalchemy(database: str) -> None:
    """The same on every database: what the store tells a passing fault by."""
    with pytest.raises(IntegrityError, match="finite"):
        written(database, upsert.COUNTER, [(10, 100, "", "chat", "m", "i1", "proxy", "requests", "{}", 2e308)])
