"""What is usual of a latency at a time of day, and how it scatters: what a drift is measured against.

Learnt from logarithms, so that seconds and milliseconds give the same answer, of minutes that were quiet. Three things
are known of them:

- *Season*. The level of each half hour is the median of that half hour's medians over the days known, and between the
  middles of two half hours it is a straight line; one level for all of the day while less than `SEASON_DAYS` are known.
- *Noise*. The spread of what is left is 1.4826 times its median absolute deviation: outliers do not count.
- *Memory*. Minutes resemble their neighbours, the more so as a window of five minutes shares four of them with the
  next. The mean of n such residuals is as uncertain as that of n/m independent ones, where m is 1 plus twice the sum of
  their correlations at lags up to `MEMORY_MINUTES`, each weighed less the longer it is (Newey and West 1987). So the
  spread is widened by sqrt(m).

Nothing here reads a clock; minutes may be missing.
"""

import math
from array import array
from collections import deque
from dataclasses import dataclass

import numpy as np

from collector.values.histogram import Floats
from slo.quantity import DAY_S, MINUTE_S

SLOT_S = 1800
SLOTS = DAY_S // SLOT_S
SEASON_DAYS = 3
DAYS_KEPT = 14
RECENT_MINUTES = 1440
"""Of the last day; the spread is learnt from these."""
WARM_S, WARM_MINUTES = DAY_S, 300
"""Nothing is usual before a day is known, or the hours of one would look like drift; and enough minutes in it."""
MEMORY_MINUTES = 20
MIN_SPREAD = 0.01
"""Below 1 % the histogram's own error is what varies."""
_SIGMAS = 1.4826
_CUT = 3.0


@dataclass(frozen=True, slots=True)
class Usual:
    """The usual logarithm of each minute of the day, and how residuals scatter around it."""

    levels: Floats  # (minutes of a day)
    spread: float

    def at(self, at_s: int) -> float:
        """The usual logarithm at a moment."""
        return float(self.levels[at_s % DAY_S // MINUTE_S])


class Baseline:
    """What is known of one latency. `phase_s` spreads the work of many over the half hour after which each of them is
    learnt anew."""

    def __init__(self, *, phase_s: int = 0) -> None:
        self._phase_s = phase_s
        self._first_s: int | None = None
        self._days: dict[int, deque[float]] = {}  # medians of each half hour of the latest days
        self._slot = 0
        self._values = array("d")  # of the half hour that runs
        self._recent_s, self._recent = array("q"), array("d")
        self._turn = 0
        self._usual: Usual | None = None

    def learn(self, at_s: int, value: float) -> None:
        """Take in the logarithm of a quiet minute; minutes come in order."""
        self._first_s = at_s if self._first_s is None else self._first_s
        if at_s // SLOT_S != self._slot:
            self._close_slot()
            self._slot = at_s // SLOT_S
        self._values.append(value)
        self._recent_s.append(at_s)
        self._recent.append(value)
        if len(self._recent) >= 2 * RECENT_MINUTES:
            del self._recent_s[:-RECENT_MINUTES], self._recent[:-RECENT_MINUTES]

    def usual(self, at_s: int) -> Usual | None:
        """What is usual as of a moment, found anew each half hour; None until a day is known."""
        turn = (at_s + self._phase_s) // SLOT_S
        if turn != self._turn:
            self._turn = turn
            self._usual = self._found(at_s)
        return self._usual

    def _close_slot(self) -> None:
        if self._values:
            of_day = self._days.setdefault(self._slot % SLOTS, deque(maxlen=DAYS_KEPT))
            of_day.append(float(np.median(self._values)))
            del self._values[:]

    def _found(self, at_s: int) -> Usual | None:
        if self._first_s is None or at_s - self._first_s < WARM_S:
            return None
        minutes_s, values = np.array(self._recent_s[-RECENT_MINUTES:]), np.array(self._recent[-RECENT_MINUTES:])
        of_last_day = minutes_s > at_s - DAY_S - SLOT_S
        minutes_s, values = minutes_s[of_last_day], values[of_last_day]
        if values.size < WARM_MINUTES:
            return self._usual
        levels = np.full(DAY_S // MINUTE_S, np.median(values))
        if all(len(self._days.get(number, ())) >= SEASON_DAYS for number in range(SLOTS)):
            levels = _season([float(np.median(self._days[number])) for number in range(SLOTS)])
        return Usual(levels, _spread(values - levels[minutes_s % DAY_S // MINUTE_S]))


def _season(medians: list[float]) -> Floats:
    """The level of each minute of the day, from that of each half hour."""
    middles_s = np.arange(SLOTS) * SLOT_S + SLOT_S / 2
    season: Floats = np.interp(np.arange(0, DAY_S, MINUTE_S), middles_s, medians, period=DAY_S)
    return season


def _spread(residuals: Floats) -> float:
    """The scale of residuals that resemble their neighbours."""
    off = residuals - np.median(residuals)
    scale = max(_SIGMAS * float(np.median(np.abs(off))), MIN_SPREAD)
    cut = np.clip(off / scale, -_CUT, _CUT)
    power = float(cut @ cut)
    if not power:
        return scale
    lags = range(1, MEMORY_MINUTES + 1)
    shared = sum((1 - lag / (MEMORY_MINUTES + 1)) * float(cut[:-lag] @ cut[lag:]) for lag in lags) / power
    return scale * math.sqrt(max(1 + 2 * shared, 1.0))
