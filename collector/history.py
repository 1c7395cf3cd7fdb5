"""What the page shows of the past, read from SQL: recent percentiles, burns, gauges, and alerts that have ended."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.engine import Connection

from collector import recall, schema
from slo.signals import ENGINE_RUNNING, ENGINE_WAITING, IN_FLIGHT, KV_OCCUPANCY

SPAN_S = 3 * 3600
CHART_WINDOW_S = 300
MAX_ENDED = 20
_GAUGES = (KV_OCCUPANCY.sql, ENGINE_WAITING.sql, ENGINE_RUNNING.sql, IN_FLIGHT.sql)

Points = Sequence[tuple[int, float | None]]
"""(moment, value) in order of time; None where it is unknown."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An alert that fired from `fired_s` to `ended_s`."""

    name: str
    service: str
    model: str
    objective: str
    tier: str
    fired_s: int
    ended_s: int
    annotations: str


@dataclass(frozen=True, slots=True)
class History:
    """The last `SPAN_S` seconds before `until_s`.

    `percentiles`: (environment, service, model, signal) -> column -> points over the 5 min window; `burns`:
    (environment, service, model, objective) -> points over 1 h; `gauges`: (service, name) -> points, the highest of all
    instances.
    """

    until_s: int
    percentiles: Mapping[tuple[str, str, str, str], Mapping[str, Points]]
    burns: Mapping[tuple[str, str, str, str], Points]
    gauges: Mapping[tuple[str, str], Points]
    ended: Sequence[Ended]


def empty(until_s: int) -> History:
    return History(until_s, {}, {}, {}, ())


def history(connection: Connection, *, until_s: int) -> History:
    """Read the past up to `until_s`."""
    since_s = until_s - SPAN_S
    return History(
        until_s,
        _percentiles(connection, since_s),
        _burns(connection, since_s),
        _gauges(connection, since_s),
        _ended(connection),
    )


_QUANTILES = ("p50", "p90", "p95", "p99", "p999")


def _percentiles(connection: Connection, since_s: int) -> dict[tuple[str, str, str, str], dict[str, Points]]:
    table = schema.percentile
    question = select(table).where(table.c.at_s >= since_s, table.c.window_s == CHART_WINDOW_S).order_by(table.c.at_s)
    found: defaultdict[tuple[str, str, str, str], list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(question):
        found[row.environment, row.service, row.model, row.signal].append(row)
    return {
        key: {name: [(row.at_s, getattr(row, name)) for row in rows] for name in _QUANTILES}
        for key, rows in found.items()
    }


def _burns(connection: Connection, since_s: int) -> dict[tuple[str, str, str, str], Points]:
    table = schema.burn_rate
    question = select(table).where(table.c.at_s >= since_s, table.c.window_s == CHART_WINDOW_S).order_by(table.c.at_s)
    found: defaultdict[tuple[str, str, str, str], list[tuple[int, float | None]]] = defaultdict(list)
    for row in connection.execute(question):
        found[row.environment, row.service, row.model, row.objective].append((row.at_s, row.burn))
    return dict(found)


def _gauges(connection: Connection, since_s: int) -> dict[tuple[str, str], Points]:
    """Two instances are two queues and two caches: what is shown is the fuller one, never a sum."""
    highest: defaultdict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in _gauge_rows(connection, since_s):
        points = highest[row.service, row.name]
        points[row.start_s] = max(points.get(row.start_s, row.max), row.max)
    return {key: sorted(points.items()) for key, points in highest.items()}


def _gauge_rows(connection: Connection, since_s: int) -> Iterator[Any]:
    table = schema.gauge
    for step_s in recall.steps(connection, table):
        mine = (table.c.step_s == step_s, table.c.start_s >= since_s, table.c.name.in_(_GAUGES))
        yield from connection.execute(select(table.c.service, table.c.name, table.c.start_s, table.c.max).where(*mine))


def _ended(connection: Connection) -> list[Ended]:
    table = schema.alert_event
    over = (table.c.state == "resolved", table.c.fired_s.is_not(None))
    question = select(table).where(*over).order_by(table.c.at_s.desc()).limit(MAX_ENDED)
    return [
        Ended(
            name=row.name,
            service=row.service,
            model=row.model,
            objective=row.objective,
            tier=row.tier,
            fired_s=row.fired_s,
            ended_s=row.at_s,
            annotations=row.annotations,
        )
        for row in connection.execute(question)
    ]
