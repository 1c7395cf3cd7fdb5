"""Coverage: the share of a window from which telemetry of a service is known (DESIGN 5).

A window of ten minutes and more is seen in minutes, a shorter one in ticks. The step that is still running counts
neither way: the window is that many whole steps before it. Steps are kept in a ring that holds the longest window:
each place holds the number of the step last known there, so late data finds its own place and nothing needs clearing.
"""

import numpy as np

from slo.burn import FINE_WINDOW_S
from slo.quantity import MINUTE_S


class _Ring:
    """Known steps of one length, as far back as `span_s`."""

    def __init__(self, step_s: int, span_s: int) -> None:
        self._step_s = step_s
        self._numbers = np.full(span_s // step_s + 2, -1, dtype=np.int64)

    def add(self, at_s: int) -> None:
        number = at_s // self._step_s
        place = number % self._numbers.size
        self._numbers[place] = max(self._numbers[place], number)

    def known(self, first: int, until: int) -> int:
        """How many of the steps numbered `first` to `until` - 1 are known."""
        size = self._numbers.size
        begin, end = first % size, until % size
        whole = until - first >= size
        held = self._numbers if whole or begin >= end else self._numbers[begin:end]
        return int(np.count_nonzero((held >= first) & (held < until)))


class Coverage:
    """What is known of one service.

    `assumed` services (elastic ones, and those that send only when asked) are known from their first moment on:
    their silence says nothing.
    """

    def __init__(self, *, tick_s: int, horizon_s: int) -> None:
        self._tick_s = tick_s
        self._ticks = _Ring(tick_s, FINE_WINDOW_S)
        self._minutes = _Ring(MINUTE_S, horizon_s)
        self.first_s: int | None = None

    def add(self, start_s: int) -> None:
        """Know the tick that starts at `start_s`, and so its minute."""
        self._ticks.add(start_s)
        self._minutes.add(start_s)
        self.first_s = start_s if self.first_s is None else min(self.first_s, start_s)

    def share(self, window_s: int, *, now_s: int, assumed: bool = False) -> float:
        """The coverage of the window that ends now, 0 to 1."""
        if self.first_s is None:
            return 0.0
        fine = window_s < FINE_WINDOW_S
        step_s, ring = (self._tick_s, self._ticks) if fine else (MINUTE_S, self._minutes)
        steps = max(window_s // step_s, 1)
        until = now_s // step_s
        first = until - steps
        known = until - max(self.first_s // step_s, first) if assumed else ring.known(first, until)
        return min(max(known, 0) / steps, 1.0)


def of_series(service: float, *, window_s: int, age_s: int) -> float:
    """A series' coverage: that of its service, and at most its own age over the window."""
    return min(service, max(age_s, 0) / window_s)
