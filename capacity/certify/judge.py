"""Whether a rate is certified or refuted, by what has been seen of it so far.

Evidence is looked at more than once, and each look could err, so the looks share the allowed chance of error: with t
the part of all evidence that may be gathered, refuting has spent error * t by then, and certifying error * t^2. Clear
overload is therefore seen early, and a certificate keeps three quarters of its allowance for the last look. A rate is
certified only where every objective is shown to be within its budget, which needs no further correction; it is refuted
where any is shown to be over it, so objectives share that allowance.

An empty server flatters a rate and an overloaded one slanders it, until both are forgotten. That takes relaxation
times: x/(sqrt(cap) - sqrt(x))^2 requests each, for a queue at rate x under a ceiling cap. A certificate wants ten of
them from either start, and both shares within the budget.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from capacity.certify.distributions import few_or_less, least
from capacity.certify.evidence import WARM_UP_PARTS, Evidence, evidence
from capacity.certify.trial import Ceiling, Goal, Seen

POWER = 0.8


@dataclass(frozen=True, slots=True)
class Rigour:
    """How sure a certificate is, and what may be spent on it.

    `error`: the chance allowed that a rate over capacity is certified, and that one under it is refuted. `tolerance`:
    how close the search brings the bracket, as a share of its upper end. A run judges `least_requests` to
    `most_requests` requests and takes from `least_seconds` (what comes more rarely than that is not seen) to about
    `most_run_seconds`; the whole takes about `most_seconds`.
    """

    error: float = 0.05
    tolerance: float = 0.04
    relaxations: float = 10
    least_requests: int = 500
    most_requests: int = 20_000
    least_seconds: float = 0.0
    most_run_seconds: float = math.inf
    most_probes: int = 14
    most_seconds: float = math.inf


FIRST_LOOK = 100
SERVICE_TIMES = 3
EASY = 0.25
MOST_WORTH = 1e8
WATCHED_ERROR = 0.05


def looks(rate_rps: float, rigour: Rigour) -> tuple[int, ...]:
    """Numbers of requests at which a run is looked at: doubling up to the most that it may judge, and take time for."""
    most = max(int(min(rigour.most_requests, rate_rps * rigour.most_run_seconds)), FIRST_LOOK)
    doubling = (FIRST_LOOK << power for power in range(40))
    return (*(n for n in doubling if n < most), most)


def relaxation(rate_rps: float, ceiling: Ceiling, at_once: float) -> float:
    """Requests in one relaxation time at this rate, with so many in the system on average; infinite at the ceiling.

    The ceiling is taken a standard error lower than measured: one that is too high would make a queue look short-lived.
    Far below it no queue stands, and what is remembered is the requests in service themselves: one service time, and
    some more where steps take longer as the batch fills, for that slows the return to the mean.
    """
    room = math.sqrt(max(ceiling.rate_rps - ceiling.error_rps, 0)) - math.sqrt(rate_rps)
    return math.inf if room <= 0 else max(rate_rps / room**2, SERVICE_TIMES * at_once)


def clump(relaxation: float) -> float:
    """How many bad requests a queue makes at a time: about (1 - x/cap)^-2, the inverse extremal index of M/M/1."""
    return max(relaxation / 4, 1.0)


def is_long_enough(seen: Seen, relaxation: float, rigour: Rigour) -> bool:
    """Whether a run can certify: past its start, and long enough to see what is rare."""
    return seen.requests >= max(rigour.relaxations * relaxation, rigour.least_requests) and can_see(seen, rigour)


def least_requests(rate_rps: float, relaxation: float, rigour: Rigour) -> float:
    """How many requests a run at a rate has that is just long enough."""
    return max(rigour.relaxations * relaxation, rigour.least_requests, rate_rps * rigour.least_seconds)


def can_see(seen: Seen, rigour: Rigour) -> bool:
    """Whether a run took long enough to see what is rare, and not just one spell of it."""
    return seen.seconds >= rigour.least_seconds


def least_worth(goals: Sequence[Goal], rigour: Rigour) -> float:
    """Independent requests that certify, all runs together, where a quarter of each budget is spent; at half of the
    allowed error, for looks share it."""
    return max(_least_worth(goal.budget, rigour.error / 2) for goal in goals if not goal.is_watched)


def _least_worth(budget: float, error: float) -> float:
    return least(lambda worth: few_or_less(EASY * budget * worth, worth, budget) <= error, 1.0, MOST_WORTH)


def expected_at_once(rate_rps: float, ceiling: Ceiling, alone_s: float) -> float:
    """About how many requests are in the system at a rate, were steps to grow by the same with each that is there.

    A request takes `alone_s` by itself and at_once/cap when the server is full, a + b n between. With n = x (a + b n)
    in the system that is x a / (1 - b x); at most the same part of the full number as the rate is of the ceiling.
    """
    growth_s = (ceiling.at_once / ceiling.rate_rps - alone_s) / max(ceiling.at_once - 1, 1)
    share = ceiling.at_once * rate_rps / ceiling.rate_rps
    free = 1 - max(growth_s, 0.0) * rate_rps
    if free <= 0 or growth_s >= alone_s:
        return share
    return min(share, rate_rps * (alone_s - max(growth_s, 0.0)) / free)


def least_run(rate_rps: float, ceiling: Ceiling, at_once: float, worth: float, rigour: Rigour) -> float:
    """Requests that a run needs, if it and another are to be worth so many independent; infinite at the ceiling."""
    remembered = relaxation(rate_rps, ceiling, at_once)
    judged_share = 2 * (1 - 1 / WARM_UP_PARTS)
    return max(rigour.relaxations * remembered, rigour.least_requests, worth * clump(remembered) / judged_share)


def by_goal(seen: Sequence[Seen], *, clump: float = 1.0) -> tuple[Evidence, ...]:
    """The evidence of one or more runs of one rate, for each goal."""
    return tuple(evidence(series, clump=clump) for series in zip(*(run.bad for run in seen), strict=True))


def later_half(seen: Seen) -> tuple[Evidence, ...]:
    """The evidence of a run's later half, for each goal: a queue that grows from nothing shows itself late."""
    return tuple(evidence([series], warm_up=2) for series in seen.bad)


