"""The search for the largest batch that keeps its promises: a generator that asks for runs and hears what came of them.

    calibrate -> predict -> confirm around it -> open loop -> least batch -> Outcome

Calibrate: batches of 1, 2, 4 ... with exactly as many outstanding, until a step takes longer than promised. The fit of
their steps predicts the largest batch; it is confirmed by probes of it and its neighbours, each gone on with until the
verdict is sure or its requests are spent. A larger batch only moves the wait from the queue into each step, so the
promises of the wait are judged apart: open loop, at the rate that is to be served or at the largest tested part of what
that batch can end. The least batch that keeps them there is the other end of the feasible interval.
No clock, no socket and no chance: the same answers lead to the same questions.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from capacity.batch.fit import Fit, Mix, Point, fit
from capacity.batch.trial import Answer, Ask, AskHeld, AskOpen, Held, MixName, Opened
from capacity.batch.verdict import ERROR, Verdict, verdict
from capacity.batch.waiting import wait_share
from capacity.certify.trial import Goal

LEAST_REQUESTS = 80
ENOUGH_RISE = 1.05
"""Without a promise of the step, calibration ends where twice the batch ends fewer than so many times the requests."""
ROUNDS = 3
"""A run of a batch has at least so many requests for each place in it."""
GUESSED_PROBES, GUESSED_LEAST = 3, 2
MOST_PROBES = 10
MOST_LEAST_PROBES = 7
PARTS = (0.25, 0.4, 0.55, 0.7, 0.8, 0.85)
"""Parts of what a batch can end, the open-loop rates that are tried where none is stated."""
RELAXATIONS = 5
"""An open-loop run keeps a promise only if it lasts so many times what its queue remembers, (1 - x/cap)^-2 requests:
one that begins empty flatters a batch that the rate all but fills."""
NEAR_BEST = 0.99
OTHER_MIXES: tuple[MixName, ...] = ("short prompts", "short answers")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is promised and allowed. `thresholds_s` are those of `held_goals`; `wait_s` is the least of the promises of
    a wait, None where there is none. A run takes from
    `least_seconds` on to about `most_seconds`, where its requests suffice."""

    held_goals: tuple[Goal, ...]
    thresholds_s: tuple[float, ...]
    open_goals: tuple[Goal, ...]
    wait_s: float | None
    most_batch: int
    rate_rps: float | None = None
    least_requests: int = LEAST_REQUESTS
    most_requests: int = 400
    least_seconds: float = 0.0
    most_seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class Probe:
    """One run, judged. `rate_rps`: of an open-loop run as sent, of a full one as ended. `is_too_short`: what it saw was
    kept, but it did not last as long as its queue remembers, so it counts as broken."""

    kind: Literal["held", "open"]
    batch: int
    rate_rps: float
    verdict: Verdict
    seconds: float
    is_client_late: bool
    is_too_short: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the search has found; without `chosen`, `why_not` says why. `tails` are how many times the mean step each
    goal's share of requests stays within."""

    chosen: int | None
    feasible_min: int | None
    feasible_max: int | None
    efficient: int | None
    rate_rps: float | None
    ends_rps: float | None
    predicted: int
    fit: Fit
    tails: tuple[float, ...]
    probes: tuple[Probe, ...]
    why_not: str = ""
    replicas: int | None = None


Search = Generator[Ask, Answer, Outcome]


def search(plan: Plan) -> Search:
    """Ask until the interval is known, or the allowance of probes is spent."""
    assert plan.held_goals or plan.open_goals
    assert plan.most_batch >= 1
    return (yield from _Search(plan).run())


