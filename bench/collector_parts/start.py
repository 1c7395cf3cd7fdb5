"""What a start costs that has a month to read: CPU and time until it is ready, and what it then takes of memory."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from collector.storage import rows, upsert
from collector.storage.database import database_url, open_database
from collector.values.histogram import from_values
from collector_parts import door, tables

DAY_S, HOUR_S = 86_400, 3_600
TIERS = ((10, 0, 2 * HOUR_S), (60, 2 * HOUR_S, 3 * DAY_S), (600, 3 * DAY_S, 14 * DAY_S), (3600, 14 * DAY_S, 28 * DAY_S))
"""(step, from and to which age) of what a database keeps."""


@dataclass(frozen=True, slots=True)
class Start:
    """From the command to its first line."""

    cpu_s: float
    wall_s: float
    rss_mb: float
    rows: int


@contextlib.contextmanager
def month(series: int) -> Iterator[tuple[Path, int]]:
    """A folder with a database that holds four weeks of so many series, and how many rows that is."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder), asyncio.run(_filled(Path(folder) / "bench.db", series))


def measure(folder: Path, rows_there: int) -> Start:
    """Start a collector there, once."""
    began_s = time.perf_counter()
    with door.collector(folder) as (arm, _):
        return Start(arm.cpu_ns() / 1e9, time.perf_counter() - began_s, arm.rss_mb(), rows_there)


async def _filled(file: Path, series: int) -> int:
    shape, now_s, written = from_values([0.02 * 1.1**number for number in range(40)]), int(time.time()), 0
    names = [f"model-{number:04d}" for number in range(series)]
    engine = await open_database(database_url(str(file)))
    try:
        for step_s, youngest_s, oldest_s in TIERS if series else ():
            starts = range((now_s - oldest_s) // step_s * step_s + step_s, now_s - youngest_s, step_s)
            async with engine.begin() as connection:
                for start_s in starts:
                    step = [tables.latency(name, start_s, shape) for name in names]
                    step.sort(key=lambda row: row.series.id)
                    if not written:
                        await connection.run_sync(upsert.SERIES.write, [rows.series(row.series) for row in step])
                    await connection.run_sync(upsert.ROLLUP.write, rows.rollups(step, step_s=step_s))
                    written += series
    finally:
        await engine.dispose()
    return written
