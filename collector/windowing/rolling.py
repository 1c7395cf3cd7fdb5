"""Sums over rolling windows, kept incrementally: matrices of integers, one lane a series, one column a cell.

Counts are added when they come and subtracted when they leave; being integers at fixed columns, a window's sum is
exactly what adding its content anew would give. A tick costs the cells that come and the cells that leave, whatever
the window's length.

A longer window holds all that a shorter one does, so windows are kept as *rings*: ring k is what window k holds and no
shorter one. What comes is added to one ring, the first whose window it lies in; what leaves a window moves on to the
next ring; and a window is the sum of the rings up to its own.

What has come is kept until it has left the longest window, in *slabs* by step: for short windows at the tick, for
longer ones at 1 m, 10 m and 1 h (`rungs`), so that memory does not grow with the window over the tick. Each cell lies
on one rung: what leaves the longest window of a rung is handed on to the next one, into the step that holds it. Late
data finds its place on whichever rung its time is at.

Edges. With now floored to the tick, a window of w holds exactly the steps, at its rung, that start after now - w. So
it is short by less than one step at its far end: a tick up to 1 h, 1 m up to 6 h, 10 m up to 3 d, 1 h beyond (a tick,
or 1.7 % of the window at most; 0.15 % of 28 d). What lies in the future (a sender's clock ahead) counts at once. Two
windows that are held at different steps and differ by less than that do not nest at their edges: there a new *chain*
of rings begins, which nothing is handed on to.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
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
MAX_ASKED = 2
"""Answers of a ring that are kept: of those who ask each tick, one wants values and one wants waits."""
DENSE = 32
"""Cells are close together when there are more than one in so many."""


@dataclass(frozen=True, slots=True)
class Slab:
    """What came in one step: cells (lane * columns + column) and their counts, in as few bytes as they fit."""

    cells: Cells
    counts: NDArray[np.unsignedinteger]

    @property
    def wide(self) -> tuple[Counts, Counts]:
        """Cells and counts as numpy adds them up fastest."""
        return self.cells.astype(np.intp), self.counts.astype(np.int64)


@dataclass(slots=True)
class _Rung:
    """One step length of a chain: the windows held at it, as (window_s, its ring), and its slabs by start."""

    step_s: int
    windows: list[tuple[int, int]] = field(default_factory=list)
    slabs: dict[int, list[Slab]] = field(default_factory=dict)

    @property
    def longest_s(self) -> int:
        return self.windows[-1][0]

    def floor(self, start_s: int) -> int:
        return start_s - start_s % self.step_s

    def put(self, start_s: int, slab: Slab) -> None:
        """Keep what came in a step."""
        pieces = self.slabs.setdefault(self.floor(start_s), [])
        pieces.append(slab)
        if len(pieces) > MAX_PIECES:
            pieces[:] = [_joined(pieces)]

    def starts(self, after_s: int, until_s: int) -> list[int]:
        """Starts of the slabs held in (after_s, until_s]: by the steps of a short stretch, by the slabs of a long."""
        first = (after_s // self.step_s + 1) * self.step_s
        steps = range(first, until_s + 1, self.step_s)
        if len(steps) < len(self.slabs):
            return [start_s for start_s in steps if start_s in self.slabs]
        return [start_s for start_s in self.slabs if after_s < start_s <= until_s]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a ring held of some lanes in some columns when it was asked last."""

    lanes: Counts
    columns: slice
    sums: Counts


def step_of(window_s: int, tick_s: int) -> int:
    """The step at which a window is held."""
    step_s = next(step for step, longest in RUNGS if window_s <= longest)
    return max(step_s, tick_s)


class RollingCounts:
    """Rolling sums of many lanes of `columns` cells over several windows."""

    def __init__(self, columns: int, windows_s: Sequence[int], *, tick_s: int, now_s: int) -> None:
        self.columns = columns
        self._tick_s = tick_s
        self._now_s = now_s - now_s % tick_s
        self._rings: Counts = np.zeros((len(set(windows_s)), 4, columns), dtype=np.int64)
        self._asked: dict[int, deque[_Asked]] = {}
        self._chains = _chains(sorted(set(windows_s)), tick_s)
        self._inner = {window_s: rings for chain in self._chains for window_s, rings in _rings_within(chain)}

    def window(self, window_s: int) -> Counts:
        """The sums of every lane over a window: (lanes, columns); more lanes than were added may be there, at 0."""
        sums: Counts = self._rings[self._inner[window_s]].sum(axis=0)
        return sums

    def lane(self, lane: int, window_s: int) -> Counts:
        """The sums of one lane over a window: (columns)."""
        sums: Counts = self._rings[self._inner[window_s], lane].sum(axis=0)
        return sums

    def growing(self, lanes: Counts, columns: slice) -> Iterator[tuple[int, Counts]]:
        """Every window, ascending, with the sums of some lanes in some columns, which the next step changes; a lane
        below 0 is none, and holds nothing."""
        return merge(*(self._grown(chain, lanes, columns) for chain in self._chains), key=lambda one: one[0])

    def _grown(self, chain: Sequence[_Rung], lanes: Counts, columns: slice) -> Iterator[tuple[int, Counts]]:
        sums: Counts | None = None
        for window_s, ring in (window for rung in chain for window in rung.windows):
            if sums is None:  # it changes with all that comes
                sums = self._gathered(ring, lanes, columns)
            else:
                sums += self._kept(ring, lanes, columns)
            yield window_s, sums

    def _kept(self, ring: int, lanes: Counts, columns: slice) -> Counts:
        """What a ring holds of some lanes in some columns, kept until it changes: those of long windows stay as they
        are for minutes, and the lanes that are asked for stay the same for longer."""
        held = self._asked.setdefault(ring, deque(maxlen=MAX_ASKED))
        for asked in held:
            if asked.lanes is lanes and asked.columns == columns:
                return asked.sums
        held.append(_Asked(lanes, columns, self._gathered(ring, lanes, columns)))
        return held[-1].sums

    def _gathered(self, ring: int, lanes: Counts, columns: slice) -> Counts:
        sums: Counts = self._rings[ring, :, columns][lanes]
        sums[np.flatnonzero(lanes < 0)] = 0
        return sums

    def _changing(self, ring: int) -> Counts:
        """The cells of a ring, for whoever changes them."""
        self._asked.pop(ring, None)
        cells: Counts = self._rings[ring].reshape(-1)
        return cells

    def reserve(self, lane: int) -> None:
        """Make room for a lane, at 0 until something comes."""
        rings, lanes, columns = self._rings.shape
        if lane < lanes:
            return
        lanes = max(lane + 1, 2 * lanes)
        assert lanes * columns < MAX_CELLS, "more lanes than cells can name: the limit of series lies far below"
        grown = np.zeros((rings, lanes, columns), dtype=np.int64)
        grown[:, : self._rings.shape[1]] = self._rings
        self._rings = grown

    def add(self, starts_s: Counts, cells: Counts, counts: Counts) -> None:
        """Add counts at cells (lane * columns + column) of lanes that there is room for, each in the step that begins
        at its `starts_s` (of any step length)."""
        if counts.size == 0:
            return
        cuts = np.flatnonzero(np.diff(starts_s)) + 1
        if cuts.size < MAX_STRETCHES:
            for first, until in pairwise((0, *cuts.tolist(), starts_s.size)):
                self.add_step(int(starts_s[first]), cells[first:until], counts[first:until])
            return
        for chain in self._chains:
            self._add_steps(chain, starts_s, cells, counts)

    def add_step(self, start_s: int, cells: Counts, counts: Counts) -> None:
        """Add counts, all of them in one step."""
        slab = _slab(cells, counts)
        for chain in self._chains:
            place = self._place(chain, start_s)
            if place is not None:
                rung, ring = place
                np.add.at(self._changing(ring), cells, counts)
                rung.put(start_s, slab)

    def _place(self, chain: Sequence[_Rung], start_s: int) -> tuple[_Rung, int] | None:
        """The rung and the ring that a step belongs to; None when it lies in no window."""
        for rung in chain:
            age_s = self._now_s - rung.floor(start_s)
            for window_s, ring in rung.windows if age_s < rung.longest_s else ():
                if age_s < window_s:
                    return rung, ring
        return None

    def _add_steps(self, chain: Sequence[_Rung], starts_s: Counts, cells: Counts, counts: Counts) -> None:
        left = np.arange(starts_s.size)
        for rung in chain:
            floored = starts_s[left] - starts_s[left] % rung.step_s
            held = floored > self._now_s - rung.longest_s
            for start_s, chosen in _by_step(floored, np.flatnonzero(held)):
                slab = _summed(cells[left[chosen]], counts[left[chosen]])
                rung.put(start_s, slab)
                ring = next(ring for window_s, ring in rung.windows if start_s > self._now_s - window_s)
                np.add.at(self._changing(ring), *slab.wide)
            left = left[~held]
            if left.size == 0:
                return

    def advance(self, now_s: int) -> None:
        """Let leave what lies outside the windows that end now. Going back in time changes nothing."""
        now_s -= now_s % self._tick_s
        if now_s <= self._now_s:
            return
        for chain in self._chains:
            last = chain[-1].windows[-1][1]
            for rung, after in zip(chain, (*chain[1:], None), strict=True):
                for window_s, ring in rung.windows:
                    for start_s in rung.starts(self._now_s - window_s, now_s - window_s):
                        self._move(rung.slabs[start_s], ring, is_last=ring == last)
                self._hand_on(rung, after, now_s)
        self._now_s = now_s

    def _move(self, slabs: Sequence[Slab], ring: int, *, is_last: bool) -> None:
        """Let slabs leave a window: for the next ring, if there is one."""
        for slab in slabs:
            cells, counts = slab.wide
            np.subtract.at(self._changing(ring), cells, counts)
            if not is_last:
                np.add.at(self._changing(ring + 1), cells, counts)

    def _hand_on(self, rung: _Rung, after: _Rung | None, now_s: int) -> None:
        """Give the next rung what has left the longest window of this one. Its steps that are now whole are joined:
        most of what they hold lies in the same cells, tick by tick, and is kept for long. (A tick's own pieces are of
        different series: to join them saves nothing.)"""
        left_s, leaves_s = self._now_s - rung.longest_s, now_s - rung.longest_s
        for start_s in rung.starts(left_s, leaves_s):
            pieces = rung.slabs.pop(start_s)
            if after is not None:
                for slab in pieces:
                    after.put(start_s, slab)
        if after is not None:
            for start_s in after.starts(left_s - after.step_s, leaves_s - after.step_s):
                if len(after.slabs[start_s]) > 1:
                    after.slabs[start_s] = [_joined(after.slabs[start_s])]


