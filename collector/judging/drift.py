"""Drift: a latency that became another one, seen before the budget feels it (DESIGN 4.4, 4.6).

One `Detector` watches one latency (a quantile of one service, model, signal and source), a value a minute. What is
usual at that time of day is taken off its logarithm, and the rest is divided by how far it usually scatters (`usual`).
What is left, z, feeds two one-sided CUSUMs (Page 1954): up = max(0, up + z - K), and down likewise. K = 0.5 makes them
quickest for a shift of one spread. H = 10 gives a false alarm in some two months; the time to one grows with e^(2KH),
so ln(n) more keeps it there for n latencies together. z is cut at `CLIP`, so that no lone minute, however wild, reaches
the limit. A drift is told when a sum stands above the limit for `CONFIRMED` minutes, the median shift since the level
changed is at least `EFFECT`, and at least `MIN_COUNT` requests stand behind that.

The baseline learns from quiet minutes only: not while an objective on the latency burns (an incident is no new normal),
nor while a drift is open. An open drift ends when the level has come back, or after `ACCEPTED_S` as the new normal,
from which everything is learnt anew.

Nothing here reads a clock or a database; minutes may be missing.
"""

import math
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from collector.judging.usual import Baseline, Usual

K, H, CLIP = 0.5, 10.0, 4.0
CONFIRMED = 2
EFFECT = 0.10
MIN_COUNT = 500
BACK = 0.05
"""An open drift of less than this, over `BACK_MINUTES`, has ended."""
BACK_MINUTES = 15
ACCEPTED_S = 86400
GAP_S = 900
"""After a silence of this length a climb begins anew."""
MAX_CLIMB_MINUTES = 1440


@dataclass(frozen=True, slots=True)
class Minute:
    """One observation: the quantile's value, in any unit, as of `at_s`, and how many requests came with that minute.
    `burning` when an objective on the latency burns then."""

    at_s: int
    value: float
    count: int
    burning: bool = False


@dataclass(frozen=True, slots=True)
class Drift:
    """A shift that is there now. `since_s` is when it began, `before` what was usual then, `effect` the relative change
    against what is usual (0.25: a quarter longer) and `count` the requests that it is seen in."""

    since_s: int
    before: float
    effect: float
    count: int

    @property
    def after(self) -> float:
        """What became of `before`."""
        return self.before * (1 + self.effect)


@dataclass(slots=True)
class _Climb:
    """A one-sided sum, with the minutes since it last stood at 0: (moment, residual, requests)."""

    height: float = 0.0
    over: int = 0
    minutes: list[tuple[int, float, int]] = field(default_factory=list)

    def step(self, z: float, minute: tuple[int, float, int], *, limit: float) -> None:
        self.height = max(0.0, self.height + z - K)
        self.over = self.over + 1 if self.height > limit else 0
        if self.height == 0.0:
            self.minutes.clear()
        elif len(self.minutes) < MAX_CLIMB_MINUTES:
            self.minutes.append(minute)


class Detector:
    """The watch over one latency, one of `series` that are watched together; `phase_s` as `Baseline` has it."""

    def __init__(self, *, series: int = 1, phase_s: int = 0) -> None:
        self.drift: Drift | None = None
        self._limit = H + math.log(series)
        self._phase_s = phase_s
        self._baseline = Baseline(phase_s=phase_s)
        self._up, self._down = _Climb(), _Climb()
        self._after: deque[float] = deque(maxlen=BACK_MINUTES)
        self._last_s = 0

    def learn(self, minute: Minute) -> None:
        """Take a minute of the past as usual unless it burned, without judging it."""
        if minute.value > 0 and not minute.burning:
            self._baseline.learn(minute.at_s, math.log(minute.value))

    def resume(self, drift: Drift) -> None:
        """Go on with a drift that was open."""
        self.drift = drift

    def watch(self, minute: Minute) -> Drift | None:
        """Judge the next minute; the drift that is open after it. One without a value, or not later, says nothing."""
        if minute.value <= 0 or minute.count <= 0 or minute.at_s <= self._last_s:
            return self.drift
        if minute.at_s - self._last_s > GAP_S:
            self._up, self._down = _Climb(), _Climb()
        self._last_s = minute.at_s
        value, usual = math.log(minute.value), self._baseline.usual(minute.at_s)
        if usual is not None:
            self._judge(minute, value - usual.at(minute.at_s), usual)
        if self.drift is None and not minute.burning:
            self._baseline.learn(minute.at_s, value)
        return self.drift

    def _judge(self, minute: Minute, residual: float, usual: Usual) -> None:
        if self.drift is not None:
            self.drift = self._followed(self.drift, minute, residual)
            return
        z = max(-CLIP, min(CLIP, residual / usual.spread))
        for climb, step in ((self._up, z), (self._down, -z)):
            climb.step(step, (minute.at_s, residual, minute.count), limit=self._limit)
            if climb.over >= CONFIRMED and self.drift is None:
                self.drift = _found(climb.minutes, usual)

    def _followed(self, drift: Drift, minute: Minute, residual: float) -> Drift | None:
        """What became of an open drift; None once it has ended."""
        self._after.append(residual)
        effect = drift.effect
        if len(self._after) == BACK_MINUTES:
            effect = math.expm1(float(np.median(self._after)))
        accepted = minute.at_s - drift.since_s >= ACCEPTED_S
        if not accepted and abs(effect) >= BACK:
            return replace(drift, effect=effect, count=drift.count + minute.count)
        if accepted:
            self._baseline = Baseline(phase_s=self._phase_s)
        self._up, self._down = _Climb(), _Climb()
        self._after.clear()
        return None


def _found(minutes: list[tuple[int, float, int]], usual: Usual) -> Drift | None:
    """The shift that a climb ends with; None while it is too small, or seen in too few requests.

    A climb may have begun before the shift, by chance. The shift begins where what lies behind is furthest from what is
    usual for its length: the likeliest moment of a change of level."""
    moments_s, residuals, counts = zip(*minutes, strict=True)
    behind = np.cumsum(residuals[::-1])[::-1]
    first = int(np.argmax(np.abs(behind) / np.sqrt(np.arange(len(minutes), 0, -1))))
    effect, count = math.expm1(float(np.median(residuals[first:]))), sum(counts[first:])
    if abs(effect) < EFFECT or count < MIN_COUNT:
        return None
    return Drift(moments_s[first], math.exp(usual.at(moments_s[first])), effect, count)
