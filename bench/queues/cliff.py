"""A latency cliff: up to a rate almost every request is good, above it most are bad, and nothing tells beforehand.

So does a KV cache that begins to thrash. Bad requests come in clumps of a geometric length: a chain of two states with
the given share of bad ones.
"""

import math
from dataclasses import dataclass

import numpy as np

from capacity.certify.evidence import Series
from capacity.certify.trial import Ceiling, Goal, Start
from queues.servers import Chance, Run

FLOODED = 5000


@dataclass(frozen=True, slots=True)
class Cliff:
    """`edge`: the highest good rate; `clump`: the mean number of bad requests in a row below it."""

    edge: float
    ceiling_rate: float
    below: float
    above: float
    budget: float
    clump: float = 5.0

    @property
    def alone_s(self) -> float:
        return 1 / self.ceiling_rate

    def goals(self) -> tuple[Goal, ...]:
        return (Goal("ttft", self.budget),)

    def truth(self) -> float:
        return self.edge if self.below <= self.budget else 0.0

    def shares(self, rate: float) -> tuple[float, ...]:
        return (self.below if rate <= self.edge else self.above,)

    def alone(self, requests: int, chance: Chance) -> tuple[Series, ...]:
        return (_clumped(self.below, self.clump, requests, chance),)

    def ceiling(self, chance: Chance) -> Ceiling:
        rate = self.ceiling_rate * FLOODED / chance.gamma(FLOODED)
        return Ceiling(rate, rate / math.sqrt(FLOODED), 32)

    def run(self, rate: float, start: Start, chance: Chance) -> Run:  # noqa: ARG002  it forgets its start at once
        now, share = 0.0, self.shares(rate)[0]
        clump = max(self.clump, 1 / (1 - share))
        further = yield (), 0.0, 0.0
        while True:
            now += float(chance.exponential(1 / rate, further).sum())
            further = yield (_clumped(share, clump, further, chance),), now, now * rate / self.ceiling_rate


def _clumped(share: float, clump: float, requests: int, chance: Chance) -> Series:
    """Requests of a two-state chain with this share bad, in clumps of this mean length."""
    good = clump * (1 - share) / share
    starts_bad = chance.random() < share
    lengths = chance.geometric(np.where((np.arange(requests + 1) % 2 == 0) == starts_bad, 1 / clump, min(1 / good, 1)))
    states = (np.arange(requests + 1) % 2 == 0) == starts_bad
    return np.repeat(states, lengths)[:requests].astype(np.int8)