def refuted_by(goals: Sequence[Goal], found: Sequence[Evidence], *, error: float) -> str | None:
    """The objective that is shown to be over its budget, the worst first; None if none is."""
    over = [
        (one.share / goal.budget, goal.name)
        for goal, one in zip(goals, found, strict=True)
        if one.share > goal.budget and one.chance_if_at_most(goal.budget) <= error / len(goals)
    ]
    return max(over)[1] if over else None


def is_shown_within(goals: Sequence[Goal], found: Sequence[Evidence], *, error: float) -> bool:
    """Whether every objective is shown to be within its budget, and none that is only watched is shown to be over."""
    return are_within(goals, found) and all(
        goal.is_watched or one.chance_if_at_least(goal.budget) <= error for goal, one in zip(goals, found, strict=True)
    )


def are_within(goals: Sequence[Goal], found: Sequence[Evidence]) -> bool:
    """Whether every objective's share lies within its budget, shown or not; one that is only watched may seem over it
    by chance."""
    return all(
        one.share <= goal.budget or (goal.is_watched and one.chance_if_at_most(goal.budget) > WATCHED_ERROR)
        for goal, one in zip(goals, found, strict=True)
    )


def binding(goals: Sequence[Goal], found: Sequence[Evidence]) -> tuple[float, str]:
    """The objective that spends the largest part of its budget, and that part."""
    return max((one.share / goal.budget, goal.name) for goal, one in zip(goals, found, strict=True))


def requests_to_tell(goals: Sequence[Goal], found: Sequence[Evidence], rigour: Rigour, *, doubt: float = 0.0) -> float:
    """About how many requests, in all, would tell on which side of its budget each objective is; infinite for one on
    the edge itself.

    With doubt, a share may be off by so many standard errors, whichever way makes it easier to tell.
    """
    needed = 0.0
    steps = NormalDist().inv_cdf(1 - rigour.error) + NormalDist().inv_cdf(POWER)
    for goal, one in zip(goals, found, strict=True):
        if goal.is_watched:
            continue
        distance = abs(goal.budget - one.share) + doubt * one.error
        if not distance:
            return math.inf
        # Where none was bad, the exact bound alone needs so many.
        none_bad = math.log(rigour.error) / math.log1p(-goal.budget) * one.requests / one.worth
        needed = max(needed, none_bad, one.requests * (steps * one.error / distance) ** 2)
    return needed


def spent_refuting(part: float, rigour: Rigour) -> float:
    """Of the allowed error, what refuting may have spent when this part of all evidence is there."""
    return rigour.error * min(part, 1.0)


def spent_certifying(part: float, rigour: Rigour) -> float:
    """Of the allowed error, what certifying may have spent when this part of all evidence is there."""
    return rigour.error * min(part, 1.0) ** 2
