"""Requests, as they came, through the places of a number of replicas: first come, first served, one queue before all.

One queue is what a balancer comes near that sends each request where there is room. What is asked of a replay is how
many requests waited longer than each objective allows.
"""

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CHUNK = 20_000


def waits(times_s: Floats, stays_s: Floats, places: int) -> Floats:
    """How long each request waits for one of the places, which it holds for its stay."""
    found, free = np.empty(times_s.size), _Places(min(places, times_s.size))
    for begin in range(0, times_s.size, CHUNK):
        part = slice(begin, begin + CHUNK)
        found[part] = free.take(times_s[part], stays_s[part])
    return found


def late_shares(times_s: Floats, stays_s: Floats, places: int, allowed_s: Sequence[float]) -> tuple[float, ...]:
    """The share of requests that wait longer than each of the times."""
    waited = waits(times_s, stays_s, places)
    return tuple(float(np.count_nonzero(waited > one)) / times_s.size for one in allowed_s)


def is_kept(times_s: Floats, stays_s: Floats, places: int, allowed: Sequence[tuple[float, float]]) -> bool:
    """Whether, of each (wait, budget), no more than the budget of all requests waits longer; stops when that is
    clear."""
    free = _Places(min(places, times_s.size))
    late = [0] * len(allowed)
    for begin in range(0, times_s.size, CHUNK):
        part = slice(begin, begin + CHUNK)
        waited = free.take(times_s[part], stays_s[part])
        for place, (wait_s, budget) in enumerate(allowed):
            late[place] += int(np.count_nonzero(waited > wait_s))
            if late[place] > budget * times_s.size:
                return False
    return True


class _Places:
    """When each place is free."""

    def __init__(self, places: int) -> None:
        assert places > 0
        self._free = [0.0] * places

    def take(self, times_s: Floats, stays_s: Floats) -> Floats:
        """The waits of further requests."""
        free, replace = self._free, heapq.heapreplace
        found = []
        for at_s, stay_s in zip(times_s.tolist(), stays_s.tolist(), strict=True):
            begins_s = free[0]
            if begins_s <= at_s:
                replace(free, at_s + stay_s)
                found.append(0.0)
            else:
                replace(free, begins_s + stay_s)
                found.append(begins_s - at_s)
        return np.array(found)
