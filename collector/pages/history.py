"""What the page shows of the past: recent percentiles, burns and gauges, and alerts that have ended.

SQL keeps one row a minute of what ticks found; the last minutes at full resolution are kept here in memory (`Recent`),
so that a chart moves with every tick.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.engine import Connection

from collector import schema
from collector.judging.evaluate import Evaluation
from collector.judging.percentiles import QUANTILES, PercentileRow
from collector.storage import recall
from collector.values.columns import Columns
from collector.values.verdicts import BurnRow
from slo.signals import ENGINE_RUNNING, ENGINE_WAITING, IN_FLIGHT, KV_OCCUPANCY

SPAN_S = 3 * 3600
LEAST_SPAN_S = 120
LEAST_WINDOW_S = 60
MAX_ENDED = 20
RECENT_TICKS = 180
MAX_ROWS = 100_000
"""Rows of a table that are looked at: with many models the past that is shown is shorter."""
_GAUGES = (KV_OCCUPANCY.sql, ENGINE_WAITING.sql, ENGINE_RUNNING.sql, IN_FLIGHT.sql)

Key = tuple[str, str, str, str]
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
    """The past from `since_s` to `until_s`, at most SPAN_S.

    `percentiles`: (environment, service, model, signal) -> column -> points, over a window of `window_s` (a quantile
    that is unknown is what it is known to exceed); `burns`: (environment, service, model, objective) -> points, over
    the same; `gauges`: (service, name) -> points, the highest of all instances.
    """

    since_s: int
    until_s: int
    window_s: int
    percentiles: Mapping[Key, Mapping[str, Points]]
    burns: Mapping[Key, Points]
    gauges: Mapping[tuple[str, str], Points]
    ended: Sequence[Ended]


@dataclass(frozen=True, slots=True)
class _Tick:
    """What one tick found over one window."""

    at_s: int
    percentiles: Columns[PercentileRow]
    burns: Columns[BurnRow]


@dataclass(slots=True)
class Recent:
    """What the last ticks found, at full resolution; of one window."""

    window_s: int
    _ticks: deque[_Tick] = field(default_factory=lambda: deque(maxlen=RECENT_TICKS))

    def add(self, evaluation: Evaluation) -> None:
        """Keep what a tick found, and let go of the oldest beyond `RECENT_TICKS` or `MAX_ROWS`."""
        percentiles = evaluation.percentiles.where("window_s", self.window_s)
        burns = evaluation.burns.where("window_s", self.window_s)
        self._ticks.append(_Tick(evaluation.at_s, percentiles, burns))
        while len(self._ticks) > 1 and sum(len(one.percentiles) + len(one.burns) for one in self._ticks) > MAX_ROWS:
            self._ticks.popleft()

    @property
    def since_s(self) -> int | None:
        """When the first of them was."""
        return self._ticks[0].at_s if self._ticks else None

    def percentiles(self) -> Iterator[PercentileRow]:
        return (row for tick in self._ticks for row in tick.percentiles)

    def burns(self) -> Iterator[BurnRow]:
        return (row for tick in self._ticks for row in tick.burns)


def chart_window_s(windows_s: Iterable[int]) -> int:
    """The window that charts show: the shortest that is a minute or longer."""
    return min(window_s for window_s in windows_s if window_s >= LEAST_WINDOW_S)


def empty(until_s: int, *, window_s: int) -> History:
    """A past of which nothing is known."""
    return History(until_s - SPAN_S, until_s, window_s, {}, {}, {}, ())


def history(connection: Connection, *, until_s: int, recent: Recent) -> History:
    """Read the past up to `until_s`, and join what is recent. A young past starts where it starts."""
    since_s = until_s - SPAN_S
    percentiles = _percentiles([*_older(connection, schema.percentile, since_s, recent), *recent.percentiles()])
    burns = _burns([*_older(connection, schema.burn_rate, since_s, recent), *recent.burns()])
    gauges = _gauges(connection, since_s)
    columns = (points for columns in percentiles.values() for points in columns.values())
    starts = [points[0][0] for points in (*columns, *burns.values(), *gauges.values()) if points]
    earliest_s = min(max(min(starts, default=since_s), since_s), until_s - LEAST_SPAN_S)
    return History(earliest_s, until_s, recent.window_s, percentiles, burns, gauges, _ended(connection))


def _older(connection: Connection, table: Any, since_s: int, recent: Recent) -> Iterable[Any]:
    """The rows of the charts' window that are older than what is recent."""
    mine = [table.c.at_s >= since_s, table.c.window_s == recent.window_s]
    if recent.since_s is not None:
        mine.append(table.c.at_s < recent.since_s)
    latest = connection.execute(select(table).where(*mine).order_by(table.c.at_s.desc()).limit(MAX_ROWS)).all()
    return reversed(latest)


def _percentiles(rows: Iterable[Any]) -> dict[Key, dict[str, Points]]:
    found: defaultdict[Key, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.environment, row.service, row.model, row.signal].append(row)
    return {
        key: {name: [(row.at_s, _known(row, name)) for row in mine] for name in QUANTILES}
        for key, mine in found.items()
    }


def _known(row: Any, quantile: str) -> float | None:
    """The quantile, or where it falls among requests without a value, what it is known to exceed."""
    value: float | None = getattr(row, quantile)
    return row.at_least if value is None else value


def _burns(rows: Iterable[Any]) -> dict[Key, Points]:
    found: defaultdict[Key, list[tuple[int, float | None]]] = defaultdict(list)
    for row in rows:
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
