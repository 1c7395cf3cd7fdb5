"""The engine of ClickHouse, in this process: one folder for all tests, and tables of their own for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.clickhouse import definitions
from collector.clickhouse.engine import Engine, opened
from collector.clickhouse.tables import TABLES


@pytest.fixture(scope="session")
def clickhouse_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of an engine with empty tables; a process can have one."""
    folder: Path = tmp_path_factory.mktemp("clickhouse")
    return f"chdb://{folder}"


@pytest.fixture
def clickhouse(clickhouse_url: str) -> Iterator[Engine]:
    """The engine with empty tables."""
    made(clickhouse_url)
    with opened(clickhouse_url) as engine:
        yield engine
        for table in TABLES:
            engine.run(f"DROP TABLE {table.name} SYNC")
        for view in definitions.VIEWS:
            engine.run(f"DROP VIEW {view}")


def made(url: str, statements: Iterator[str] | None = None) -> None:
    """Run the statements that are printed, on an engine that has no tables yet."""
    import clickhouse_connect

    client = clickhouse_connect.get_client(dsn=url)
    for statement in statements or definitions.statements():
        client.command(statement)
    client.close()
