"""The tables: documented whole, and what they print makes the same tables."""

import sqlite3
import subprocess
import sys

import pytest
from sqlalchemy import Double

from collector import schema

DESIGNED = {
    "percentile": "at_s service model signal source window_s count censored p50 p90 p95 p99 p999 max at_least "
    "rel_error coverage",
    "burn_rate": "at_s service model objective window_s good bad burn coverage",
    "budget": "at_s service model objective good bad allowance remaining exhausted_in_s",
    "alert": "service model objective tier state since_s",
    "gauge": "service model instance name start_s step_s min max mean last",
    "rollup": "series_id start_s step_s count sum min max scale bins",
    "series": "id",
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


def test_the_printed_statements_make_every_table_in_sqlite() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(schema.ddl("sqlite"))
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert names >= set(schema.metadata.tables)


def test_postgresql_statements_carry_the_comments() -> None:
    printed = schema.ddl("postgresql")
    columns = sum(len(table.columns) for table in schema.metadata.sorted_tables)
    assert printed.count("COMMENT ON COLUMN") == columns


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_no_floating_column_takes_infinity(value: float) -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(schema.ddl("sqlite"))
    for table in schema.metadata.sorted_tables:
        for column in table.columns:
            if isinstance(column.type, Double):
                row = {c.name: _sample(c.type.python_type) for c in table.columns} | {column.name: value}
                names = ", ".join(f'"{name}"' for name in row)
                marks = ", ".join("?" * len(row))
                with pytest.raises(sqlite3.IntegrityError, match="finite"):
                    connection.execute(f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})', list(row.values()))
    connection.close()


def _sample(kind: type) -> object:
    return {int: 1, float: 1.0, str: "x", bytes: b"x"}[kind]


def test_generators_may_read_the_tables_without_the_collector() -> None:
    """Only SQLAlchemy comes with it: no web server, no driver, nothing else of ours."""
    probe = (
        "import sys; import collector.schema; "
        "print([m for m in ('fastapi', 'aiosqlite', 'asyncpg', 'numpy', 'slo', 'opentelemetry') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr
