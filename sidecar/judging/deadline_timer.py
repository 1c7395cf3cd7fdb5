"""One timer for every deadline: a heap of (time, watch), and the event loop woken for the earliest.

A deadline that moves away (each token moves a stall's) costs nothing: the entry stands, and whoever is woken too
early only says when next. A deadline that comes nearer gets a further entry.
"""

import heapq
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import Protocol

NEVER_NS = 1 << 62
_CANCELLED_NS = -1
_FEW_DEAD = 256


class Sleeper(Protocol):
    """Who is woken; `armed_ns` is the timer's own note of its earliest entry."""

    armed_ns: int

    def next_deadline_ns(self) -> int | None: ...
    def wake(self, now_ns: int) -> None: ...


class DeadlineTimer:
    """Wakes sleepers at their deadlines, never before them, and late only as far as the loop is busy."""

    def __init__(self, loop: AbstractEventLoop, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._loop, self._clock_ns = loop, clock_ns
        self._heap: list[tuple[int, int, Sleeper]] = []
        self._entries = self._dead = 0
        self._timer: TimerHandle | None = None
        self._timer_ns = NEVER_NS

    @property
    def call_later(self) -> Callable[..., TimerHandle]:
        """The loop's own, for what is no deadline."""
        return self._loop.call_later

    def set(self, sleeper: Sleeper) -> None:
        """Wake `sleeper` at the next deadline it names, if no entry stands for that time or earlier."""
        at_ns = sleeper.next_deadline_ns()
        if at_ns is None or at_ns >= sleeper.armed_ns:
            return
        sleeper.armed_ns = at_ns
        self._entries += 1
        heapq.heappush(self._heap, (at_ns, self._entries, sleeper))
        self._arm()

    def cancel(self, sleeper: Sleeper) -> None:
        """Never wake `sleeper` again. Once most entries are dead they are swept, so that memory follows the living."""
        if sleeper.armed_ns != NEVER_NS:
            self._dead += 1
        sleeper.armed_ns = _CANCELLED_NS
        if self._dead > _FEW_DEAD and self._dead * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].armed_ns != _CANCELLED_NS]
            heapq.heapify(self._heap)
            self._dead = 0

    def __len__(self) -> int:
        return len(self._heap)

    def _arm(self) -> None:
        at_ns = self._heap[0][0] if self._heap else NEVER_NS
        if at_ns >= self._timer_ns:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ns = at_ns
        # The loop counts in milliseconds: a little late is right, a little early would wake twice.
        self._timer = self._loop.call_later(max(0.0, (at_ns - self._clock_ns()) / 1e9) + 0.001, self._ring)

    def _ring(self) -> None:
        self._timer, self._timer_ns = None, NEVER_NS
        try:
            self._wake_all(self._clock_ns())
        finally:
            self._arm()  # one that cannot be woken must not let all others sleep for ever

    def _wake_all(self, now_ns: int) -> None:
        while self._heap and self._heap[0][0] <= now_ns:
            at_ns, _, sleeper = heapq.heappop(self._heap)
            if sleeper.armed_ns == _CANCELLED_NS:
                continue
            if sleeper.armed_ns == at_ns:
                sleeper.armed_ns = NEVER_NS
            sleeper.wake(now_ns)
            self.set(sleeper)
