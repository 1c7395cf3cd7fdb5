"""A fast server that stands still from time to time: for D seconds in every P, at a phase that nobody knows.

Otherwise it takes a fixed short time each, 1/mu, first come first served. The wait that an arrival would find jumps up
by D when a freeze begins and then falls by 1 - r a second, r = x/mu, on the average of what arrives meanwhile. It
begins at the mean wait of M/D/1, w = r / (2 mu (1 - r)), falls to t without a step in (D + w - t) / (1 - r) seconds,
and is above t for w / (1 - r) more, rising again by chance: a share of (D - t + 2 w) / (P (1 - r)).

A client that asks again only when it is answered asks hardly ever during a freeze and sees one bad request where users
see hundreds. This one counts from when each request was due.
"""

from dataclasses import dataclass

import numpy as np

from capacity.certify.evidence import Series
from capacity.certify.trial import Ceiling, Goal, Start
from queues.servers import OVERLOAD, Chance, Floats, Run, highest


@dataclass(frozen=True, slots=True)
class Freeze:
    """Times in seconds; `rate` is mu, the answers a second between freezes. A freeze is longer than the threshold."""

    rate: float
    period_s: float
    freeze_s: float
    threshold_s: float
    budget: float

    @property
    def alone_s(self) -> float:
        return 1 / self.rate

    def goals(self) -> tuple[Goal, ...]:
        return (Goal("ttft", self.budget),)

    @property
    def _ceiling(self) -> float:
        return self.rate * (1 - self.freeze_s / self.period_s)

    def truth(self) -> float:
        return highest(lambda rate: self.shares(rate)[0] <= self.budget, self._ceiling)

    def shares(self, rate: float) -> tuple[float, ...]:
        if rate >= self._ceiling:
            return (1.0,)
        load = rate / self.rate
        wait_s = load / (2 * self.rate * (1 - load))
        return ((self.freeze_s - self.threshold_s + 2 * wait_s) / (self.period_s * (1 - load)),)

    def alone(self, requests: int, chance: Chance) -> tuple[Series, ...]:
        """Each is sent when the one before it is answered: a freeze hits one of them."""
        phase = chance.random() * self.period_s
        now = np.arange(requests) / self.rate
        frozen = np.diff(np.floor((now + phase) / self.period_s), prepend=0.0) > 0
        return ((frozen).astype(np.int8),)

    def ceiling(self, chance: Chance) -> Ceiling:  # noqa: ARG002  a fixed time each
        return Ceiling(self._ceiling, 0.0, 1)

    def run(self, rate: float, start: Start, chance: Chance) -> Run:
        phase = chance.random() * self.period_s
        now = stayed = free = 0.0
        if start == "overload":
            free = float(self._worked(np.array(phase))) + OVERLOAD * self.freeze_s
        further = yield (), 0.0, 0.0
        while True:
            due = now + np.cumsum(chance.exponential(1 / rate, further))
            now = float(due[-1])
            worked = self._worked(due + phase)
            index = np.arange(1, further + 1)
            ends = np.maximum.accumulate(np.maximum(worked - (index - 1) / self.rate, free)) + index / self.rate
            free = float(ends[-1])
            waits = self._moment(ends - 1 / self.rate) - (due + phase)
            stayed += float(waits.sum()) + further / self.rate
            further = yield ((waits > self.threshold_s).astype(np.int8),), now, stayed

    def _worked(self, at: Floats) -> Floats:
        """How long the server has worked by these moments: each period begins with a freeze."""
        periods, inside = np.divmod(at, self.period_s)
        return periods * (self.period_s - self.freeze_s) + np.maximum(inside - self.freeze_s, 0.0)

    def _moment(self, worked: Floats) -> Floats:
        """The moments by which the server has worked so long."""
        periods, inside = np.divmod(worked, self.period_s - self.freeze_s)
        return periods * self.period_s + inside + self.freeze_s
