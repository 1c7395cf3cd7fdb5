"""M/M/c: Poisson arrivals, c servers, exponential service of mean 1, first come first served.

A request is bad when its sojourn, wait and service, exceeds a threshold t. With theta = c - x and C the chance to wait
(Erlang's), the share of these is (1 - C) e^-t + C (theta e^-t - e^(-theta t)) / (theta - 1).
"""

import heapq
import math
from dataclasses import dataclass

import numpy as np

from capacity.certify.evidence import Series
from capacity.certify.trial import Ceiling, Goal, Start
from queues.servers import OVERLOAD, Chance, Run, highest

FLOODED = 10_000


def chance_to_wait(servers: int, load: float) -> float:
    """Erlang C for an offered load under the number of servers."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


@dataclass(frozen=True, slots=True)
class Erlang:
    servers: int
    threshold: float
    budget: float

    @property
    def alone_s(self) -> float:
        return 1.0

    def goals(self) -> tuple[Goal, ...]:
        return (Goal("e2e", self.budget),)

    def truth(self) -> float:
        return highest(lambda rate: self.shares(rate)[0] <= self.budget, float(self.servers))

    def shares(self, rate: float) -> tuple[float, ...]:
        if rate >= self.servers:
            return (1.0,)
        waits, t = chance_to_wait(self.servers, rate), self.threshold
        room = self.servers - rate
        if abs(room - 1) < 1e-9:
            room += 2e-9
        late = (room * math.exp(-t) - math.exp(-room * t)) / (room - 1)
        return ((1 - waits) * math.exp(-t) + waits * late,)

    def alone(self, requests: int, chance: Chance) -> tuple[Series, ...]:
        return ((chance.exponential(size=requests) > self.threshold).astype(np.int8),)

    def ceiling(self, chance: Chance) -> Ceiling:
        rate = self.servers * FLOODED / chance.gamma(FLOODED)
        return Ceiling(rate, rate / math.sqrt(FLOODED), self.servers)

    def run(self, rate: float, start: Start, chance: Chance) -> Run:
        free = [0.0] * self.servers
        if start == "overload":
            for service in chance.exponential(size=math.ceil(OVERLOAD * self.servers)).tolist():
                heapq.heapreplace(free, free[0] + service)
        now, stayed, threshold, replace = 0.0, 0.0, self.threshold, heapq.heapreplace
        further = yield (), 0.0, 0.0
        while True:
            gaps, services = chance.exponential(1 / rate, further), chance.exponential(size=further)
            bad = bytearray(further)
            for place, (gap, service) in enumerate(zip(gaps.tolist(), services.tolist(), strict=True)):
                now += gap
                begins = free[0]
                ends = (max(now, begins)) + service
                replace(free, ends)
                stayed += ends - now
                if ends - now > threshold:
                    bad[place] = 1
            further = yield (np.frombuffer(bad, dtype=np.int8),), now, stayed