def _chains(windows_s: Sequence[int], tick_s: int) -> list[list[_Rung]]:
    """The windows by chain and rung, each ring by its number."""
    chains: list[list[_Rung]] = []
    for ring, window_s in enumerate(windows_s):
        step_s = step_of(window_s, tick_s)
        rung = chains[-1][-1] if chains else None
        if rung is None or window_s - rung.longest_s < step_s - rung.step_s:
            chains.append([])
        if rung is None or not chains[-1] or rung.step_s != step_s:
            chains[-1].append(_Rung(step_s))
        chains[-1][-1].windows.append((window_s, ring))
    return chains


def _rings_within(chain: Sequence[_Rung]) -> Iterator[tuple[int, slice]]:
    """Each window of a chain, and the rings that add up to it."""
    first = chain[0].windows[0][1]
    return ((window_s, slice(first, ring + 1)) for rung in chain for window_s, ring in rung.windows)


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


def _slab(cells: Counts, counts: Counts) -> Slab:
    """The counts in the narrowest types that hold them."""
    return Slab(cells.astype(np.uint32), counts.astype(np.min_scalar_type(int(counts.max()))))


def _summed(cells: Counts, counts: Counts) -> Slab:
    """Counts of equal cells added."""
    first = int(cells.min())
    if cells.size * DENSE > int(cells.max()) - first:
        # Cells that lie close together are counted rather than sorted; sums below 2^53 are exact in a double.
        sums = np.bincount(cells - first, weights=counts)
        used = np.flatnonzero(sums != 0)
        return _slab(used + first, sums[used].astype(np.int64))
    order = np.argsort(cells, kind="stable")
    cells = cells[order]
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    return _slab(cells[starts], np.add.reduceat(counts[order], starts))


def _joined(pieces: Sequence[Slab]) -> Slab:
    """All that the pieces hold, as one."""
    first, last = min(int(piece.cells.min()) for piece in pieces), max(int(piece.cells.max()) for piece in pieces)
    if sum(piece.cells.size for piece in pieces) * DENSE <= last - first:
        cells = np.concatenate([piece.cells for piece in pieces]).astype(np.int64)
        return _summed(cells, np.concatenate([piece.counts.astype(np.int64) for piece in pieces]))
    # Cells that lie close together are added up in their places rather than sorted.
    sums = np.zeros(last - first + 1, dtype=np.int64)
    for piece in pieces:
        cells, counts = piece.wide
        np.add.at(sums, cells - first, counts)
    used = np.flatnonzero(sums)
    return _slab(used + first, sums[used])
