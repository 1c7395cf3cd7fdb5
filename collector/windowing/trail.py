"""What one counter or gauge did in the last minutes, step by step.

`rolling` knows what its windows hold now. An alert that must stand for minutes before it fires, and one that outlives
its state, ask what a window held at every tick before now as well; so the steps themselves stay here. They are few,
and are added up only when somebody asks: a trail that nobody asks about costs a tick nothing.

A window of w that ends at a moment t holds the steps that start after t - w and not after t.
"""

from array import array
from bisect import bisect_left, bisect_right

import numpy as np

from collector.values.histogram import Counts, Floats


class Trail:
    """One value a step, in order of time. Whole numbers are added up exactly."""

    __slots__ = ("_starts_s", "_values")

    def __init__(self) -> None:
        self._starts_s = array("q")
        self._values = array("d")

    def add(self, start_s: int, value: float) -> None:
        """Count more in a step, of any age."""
        self._values[self._place(start_s)] += value

    def put(self, start_s: int, value: float) -> None:
        """Let a step, of any age, have this value."""
        self._values[self._place(start_s)] = value

    def _place(self, start_s: int) -> int:
        """Where the step stands; it is made, at 0, if it is not there."""
        starts_s = self._starts_s
        place = len(starts_s) if not starts_s or start_s > starts_s[-1] else bisect_left(starts_s, start_s)
        if place == len(starts_s) or starts_s[place] != start_s:
            starts_s.insert(place, start_s)
            self._values.insert(place, 0.0)
        return place

    def forget(self, *, until_s: int) -> bool:
        """Drop the steps up to that moment; whether any is left."""
        gone = bisect_right(self._starts_s, until_s)
        del self._starts_s[:gone], self._values[:gone]
        return bool(self._starts_s)

    def _span(self, window_s: int, at_s: int) -> tuple[int, int]:
        """Between which places the steps of a window stand."""
        return bisect_right(self._starts_s, at_s - window_s), bisect_right(self._starts_s, at_s)

    def steps(self, window_s: int, *, at_s: int) -> tuple[Counts, Floats]:
        """The steps of a window and their values."""
        first, until = self._span(window_s, at_s)
        return np.array(self._starts_s[first:until]), np.array(self._values[first:until])

    def sum(self, window_s: int, *, at_s: int) -> float:
        """The sum of a window."""
        first, until = self._span(window_s, at_s)
        return sum(self._values[first:until])

    def most(self, window_s: int, *, at_s: int) -> float:
        """The largest value of a window; 0 of an empty one."""
        first, until = self._span(window_s, at_s)
        return max(self._values[first:until], default=0.0)

    def sums(self, window_s: int, *, at_s: Counts) -> Floats:
        """The sum of the window that ends at each moment."""
        return self._window_sums(window_s, at_s, np.array(self._values))

    def counts(self, window_s: int, *, at_s: Counts) -> Floats:
        """How many steps the window has that ends at each moment."""
        return self._window_sums(window_s, at_s, np.ones(len(self._values)))

    def values(self, fresh_s: int, *, at_s: Counts) -> Floats:
        """The latest value at each moment; NaN where it is older than `fresh_s`, or there is none yet."""
        starts_s = np.array(self._starts_s)
        places = np.searchsorted(starts_s, at_s, side="right") - 1
        found = np.array(self._values)[places]
        found[(places < 0) | (at_s - starts_s[places] > fresh_s)] = np.nan
        return found

    def slopes(self, window_s: int, *, at_s: Counts) -> Floats:
        """The slope per second of the line of least squares through the window that ends at each moment; NaN where it
        has fewer than two steps."""
        times_s, values = (np.array(self._starts_s) - at_s[-1]).astype(np.float64), np.array(self._values)
        ones = np.ones_like(values)
        weights = (ones, times_s, times_s * times_s, values, times_s * values)
        n, t, tt, v, tv = (self._window_sums(window_s, at_s, column) for column in weights)
        with np.errstate(invalid="ignore"):
            found: Floats = np.where(n >= 2, (n * tv - t * v) / (n * tt - t * t), np.nan)
        return found

    def _window_sums(self, window_s: int, at_s: Counts, column: Floats) -> Floats:
        """What a column of the steps adds up to in each window, from its running sum."""
        starts_s, reached = np.array(self._starts_s), np.concatenate((np.zeros(1), np.cumsum(column)))
        first = np.searchsorted(starts_s, at_s - window_s, side="right")
        until = np.searchsorted(starts_s, at_s, side="right")
        found: Floats = reached[until] - reached[first]
        return found
