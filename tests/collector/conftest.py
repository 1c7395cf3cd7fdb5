"""What the collector's tests share: each test that asks for `database` runs on SQLite and on PostgreSQL."""

import asyncio
import functools
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import greenlet
import pytest

from collector.values.bins import Bins
from collector.values.histogram import Histogram, Layout
from collector.windowing.rolling import RollingCounts
from tests.collector import support

_numbers = count()
_RECKONING: tuple[tuple[type, str], ...] = (
    (Histogram, "__init__"),
    (Bins, "__init__"),
    (Layout, "edges"),
    (RollingCounts, "add"),
)
"""What nobody reckons with arrays without."""


@pytest.fixture(autouse=True)
def no_array_on_a_lent_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test has the store do: what runs under `run_sync` leaves arrays alone (`collector.storage.stacks`)."""
    for owner, name in _RECKONING:
        monkeypatch.setattr(owner, name, _on_a_whole_stack(getattr(owner, name)))


def _on_a_whole_stack(reckon: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(reckon)
    def guarded(*given: Any, **named: Any) -> Any:
        assert greenlet.getcurrent().parent is None, (
            f"{reckon.__qualname__} under run_sync: see collector.storage.stacks"
        )
        return reckon(*given, **named)

    return guarded


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a real PostgreSQL of this test run."""
    if support.initdb() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("postgresql is missing: install it, as with apt-get install postgresql")
        pytest.skip("postgresql is missing: install it, as with apt-get install postgresql")
    with support.postgresql() as url:
        yield url


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture
def shared_database(postgresql_server: str) -> Iterator[str]:
    """The URL of an empty database of PostgreSQL, gone after the test with all its files."""
    name = f"t{next(_numbers)}"
    asyncio.run(_execute(postgresql_server, f"CREATE DATABASE {name}"))
    yield postgresql_server.replace("/postgres?", f"/{name}?")
    asyncio.run(_execute(postgresql_server, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.tools)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/firsttoken.db"
    return str(request.getfixturevalue("shared_database"))
