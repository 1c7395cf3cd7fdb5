"""Figures of ticks in real databases: the latest of each minute, whole, and nothing that is not a number."""

import math
from dataclasses import fields
from typing import Any

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from collector import schema
from collector.judging.evaluate import Evaluation, evaluate
from collector.judging.percentiles import PercentileRow
from collector.storage import figures
from collector.values.columns import Columns, columns
from collector.values.deltas import Deltas
from collector.values.verdicts import BudgetRow, BurnRow
from collector.windowing.windows import Windows
from tests.collector import scene
from tests.collector.scene import NOW_S
from tests.collector.storage.test_commit import after

BURNS = schema.burn_rate.c


def burn(at_s: int, value: float = 2.0) -> Evaluation:
    row = BurnRow(at_s, "", "chat", "m", "ttft", 60, 9, 1, value, 1.0, "counts", 0)
    return Evaluation(at_s, columns(PercentileRow), columns(BurnRow, [row]), columns(BudgetRow), (), ())


def written(*evaluations: Evaluation) -> list[Any]:
    return [lambda c, one=one: figures.write(c, one) for one in evaluations]


def test_ticks_keep_the_latest_row_and_one_a_minute(database: str) -> None:
    kept = after(database, *written(*map(burn, range(600, 800, 10))), lambda c: c.scalars(select(BURNS.at_s)).all())
    assert sorted(kept) == [650, 710, 770, 790]


def test_a_tick_written_again_stands_once(database: str) -> None:
    assert after(database, *written(burn(600), burn(600)), lambda c: c.scalars(select(BURNS.burn)).all()) == [2.0]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_no_nan_and_no_infinity_is_ever_stored(database: str, value: float) -> None:
    """SQLite keeps NaN as NULL, which is what unknown is; everything else is refused, and the tick with it."""
    (write,) = written(burn(600, value))
    if math.isnan(value) and database.startswith("sqlite"):
        assert after(database, write, lambda c: c.scalars(select(BURNS.burn)).all()) == [None]
        return
    with pytest.raises(IntegrityError, match="finite"):
        after(database, write)
    assert after(database, lambda c: c.execute(select(schema.burn_rate)).all()) == []


def busy() -> Windows:
    """Two services of several models, one with an objective and so with a window more."""
    windows = scene.windows()
    rows = [scene.values(NOW_S - 10 * n, [0.1 * n, 0.2], model=f"m{n % 3}", signal="ttft") for n in range(1, 9)]
    windows.add(scene.live(NOW_S - 600, NOW_S))
    windows.add(Deltas(latencies=(*rows, scene.values(NOW_S, [9.0], model="m1", censored=True))))
    windows.add(Deltas(slo=tuple(scene.slo(NOW_S - 60 * n, n, n % 2, model=f"m{n % 3}") for n in range(5))))
    other = scene.values(NOW_S, [0.5], model="x")
    windows.add(Deltas(latencies=(scene.of_service(other, "elsewhere"),)))
    return windows


def test_every_row_of_a_tick_stands_as_it_was_found(database: str) -> None:
    evaluation = evaluate(busy(), alerts={}, now_s=NOW_S)
    expected: tuple[Columns[Any], ...] = (evaluation.percentiles, evaluation.burns, evaluation.budgets)
    assert {run.several for run in evaluation.percentiles.runs} == {7, 8}

    def read(connection: Connection) -> list[list[Any]]:
        tables = (schema.percentile, schema.burn_rate, schema.budget)
        return [[tuple(row) for row in connection.execute(select(table))] for table in tables]

    for table, rows in zip(after(database, *written(evaluation), read), expected, strict=True):
        assert sorted(table, key=repr) == sorted(rows.tuples(), key=repr)


def test_rows_stand_in_the_order_of_their_key() -> None:
    """So that they are added at the end of the table, whatever is in it."""
    evaluation = evaluate(busy(), alerts={}, now_s=NOW_S)
    keys = [row[:7] for row in evaluation.percentiles.tuples()]
    assert keys == sorted(keys)


@pytest.mark.parametrize("table", figures.TABLES)
def test_the_fields_of_rows_are_the_columns_of_their_tables(table: Any) -> None:
    kinds = {"percentile": PercentileRow, "burn_rate": BurnRow, "budget": BudgetRow}
    assert [field.name for field in fields(kinds[table.name])] == [column.name for column in table.columns]


def test_what_lies_ahead_of_a_clock_that_was_wrong_is_forgotten(database: str) -> None:
    forget = lambda c: figures.forget(c, after_s=700)  # noqa: E731
    found = after(
        database, *written(burn(650), burn(700), burn(770)), forget, lambda c: c.scalars(select(BURNS.at_s)).all()
    )
    assert sorted(found) == [650, 700]


def test_a_tick_of_very_many_rows_is_kept_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    assert figures.is_due(burn(600), 590)
    monkeypatch.setattr(figures, "MAX_EVERY_TICK", 0)
    asked = {(600, None): True, (610, 600): False, (660, 600): True, (600, 660): True}
    assert {at: figures.is_due(burn(at[0]), at[1]) for at in asked} == asked
