"""What the page shows of the past: recent percentiles, burns and gauges, and alerts that have ended.

SQL keeps one row a minute of what ticks found; the last minutes at full resolution are kept here in memory (`Recent`),
so that a chart moves with every tick.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Table, select
from sqlalchemy.engine import Connection

from collector import schema
from collector.judging.evaluate import Evaluation
from collector.judging.percentiles import QUANTILES, PercentileRow, source_rank
from collector.storage import recall
from collector.values.columns import Columns
from collector.values.verdicts import BurnRow
from slo.burn import STANDARD_WINDOWS_S
from slo.objective import Spec
from slo.signals import ENGINE_RUNNING, ENGINE_WAITING, IN_FLIGHT, KV_OCCUPANCY

COLUMNS = {share: name for name, share in QUANTILES.items()}
"""The column of a promised percentile, where one is kept."""
USUAL_COLUMN = "p95"
"""What is shown where it is not."""
SPAN_S = 3 * 3600
LEAST_SPAN_S = 120
LEAST_WINDOW_S = 60
BURN_WINDOW_S = STANDARD_WINDOWS_S[0]
"""Every objective has it, whatever its own windows are."""
MAX_ENDED = 20
RECENT_TICKS = 180
MAX_ROWS = 100_000
"""Rows of a table that are looked at: with many models the past that is shown is shorter."""
_GOODNESS = ("at_least", "rel_error")
_WHOSE = ("at_s", "environment", "service", "model")
_PERCENTILE = (*_WHOSE, "signal", "source", *QUANTILES, *_GOODNESS)
_BURN = (*_WHOSE, "objective", "burn")
_PLACE = {name: place for place, name in enumerate(_PERCENTILE)}
_GAUGES = (KV_OCCUPANCY.sql, ENGINE_WAITING.sql, ENGINE_RUNNING.sql, IN_FLIGHT.sql)

Key = tuple[str, str, str, str]
Promised = Mapping[tuple[str, str], Collection[str]]
"""(service, signal) -> columns of `percentile`."""
_Row = tuple[Any, ...]
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

    `percentiles`: (environment, service, model, signal) -> promised column -> points, over a window of `window_s`; a
    quantile that is unknown is what it is known to exceed, which `at_least` says, and `rel_error` is how far off it may
    be. `burns`: (environment, service, model, objective) -> points, over BURN_WINDOW_S. `gauges`: (service, name) ->
    points, the highest of all instances.
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
    """What the last ticks found, at full resolution: percentiles of one window, burns of BURN_WINDOW_S."""

    window_s: int
    _ticks: deque[_Tick] = field(default_factory=lambda: deque(maxlen=RECENT_TICKS))

    def add(self, evaluation: Evaluation) -> None:
        """Keep what a tick found, and let go of the oldest beyond `RECENT_TICKS` or `MAX_ROWS`."""
        percentiles = evaluation.percentiles.where("window_s", self.window_s)
        burns = evaluation.burns.where("window_s", BURN_WINDOW_S)
        self._ticks.append(_Tick(evaluation.at_s, percentiles, burns))
        while len(self._ticks) > 1 and sum(len(one.percentiles) + len(one.burns) for one in self._ticks) > MAX_ROWS:
            self._ticks.popleft()

    @property
    def since_s(self) -> int | None:
        """When the first of them was."""
        return self._ticks[0].at_s if self._ticks else None

    def percentiles(self) -> Iterator[_Row]:
        """Each as the columns of `_PERCENTILE`."""
        for tick in self._ticks:
            yield from zip(*map(tick.percentiles.column, _PERCENTILE), strict=True)

    def burns(self) -> Iterator[_Row]:
        """Each as the columns of `_BURN`."""
        for tick in self._ticks:
            yield from zip(*map(tick.burns.column, _BURN), strict=True)


def promised(specs: Iterable[Spec]) -> Promised:
    """The percentiles that objectives speak of: what charts show."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for spec in specs:
        for objective in spec.objectives:
            found[spec.service, objective.signal].add(COLUMNS.get(float(objective.goal), USUAL_COLUMN))
    return found


def chart_window_s(windows_s: Iterable[int]) -> int:
    """The window that charts show: the shortest that is a minute or longer."""
    return min(window_s for window_s in windows_s if window_s >= LEAST_WINDOW_S)


