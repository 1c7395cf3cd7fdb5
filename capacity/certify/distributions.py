"""The two distributions that a verdict rests on: beta, for shares counted exactly, and Student's, for means of blocks.

Both come from the regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22) evaluated
from the front with the method of Lentz. Parameters may be fractions: an effective number of requests is one.
"""

import math
from collections.abc import Callable

TINY = 1e-300
PRECISION = 1e-14
MAX_TERMS = 20_000
"""The fraction converges in about sqrt(max(a, b)) terms, so this is enough for counts up to some hundred millions."""
MAX_HALVINGS = 80


def beta_cdf(x: float, a: float, b: float) -> float:
    """I_x(a, b): the chance of a beta variable with a, b > 0 to be at most x."""
    assert a > 0
    assert b > 0
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    # The fraction converges fast below the mean only; above it the mirror image does.
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return min(math.exp(front) * _fraction(x, a, b) / a, 1.0)


def _fraction(x: float, a: float, b: float) -> float:
    """The value of the continued fraction 1/(1 + d_1/(1 + d_2/(1 + ...)))."""
    numerator, denominator = 1.0, _kept_from_zero(1 - (a + b) * x / (a + 1))
    value = inverse = 1 / denominator
    for m in range(1, MAX_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            inverse = 1 / _kept_from_zero(1 + term * inverse)
            numerator = _kept_from_zero(1 + term / numerator)
            value *= numerator * inverse
        if abs(numerator * inverse - 1) < PRECISION:
            return value
    return value


def _kept_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def student_above(t: float, degrees: float) -> float:
    """The chance of Student's variable to exceed t."""
    half = beta_cdf(degrees / (degrees + t * t), degrees / 2, 0.5) / 2
    return half if t >= 0 else 1 - half


def few_or_less(seen: float, of: float, share: float) -> float:
    """The chance to see at most `seen` of `of`, each with chance `share`: the binomial, exact for whole numbers."""
    return 1.0 if seen >= of else 1 - beta_cdf(share, seen + 1, of - seen)


def many_or_more(seen: float, of: float, share: float) -> float:
    """The chance to see at least `seen` of `of`, each with chance `share`."""
    return 1.0 if seen <= 0 else beta_cdf(share, seen, of - seen + 1)


def least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least number from `low` to `high` for which something holds that holds for all above it."""
    for _ in range(MAX_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
        if high - low <= 1e-9 * max(abs(high), 1e-9):
            break
    return high
