"""Good and bad events of objectives over rolling windows.

Beside the counts of each window it keeps, for each series of events, when it was first and last heard of, and its two
latest bad moments in different minutes and in different ticks: enough to say whether the bad events of any window lie
in two spans (`slo.burn.Tier.spread_s`), since a window forgets from its old end only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from collector.values.histogram import Counts
from collector.windowing.rolling import RollingCounts
from slo.quantity import MINUTE_S

COUNTS = "counts"
"""The basis of events that their sender judged; any other basis is the source of the histogram they are read from."""
ACTIVE_S = 300
"""A series of events that has been silent for longer than another goes on has ended."""
GOOD_COLUMN, BAD_COLUMN, UNSURE_COLUMN = range(3)
COLUMNS = 3


@dataclass(frozen=True, slots=True, order=True)
class EventKey:
    """A series of events: an objective at a hash, for one model, judged by its sender or read from a histogram."""

    environment: str
    service: str
    model: str
    objective: str
    objective_hash: str
    basis: str = COUNTS


@dataclass(frozen=True, slots=True)
class EventRow:
    """Events of one series in one step; `unsure` of them lie in a bucket that the threshold cuts."""

    key: EventKey
    start_s: int
    good: int
    bad: int
    unsure: int = 0


@dataclass(frozen=True, slots=True)
class Held:
    """Events of a window."""

    good: int
    bad: int
    unsure: int = 0


@dataclass(slots=True)
class _Lane:
    number: int
    first_s: int
    last_s: int
    bad_minutes: tuple[int, ...] = ()
    bad_ticks: tuple[int, ...] = ()


class Events:
    """Rolling good and bad of many series."""

    def __init__(self, windows_s: Sequence[int], *, tick_s: int, now_s: int) -> None:
        self._tick_s = tick_s
        self._now_s = now_s - now_s % tick_s
        self._rolling = RollingCounts(COLUMNS, windows_s, tick_s=tick_s, now_s=now_s)
        self._lanes: dict[EventKey, _Lane] = {}
        self._of_objective: dict[tuple[str, str, str], list[EventKey]] = {}

    def add(self, rows: Iterable[EventRow]) -> None:
        """Take in events, each at its own time; rows of zeros make a series known."""
        starts, cells, counts = [], [], []
        for row in rows:
            lane = self._lane(row)
            for column, count in ((GOOD_COLUMN, row.good), (BAD_COLUMN, row.bad), (UNSURE_COLUMN, row.unsure)):
                if count:
                    starts.append(row.start_s)
                    cells.append(lane.number * COLUMNS + column)
                    counts.append(count)
        self._rolling.add(*(np.array(column, dtype=np.int64) for column in (starts, cells, counts)))

    def _lane(self, row: EventRow) -> _Lane:
        lane = self._lanes.get(row.key)
        if lane is None:
            lane = self._lanes[row.key] = _Lane(len(self._lanes), row.start_s, row.start_s)
            self._rolling.reserve(lane.number)
            key = row.key
            self._of_objective.setdefault((key.environment, key.service, key.objective), []).append(key)
        lane.first_s, lane.last_s = min(lane.first_s, row.start_s), max(lane.last_s, row.start_s)
        # What lies before both is neither: the past is read by the million rows.
        if row.bad and not (len(lane.bad_minutes) == 2 and row.start_s < lane.bad_minutes[0]):
            lane.bad_minutes = _latest_two((*lane.bad_minutes, row.start_s), MINUTE_S)
            lane.bad_ticks = _latest_two((*lane.bad_ticks, row.start_s), self._tick_s)
        return lane

    def advance(self, now_s: int) -> None:
        self._now_s = max(self._now_s, now_s - now_s % self._tick_s)
        self._rolling.advance(now_s)

    def keys(self, environment: str, service: str, objective: str) -> Sequence[EventKey]:
        """Every series of an objective, of any hash, model and basis."""
        return self._of_objective.get((environment, service, objective), ())

    def environments(self, service: str) -> frozenset[str]:
        """Where the service's events come from."""
        return frozenset(environment for environment, name, _ in self._of_objective if name == service)

    def has(self, key: EventKey) -> bool:
        return key in self._lanes

    def spoken(self, key: EventKey, at_s: int) -> bool:
        """Whether the series had been heard of by `at_s` or was not long before."""
        return key in self._lanes and at_s <= self._lanes[key].last_s + ACTIVE_S

    @property
    def count(self) -> int:
        """How many series there are; their lanes are numbered from 0."""
        return len(self._lanes)

    def lanes(self, keys: Iterable[EventKey]) -> list[int]:
        """The lane of each series."""
        return [self._lanes[key].number for key in keys]

    def sums(self, window_s: int) -> Counts:
        """Good, bad and unsure events of every lane over a window, and behind them a lane without any."""
        return np.concatenate((self._rolling.window(window_s)[: self.count], np.zeros((1, 3), dtype=np.int64)))

    def firsts_s(self) -> Counts:
        """The earliest step heard of from each lane."""
        return np.fromiter((lane.first_s for lane in self._lanes.values()), dtype=np.int64, count=self.count)

    def held(self, keys: Iterable[EventKey], window_s: int) -> Held:
        """The events of several series together over a window."""
        return Held(*self.sums(window_s)[self.lanes(keys)].sum(axis=0).tolist())

    def last_s(self, key: EventKey) -> int:
        """The latest step heard of."""
        return self._lanes[key].last_s

    def bad_spans(self, keys: Iterable[EventKey], window_s: int, *, spread_s: int | None) -> int:
        """In how many different spans of `spread_s` (a minute; None: a tick) the window's bad events lie; 2 stands
        for two and more."""
        after_s = self._now_s - window_s
        if spread_s is None:
            moments = {at_s for key in keys for at_s in self._lanes[key].bad_ticks if at_s > after_s}
        else:
            minutes = (at_s for key in keys for at_s in self._lanes[key].bad_minutes if at_s > after_s)
            moments = {at_s // MINUTE_S for at_s in minutes}
        return min(len(moments), 2)


def _latest_two(moments: Iterable[int], step_s: int) -> tuple[int, ...]:
    """The latest moment of each of the two latest steps."""
    latest: dict[int, int] = {}
    for at_s in moments:
        number = at_s // step_s
        latest[number] = max(latest.get(number, at_s), at_s)
    return tuple(sorted(latest.values())[-2:])
