"""The tables: documented whole, and what they print makes the same tables."""

import math
import subprocess
import sys
from itertools import count

import pytest
from sqlalchemy import Connection, Double, Table, insert, select
from sqlalchemy.exc import DBAPIError, IntegrityError

from collector import schema
from collector.storage import upsert
from tests.collector.storage.test_commit import after

DESIGNED = {
    "percentile": "at_s service model signal source window_s count censored p50 p90 p95 p99 p999 max at_least "
    "rel_error coverage",
    "burn_rate": "at_s service model objective window_s good bad burn coverage",
    "budget": "at_s service model objective good bad allowance remaining exhausted_in_s",
    "alert": "service model objective tier state since_s",
    "gauge": "service model instance name start_s step_s min max mean last",
    "rollup": "series_id start_s step_s count sum min max scale bins",
    "series": "id",
    "capacity_result": "at_s service model kind target verdict binding certified_rps refuted_rps peak_concurrency "
    "chosen_batch feasible_min feasible_max efficient_batch replicas headroom result",
    "slo_count": "service model objective objective_hash start_s step_s good bad",
}


def test_every_table_and_column_has_a_comment() -> None:
    silent = [table.name for table in schema.metadata.sorted_tables if not table.comment]
    silent += [str(c) for table in schema.metadata.sorted_tables for c in table.columns if not c.comment]
    assert silent == []


@pytest.mark.parametrize("name", DESIGNED)
def test_the_tables_of_the_design_have_its_columns(name: str) -> None:
    table = schema.metadata.tables[name]
    assert set(DESIGNED[name].split()) <= {column.name for column in table.columns}
    if name != "rollup":
        assert "environment" in table.columns


WRITERS = {one.table: one for one in (upsert.GAUGE, upsert.COUNTER, upsert.ROLLUP)}
"""Tables of figures have a writer of whole ticks, which `test_commit` feeds such values."""
REFUSED = [math.inf, -math.inf, math.nan]
REALS = [
    (table, column)
    for table in schema.metadata.sorted_tables
    for column in table.columns
    if isinstance(column.type, Double)
]


_numbers = count(1)


def a_row(table: Table) -> dict[str, object]:
    """A row that every constraint takes, with a key of its own."""
    kinds = {int: next(_numbers), float: 1.0, str: "x", bytes: b"x"}
    return {column.name: kinds[column.type.python_type] for column in table.columns}


def test_no_writer_stores_nan_or_infinity(database: str) -> None:
    """Each floating column of each table. SQLite keeps NaN as NULL, which is what unknown is."""

    def attempt(connection: Connection, table: Table, row: dict[str, object]) -> bool:
        """Whether the row was taken."""
        try:
            with connection.begin_nested():
                if table in WRITERS:
                    WRITERS[table].write(connection, [tuple(row.values())])
                else:
                    connection.execute(insert(table), [row])
        except IntegrityError as error:
            assert "finite" in str(error) or "NOT NULL" in str(error)  # noqa: PT017  what the database says
            return False
        return True

    def work(connection: Connection) -> None:
        for table, column in REALS:
            assert attempt(connection, table, a_row(table)), table.name
            for value in REFUSED:
                taken = attempt(connection, table, a_row(table) | {column.name: value})
                known = connection.scalars(select(column)).all()
                assert all(one is None or math.isfinite(one) for one in known), str(column)
                assert not taken or (math.isnan(value) and connection.dialect.name == "sqlite"), str(column)

    after(database, work)


def test_a_sum_that_grows_beyond_all_numbers_is_refused(database: str) -> None:
    row = (10, 10, "", "chat", "m", "i", "proxy", "tokens", "{}", 1e308)
    add = lambda c: upsert.COUNTER.write(c, [row])  # noqa: E731
    after(database, add)
    with pytest.raises(DBAPIError, match=r"finite|overflow"):
        after(database, add)
    assert after(database, lambda c: c.scalars(select(schema.counter.c.value)).all()) == [1e308]


def test_generators_may_read_the_tables_without_the_collector() -> None:
    """Only SQLAlchemy comes with it: no web server, no driver, nothing else of ours."""
    probe = (
        "import sys; import collector.schema; "
        "print([m for m in ('fastapi', 'asyncpg', 'numpy', 'slo', 'opentelemetry') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
