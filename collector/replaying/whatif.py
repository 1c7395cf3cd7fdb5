"""What another target, or another threshold, would have cost over the stored past. Pure.

The past is replayed by the rules of the evaluation (`replay`), once as promised and once as asked. Where events were
judged at their source by the very same threshold the answer is exact. Where they are read off histograms, those in the
bucket that the threshold cuts may be good or bad: so each replay is done three times, with them as they likely were,
all of them good, and all of them bad. Bad events and budgets lie between what these find; of alerts the most and the
least that any of the three finds is told. A histogram also lacks those that still wait for their value, or got none: as
many more as were counted at the source may be bad too, and widen shares and budgets; no alert is replayed with them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from collector.errors import RefusedError
from collector.replaying import replay, replay_past
from collector.replaying.replay import Past, Report, TierReport
from collector.replaying.replay_past import Read
from collector.values.histogram import Counts
from slo import quantity
from slo.burn import Tier
from slo.objective import Objective, Spec
from slo.signals import ALL_MODELS, SIGNALS

HISTOGRAM = "histogram"
ASKED = "what if"
"""The name of the objective that was asked about, beside the one that was promised: none that a spec may give."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """A figure, and what it is at least and at most; all three the same where it is exact."""

    likely: float
    least: float
    most: float

    @property
    def is_exact(self) -> bool:
        return self.least == self.most


@dataclass(frozen=True, slots=True)
class TierCost:
    """What one tier would have done: how often it would have begun to fire, and for how long in all."""

    tier: Tier
    times: Bounded
    firing_s: Bounded


@dataclass(frozen=True, slots=True)
class Cost:
    """What one promise would have cost. Shares are of 1; `bad_share` is None without events. `missing` are events that
    were counted at the source and that the histograms lack: the bounds take them for bad, `lowest` only at the end, and
    alerts do not know them."""

    objective: Objective
    basis: str
    total: int
    missing: int
    bad: Bounded
    bad_share: Bounded | None
    remaining: Bounded
    lowest: Bounded
    lowest_at_s: int
    tiers: Sequence[TierCost]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The answer: both promises over the same stretch, as far back as the past reaches and at most the objective's
    period. `asked` is None where nothing stored can tell, and `why` says so."""

    from_s: int
    to_s: int
    promised: Cost | None
    asked: Cost | None
    why: str = ""


def question(spec: Spec, objective: Objective, *, percentile: str, threshold: str, environment: str = "") -> Spec:
    """The spec to read the past for: the objective as promised, and as asked; an empty text leaves a figure as it is.
    Where the spec is of any environment, only the one given is read. Raises `RefusedError` for what is no percentile or
    threshold."""
    goal = objective.goal if not percentile else _read("percentile", quantity.share, percentile)
    if not 0 < goal < 1:
        raise RefusedError(
            422, f"percentile: {percentile} leaves nothing to miss, or nothing to keep: write 95 or 99.9"
        )
    limit = objective.threshold if not threshold else _threshold(objective, threshold)
    target = "percentile" if objective.percentile is not None else "target"
    asked = objective.model_copy(update={"name": ASKED, target: goal, "threshold": limit})
    return spec.model_copy(update={"objectives": (objective, asked), "environment": spec.environment or environment})


def answered(asked: Spec, read: Read, *, environment: str | None = None) -> WhatIf:
    """What the past that was read says to the question: of one environment, by default the spec's own, else the only
    one there is. Raises `RefusedError` where there are several."""
    where = _environment(asked, read) if environment is None else environment
    mine = [past for past in read.pasts if past.environment == where and past.model == ALL_MODELS]
    from_s, to_s = replay_past.reach(mine)
    from_s = max(from_s, to_s - asked.objectives[0].window)
    moments = replay.moments(mine, to_s=to_s)
    costs = {past.objective.name: _cost(past, moments, from_s=from_s, to_s=to_s) for past in mine}
    kept, found = (costs.get(objective.name) for objective in asked.objectives)
    if found is None:
        return WhatIf(from_s, to_s, kept, None, _why(read))
    missing = max(kept.total - found.total, 0) if kept is not None and HISTOGRAM in found.basis else 0
    if missing and not found.total:
        return WhatIf(from_s, to_s, kept, None, f"{missing} events were counted, and no histogram holds any of them")
    if missing:
        past = next(one for one in mine if one.objective.name == ASKED)
        found = _widened(found, past, missing=missing, to_s=to_s)
    return WhatIf(from_s, to_s, kept, found)


