"""Simulated servers whose queue is known: requests join the guard, and get their first tokens by the truth."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from sidecar.guarding.queue_guard import Fate, Promise, Queued, QueueGuard, Shedding

Serve = Callable[[Random, int, float], float]
"""Seconds that a request of so many bytes takes which is begun at that time."""


@dataclass(frozen=True)
class Met:
    """One request, and what it met; `waited_s` None: it was refused."""

    queued: Queued
    waited_s: float | None
    fate: Fate | None

    @property
    def at_s(self) -> float:
        return self.queued.at_ns / 1e9


@dataclass(frozen=True)
class Server:
    """Takes `slots` requests at a time in their order; a first token comes `later_s` after its slot is free again."""

    serve: Serve
    slots: int = 1
    later_s: float = 0.0
    size: Callable[[Random], int] = field(default=lambda _: 1000)


def steady(seconds: float) -> Serve:
    return lambda _chance, _size, _at_s: seconds


def chancy(mean_s: float) -> Serve:
    return lambda chance, _size, _at_s: chance.expovariate(1 / mean_s)


def by_size(fixed_s: float, per_byte_s: float) -> Serve:
    return lambda _chance, size, _at_s: fixed_s + per_byte_s * size


def poisson(rate: float, seconds: float, chance: Random) -> Iterable[float]:
    at_s = chance.expovariate(rate)
    while at_s < seconds:
        yield at_s
        at_s += chance.expovariate(rate)


def run(
    guard: QueueGuard, server: Server, times_s: Iterable[float], *, promise: Promise, seed: int = 1
) -> Sequence[Met]:
    """Every request that came, in the order in which it was over."""
    chance, free_s = Random(seed), [0.0] * server.slots
    met: list[Met] = []
    due: list[tuple[float, int, Queued]] = []

    def until(at_s: float) -> None:
        while due and due[0][0] <= at_s:
            token_s, _, queued = heapq.heappop(due)
            fate = guard.first_token(queued, round(token_s * 1e9))
            met.append(Met(queued, token_s - queued.at_ns / 1e9, fate))

    for number, at_s in enumerate(times_s):
        until(at_s)
        queued = guard.join(Queued(server.size(chance), round(at_s * 1e9), promise))
        if not queued.waits:
            met.append(Met(queued, None, guard.leave(queued, queued.at_ns)))
            continue
        begun_s = max(at_s, heapq.heappop(free_s))
        over_s = begun_s + server.serve(chance, queued.size, begun_s)
        heapq.heappush(free_s, over_s)
        heapq.heappush(due, (over_s + server.later_s, number, queued))
    until(float("inf"))
    return met


def overloaded(
    server: Server, mode: Shedding, *, rate: float, seconds: float, promise: Promise, seed: int = 1
) -> Sequence[Met]:
    """Poisson arrivals before a guard that has seen nothing yet; of what they met, the second half."""
    met = run(QueueGuard(mode), server, poisson(rate, seconds, Random(seed)), promise=promise, seed=seed)
    return [one for one in met if one.at_s > seconds / 2]


def waits(met: Iterable[Met]) -> list[float]:
    """Of those that were let through, shortest first."""
    return sorted(one.waited_s for one in met if one.waited_s is not None)


def high(values: Sequence[float], share: float = 0.95) -> float:
    """The quantile of sorted values."""
    return values[min(int(len(values) * share), len(values) - 1)]
