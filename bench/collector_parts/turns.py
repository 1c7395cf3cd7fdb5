"""Each measurement as a turn of an arm: what it is called, which row it fills, who takes part.

What is measured inside a process has one of its own, so that no other part's memory is in it.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig.arms import ROOT, environment
from rig.figures import Figures, Row, Turn

from collector_parts import prometheus, start, tables
from collector_parts.door import doors, loads
from collector_parts.lengths import Lengths
from collector_parts.promises import OURS
from tests.collector.support import initdb, postgresql

WINDOWS, QUANTILES = 7, 3
Say = Callable[[str], None]

TICK = Row("tick, 1000 series, 7 windows", "ms of CPU", "alone")
EVALUATION = Row("of that evaluation alone", "ms of CPU", "alone")
MEMORY = Row("memory, 1000 series, 7 windows", "MB", "alone")
INTAKE_MEMORY = Row("memory after intake", "MB", "alone")
ANOTHER = "with one of 90 minutes"
LENGTH = Row("evaluation with a window of 30 days", "ms of CPU", "times", ANOTHER)
QUANTILE = Row("quantile of a window of a series", "us of CPU", "times", "prometheus")
WRITE = Row("row written", "us of CPU", "alone")
WRITE_WALL = Row("row written, until it is committed", "us", "alone")
START = Row("start with four weeks", "s of CPU", "alone")
START_ROW = Row("of that a stored row", "us of CPU", "alone")


@dataclass(frozen=True, slots=True)
class Bench:
    """One run: how long, where it writes, and how it says what it does."""

    figures: Figures
    lengths: Lengths
    say: Say

    def add(self, number: int, arm: str, values: dict[Row, float]) -> None:
        """What an arm gave in a round."""
        self.figures.add(number, arm, Turn(values))

    def rounds(self) -> Iterator[int]:
        yield from range(1, self.lengths.rounds + 1)


def intake(bench: Bench, arms: list[str]) -> None:
    """Every way in, side by side, with every kind of body."""
    titles = [load.title for load in loads()]
    with doors([name for name in arms if name in ("http", "grpc", "rotel")]) as found:
        for door in found.values():
            for title in titles:
                door.turn(title, 5)  # what is done once only
        for number in bench.rounds():
            for title in titles:
                for door in list(found.values())[:: 1 if number % 2 else -1]:
                    bench.say(f"round {number} of {bench.lengths.rounds}: {title}, {door.name}")
                    bench.figures.add(number, door.name, door.turn(title, bench.lengths.bodies))
        if "http" in found:
            bench.add(1, OURS, {INTAKE_MEMORY: found["http"].arm.rss_mb()})


def decoding(bench: Bench, _arms: list[str]) -> None:
    """Bytes to rows, without door and database."""
    for number in bench.rounds():
        bench.say(f"round {number} of {bench.lengths.rounds}: decode")
        found = _alone("decode", "measure", 3)
        rows = {name: Row(f"decoded and folded: {name.removesuffix(': us')}", "us of CPU", "alone") for name in found}
        bench.add(number, OURS, {rows[name]: value for name, value in found.items()})


def tick(bench: Bench, arms: list[str]) -> None:
    """A tick with what it writes, and its evaluations beside Prometheus'."""
    series, ticks = bench.lengths.series, bench.lengths.ticks
    compares = "prometheus" in arms
    for number in bench.rounds():
        bench.say(f"round {number} of {bench.lengths.rounds}: tick")
        found = _alone("tick", "measure", series, WINDOWS, ticks)
        share_us = 1000 * found["tick_ms"] / (series * WINDOWS * QUANTILES)
        bench.add(number, OURS, {TICK: found["tick_ms"], EVALUATION: found["evaluate_ms"], MEMORY: found["rss_mb"]})
        bench.add(number, OURS, {QUANTILE: share_us})
        for arm, window in ((OURS, "30d"), (ANOTHER, "90m")):
            bench.add(number, arm, {LENGTH: _alone("length", "measure", series, window, ticks)})
        if compares and number == 1:
            bench.say("prometheus: three days of data, then its rules")
            own = prometheus.measure(bench.lengths.prometheus_series, 3)
            bench.add(number, "prometheus", {QUANTILE: own})


def database(bench: Bench, _arms: list[str]) -> None:
    """Rows written into each database that is there."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        places = {"sqlite": f"sqlite:///{folder}/bench.db"}
        if initdb() is not None:
            places["postgresql"] = stack.enter_context(postgresql())
        for name, place in places.items():
            bench.say(f"rows: {name}")
            cost = tables.measure(place, series=bench.lengths.series, rounds=2 * bench.lengths.rounds)
            bench.add(1, name, {WRITE: cost.cpu_us, WRITE_WALL: cost.wall_us})


def starting(bench: Bench, _arms: list[str]) -> None:
    """A start with a month to read, and one with nothing."""
    with start.month(bench.lengths.month_series) as (folder, rows), start.month(0) as (empty, _):
        for number in bench.rounds():
            bench.say(f"round {number} of {bench.lengths.rounds}: start")
            full, bare = start.measure(folder, rows), start.measure(empty, 0)
            bench.add(number, OURS, {START: full.cpu_s, START_ROW: 1e6 * (full.cpu_s - bare.cpu_s) / rows})


MEASUREMENTS = {"intake": intake, "decode": decoding, "tick": tick, "database": database, "start": starting}


def _alone(room: str, act: str, *arguments: Any) -> Any:
    """What a function of a room answers in a process of its own."""
    code = (
        "import importlib, json, sys; room, act, arguments = json.loads(sys.argv[1]);"
        "print(json.dumps(getattr(importlib.import_module(f'collector_parts.{room}'), act)(*arguments)))"
    )
    env = environment(PYTHONPATH=f"{ROOT}:{Path(__file__).parents[1]}")
    asked = json.dumps([room, act, arguments])
    done = subprocess.run([sys.executable, "-c", code, asked], env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)
