"""A batching server as a birth-death process: the more sequences run, the longer a step takes.

With n sequences running a step takes s(n) = a + b n, and each ends after a geometric number of steps, of mean m:
taken as exponential, n sequences end at rate mu_n = n / (m s(n)). At most B run; others wait, first come first served.
Two promises: a wait of at most t before the first token, and a step of at most s* when a request is admitted. An
arrival sees n with the stationary chance p_n (PASTA), p_n / p_(n-1) = x / mu_n, geometric with r = x / mu_B from B on.
So the wait exceeds t with chance p_B / (1 - r) e^-(mu_B - x) t, and the step is too long where an arrival finds at
least as many as may run within s*.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from capacity.certify.evidence import Series
from capacity.certify.trial import Ceiling, Goal, Start
from queues.servers import OVERLOAD, Chance, Run, highest

FLOODED = 5000
DRAWN = 8192
UNJUDGED = -1


@dataclass(frozen=True, slots=True)
class Batching:
    """Times in seconds; `budgets` of the wait and of the step."""

    batch: int
    steps: float
    step_s: float
    step_each_s: float
    wait_s: float
    longest_step_s: float
    budgets: tuple[float, float]

    @property
    def alone_s(self) -> float:
        return self.steps * (self.step_s + self.step_each_s)

    def goals(self) -> tuple[Goal, ...]:
        return Goal("ttft", self.budgets[0]), Goal("tpot", self.budgets[1])

    def ends_per_s(self, running: int) -> float:
        """Sequences that end in a second while so many run."""
        return running / (self.steps * (self.step_s + self.step_each_s * running))

    @property
    def most_running(self) -> int:
        """The most sequences whose step is within its promise."""
        return math.floor((self.longest_step_s - self.step_s) / self.step_each_s + 1e-9)

    def truth(self) -> float:
        def keeps(rate: float) -> bool:
            return all(share <= budget for share, budget in zip(self.shares(rate), self.budgets, strict=True))

        return highest(keeps, self.ends_per_s(self.batch))

    def shares(self, rate: float) -> tuple[float, ...]:
        full = self.ends_per_s(self.batch)
        if rate >= full:
            return 1.0, 1.0
        weights = [1.0]
        for running in range(1, self.batch + 1):
            weights.append(weights[-1] * rate / self.ends_per_s(running))
        tail = weights[-1] / (1 - rate / full)
        whole = sum(weights[:-1]) + tail
        over = tail + sum(weights[self.most_running : -1]) if self.most_running < self.batch else 0.0
        return tail / whole * math.exp(-(full - rate) * self.wait_s), over / whole

    def alone(self, requests: int, chance: Chance) -> tuple[Series, ...]:  # noqa: ARG002  all are alike
        good = np.zeros(requests, dtype=np.int8)
        return good, good if self.most_running >= 1 else 1 - good

    def ceiling(self, chance: Chance) -> Ceiling:
        rate = self.ends_per_s(self.batch) * FLOODED / chance.gamma(FLOODED)
        return Ceiling(rate, rate / math.sqrt(FLOODED), self.batch)

    def run(self, rate: float, start: Start, chance: Chance) -> Run:
        waiting: deque[tuple[int, float]] = deque()
        running, now, stayed, most = 0, 0.0, 0.0, self.most_running
        if start == "overload":
            running = self.batch
            waiting.extend((UNJUDGED, 0.0) for _ in range(math.ceil((OVERLOAD - 1) * self.batch)))
        leaves = [self.ends_per_s(n) for n in range(self.batch + 1)]
        events = _events(chance)
        late, slow = bytearray(), bytearray()
        further = yield (), 0.0, 0.0
        while True:
            first, due, unanswered = len(late), len(late) + further, 0
            arrived = first
            late.extend(bytes(further))
            slow.extend(bytes(further))
            # A request is judged when it is admitted, so load goes on until the last of this answer is.
            while arrived < due or unanswered:
                gap, kind = next(events)
                total = rate + leaves[running]
                now += gap / total
                stayed += gap / total * (running + len(waiting))
                if kind * total < rate:
                    place = arrived if arrived < due else UNJUDGED
                    arrived += 1
                    if running < self.batch:
                        running += 1
                        if place != UNJUDGED and running > most:
                            slow[place] = 1
                    else:
                        waiting.append((place, now))
                        unanswered += place != UNJUDGED
                elif waiting:
                    place, since = waiting.popleft()
                    if place != UNJUDGED:
                        unanswered -= 1
                        late[place] = now - since > self.wait_s
                        slow[place] = self.batch > most
                else:
                    running -= 1
            further = yield (
                tuple(np.frombuffer(bytes(bad[first:due]), dtype=np.int8) for bad in (late, slow)),
                now,
                stayed,
            )


def _events(chance: Chance) -> Iterator[tuple[float, float]]:
    """Gaps of mean 1, each with an even number from 0 to 1."""
    while True:
        yield from zip(chance.exponential(size=DRAWN).tolist(), chance.random(DRAWN).tolist(), strict=True)