def empty(until_s: int, *, window_s: int) -> History:
    """A past of which nothing is known."""
    return History(until_s - SPAN_S, until_s, window_s, {}, {}, {}, ())


def history(connection: Connection, *, until_s: int, recent: Recent, wanted: Promised) -> History:
    """Read the past up to `until_s`, and join what is recent. A young past starts where it starts."""
    since_s, table = until_s - SPAN_S, schema.percentile
    spoken = table.c.signal.in_(sorted({signal for _, signal in wanted}))
    lengths = (since_s, recent.since_s)
    older = _older(connection, table, _PERCENTILE, lengths, table.c.window_s == recent.window_s, spoken)
    percentiles = _percentiles([*older, *recent.percentiles()], wanted)
    older = _older(connection, schema.burn_rate, _BURN, lengths, schema.burn_rate.c.window_s == BURN_WINDOW_S)
    burns = _burns([*older, *recent.burns()])
    gauges = _gauges(connection, since_s)
    columns = (points for columns in percentiles.values() for points in columns.values())
    starts = [points[0][0] for points in (*columns, *burns.values(), *gauges.values()) if points]
    earliest_s = min(max(min(starts, default=since_s), since_s), until_s - LEAST_SPAN_S)
    return History(earliest_s, until_s, recent.window_s, percentiles, burns, gauges, _ended(connection))


def _older(
    connection: Connection, table: Table, names: Sequence[str], span: tuple[int, int | None], *mine: ColumnElement[bool]
) -> Iterable[_Row]:
    """The rows since the first moment of the span and, where it has one, before the second: what is recent."""
    since_s, until_s = span
    within = [table.c.at_s >= since_s, *mine]
    if until_s is not None:
        within.append(table.c.at_s < until_s)
    question = select(*(table.c[name] for name in names)).where(*within).order_by(table.c.at_s.desc())
    return reversed(connection.execute(question.limit(MAX_ROWS)).all())


def _percentiles(rows: Iterable[_Row], wanted: Promised) -> dict[Key, dict[str, Points]]:
    found: defaultdict[Key, list[_Row]] = defaultdict(list)
    for row in rows:
        _, environment, service, model, signal = row[:5]
        if (service, signal) in wanted:
            found[environment, service, model, signal].append(row)
    return {key: _columns(_of_one_source(mine), wanted[key[1], key[3]]) for key, mine in found.items()}


def _of_one_source(rows: Iterable[_Row]) -> Sequence[_Row]:
    """Those of the best source that has seen anything, as the figures beside a chart are: an engine that is asked by
    others too tells of their requests as well."""
    by_source: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_source[row[_PLACE["source"]]].append(row)
    ranked = [by_source[source] for source in sorted(by_source, key=source_rank)]
    return next((mine for mine in ranked if any(map(_saw, mine))), ranked[0])


def _saw(row: _Row) -> bool:
    return any(row[_PLACE[name]] is not None for name in (*QUANTILES, "at_least"))


def _columns(rows: Sequence[_Row], quantiles: Iterable[str]) -> dict[str, Points]:
    """Each quantile, or where it falls among requests without a value, what it is known to exceed; and how good it
    is."""
    least = _PLACE["at_least"]
    points: dict[str, Points] = {name: [(row[0], row[_PLACE[name]]) for row in rows] for name in _GOODNESS}
    for name in quantiles:
        at = _PLACE[name]
        points[name] = [(row[0], row[least] if row[at] is None else row[at]) for row in rows]
    return points


def _burns(rows: Iterable[_Row]) -> dict[Key, Points]:
    found: defaultdict[Key, list[tuple[int, float | None]]] = defaultdict(list)
    for at_s, *key, burn in rows:
        found[tuple(key)].append((at_s, burn))
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


def ended_of(connection: Connection, *, environment: str, service: str, objective: str) -> list[Ended]:
    """The alerts of one objective that have ended, the latest first."""
    columns = schema.alert_event.c
    of = columns.environment == environment, columns.service == service, columns.objective == objective
    return _ended(connection, *of)


def _ended(connection: Connection, *of: ColumnElement[bool]) -> list[Ended]:
    table = schema.alert_event
    over = (table.c.state == "resolved", table.c.fired_s.is_not(None), *of)
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
