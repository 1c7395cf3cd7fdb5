"""Sums over rolling windows, kept incrementally: a matrix of integers a window, one lane a series, one column a cell.

Counts are added when they come and subtracted when they leave; being integers at fixed columns, a window's sum is
exactly what adding its content anew would give. A tick costs the cells that come and the cells that leave, whatever
the window's length.

What has come is kept until it has left the longest window, in *slabs* by step: short windows at the tick, longer ones
at 1 m, 10 m and 1 h (`rungs`), so that memory does not grow with the window over the tick. Each rung holds all that
its own windows need; nothing moves between rungs, so late data finds its place in each.

Edges. With now floored to the tick, a window of w holds exactly the steps, at its rung, that start after now - w. So
it is short by less than one step at its far end: a tick up to 1 h, 1 m up to 6 h, 10 m up to 3 d, 1 h beyond (a tick,
or 1.7 % of the window at most; 0.15 % of 28 d). What lies in the future (a sender's clock ahead) counts at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from collector.values.histogram import Counts

Cells = NDArray[np.uint32]
RUNGS = ((0, 3600), (60, 21600), (600, 259200), (3600, 1 << 40))
"""(step, longest window held at it); the first step stands for the tick."""
MAX_PIECES = 64
"""Of a step that goes on: to join them costs as much as so many, however little they hold."""
MAX_STRETCHES = 8
"""Steps, one behind another, up to which each is added by itself."""
MAX_CELLS = 1 << 32
DENSE = 32
"""Cells are close together when there are more than one in so many."""


@dataclass(frozen=True, slots=True)
class Slab:
    """What came in one step: distinct cells (lane * columns + column) and their counts, in as few bytes as they fit."""

    cells: Cells
    counts: NDArray[np.unsignedinteger]


@dataclass(slots=True)
class _Rung:
    """One step length: the windows held at it, as (window_s, place in the matrix), and their slabs by start."""

    step_s: int
    windows: tuple[tuple[int, int], ...]
    slabs: dict[int, list[Slab]] = field(default_factory=dict)

    @property
    def longest_s(self) -> int:
        return max(window_s for window_s, _ in self.windows)


def step_of(window_s: int, tick_s: int) -> int:
    """The step at which a window is held."""
    step_s = next(step for step, longest in RUNGS if window_s <= longest)
    return max(step_s, tick_s)


class RollingCounts:
    """Rolling sums of many lanes of `columns` cells over several windows."""

    def __init__(self, columns: int, windows_s: Sequence[int], *, tick_s: int, now_s: int) -> None:
        self._columns = columns
        self._tick_s = tick_s
        self._now_s = now_s - now_s % tick_s
        self._places = {window_s: place for place, window_s in enumerate(sorted(set(windows_s)))}
        self._sums: Counts = np.zeros((len(self._places), 4, columns), dtype=np.int64)
        steps = sorted({step_of(window_s, tick_s) for window_s in self._places})
        self._rungs = [_Rung(step_s, self._held_at(step_s)) for step_s in steps]

    def _held_at(self, step_s: int) -> tuple[tuple[int, int], ...]:
        return tuple((w, place) for w, place in self._places.items() if step_of(w, self._tick_s) == step_s)

    def window(self, window_s: int) -> Counts:
        """The sums of every lane over a window: (lanes, columns); more lanes than were added may be there, at 0."""
        sums: Counts = self._sums[self._places[window_s]]
        return sums

    def reserve(self, lane: int) -> None:
        """Make room for a lane, at 0 until something comes."""
        places, lanes, columns = self._sums.shape
        if lane < lanes:
            return
        lanes = max(lane + 1, 2 * lanes)
        assert lanes * columns < MAX_CELLS, "more lanes than cells can name: the limit of series lies far below"
        grown = np.zeros((places, lanes, columns), dtype=np.int64)
        grown[:, : self._sums.shape[1]] = self._sums
        self._sums = grown

    def add(self, starts_s: Counts, cells: tuple[Counts, Counts], counts: Counts, *, distinct: bool = False) -> None:
        """Add counts at (lanes, columns), each in the step that begins at its `starts_s` (of any step length).
        `distinct`: no cell comes twice in one step."""
        lanes, columns = cells
        if counts.size == 0:
            return
        self.reserve(int(lanes.max()))
        flat = lanes * self._columns + columns
        cuts = np.flatnonzero(np.diff(starts_s)) + 1
        if cuts.size < MAX_STRETCHES:
            for first, until in pairwise((0, *cuts.tolist(), flat.size)):
                stretch = slice(first, until)
                slab = _slab(flat[stretch], counts[stretch], distinct=distinct)
                for rung in self._rungs:
                    self._put(rung, _floor(int(starts_s[first]), rung.step_s), slab)
            return
        for rung in self._rungs:
            floored = starts_s - starts_s % rung.step_s
            held = np.flatnonzero(floored > self._now_s - rung.longest_s)
            for start_s, chosen in _by_step(floored, held):
                self._put(rung, start_s, _slab(flat[chosen], counts[chosen]))

    def advance(self, now_s: int) -> None:
        """Let leave what lies outside the windows that end now. Going back in time changes nothing."""
        now_s -= now_s % self._tick_s
        if now_s <= self._now_s:
            return
        for rung in self._rungs:
            for window_s, place in rung.windows:
                flat = self._sums[place].reshape(-1)
                for start_s in self._starts(rung, self._now_s - window_s, now_s - window_s):
                    for slab in rung.slabs[start_s]:
                        np.subtract.at(flat, slab.cells.astype(np.intp), slab.counts.astype(np.int64))
            for start_s in self._starts(rung, self._now_s - rung.longest_s, now_s - rung.longest_s):
                del rung.slabs[start_s]
            self._close(rung, now_s)
        self._now_s = now_s

    def _close(self, rung: _Rung, now_s: int) -> None:
        """Join what came in the steps that have ended by now. Most of it lies in the same cells, tick by tick, and is
        kept for as long as the longest window. (A tick's own pieces are of different series: to join them saves
        nothing.)"""
        if rung.step_s == self._tick_s:
            return
        for start_s in self._starts(rung, self._now_s - rung.step_s, now_s - rung.step_s):
            if len(rung.slabs[start_s]) > 1:
                rung.slabs[start_s] = [_joined(rung.slabs[start_s])]

    @staticmethod
    def _starts(rung: _Rung, after_s: int, until_s: int) -> list[int]:
        """Starts of the slabs held in (after_s, until_s]: by the steps of a short stretch, by the slabs of a long."""
        first = (after_s // rung.step_s + 1) * rung.step_s
        steps = range(first, until_s + 1, rung.step_s)
        if len(steps) < len(rung.slabs):
            return [start_s for start_s in steps if start_s in rung.slabs]
        return [start_s for start_s in rung.slabs if after_s < start_s <= until_s]

    def _put(self, rung: _Rung, start_s: int, slab: Slab) -> None:
        """Add what came in a step of a rung, if any of its windows holds it."""
        if start_s <= self._now_s - rung.longest_s:
            return
        cells, counts = slab.cells.astype(np.intp), slab.counts.astype(np.int64)
        for window_s, place in rung.windows:
            if start_s > self._now_s - window_s:
                np.add.at(self._sums[place].reshape(-1), cells, counts)
        pieces = rung.slabs.setdefault(start_s, [])
        pieces.append(slab)
        if len(pieces) > MAX_PIECES:
            rung.slabs[start_s] = [_joined(pieces)]


def _floor(start_s: int, step_s: int) -> int:
    return start_s - start_s % step_s


def _by_step(floored: Counts, held: Counts) -> Iterator[tuple[int, Counts]]:
    """Each step among those that are `held`, and the places it stands at."""
    steps = floored[held]
    if held.size == 0:
        return
    if (np.diff(steps) < 0).any():
        order = np.argsort(steps, kind="stable")
        steps, held = steps[order], held[order]
    firsts = np.flatnonzero(np.diff(steps)) + 1
    yield from zip(steps[np.append(0, firsts)].tolist(), np.split(held, firsts), strict=True)


def _slab(cells: Counts, counts: Counts, *, distinct: bool = False) -> Slab:
    """Counts of equal cells added, in the narrowest types that hold them; none are equal when they are `distinct`."""
    if distinct:
        return _narrow(cells, counts)
    first = int(cells.min())
    if cells.size * DENSE > int(cells.max()) - first:
        # Cells that lie close together are counted rather than sorted; sums below 2^53 are exact in a double.
        sums = np.bincount(cells - first, weights=counts)
        used = np.flatnonzero(sums != 0)
        return _narrow(used + first, sums[used].astype(np.int64))
    order = np.argsort(cells, kind="stable")
    cells = cells[order]
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    return _narrow(cells[starts], np.add.reduceat(counts[order], starts))


def _narrow(cells: Counts, counts: Counts) -> Slab:
    return Slab(cells.astype(np.uint32), counts.astype(np.min_scalar_type(int(counts.max()))))


def _joined(pieces: Sequence[Slab]) -> Slab:
    """All that the pieces hold, as one."""
    first, last = min(int(piece.cells.min()) for piece in pieces), max(int(piece.cells.max()) for piece in pieces)
    if sum(piece.cells.size for piece in pieces) * DENSE <= last - first:
        cells = np.concatenate([piece.cells for piece in pieces]).astype(np.int64)
        return _slab(cells, np.concatenate([piece.counts.astype(np.int64) for piece in pieces]))
    # Cells that lie close together are added up in their places rather than sorted.
    sums = np.zeros(last - first + 1, dtype=np.int64)
    for piece in pieces:
        np.add.at(sums, piece.cells.astype(np.intp) - first, piece.counts.astype(np.int64))
    used = np.flatnonzero(sums)
    return _narrow(used + first, sums[used])
