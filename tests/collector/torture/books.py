"""What a collector has counted, as its database and its status say; to be held against what senders know."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import asyncpg

from slo.signals import ALL_MODELS
from tests.collector.support import ask, until
from tests.collector.torture.load import Total

COUNTED = """
SELECT 'good', sum(good) FROM slo_count
UNION ALL SELECT 'bad', sum(bad) FROM slo_count
UNION ALL SELECT CASE name WHEN 'heartbeat' THEN 'beats' ELSE name END, sum(value) FROM counter GROUP BY name
UNION ALL SELECT 'samples', sum(samples) FROM gauge
UNION ALL SELECT 'bodies', count(*) FROM batch
UNION ALL SELECT service || ' ' || signal, sum(count) FROM rollup JOIN series ON series.id = series_id
          GROUP BY service, signal
"""
LASTING = ("1h", "2h", "6h", "1d", "3d")
"""Windows out of which nothing falls while a test runs."""


def asked(database: str, question: str) -> Sequence[tuple[Any, ...]]:
    """The rows that answer a question."""
    if database.startswith("sqlite"):
        with closing(sqlite3.connect(file_of(database), timeout=30)) as connection:
            return connection.execute(question).fetchall()

    async def story() -> Sequence[tuple[Any, ...]]:
        connection = await asyncpg.connect(database)
        try:
            return [tuple(row) for row in await connection.fetch(question)]
        finally:
            await connection.close()

    return asyncio.run(story())


def file_of(database: str) -> str:
    """The file of an SQLite database."""
    return database.removeprefix("sqlite:///")


def counted(database: str) -> Total:
    """What stands in the database."""
    return Total({name: round(value) for name, value in asked(database, COUNTED) if value})


def is_sound(database: str) -> bool:
    """Whether the database itself finds nothing wrong with its file. PostgreSQL looks for itself when it starts."""
    return not database.startswith("sqlite") or asked(database, "PRAGMA integrity_check") == [("ok",)]


def figures(url: str) -> dict[str, Any]:
    """What the status says of the whole past, by objective and model. Not how much of a window is covered: that grows
    by the minute."""
    return {
        f"{one['objective']} {one['model']}": {
            "windows": {found["window"]: _lasting(found) for found in one["windows"] if found["window"] in LASTING},
            "percentiles": {name: _lasting(found) for name, found in one["percentiles"].items() if name in LASTING},
        }
        for one in ask(f"{url}/api/v1/status").json["objectives"]
    }


def _lasting(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name != "coverage"}


def shown(url: str, total: Total) -> dict[str, Any]:
    """The figures of the status, once they are those of the total."""

    def answer() -> dict[str, Any] | None:
        found = figures(url)
        wide = found.get(f"ttft {ALL_MODELS}")
        if wide is None or "1h" not in wide["percentiles"]:
            return None
        events, latencies = wide["windows"]["1h"], wide["percentiles"]["1h"]
        seen = events["good"], events["bad"], latencies["count"]
        return found if seen == (total["good"], total["bad"], total["chat ttft"]) else None

    return until(answer)
