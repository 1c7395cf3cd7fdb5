"""When the timer of a request that has begun is set: at once where a deadline may be near, else a little later.

Whoever is refused, and many a short answer, is over before a timer of seconds is needed, and then it is never set.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from sidecar.judging.deadline_timer import DeadlineTimer, Sleeper

ARM_S = 0.1
ARM_AHEAD = 5
"""Timers are set late only where every deadline is at least so many times as far away: none is missed."""


class Looking(Protocol):
    """Does an act on a request; never raises."""

    def __call__(self, act: Callable[[Sleeper], None], about: Sleeper, /) -> object: ...


class Arming:
    """Requests whose timers have still to be set; those that are no longer `in_flight` by then need none."""

    def __init__(self, timer: DeadlineTimer, *, in_flight: Collection[Sleeper], look: Looking) -> None:
        self._timer, self._in_flight, self._look = timer, in_flight, look
        self._begun: list[Sleeper] = []
        self._is_late = self._is_awaited = False

    def expect(self, soonest_ns: float) -> None:
        """From now on no request has a deadline sooner than so long after it began."""
        self.arm()
        self._is_late = soonest_ns >= ARM_AHEAD * ARM_S * 1e9

    def add(self, sleeper: Sleeper, *, more_follow: bool) -> None:
        """Have a timer set for a request that has just begun, unless `settled` is to be told as `more_follow`."""
        self._begun.append(sleeper)
        if not self._is_late:
            if not more_follow:
                self.arm()
        elif not self._is_awaited:
            self._is_awaited = True
            self._timer.call_later(ARM_S, self.arm)

    def settled(self) -> None:
        """What waited was looked at."""
        if not self._is_late:
            self.arm()

    def arm(self) -> None:
        """Set the timers of all that began and have not ended since."""
        self._is_awaited = False
        begun, self._begun = self._begun, []
        for sleeper in begun:
            if sleeper in self._in_flight:
                self._look(self._timer.set, sleeper)
