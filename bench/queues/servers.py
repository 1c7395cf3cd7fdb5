"""What every simulated server has in common: it answers the search's questions as a real one would.

A server says how requests fare alone, at which rate it empties under flood, and begins runs. A run is told how many
more requests to simulate and goes on from where it was, so a longer answer always begins with the shorter one.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from capacity.certify.evidence import Series
from capacity.certify.judge import Rigour
from capacity.certify.search import Outcome, search
from capacity.certify.trial import Answer, Ask, AskAlone, AskFlood, Ceiling, Goal, Seen, Start
from queues.answered import answered

Chance = np.random.Generator
Floats = NDArray[np.float64]
Heard = tuple[tuple[Series, ...], float, float]
"""Series of the further requests, one for each goal, the time of the run so far, and the sum of all times in the system
so far."""
Run = Generator[Heard, int, None]
"""Told how many further requests to simulate; begun with next()."""
OVERLOAD = 1.5


class Server(Protocol):
    """A simulated server. Rates are requests a unit of time."""

    @property
    def alone_s(self) -> float:
        """How long a request takes that is alone, on average."""
        ...

    def goals(self) -> tuple[Goal, ...]: ...

    def truth(self) -> float:
        """The highest rate that keeps every goal; 0 where none does."""
        ...

    def shares(self, rate: float) -> tuple[float, ...]:
        """The true share of bad requests for each goal."""
        ...

    def alone(self, requests: int, chance: Chance) -> tuple[Series, ...]: ...

    def ceiling(self, chance: Chance) -> Ceiling: ...

    def run(self, rate: float, start: Start, chance: Chance) -> Run: ...


@dataclass(slots=True)
class _Going:
    """The run that goes on now."""

    number: int
    run: Run
    series: tuple[Series, ...]
    seconds: float
    stayed: float


class World:
    """Answers a search about one server, from one seed."""

    def __init__(self, server: Server, seed: int) -> None:
        self.requests = 0
        self._server = server
        self._seed = seed
        self._going: _Going | None = None

    def answer(self, ask: Ask) -> Answer:
        if isinstance(ask, AskFlood):
            return self._server.ceiling(np.random.default_rng([self._seed, 0]))
        if isinstance(ask, AskAlone):
            bad = self._server.alone(ask.requests, np.random.default_rng([self._seed, 1]))
            return Seen(bad, ask.requests * self._server.alone_s, 1.0)
        going = self._going
        if going is None or going.number != ask.number:
            run = self._server.run(ask.rate_rps, ask.start, np.random.default_rng([self._seed, ask.number + 1]))
            next(run)
            empty = np.empty(0, dtype=np.int8)
            going = self._going = _Going(ask.number, run, tuple(empty for _ in self._server.goals()), 0.0, 0.0)
        further = ask.requests - going.series[0].size
        self.requests += further
        more, going.seconds, going.stayed = going.run.send(further)
        going.series = tuple(np.concatenate(pair) for pair in zip(going.series, more, strict=True))
        return Seen(going.series, going.seconds, going.stayed / going.seconds)


def certified(server: Server, rigour: Rigour, seed: int) -> tuple[Outcome, int]:
    """What the search says of a server, and how many requests that took."""
    world = World(server, seed)
    return answered(search(server.goals(), rigour), world.answer), world.requests


def highest(keeps: Callable[[float], bool], ceiling: float) -> float:
    """The highest rate under the ceiling that keeps, where every lower one does; 0 where none does."""
    low, high = 0.0, ceiling
    if not keeps(ceiling * 1e-6):
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
