"""About how long a search for the batch may still take.

The first runs are of small batches and short, those that judge a batch last as long as they may be: what is over says
little of what is to come, and so what is usual counts until enough of the same kind was seen.
"""

import math
from collections.abc import Sequence

from capacity.batch.search import Plan
from capacity.batch.sitting import Run, is_more
from capacity.batch.trial import Ask, AskHeld

CALIBRATING, OTHER_MIXES, PROBES = 7, 4, 8
"""Runs of a usual search: batches 1 to 64, two of each other mix, 3 of the step and 5 of the wait."""
LEAST_LEFT = 1
UNSEEN = 2.0
"""What is usual counts as so many runs."""
SHORT_PART = 0.25
"""Of what a run that judges takes, what one that calibrates does, until some were seen."""


def remaining_s(plan: Plan, runs: Sequence[Run], ask: Ask, elapsed_s: float) -> float:
    """Seconds that are left when `ask` is begun, after `runs` that took `elapsed_s` with all that lay between them."""
    over = runs[:-1] if runs and is_more(runs[-1].ask, ask) else runs
    first_probe = _calibrating(over) if _is_probe(over, ask) else len(over)
    calibrating, probes = over[:first_probe], over[first_probe:]
    usual_s = (plan.least_seconds + plan.most_seconds) / 2 if math.isfinite(plan.most_seconds) else plan.least_seconds
    probe_s = _mean([run.answer.seconds for run in probes], usual_s)
    short_s = _mean([run.answer.seconds for run in calibrating], SHORT_PART * usual_s)
    probes_left = max(PROBES - len(probes), LEAST_LEFT)
    short_left = max(CALIBRATING + OTHER_MIXES - len(calibrating), LEAST_LEFT) if not probes else 0
    between_s = max(elapsed_s - sum(run.answer.seconds for run in over), 0.0) / max(len(over), 1)
    return probes_left * (probe_s + between_s) + short_left * (short_s + between_s)


def _mean(seconds: Sequence[float], usual_s: float) -> float:
    return (sum(seconds) + UNSEEN * usual_s) / (len(seconds) + UNSEEN)


def _is_probe(over: Sequence[Run], ask: Ask) -> bool:
    """Whether a run judges a batch: those with other mixes end the calibration."""
    return not _is_mixed(ask) and any(_is_mixed(run.ask) for run in over)


def _calibrating(over: Sequence[Run]) -> int:
    return max(place for place, run in enumerate(over) if _is_mixed(run.ask)) + 1


def _is_mixed(ask: Ask) -> bool:
    return isinstance(ask, AskHeld) and ask.mix != "stated"
