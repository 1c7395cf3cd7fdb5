"""How often a burn alert rings for nothing: a service within its promise, whose bad events come at random (DESIGN 5).

Requests come one by one at a steady rate, each bad with the same chance and for itself: the bad and the good events of
a window are then two Poisson numbers, X and G, and a tier's long window burns when X >= m and X > r * (X + G), where r
is the bad share that it needs and m its least bad events; in other words when G <= g(X) = ceil(X * (1 - r) / r) - 1.

An alert starts at an event that makes both windows burn: a bad one that comes, or a good one that leaves a window. An
arrival sees the window as any moment does (PASTA), so each of these is a rate of events times a sum over X. The short
window is taken as a thinned copy of the long one; it burns beyond chance with more than `Tier.chance_events` bad ones
above those that the promise allows, or with `Tier.bad_in_a_row` and no good one. Left out is that the bad events must
lie in two minutes, that a window between the two must burn as well, that an alert lasts until enough good events end
it, and the season of the day: an estimate, a little high, good enough to tell 0.01 from 10.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from slo.burn import Tier

MONTH_S = 30 * 86400
DEVIATIONS = 9
"""What is further from a mean than so many standard deviations is left out of a sum."""
EXACT_UP_TO = 300
"""Above this mean a Poisson number is as good as normal."""
NEGLIGIBLE = 1e-12


@dataclass(frozen=True, slots=True)
class Traffic:
    """Events a second, and the chance of each to be bad."""

    per_s: float
    bad_share: float


def false_alerts(tier: Tier, traffic: Traffic, *, over_s: int = MONTH_S) -> float:
    """Expected number of times that the tier starts to fire for nothing, in `over_s` seconds; infinite where so much is
    bad that it should fire."""
    if traffic.bad_share >= tier.bad_share_needed:
        return math.inf
    bad_per_s, good_per_s = traffic.per_s * traffic.bad_share, traffic.per_s * (1 - traffic.bad_share)
    bad_mean, good_mean = bad_per_s * tier.long_s, good_per_s * tier.long_s
    needed, short = float(tier.bad_share_needed), tier.short_s / tier.long_s
    by_bad = by_good = 0.0
    for bad in _around(bad_mean, at_least=tier.min_bad_events):
        most_good = _most_good(bad, needed)
        seen, burns = _chance(bad, bad_mean), _up_to(most_good, good_mean)
        if max(seen, _chance(bad - 1, bad_mean)) * burns < NEGLIGIBLE:
            continue
        good = min(most_good, good_mean) * short
        at_rest = _short_burns(tier, bad * short, good)
        by_bad += _chance(bad - 1, bad_mean) * burns * _short_burns(tier, (bad - 1) * short, good, more=1)
        by_bad -= seen * burns * at_rest
        by_good += seen * _chance(most_good, good_mean) * at_rest
        by_good += seen * burns * _short_at_its_edge(tier, bad * short, good)
    return max(bad_per_s * by_bad, 0.0) * over_s + good_per_s * by_good * over_s


def _most_good(bad: int, share: float, *, beyond: int = 0) -> int:
    """The most good events beside which so many bad ones are more than a share of all, by more than `beyond`; less than
    0 for none."""
    return math.ceil(round((bad - beyond) / share - bad, 9)) - 1


def _most_good_short(tier: Tier, bad: int) -> int:
    """The most good events beside which so many bad ones make the short window burn beyond chance; -1 for none."""
    if bad <= 0:
        return -1
    beyond_chance = _most_good(bad, float(tier.allowed_bad), beyond=tier.chance_events)
    in_a_row = 0 if bad >= tier.bad_in_a_row else -1
    return max(min(_most_good(bad, float(tier.bad_share_needed)), beyond_chance), in_a_row)


def _short_burns(tier: Tier, bad_mean: float, good_mean: float, *, more: int = 0) -> float:
    """The chance that the short window burns; with `more` bad events in it than come by chance."""
    return math.fsum(
        _chance(bad, bad_mean) * _up_to(_most_good_short(tier, bad + more), good_mean)
        for bad in _around(bad_mean, at_least=1 - more)
    )


def _short_at_its_edge(tier: Tier, bad_mean: float, good_mean: float) -> float:
    """The chance that the short window burns, and would not with one good event more."""
    return math.fsum(
        _chance(bad, bad_mean) * _chance(_most_good_short(tier, bad), good_mean)
        for bad in _around(bad_mean, at_least=1)
    )


def _around(mean: float, *, at_least: int) -> Iterator[int]:
    """The numbers that a Poisson number of this mean is likely to be."""
    reach = DEVIATIONS * math.sqrt(mean) + DEVIATIONS
    return iter(range(max(at_least, math.floor(mean - reach)), math.ceil(mean + reach) + at_least + 1))


def _chance(number: int, mean: float) -> float:
    """The chance of a Poisson number to be this."""
    if number < 0 or mean <= 0:
        return 1.0 if number == 0 else 0.0
    return math.exp(number * math.log(mean) - mean - math.lgamma(number + 1))


def _up_to(number: int, mean: float) -> float:
    """The chance of a Poisson number to be this or less."""
    if number < 0:
        return 0.0
    if mean > EXACT_UP_TO:
        return 0.5 * math.erfc((mean - number - 0.5) / math.sqrt(2 * mean))
    reach = DEVIATIONS * math.sqrt(mean) + DEVIATIONS
    if number > mean + reach:
        return 1.0
    return min(1.0, math.fsum(_chance(n, mean) for n in range(max(0, math.floor(mean - reach)), number + 1)))
