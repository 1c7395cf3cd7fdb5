"""How long a step takes, by what is in it: s = a + b B + c K + d P, least squares, no term below zero.

B sequences run, K tokens are held in the cache by all of them, and P prompt tokens are processed a step on average.
Under one workload K and P grow in step with B, so that only their sum shows: what it takes per sequence of that
workload. Runs with shorter prompts and shorter answers tell the terms apart. Errors of measurement are taken as a part
of the value, so each point counts by 1/s^2. Units: seconds, tokens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

NO_BETTER = 1e-12
"""A further term must explain more than this part of a point's squared value."""
TERMS = ("a", "b", "c", "d")


@dataclass(frozen=True, slots=True)
class Mix:
    """Mean tokens of a workload's prompts and answers."""

    tokens_in: float
    tokens_out: float

    @property
    def held(self) -> float:
        """Tokens a running sequence holds on average, over the steps of its answer."""
        return self.tokens_in + self.tokens_out / 2

    @property
    def prompt_each(self) -> float:
        """Prompt tokens a step brings for each sequence that runs: one prompt in as many steps as an answer takes."""
        return self.tokens_in / self.tokens_out


ALONE = Mix(0.0, 1.0)
"""The mix of steps of which no lengths are known: all terms but the batch's own are left out."""


@dataclass(frozen=True, slots=True)
class Point:
    """A mean step measured with `batch` sequences of a mix running; a fraction where they came and went."""

    batch: float
    mix: Mix
    step_s: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The terms in seconds: a step's own, each sequence's, each cached token's and each prompt token's."""

    a: float
    b: float
    c: float
    d: float
    points: tuple[Point, ...]

    def step_s(self, batch: float, mix: Mix) -> float:
        return self.a + self.each_s(mix) * batch

    def each_s(self, mix: Mix) -> float:
        """What one more sequence of this mix adds to a step."""
        return self.b + self.c * mix.held + self.d * mix.prompt_each

    def largest(self, step_s: float, mix: Mix) -> float:
        """The largest batch, a fraction, whose step takes at most so long; infinite where none adds to a step."""
        each_s = self.each_s(mix)
        if each_s > 0:
            return max((step_s - self.a) / each_s, 0.0)
        return math.inf if step_s >= self.a else 0.0

    @property
    def residuals(self) -> tuple[float, ...]:
        """How far each point is from the fit, as a part of the fit."""
        return tuple(point.step_s / max(self.step_s(point.batch, point.mix), 1e-12) - 1 for point in self.points)

    @property
    def r_squared(self) -> float | None:
        """The part of the steps' variance that the fit explains; None where they do not vary."""
        steps = [point.step_s for point in self.points]
        mean = sum(steps) / len(steps)
        whole = sum((step - mean) ** 2 for step in steps)
        left = sum((point.step_s - self.step_s(point.batch, point.mix)) ** 2 for point in self.points)
        return 1 - left / whole if whole else None

    def largest_residual(self) -> float:
        return max(abs(residual) for residual in self.residuals)


def fit(points: Sequence[Point]) -> Fit:
    """The fit of at least one point. What the points cannot tell apart is given to the term that stands first."""
    assert points
    steps = np.array([point.step_s for point in points])
    rows = np.array(
        [[1.0, p.batch, p.batch * p.mix.held, p.batch * p.mix.prompt_each] for p in points]
    )  # (points, terms)
    weighted, ones = rows / steps[:, None], np.ones(len(points))
    least, best = math.inf, [0.0] * len(TERMS)
    for count in range(1, len(TERMS) + 1):
        for chosen in combinations(range(len(TERMS)), count):
            part = weighted[:, chosen]
            scale = np.abs(part).max(axis=0)
            if not scale.all() or np.linalg.matrix_rank(part / scale) < count:
                continue
            found, *_ = np.linalg.lstsq(part, ones, rcond=None)
            if (found < 0).any():
                continue
            left = float(((part @ found - ones) ** 2).sum())
            if left < least - NO_BETTER * len(points):
                terms = dict(zip(chosen, found.tolist(), strict=True))
                least, best = left, [terms.get(place, 0.0) for place in range(len(TERMS))]
    a, b, c, d = best
    return Fit(a, b, c, d, tuple(points))
