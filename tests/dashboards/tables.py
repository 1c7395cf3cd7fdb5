"""An hour of the collector's tables, in a real SQLite or a real PostgreSQL."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from collector import ddl
from slo import signals
from tests.dashboards.support import STRANGE_MODELS

END_S = 1_700_000_400
START_S = END_S - 3600
STEP_S = 60
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
    yield from _alerts()


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
    for model in MODELS:
        for signal in ("ttft", "tpot", "e2e"):
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
        for outcome, kind in (("ok", ""), ("error", ""), ("ok", signals.SYNTHETIC_CLASS)):
            attributes = json.dumps({"class": kind, "outcome": outcome} if kind else {"outcome": outcome})
            named = {"instance": "i", "source": "proxy", "name": signals.REQUESTS.sql, "attributes": attributes}
            yield "counter", {**step, "model": model, **named, "value": 6000.0 if kind else 60.0}
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
)


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
