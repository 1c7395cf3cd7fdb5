"""The birth-death server of `batching` with a knob: its step is known, and so is the largest batch that keeps it.

With B outstanding a request's mean step is (a + b B) e^(sigma Z), Z normal: the share over a threshold s* is
1 - Phi(ln(s* / (a + b B)) / sigma), so a budget allows B up to (s* e^(-z sigma) - a) / b. The wait of open-loop load is
that of the birth-death process at each batch.
"""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from capacity.batch.fit import Mix
from capacity.batch.search import Outcome, Plan, search
from capacity.batch.trial import Answer, Ask, AskHeld, Held, Opened
from capacity.certify.trial import Goal
from capacity.summary import quantile
from queues.answered import answered
from queues.batching import Batching
from queues.servers import Chance, Run

MIX = Mix(200, 50)
MIXES = {"stated": MIX, "short prompts": Mix(50, 50), "short answers": Mix(200, 25)}


@dataclass(frozen=True, slots=True)
class Tuning:
    """A batching server whose steps scatter by `sigma`, the most it may run, and a rate that is to be served, if one
    is."""

    server: Batching
    sigma: float
    most_batch: int = 256
    rate_rps: float | None = None

    def plan(self, *, most_requests: int) -> Plan:
        wait, step = self.server.goals()
        return Plan(
            (step,),
            (self.server.longest_step_s,),
            (wait,),
            self.server.wait_s + self.server.step_s,
            self.most_batch,
            self.rate_rps,
            most_requests=most_requests,
        )

    @property
    def step_goal(self) -> Goal:
        return self.server.goals()[1]

    def largest(self) -> int:
        """The largest batch whose step keeps its promise."""
        scatter = math.exp(NormalDist().inv_cdf(1 - self.step_goal.budget) * self.sigma)
        exact = (self.server.longest_step_s / scatter - self.server.step_s) / self.server.step_each_s
        return min(max(math.floor(exact + 1e-9), 0), self.most_batch)

    def least(self) -> int | None:
        """The least batch whose wait keeps its promise at the rate to be served; None where no batch does."""
        assert self.rate_rps is not None
        for batch in range(1, self.most_batch + 1):
            server = replace(self.server, batch=batch)
            if server.shares(self.rate_rps)[0] <= server.budgets[0]:
                return batch
        return None


class Knob:
    """Answers a search about one server, from one seed."""

    def __init__(self, bed: Tuning, seed: int) -> None:
        self.requests = 0
        self._bed = bed
        self._seed = seed
        self._runs = 0
        self._going: tuple[tuple[int, float], Run, Opened] | None = None
        self._held: tuple[tuple[int, str], Chance, list[float]] | None = None

    def answer(self, ask: Ask) -> Answer:
        if isinstance(ask, AskHeld):
            return self._hold(ask)
        key = ask.batch, ask.rate_rps
        if self._going is None or self._going[0] != key:
            run = replace(self._bed.server, batch=ask.batch).run(ask.rate_rps, "empty", self._chance())
            next(run)
            self._going = key, run, Opened((np.empty(0, dtype=np.int8),), 0.0)
        _, run, before = self._going
        further = ask.requests - before.bad[0].size
        self.requests += further
        (late, _), seconds, _ = run.send(further)
        seen = Opened((np.concatenate([before.bad[0], late]),), seconds)
        self._going = key, run, seen
        return seen

    def _chance(self) -> Chance:
        self._runs += 1
        return np.random.default_rng([self._seed, self._runs])

    def _hold(self, ask: AskHeld) -> Held:
        bed, server, key = self._bed, self._bed.server, (ask.batch, ask.mix)
        if self._held is None or self._held[0] != key:
            self._held = key, self._chance(), []
        _, chance, steps = self._held
        further = ask.requests - len(steps)
        self.requests += further
        mean_s = server.step_s + server.step_each_s * ask.batch
        steps += (mean_s * np.exp(bed.sigma * chance.standard_normal(further))).tolist()
        bad = (np.array(steps) > server.longest_step_s).astype(np.int8)
        tail = quantile(sorted(steps), 1 - bed.step_goal.budget)
        mix = MIXES[ask.mix]
        rate = ask.batch / (server.steps * mean_s) * MIX.tokens_out / mix.tokens_out
        return Held(mix, sum(steps) / len(steps), (tail,), (bad,), rate, ask.requests / rate)


def tuned(bed: Tuning, seed: int, *, most_requests: int) -> tuple[Outcome, int]:
    """What the search says of a server, and how many requests that took."""
    knob = Knob(bed, seed)
    return answered(search(bed.plan(most_requests=most_requests)), knob.answer), knob.requests
