"""What a tick costs: evaluation and the write to SQLite, in CPU milliseconds, and the memory of what it works on.

The loop is the collector's own: its store, its windows, its ticks. Rows are put into the windows as a commit would, so
that intake is not measured here. Every series moves in every tick, and its past is as long as the longest window asks.
"""

import asyncio
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from collector import garbage
from collector.judging.evaluate import evaluate
from collector.keeping.store import opened
from collector.storage.database import database_url, open_database
from collector.telling.notify import Notifier
from collector.ticking.ticks import Ticks
from collector.values.deltas import Deltas, KnownRow, LatencyKey, LatencyRow, SeriesKey
from collector.values.histogram import Histogram, from_values
from collector.windowing.windows import Windows, plan
from slo.burn import STANDARD_WINDOWS_S
from slo.objective import parse

START_S = 1_800_000_000
TICK_S = 10
SERVICES = 10
VALUES = 40
SHAPES = 50
"""Histograms that the series take in turns."""
PAST = ((3600, 72), (600, 30), (60, 60))
"""(step, how many of them) of the past that is put into the windows before the first tick."""


class _Clock:
    now_s = float(START_S)

    def __call__(self) -> float:
        return self.now_s


def measure(series: int, windows: int, rounds: int) -> dict[str, float]:
    """CPU milliseconds of a tick (least and median of the rounds), of its evaluation alone, rows written by it, and
    the memory of the process in MB. `windows` beyond the standard ones are longer ones: of 7, 14, 21 ... days."""
    return asyncio.run(_measured(series, windows, rounds))


def _spec(windows: int) -> str:
    """A spec that keeps so many windows of the services measured. With the standard ones they have no objective."""
    own = range(7, 7 * (windows - len(STANDARD_WINDOWS_S)) + 1, 7)
    lines = [f"  - {{name: w{days}, signal: ttft, percentile: 99, threshold: 100s, window: {days}d}}" for days in own]
    if not lines:
        return "service: elsewhere\nobjectives:\n  - {name: a, signal: availability, target: 99%, window: 3d}\n"
    docs = [f"service: s{number}\nobjectives:\n" + "\n".join(lines) for number in range(SERVICES)]
    return "\n---\n".join(docs)


async def _measured(series: int, windows: int, rounds: int) -> dict[str, float]:
    clock, random = _Clock(), np.random.default_rng(1)
    shapes = [from_values(random.lognormal(-1.5 + 0.05 * number, 0.5, VALUES)) for number in range(SHAPES)]
    with tempfile.TemporaryDirectory() as folder:
        engine = await open_database(database_url(str(Path(folder) / "bench.db")))
        store = await opened(engine, plan(parse(_spec(windows)), tick_s=TICK_S), max_series=2 * series, clock=clock)
        ticks = Ticks(store, Notifier([]), "", clock=clock)
        try:
            for rows in _past(series, shapes):
                store.ledger.windows.add(rows)
            garbage.settle()  # as after a start
            costs = [await _tick(ticks, clock, series, shapes) for _ in range(rounds)]
            judged = [_evaluated(store.ledger.windows) for _ in range(rounds)]
        finally:
            await ticks.settled()
            await store.close()
    rows_written = len(ticks.latest.percentiles) + len(ticks.latest.burns) if ticks.latest else 0
    return {
        "tick_ms": min(costs),
        "tick_median_ms": statistics.median(costs),
        "evaluate_ms": min(judged),
        "rows": float(rows_written),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _past(series: int, shapes: list[Histogram]) -> Iterator[Deltas]:
    for step_s, steps in PAST:
        for number in range(1, steps + 1):
            yield _rows(series, shapes, START_S - number * step_s)


def _rows(series: int, shapes: list[Histogram], start_s: int) -> Deltas:
    """One step of every series."""
    turn = start_s // TICK_S
    latencies = []
    for number in range(series):
        one = shapes[(turn + number) % len(shapes)]
        key = LatencyKey("", f"s{number % SERVICES}", f"model-{number // SERVICES:04d}", "ttft", "proxy")
        latencies.append(LatencyRow(SeriesKey(key, "i", one.layout), start_s, one))
    return Deltas(latencies=tuple(latencies), known=tuple(KnownRow("", f"s{n}", start_s) for n in range(SERVICES)))


async def _tick(ticks: Ticks, clock: _Clock, series: int, shapes: list[Histogram]) -> float:
    ticks.store.ledger.windows.add(_rows(series, shapes, int(clock.now_s)))
    clock.now_s += TICK_S
    started = time.process_time()
    await ticks.tick()
    await ticks.settled()
    return 1000 * (time.process_time() - started)


def _evaluated(windows: Windows) -> float:
    started = time.process_time()
    evaluate(windows, alerts={}, now_s=windows.now_s)
    return 1000 * (time.process_time() - started)