@dataclass(slots=True)
class _Search:
    """A search under way: what was found so far."""

    plan: Plan
    held: dict[int, Held] = field(default_factory=dict)
    points: dict[tuple[int, MixName], Point] = field(default_factory=dict)
    probes: list[Probe] = field(default_factory=list)
    predicted: int = 0
    fitted: Fit | None = None
    """The fit of the points, once it was asked for."""

    def run(self) -> Search:
        yield from self._calibrate()
        self.predicted = min(max(self._predict(), 1), self.plan.most_batch)
        largest = yield from self._largest_held()
        if largest == 0:
            return self._outcome(why_not="even one sequence at a time breaks the promise of the step")
        if not self.plan.open_goals:
            return self._outcome(chosen=largest, least=1, most=largest)
        return (yield from self._open_loop(largest))

    # Calibration.

    def _calibrate(self) -> Generator[Ask, Answer, None]:
        batch, before_rps = 1, 0.0
        while True:
            heard = yield from self._hold(batch, "stated")
            is_over = any(map(float.__gt__, heard.tails, self.plan.thresholds_s))
            has_risen = bool(self.plan.held_goals) or heard.rate_rps >= ENOUGH_RISE * before_rps
            if is_over or not has_risen or batch == self.plan.most_batch:
                break
            batch, before_rps = min(2 * batch, self.plan.most_batch), heard.rate_rps
        for mix in OTHER_MIXES:
            for size in sorted({max(batch // 4, 1), max(batch // 2, 1)}):
                yield from self._hold(size, mix)

    def _hold(self, batch: int, mix: MixName, requests: int = 0) -> Generator[Ask, Answer, Held]:
        heard = yield AskHeld(batch, mix, requests or max(self.plan.least_requests // 2, ROUNDS * batch))
        assert isinstance(heard, Held)
        if mix == "stated":
            self.held[batch] = heard
        self.points[batch, mix] = Point(batch, heard.mix, heard.step_s)
        self.fitted = None
        return heard

    def _fit(self) -> Fit:
        if self.fitted is None:
            self.fitted = fit(tuple(self.points.values()))
        return self.fitted

    @property
    def _mix(self) -> Mix:
        return self.held[1].mix

    def _tails(self) -> tuple[float, ...]:
        """For each goal, how many times the mean step its share of requests stays within."""
        ratios = [[tail / heard.step_s for tail in heard.tails] for heard in self.held.values()]
        return tuple(median(column) for column in zip(*ratios, strict=True))

    def _predict(self) -> int:
        """The largest batch whose step is within every promise, by the fit."""
        if not self.plan.held_goals:
            return max(self.held)
        found = self._fit()
        largest = min(
            found.largest(threshold / tail, self._mix)
            for threshold, tail in zip(self.plan.thresholds_s, self._tails(), strict=True)
        )
        return self.plan.most_batch if largest > self.plan.most_batch else math.floor(largest + 1e-9)

    # The largest batch, with exactly as many outstanding.

    def _largest_held(self) -> Generator[Ask, Answer, int]:
        if not self.plan.held_goals:
            return max(self.held)
        kept, broken = 0, self.plan.most_batch + 1
        for number in range(MOST_PROBES):
            if broken - kept <= 1:
                break
            batch = self._next(kept, broken) if number < GUESSED_PROBES else self._middle(kept, broken)
            judged = yield from self._probe_held(batch)
            kept, broken = (batch, broken) if judged.is_kept else (kept, batch)
        return kept

    def _next(self, kept: int, broken: int) -> int:
        return min(max(self._predict(), kept + 1), broken - 1)

    def _middle(self, kept: int, broken: int) -> int:
        """Between, but not far beyond what has been seen: no more than twice a batch that was not too slow."""
        over = [n for n, heard in self.held.items() if any(map(float.__gt__, heard.tails, self.plan.thresholds_s))]
        high = min([n for n in over if n > kept] + [broken])
        low = max([n for n in self.held if n < high and n not in over] + [kept])
        return min(max(min((low + high) // 2, 2 * low), kept + 1), broken - 1)

    def _probe_held(self, batch: int) -> Generator[Ask, Answer, Verdict]:
        requests = max(self.plan.least_requests, ROUNDS * batch)
        looks = self._looks(requests)
        for look in range(1, looks + 1):
            heard = yield from self._hold(batch, "stated", requests)
            judged = verdict(self.plan.held_goals, heard.bad, ERROR / looks)
            more = self._more(requests, heard.seconds) if look < looks else None
            if (judged.is_sure and heard.seconds >= self.plan.least_seconds) or more is None:
                break
            requests = more
        self.probes.append(Probe("held", batch, heard.rate_rps, judged, heard.seconds, heard.is_client_late))
        return judged

    # Open loop.

    def _open_loop(self, largest: int) -> Search:
        if self.plan.rate_rps is not None:
            return (yield from self._at_rate(largest, self.plan.rate_rps))
        batch = largest
        while batch >= 1:
            carried = yield from self._carried(batch)
            if carried:
                return (yield from self._with_least(batch, largest, carried))
            batch //= 2
        return self._outcome(most=largest, why_not="the promise of the wait is not kept at any rate or batch")

    def _at_rate(self, largest: int, rate_rps: float) -> Search:
        """The outcome at a stated rate, of the largest batch or a half, a quarter ... of it: a smaller one may make
        first tokens come sooner. None is tried at which no run could be long enough to show that it keeps the rate."""
        judged = yield from self._probe_open(largest, rate_rps)
        if judged.is_kept:
            return (yield from self._with_least(largest, largest, rate_rps))
        batch = largest // 2
        while batch >= 1 and self._least_run(batch, rate_rps) <= self.plan.most_requests:
            if (yield from self._probe_open(batch, rate_rps)).is_kept:
                return (yield from self._with_least(batch, largest, rate_rps))
            batch //= 2
        carried = yield from self._carried(largest, below_rps=rate_rps)
        needs = math.ceil(rate_rps / carried) if carried else None
        tried = ", ".join(str(one.batch) for one in self.probes if one.kind == "open" and one.rate_rps == rate_rps)
        why_not = f"{judged.binding} is not kept at {rate_rps:.3g} requests/s by any batch tried ({tried})"
        return self._outcome(most=largest, why_not=why_not, replicas=needs)

    def _carried(self, batch: int, *, below_rps: float = math.inf) -> Generator[Ask, Answer, float]:
        """The highest of the tried rates that keeps the promises of the wait; 0 where none does."""
        rates = [rate for part in PARTS if (rate := part * self._ends_rps(batch)) < below_rps]
        place = max((n for n, rate in enumerate(rates) if self._seems_kept(batch, rate)), default=0)
        kept, broken = -1, len(rates)
        while kept < place < broken:
            judged = yield from self._probe_open(batch, rates[place])
            kept, broken = (place, broken) if judged.is_kept else (kept, place)
            place = place + 1 if judged.is_kept else place - 1
        return rates[kept] if kept >= 0 else 0.0

    def _with_least(self, chosen: int, largest: int, rate_rps: float) -> Search:
        """The outcome of a batch that is kept at a rate, with the least batch that is kept there too."""
        kept, broken = chosen, 0
        for number in range(MOST_LEAST_PROBES):
            if kept - broken <= 1:
                break
            guess = next((n for n in range(1, kept) if self._seems_kept(n, rate_rps)), kept - 1)
            batch = guess if number < GUESSED_LEAST else (kept + broken) // 2
            batch = min(max(batch, broken + 1), kept - 1)
            judged = yield from self._probe_open(batch, rate_rps)
            kept, broken = (batch, broken) if judged.is_kept else (kept, batch)
        return self._outcome(chosen=chosen, least=kept, most=largest, rate_rps=rate_rps)

    def _probe_open(self, batch: int, rate_rps: float) -> Generator[Ask, Answer, Verdict]:
        requests = self.plan.least_requests
        looks = self._looks(requests)
        for look in range(1, looks + 1):
            heard = yield AskOpen(batch, rate_rps, requests)
            assert isinstance(heard, Opened)
            judged = verdict(self.plan.open_goals, heard.bad, ERROR / looks)
            is_enough = requests >= self._least_run(batch, rate_rps) and heard.seconds >= self.plan.least_seconds
            more = self._more(requests, heard.seconds) if look < looks else None
            if (judged.is_sure and (is_enough or not judged.is_kept)) or more is None:
                break
            requests = more
        is_too_short = judged.is_kept and requests < self._least_run(batch, rate_rps)
        if is_too_short:
            judged = replace(judged, is_kept=False, is_sure=False)
        self.probes.append(Probe("open", batch, rate_rps, judged, heard.seconds, heard.is_client_late, is_too_short))
        return judged

    def _looks(self, requests: int) -> int:
        """How often a run that begins with so many requests is judged at most: each look may err."""
        return 1 + max(math.ceil(math.log2(self.plan.most_requests / requests)), 0)

    def _more(self, requests: int, seconds: float) -> int | None:
        """Requests that a run is gone on to: twice as many, as far as its requests and its time go; None at its end."""
        by_time = requests * self.plan.most_seconds / max(seconds, 1e-9)
        more = min(2 * requests, self.plan.most_requests, int(min(by_time, 2 * requests)))
        return more if more > requests else None

    def _least_run(self, batch: int, rate_rps: float) -> float:
        free = 1 - rate_rps / self._ends_rps(batch)
        return RELAXATIONS / (free * free) if free > 0 else math.inf

    def _seems_kept(self, batch: int, rate_rps: float) -> bool:
        if self.plan.wait_s is None:
            return rate_rps < self._ends_rps(batch)
        found, mix = self._fit(), self._mix
        budget = min(goal.budget for goal in self.plan.open_goals)
        steps = batch / (self._ends_rps(batch) * found.step_s(batch, mix))
        wait_s = self.plan.wait_s - found.step_s(batch, mix)
        return wait_share(rate_rps, batch, lambda n: found.step_s(n, mix), steps, wait_s) <= budget

    def _ends_rps(self, batch: int) -> float:
        """How many requests a second a batch ends: by the fit, scaled to what the full server was seen to end."""
        found, mix = self._fit(), self._mix
        scale = median(heard.rate_rps * found.step_s(n, mix) / n for n, heard in self.held.items())
        return scale * batch / found.step_s(batch, mix)

    # The end.

    def _outcome(
        self,
        *,
        chosen: int | None = None,
        least: int | None = None,
        most: int | None = None,
        rate_rps: float | None = None,
        why_not: str = "",
        replicas: int | None = None,
    ) -> Outcome:
        efficient = None
        if chosen is not None and least is not None:
            enough = NEAR_BEST * self._ends_rps(chosen)
            efficient = next(n for n in range(least, chosen + 1) if n == chosen or self._ends_rps(n) >= enough)
        return Outcome(
            chosen=chosen,
            feasible_min=least,
            feasible_max=most,
            efficient=efficient,
            rate_rps=rate_rps,
            ends_rps=None if chosen is None else self._ends_rps(chosen),
            predicted=self.predicted,
            fit=self._fit(),
            tails=self._tails(),
            probes=tuple(self.probes),
            why_not=why_not,
            replicas=replicas,
        )
