"""Rows that meet rows already there, on real databases."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from collector.storage import causes, upsert
from collector.storage.database import database_url, open_database
from collector.storage.upsert import ROWS_PER_RUN, ROWS_PER_STATEMENT, Row, Upsert

UPSERTS = [value for of in (upsert, causes) for value in vars(of).values() if isinstance(value, Upsert)]


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


@pytest.mark.parametrize("count", [ROWS_PER_RUN - 1, ROWS_PER_RUN, 2 * ROWS_PER_RUN + 3])
def test_rows_that_are_written_together_each_meet_their_own(database: str, count: int) -> None:
    keys = [(10, 10 * number, *SLO[2:]) for number in range(count)]
    first, then = ([(*key, number, of) for number, key in enumerate(keys)] for of in (1, 2))
    met = [(*key, 2 * number, 3) for number, key in enumerate(keys)]
    assert written(database, upsert.SLO_COUNT, first, then[5:]) == [*first[:5], *met[5:]]


def test_nothing_to_write_is_nothing_done(database: str) -> None:
    assert written(database, upsert.KNOWN, []) == []


def test_merges_are_named_for_existing_columns() -> None:
    assert len(UPSERTS) >= 12
    for one in UPSERTS:
        assert set(one.merge) <= {column.name for column in one.table.columns if not column.primary_key}
        merges: list[Callable[..., Any]] = list(one.merge.values())
        assert all(map(callable, merges))


def test_no_run_has_more_values_than_an_old_sqlite_takes() -> None:
    assert max(len(one.table.columns) for one in UPSERTS) * ROWS_PER_RUN <= 999


def test_a_row_that_the_database_refuses_is_an_error_of_sqlalchemy(database: str) -> None:
    """The same on every database: what the store tells a passing fault by."""
    with pytest.raises(IntegrityError, match="finite"):
        written(database, upsert.COUNTER, [counted(100, 2e308)])


def test_one_row_that_is_refused_leaves_nothing_of_those_beside_it(database: str) -> None:
    others = [counted(number, 1.0) for number in range(3 * ROWS_PER_RUN)]
    with pytest.raises(IntegrityError, match="finite"):
        written(database, upsert.COUNTER, [*others, counted(1000, 2e308)])
    with pytest.raises(IntegrityError, match="finite"):
        written(database, upsert.COUNTER, [others[0], counted(1000, 2e308), *others[1:]])
    assert written(database, upsert.COUNTER) == []


def counted(start_s: int, value: float) -> Row:
    return (10, start_s, "", "chat", "m", "i1", "proxy", "requests", "{}", value)
