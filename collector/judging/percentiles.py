"""Percentiles of every latency over every window, all at once (DESIGN 4.4, 5).

What `quantile` says of one latency is said here of thousands: a rank is looked up in the running sums of a whole plane
and gives a lower and an upper edge, from which all else follows. Where requests have no value, the upper edge is
looked up among the values alone and the lower one among values and waits together, as `quantile` does. What lies in
several layouts, or has requests that wait past a deadline at this moment, is asked of `quantile` itself, line by line.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collector.values.columns import Columns, columns, or_none
from collector.values.deltas import LatencyKey
from collector.values.histogram import Counts, Floats
from collector.values.quantile import Censored, Edges, edges_at_ranks, middles, ranks_of
from collector.windowing.latencies import Held, Roster
from collector.windowing.plane import Plane, Reached
from collector.windowing.windows import Windows
from slo.objective import Spec
from slo.signals import OVERDUE, SOURCES

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
"""The share of values at or below each quantile, by its column."""
SHARES = (*QUANTILES.values(), 1.0)
"""Those, and the largest value."""
NOWHERE = -1


def source_rank(source: str) -> int:
    """The lower, the nearer to what users saw: of several sources of one latency the first is believed."""
    return SOURCES.index(source) if source in SOURCES else len(SOURCES)


@dataclass(frozen=True, slots=True)
class PercentileRow:
    """Percentiles of one latency over one window, in seconds; the columns of table `percentile`.

    `count` is of requests with a value, `censored` of those without; a quantile that falls among the latter is None
    and exceeds `at_least`. `rel_error` is the greatest of those quantiles that are known.
    """

    at_s: int
    environment: str
    service: str
    model: str
    signal: str
    source: str
    window_s: int
    count: int
    censored: int
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    max: float | None
    at_least: float | None
    rel_error: float | None
    coverage: float


@dataclass(frozen=True, slots=True)
class _Figures:
    """What is known of some lines over one window: requests with and without a value, and between which edges each
    quantile lies. Of a line without requests both edges are NaN."""

    count: Counts  # (lines)
    censored: Counts  # (lines)
    low: Floats  # (lines, shares)
    high: Floats  # (lines, shares)

    def of(self, lines: Counts) -> "_Figures":
        """Those of some lines, which ascend."""
        if lines.size == self.count.size:
            return self
        return _Figures(self.count[lines], self.censored[lines], self.low[lines], self.high[lines])


def percentiles(windows: Windows) -> Columns[PercentileRow]:
    """The percentiles of every line of the roster over the windows that end now."""
    roster = windows.latencies.roster()
    if not roster.lines:
        return columns(PercentileRow)
    waiting = _waiting(windows, roster)
    held, covered = [], []
    ages_s = windows.now_s + windows.plan.tick_s - roster.firsts_s()
    services, of = roster.services
    for (window_s, lines), planes in zip(roster.segments, _planes(windows, roster), strict=True):
        if lines.size:
            held.append(_window(windows, roster, window_s, planes, waiting=waiting).of(lines))
            shares = np.array([windows.coverage(service, window_s) for service in services])
            covered.append(np.minimum(shares[of], np.maximum(ages_s, 0) / window_s)[lines])
    return Columns(PercentileRow, _columns(windows.now_s, roster, held, np.concatenate(covered)), roster.runs)


def _columns(at_s: int, roster: Roster, held: Sequence[_Figures], coverage: Floats) -> tuple[Sequence[object], ...]:
    low = np.concatenate([one.low for one in held])[roster.order]
    high = np.concatenate([one.high for one in held])[roster.order]
    unknown = np.isinf(high)
    value = np.where(unknown, np.nan, middles(low, high))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(low <= 0, np.where(high > 0, 1.0, 0.0), (high - low) / (high + low))
    error = np.where(np.isnan(value), -1.0, error).max(axis=1)
    # Unknown quantiles are the last ones: the first of them is exceeded by all.
    exceeded = np.where(unknown[:, -1], low[np.arange(low.shape[0]), unknown.argmax(axis=1)], np.nan)
    return (
        [at_s] * low.shape[0],
        *roster.columns,
        np.concatenate([one.count for one in held])[roster.order].tolist(),
        np.concatenate([one.censored for one in held])[roster.order].tolist(),
        *(or_none(column) for column in value.T),
        or_none(exceeded),
        or_none(np.where(error < 0, np.nan, error)),
        coverage[roster.order].tolist(),
    )


def _planes(windows: Windows, roster: Roster) -> Iterator[Sequence["_OnePlane"]]:
    """Every plane over each window, ascending."""
    planes = [(windows.latencies.planes[layout], lanes) for layout, lanes in roster.lanes.items()]
    growing = [
        (plane, _lines(roster, plane, lanes.values), _lines(roster, plane, lanes.waits)) for plane, lanes in planes
    ]
    for _ in roster.segments:
        yield [_OnePlane(plane, next(values), next(waits)) for plane, values, waits in growing]


def _lines(roster: Roster, plane: Plane, held: Held) -> Iterator["_Lines"]:
    """What a plane holds of every line, over each window, ascending."""
    together = roster.together(held.latencies)
    of = np.concatenate((held.latencies, together.lines))
    places = np.full(len(roster.lines), NOWHERE)
    places[of] = np.arange(of.size)
    for _, rows in plane.growing(held.lanes):
        yield _Lines(places, rows, together.sums(rows))


def _window(
    windows: Windows,
    roster: Roster,
    window_s: int,
    planes: Sequence["_OnePlane"],
    *,
    waiting: Mapping[int, tuple[int, float]],
) -> _Figures:
    """Every line over one window."""
    shape = (len(roster.lines), len(SHARES))
    count, censored, active = np.zeros((3, len(roster.lines)), dtype=np.int64)
    figures = _Figures(count, censored, np.full(shape, np.nan), np.full(shape, np.nan))
    for plane in planes:
        count += plane.count
        censored += plane.censored
        active += plane.count + plane.censored > 0
    alone = active == 1
    alone[list(waiting)] = False
    for plane in planes:
        plane.put(np.flatnonzero(alone & (plane.count + plane.censored > 0)), figures)
    for line in {*np.flatnonzero(active > 1).tolist(), *waiting}:
        _put_one(windows, roster, line, window_s, waiting=waiting, into=figures)
    return figures


class _Lines:
    """What one plane holds of every line: a row for each latency that it has something of, and in a matrix of their
    own, so that thousands of rows are not copied for a few more, those over all models. `places` are the rows of all
    lines, in the first matrix and on in the second; a line of which the plane has nothing has none."""

    def __init__(self, places: Counts, *parts: Counts) -> None:
        self._places, self._parts = places, parts
        self._reached = [Reached(part) for part in parts]
        totals = np.concatenate([*(part.totals for part in self._reached), np.zeros(1, dtype=np.int64)])
        self.count: Counts = totals[places]  # NOWHERE is the last

    def rows(self, lines: Counts) -> Counts:
        """Some of the lines."""
        found = np.zeros((lines.size, self._parts[0].shape[1]), dtype=np.int64)
        for part, (where, rows) in zip(self._parts, self._split(lines), strict=True):
            found[where] = part[rows]
        return found

    def found(self, lines: Counts, ranks: Counts) -> Counts:
        """The columns that hold the ranks of some of the lines; the first one for a line that has no row."""
        found = np.zeros_like(ranks)
        for part, (where, rows) in zip(self._reached, self._split(lines), strict=True):
            found[where] = part.found(rows, ranks[where])
        return found

    def _split(self, lines: Counts) -> Iterator[tuple[Counts, Counts]]:
        """By matrix, which of the lines have a row there, and which one."""
        places, edge = self._places[lines], self._parts[0].shape[0]
        own, several = np.flatnonzero((places >= 0) & (places < edge)), np.flatnonzero(places >= edge)
        yield own, places[own]
        yield several, places[several] - edge


class _OnePlane:
    """One plane over one window, by its values and waits: between which edges the quantiles lie of what it holds
    alone."""

    def __init__(self, plane: Plane, values: _Lines, waits: _Lines) -> None:
        self._low, self._high = plane.edges()
        self._values, self._waits = values, waits
        self.count, self.censored = values.count, waits.count

    def put(self, lines: Counts, into: _Figures) -> None:
        """Say it of the lines, which are in ascending order."""
        if lines.size == 0:
            return
        count, censored = self.count[lines], self.censored[lines]
        ranks = ranks_of(SHARES, count + censored)
        upper = self._values.found(lines, np.minimum(ranks, np.maximum(count, 1)[:, None]))
        lower = upper.copy()
        waited = np.flatnonzero(censored)
        if waited.size:
            both = self._values.rows(lines[waited]) + self._waits.rows(lines[waited])
            lower[waited] = Reached(both).found(np.arange(waited.size), ranks[waited])
        into.low[lines] = self._low[lower]
        into.high[lines] = np.where(ranks > count[:, None], np.inf, self._high[upper])


def _put_one(
    windows: Windows,
    roster: Roster,
    line: int,
    window_s: int,
    *,
    waiting: Mapping[int, tuple[int, float]],
    into: _Figures,
) -> None:
    members = roster.members(line)
    parts = [part for key in members for part in windows.latencies.values(key, window_s)]
    waits = [part for key in members for part in windows.latencies.waits(key, window_s)]
    censored = Censored(waits, *waiting.get(line, (0, 0.0)))
    edges: Edges | None = edges_at_ranks(parts, SHARES, censored=censored)
    into.censored[line] = censored.count
    if edges is not None:
        into.low[line], into.high[line] = edges


def _waiting(windows: Windows, roster: Roster) -> dict[int, tuple[int, float]]:
    """Requests of each line that wait past a deadline now, and how long each has waited at least."""
    overdue = _overdue(windows)
    if not overdue:
        return {}
    found: dict[int, tuple[int, float]] = {}
    for number in range(len(roster.lines)):
        mine = [overdue[key] for key in roster.members(number) if key in overdue]
        if mine:
            found[number] = sum(count for count, _ in mine), min(waited_s for _, waited_s in mine)
    return found


def _overdue(windows: Windows) -> dict[LatencyKey, tuple[int, float]]:
    """The same by latency. The proxy or middleware that measures a latency knows them. They have waited the shortest
    threshold of the objectives that could have set the deadline."""
    counts: defaultdict[LatencyKey, float] = defaultdict(float)
    for environment, service in windows.services():
        life = windows.fleet.life((environment, service))
        sources = {one.instance: one.source for one in life.instances} if life else {}
        for reading in windows.fleet.readings((environment, service), OVERDUE.sql, now_s=windows.now_s):
            if reading.value >= 1 and reading.instance in sources:
                of = environment, service, reading.model, reading.attribute, sources[reading.instance]
                counts[LatencyKey(*of)] += reading.value
    return {key: (round(count), _deadline_s(windows.plan.spec(key.service), key)) for key, count in counts.items()}


def _deadline_s(spec: Spec | None, key: LatencyKey) -> float:
    thresholds = [
        float(objective.threshold)
        for objective in (spec.objectives if spec else ())
        if objective.signal == key.signal and objective.match.holds_model(key.model) and objective.threshold
    ]
    return min(thresholds, default=0.0)
