"""What a row costs that is written: histograms and events of one step, in transactions as intake makes them.

CPU is this process's: SQLite's own work is in it, PostgreSQL's is not.
"""

import asyncio
import time
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from collector.storage import commit
from collector.storage.database import database_url, open_database
from collector.values.deltas import Deltas, LatencyKey, LatencyRow, SeriesKey, SloRow
from collector.values.histogram import Histogram, from_values

START_S = 1_800_000_000
TICK_S = 10


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one row, the least of the rounds."""

    cpu_us: float
    wall_us: float


def measure(database: str, *, series: int, rounds: int) -> Cost:
    """Write a step of so many series, each with a histogram and events, in each round."""
    return asyncio.run(_measured(database, series, rounds))


async def _measured(database: str, series: int, rounds: int) -> Cost:
    engine = await open_database(database_url(database))
    costs = []
    try:
        for number in range(rounds + 1):
            step = _step(START_S + number * TICK_S, series)
            began_s, cpu_s = time.perf_counter(), time.process_time()
            async with engine.begin() as connection:
                await connection.run_sync(_write, step)
            spent = time.process_time() - cpu_s, time.perf_counter() - began_s
            costs.append([1e6 * seconds / (2 * series) for seconds in spent])
    finally:
        await engine.dispose()
    cpu_us, wall_us = (min(values) for values in zip(*costs[1:], strict=True))
    return Cost(cpu_us, wall_us)


def _write(connection: Connection, step: Deltas) -> None:
    commit.take_turn(connection)
    commit.write_deltas(connection, step, step_s=TICK_S, at_s=START_S)


def _step(start_s: int, series: int) -> Deltas:
    shape = from_values([0.02 * 1.1**number for number in range(40)])
    names = [f"model-{number:04d}" for number in range(series)]
    events = tuple(SloRow("", "chat", name, "ttft", "hash", start_s, 40, 2) for name in names)
    return Deltas(latencies=tuple(latency(name, start_s, shape) for name in names), slo=events)


def latency(model: str, start_s: int, shape: Histogram) -> LatencyRow:
    """A histogram of one series in one step."""
    return LatencyRow(SeriesKey(LatencyKey("", "chat", model, "ttft", "proxy"), "i", shape.layout), start_s, shape)
