"""An hour of the collector's tables, in a real SQLite or a real PostgreSQL."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import asyncpg

from collector.storage import ddl
from slo import signals
from tests.dashboards.support import STRANGE_MODELS

END_S = 1_700_000_400
START_S = END_S - 3600
STEP_S = 60
DAY_S = 86400
MODELS = ("m1", STRANGE_MODELS[-1])
OBJECTIVES = ("ttft", "tpot", "whole", "answered", "kv-headroom")
Value = Any
"""What a column holds: a number, a text or nothing."""
Ask = Callable[[str], list[dict[str, Value]]]
SERVICES = {"chat": "", "batch": "staging"}


def rows() -> Iterator[tuple[str, Mapping[str, Value]]]:
    """Every row, with its table: two services, of which one has an environment, each a step a minute."""
    for service, environment in SERVICES.items():
        who: Mapping[str, Value] = {"environment": environment, "service": service}
        yield (
            "instance",
            {**who, "instance": "i", "source": "proxy", "first_s": START_S, "last_s": END_S, "periodic": 1},
        )
        for at_s in range(START_S, END_S + 1, STEP_S):
            yield from _verdicts(who, at_s)
            yield from _counts(who, at_s)
            yield "known", {"step_s": STEP_S, "start_s": at_s, **who}
        for days in (1, 7):
            yield from _percentiles(who, END_S - days * DAY_S - 600)
    yield from _histograms()
    yield from _alerts()
    yield from _drifts()
    for at_s in range(START_S, END_S, STEP_S):
        yield "batch", {"digest": str(at_s), "at_s": at_s}


def _verdicts(who: Mapping[str, Value], at_s: int) -> Iterator[tuple[str, Mapping[str, Value]]]:
    for objective in OBJECTIVES:
        for model in ("*", *MODELS):
            key = {"at_s": at_s, **who, "model": model, "objective": objective}
            bad = 80 if objective == "answered" else 0
            known = {"good": 900, "bad": bad, "coverage": 0.25, "basis": "counts"}
            spent = {"allowance": 60.0, "remaining": 1 - bad / 60, "exhausted_in_s": 0.0 if bad else None}
            yield "budget", {**key, **known, **spent}
            for window_s in (300, 1800, 3600, 7200, 21600, 86400, 259200):
                burn = None if objective == "whole" else float(bad)
                yield "burn_rate", {**key, **known, "window_s": window_s, "burn": burn, "unsure": 0}
    yield from _percentiles(who, at_s)


def _percentiles(who: Mapping[str, Value], at_s: int) -> Iterator[tuple[str, Mapping[str, Value]]]:
    for model in MODELS:
        for signal in ("ttft", "tpot", "e2e", *signals.TTFT_STRATA.values()):
            for source, factor in (("proxy", 1.0), ("engine", 100.0)):
                key = {"at_s": at_s, **who, "model": model, "signal": signal, "source": source, "window_s": 300}
                low = {name: factor * value for name, value in (("p50", 0.1), ("p90", 0.2), ("p95", 0.3))}
                high = {"p99": None, "p999": None, "max": None, "at_least": 0.9, "rel_error": 0.01, "coverage": 1.0}
                yield "percentile", {**key, "count": 9, "censored": 1, **low, **high}


def _counts(who: Mapping[str, Value], at_s: int) -> Iterator[tuple[str, Mapping[str, Value]]]:
    step = {"step_s": STEP_S, "start_s": at_s, **who}
    for model in MODELS:
        for objective in OBJECTIVES:
            counted = {"objective": objective, "objective_hash": "h", "good": 120, "bad": 60}
            yield "slo_count", {**step, "model": model, **counted}
        for metric, attributes, value in COUNTERS:
            named = {"instance": "i", "source": "proxy", "name": metric.sql, "attributes": json.dumps(attributes)}
            yield "counter", {**step, "model": model, **named, "value": value}
        for instance in ("i", "j"):
            for metric, attribute, value in GAUGES:
                of = {"model": model, "instance": instance, "name": metric.sql, "attribute": attribute}
                seen = {"min": 0.0, "max": 2 * value, "mean": value, "last": value, "last_ns": 0, "samples": 6}
                yield "gauge", {**step, **of, **seen}


GAUGES = (
    (signals.IN_FLIGHT, "", 3.0),
    (signals.WAITING_FIRST_TOKEN, "", 1.0),
    (signals.OVERDUE, "ttft", 2.0),
    (signals.LAST_TOKEN_AGE, "", 0.5),
    (signals.KV_OCCUPANCY, "", 0.3),
    (signals.KV_OCCUPANCY, "1", 0.4),
    (signals.ENGINE_RUNNING, "", 5.0),
    (signals.ENGINE_WAITING, "", 1.0),
    (signals.KV_CAPACITY, "", 100_000.0),
    (signals.PREFIX_HIT_RATIO, "", 0.25),
    *((metric, "GPU-1", 0.5) for metric in signals.GPU_METRICS if metric.kind == "gauge"),
)
_GPU = {"hw_id": "GPU-1", "hw_name": "gpu0"}
COUNTERS: tuple[tuple[signals.Metric, Mapping[str, str], float], ...] = (
    (signals.REQUESTS, {"outcome": "ok"}, 60.0),
    (signals.REQUESTS, {"outcome": "error"}, 60.0),
    (signals.REQUESTS, {"outcome": "rejected"}, 30.0),
    (signals.REQUESTS, {"outcome": "quota"}, 30.0),
    (signals.REQUESTS, {"class": signals.SYNTHETIC_CLASS, "outcome": "ok"}, 6000.0),
    (signals.HEARTBEAT, {}, 60.0),
    (signals.ENGINE_PREEMPTIONS, {}, 6.0),
    (signals.TOKENS, {"type": "input"}, 6000.0),
    (signals.TOKENS, {"type": "output"}, 600.0),
    (signals.GPU_ENERGY, _GPU, 6000.0),
    (signals.GPU_THROTTLE, {**_GPU, "reason": "sw_thermal"}, 6.0),
    (signals.GPU_ERRORS, {**_GPU, "error_type": "xid"}, 6.0),
)
BINS = "[1, 0, 3]"
SCALE, BIN_OFFSET = 5, -64
"""The bins end at 2^(-63/32) and 2^(-61/32) s: in the quarters of an octave that end at 2^(-7/4) s."""


def _histograms() -> Iterator[tuple[str, Mapping[str, Value]]]:
    """Histograms of two sidecars each, their engine's of another shape, and one of requests without a value."""
    kinds = [(signal, "proxy", 0) for signal in ("ttft", "tpot", "e2e")] + [("ttft", "engine", 0), ("ttft", "proxy", 1)]
    number = 0
    for (service, environment), model in product(SERVICES.items(), MODELS):
        for (signal, source, censored), instance in product(kinds, ("i", "j")):
            number += 1
            of = {"environment": environment, "service": service, "model": model, "signal": signal, "source": source}
            layout = "le:0.1,1" if source == "engine" else f"exp:{SCALE}"
            yield "series", {"id": number, **of, "instance": instance, "layout": layout, "censored": censored}
            for start_s in range(START_S, END_S, STEP_S):
                shape = {"scale": None if source == "engine" else SCALE, "zero_count": 0, "bin_offset": BIN_OFFSET}
                values = {"count": 4, "sum": 1.2, "min": None, "max": None, "bins": BINS}
                yield "rollup", {"step_s": STEP_S, "start_s": start_s, "series_id": number, **values, **shape}