def _environment(asked: Spec, read: Read) -> str:
    """The environment that a question which names none is about."""
    heard = {past.environment for past in read.pasts}
    if asked.environment or not heard:
        return asked.environment
    if len(heard) > 1:
        told = ", ".join(one or "none" for one in sorted(heard))
        raise RefusedError(400, f"environment: {asked.service} is heard from {told}: name one")
    return heard.pop()


def _why(read: Read) -> str:
    """Why what was asked has no answer."""
    untold = next((one.why for one in read.untold if one.objective == ASKED), "")
    return untold or (
        "nothing that could tell is stored of this environment" if read.pasts else "nothing is stored yet"
    )


def _threshold(objective: Objective, text: str) -> Decimal:
    kinds = {"duration": quantity.duration_s, "share": quantity.share, "count": quantity.number}
    read = kinds.get(SIGNALS[objective.signal].threshold)
    if read is None:
        raise RefusedError(400, f"threshold: {objective.signal} has none: leave it out")
    limit = _read("threshold", read, text)
    if read is quantity.share and not 0 < limit < 1:
        raise RefusedError(422, f"threshold: {text} is no share of the KV cache: write one under 100, as 90%")
    return limit


def _read(name: str, read: Callable[[str], Decimal], text: str) -> Decimal:
    try:
        return read(text)
    except quantity.QuantityError as error:
        raise RefusedError(422, f"{name}: {error}") from None


def _cost(past: Past, moments: Counts, *, from_s: int, to_s: int) -> Cost:
    likely, least, most = (
        replay.replayed(one, moments, from_s=from_s, to_s=to_s) for one in (past, _shifted(past, -1), _shifted(past, 1))
    )
    total = likely.good + likely.bad
    return Cost(
        objective=past.objective,
        basis=past.basis,
        total=total,
        missing=0,
        bad=_bounded(one.bad for one in (likely, least, most)),
        bad_share=_bounded(one.bad / total for one in (likely, least, most)) if total else None,
        remaining=_bounded(one.remaining for one in (likely, most, least)),
        lowest=_bounded(one.lowest for one in (likely, least, most)),
        lowest_at_s=likely.lowest_at_s,
        tiers=[_tier(tier, least, most, from_s=from_s) for tier in likely.tiers],
    )


def _widened(cost: Cost, past: Past, *, missing: int, to_s: int) -> Cost:
    """The cost of some events, were as many more bad."""
    assert cost.bad_share is not None, "without events nothing is likely"
    total, bad = cost.total + missing, cost.bad.most + missing
    age = min(float(past.age_s(np.array([to_s]))[0]) / past.objective.window, 1.0)
    share = bad / total
    left = 1 - share * age / float(past.objective.allowed_bad)
    return replace(
        cost,
        missing=missing,
        bad=replace(cost.bad, most=bad),
        bad_share=replace(cost.bad_share, most=max(cost.bad_share.most, share)),
        remaining=replace(cost.remaining, least=min(cost.remaining.least, left)),
        lowest=replace(cost.lowest, least=min(cost.lowest.least, left)),
    )


def _shifted(past: Past, sign: int) -> Past:
    """The past with every unsure event good (-1), or bad (1)."""
    steps = past.steps
    bad = np.clip(steps.bad + sign * steps.unsure, 0, steps.good + steps.bad)
    return replace(past, steps=replace(steps, bad=bad, good=steps.good + steps.bad - bad))


def _bounded(figures: Iterable[float]) -> Bounded:
    likely, *others = figures
    return Bounded(likely, min(likely, *others), max(likely, *others))


def _tier(report: TierReport, least: Report, most: Report, *, from_s: int) -> TierCost:
    name = report.tier.name
    others = (next((tier for tier in one.tiers if tier.tier.name == name), report) for one in (least, most))
    all_three = (report, *others)
    times = _bounded(sum(one.from_s >= from_s for one in some.firings) for some in all_three)
    return TierCost(report.tier, times, _bounded(some.firing_s for some in all_three))
