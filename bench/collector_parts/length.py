"""What one window more costs an evaluation, by its length: it must not matter how long it is."""

import time
from collections.abc import Callable

import numpy as np

from collector.judging.evaluate import evaluate
from collector.values.deltas import Deltas, KnownRow
from collector.values.histogram import from_values
from collector.windowing.windows import Windows, plan
from collector_parts import tables
from slo.objective import parse

START_S = tables.START_S
TICK_S = tables.TICK_S
SHAPES = 20
PAST = ((3600, 720), (60, 60))
"""(step, how many of them): thirty days."""


def measure(series: int, window: str, rounds: int) -> float:
    """CPU milliseconds of moving every window on by a tick and evaluating them, the least of the rounds; beside the
    standard windows the one named is kept."""
    spec = f"service: chat\nobjectives:\n  - {{name: a, signal: availability, target: 99%, window: {window}}}\n"
    windows, random = Windows(plan(parse(spec), tick_s=TICK_S), now_s=START_S), np.random.default_rng(1)
    shapes = [from_values(random.lognormal(-1.5 + 0.05 * number, 0.5, 40)) for number in range(SHAPES)]

    def add(start_s: int) -> None:
        turn = start_s // TICK_S
        found = (
            tables.latency(f"m{number:04d}", start_s, shapes[(turn + number) % SHAPES]) for number in range(series)
        )
        windows.add(Deltas(latencies=tuple(found), known=(KnownRow("", "chat", start_s),)))

    for step_s, steps in PAST:
        for number in range(steps, 0, -1):
            add(START_S - number * step_s)
    return min(_turn_ms(windows, add, START_S + number * TICK_S) for number in range(rounds))


def _turn_ms(windows: Windows, add: Callable[[int], None], now_s: int) -> float:
    add(now_s)
    began_s = time.process_time()
    windows.advance(now_s + TICK_S)
    evaluate(windows, alerts={}, now_s=now_s + TICK_S)
    return 1000 * (time.process_time() - began_s)