def _drifts() -> Iterator[tuple[str, Mapping[str, Value]]]:
    of = {"environment": "", "service": "chat", "model": "m1", "source": "proxy", "kind": "server"}
    seen = {"effect": 0.25, "before_s": 0.1, "after_s": 0.125, "count": 900}
    yield "drift", {**of, **seen, "signal": "ttft", "since_s": END_S - 1200, "until_s": None}
    yield "drift", {**of, **seen, "signal": "e2e", "since_s": END_S - 3000, "until_s": END_S - 2400}


def _alerts() -> Iterator[tuple[str, Mapping[str, Value]]]:
    told = {"severity": "critical", "notify": "page", "labels": "{}", "annotations": "{}"}
    common = {"environment": "", "service": "chat", **told}
    firing = {"state": "firing", "since_s": END_S - 100, "fired_s": END_S - 100}
    burns = {"name": "LLMTPOTBudgetBurn", "model": "*", "objective": "tpot", "tier": "fast"}
    stalled = {"name": "LLMEngineStalled", "model": "", "objective": "", "tier": ""}
    over = {"name": "LLMTTFTBudgetBurn", "model": "*", "objective": "ttft", "tier": "fast"}
    yield "alert", {**common, **firing, **burns}
    yield "alert", {**common, **firing, **stalled}
    yield "alert", {**common, **over, "state": "resolved", "since_s": END_S - 50, "fired_s": END_S - 900}
    labels = json.dumps({"severity": "critical", "notify": "page"})
    events = (
        (burns, "firing", END_S - 100, END_S - 100),
        (over, "firing", END_S - 900, END_S - 900),
        (over, "resolved", END_S - 50, END_S - 900),
    )
    for of, state, at_s, fired_s in events:
        told = {"labels": labels, "annotations": "{}"}
        yield (
            "alert_event",
            {"at_s": at_s, "environment": "", "service": "chat", **of, "state": state, "fired_s": fired_s, **told},
        )


def _literal(value: Value) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def _inserts() -> Iterator[str]:
    """One statement a table."""
    by_table: dict[str, list[Mapping[str, Value]]] = {}
    for table, row in rows():
        by_table.setdefault(table, []).append(row)
    for table, found in by_table.items():
        names = ", ".join(f'"{name}"' for name in found[0])
        values = ",".join("(" + ",".join(_literal(row[name]) for name in found[0]) + ")" for row in found)
        yield f"INSERT INTO {table} ({names}) VALUES {values}"


@contextmanager
def sqlite(folder: Path) -> Iterator[Ask]:
    """The tables in a file of SQLite."""
    connection = sqlite3.connect(folder / "firsttoken.db")
    connection.row_factory = sqlite3.Row
    try:
        connection.executescript(ddl.ddl("sqlite"))
        for statement in _inserts():
            connection.execute(statement)
        yield lambda text: [dict(row) for row in connection.execute(text)]
    finally:
        connection.close()


@contextmanager
def postgresql(url: str) -> Iterator[Ask]:
    """The tables in an empty database of PostgreSQL."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(url))
        try:
            for statement in (ddl.ddl("postgresql"), *_inserts()):
                runner.run(connection.execute(statement))
            yield lambda text: [dict(row) for row in runner.run(connection.fetch(text))]
        finally:
            runner.run(connection.close())
