"""The passive form: the same fit from what the collector has recorded of a server in production, and no test.

Each window of five minutes is a pair: how many requests the engines were running on average, and the quantile of the
time per output token that the promise speaks of. Recorded batches reach only as far as they went; beyond that the fit
is said to be a guess, and chooses nothing. Every promise of that time is judged, and the one that allows the least
batch decides; records know no class, no size of a prompt and no length of an answer, so promises of those are left out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from capacity.batch.fit import ALONE, Fit, Point, fit
from capacity.errors import WorkloadError
from capacity.summary import quantile
from slo.objective import Objective, Spec
from slo.quantity import percent_text
from slo.signals import ENGINE_RUNNING, TPOT

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

WINDOW_S = 300
QUANTILES = ((0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999"))
SOURCES = ("proxy", "middleware", "engine", "otel")
"""Whose percentiles are taken, the first that has some: what users saw before what the engine says of itself."""
LEAST_REQUESTS = 20
LEAST_PAIRS = 12
LEAST_SPREAD = 1.5
"""The batches recorded must differ by so many times, or a line through them would say nothing."""
REACH = 0.95


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose records: of one service and model, from a moment on."""

    environment: str
    service: str
    model: str
    since_s: int


@dataclass(frozen=True, slots=True)
class Pair:
    """A window: mean requests running on each instance, and the quantile of the time per output token."""

    running: float
    step_s: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was read: pairs, the share of requests that each quantile stands for, and who measured."""

    pairs: tuple[Pair, ...]
    share: float
    source: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the records say of the objectives `judged`, by the one that allows the least batch, which is `binding`.

    `reach` is the batch that 95 % of the windows stay within; `predicted` the largest that the fit lets keep the
    promise, None where it grows with no batch."""

    binding: str
    judged: tuple[str, ...]
    recorded: Recorded
    threshold_s: float
    reach: float
    fit: Fit | None
    predicted: int | None
    chosen: int | None
    why_not: str = ""

    @property
    def verdict(self) -> str:
        return "none" if self.chosen is None else "chosen"

    def sentence(self) -> str:
        """The verdict in words."""
        if self.chosen is None:
            return f"the records choose no batch for {self.binding}: {self.why_not}"
        kept = " and ".join(self.judged)
        return f"a batch of {self.chosen} keeps {kept}, by {len(self.recorded.pairs)} recorded windows"

    def as_json(self, settings: Mapping[str, object]) -> dict[str, object]:
        fitted = self.fit
        return {
            "verdict": self.verdict,
            "says": self.sentence(),
            "chosen_batch": self.chosen,
            "feasible_min": None,
            "feasible_max": self.chosen,
            "efficient_batch": None,
            "predicted_batch": self.predicted,
            "binding": self.binding,
            "judged": list(self.judged),
            "recorded": {
                "pairs": [[pair.running, pair.step_s] for pair in self.recorded.pairs],
                "reach": self.reach,
                "share": self.recorded.share,
                "source": self.recorded.source,
            },
            "fit": None
            if fitted is None
            else {
                "a": fitted.a,
                "b": fitted.b,
                "r_squared": fitted.r_squared,
                "largest_residual": fitted.largest_residual(),
            },
            "settings": dict(settings),
        }


def told(spec: Spec, model: str) -> tuple[tuple[Objective, ...], tuple[str, ...]]:
    """The objectives that records can tell of, and why each of the others is left out. Raises WorkloadError if there
    is none."""
    whys = [(one, _untold(one, model)) for one in spec.objectives]
    judged = tuple(one for one, why in whys if not why)
    left_out = tuple(f"{one.name}: {why}" for one, why in whys if why)
    if not judged:
        raise WorkloadError(
            f"service {spec.service} promises no tpot of model {model} that records tell of ({'; '.join(left_out)}): "
            "give it one, or test it with --target"
        )
    return judged, left_out


def _untold(one: Objective, model: str) -> str:
    if one.signal != TPOT.sql:
        return f"records pair no batch with {one.signal}"
    if not one.match.holds_model(model):
        return f"speaks of model {one.match.model}"
    if one.match.class_ is not None:
        return f"speaks of class {one.match.class_}, and records tell no classes apart"
    if one.match.prompt_bytes is not None:
        return "speaks of prompts of one size, which records do not tell apart"
    if one.min_output_tokens is not None:
        return f"speaks of answers of at least {one.min_tokens} tokens, and records count shorter ones too"
    if float(one.goal) > QUANTILES[-1][0] + 1e-9:
        return f"speaks of {percent_text(one.goal)} of the requests, and records go to {QUANTILES[-1][0]:.1%}"
    return ""


def model_of(connection: "Connection", asked: Asked) -> str:
    """The model that is asked for, or else the only one recorded. Raises WorkloadError."""
    from sqlalchemy import select

    from collector.schema import percentile

    if asked.model:
        return asked.model
    query = (
        select(percentile.c.model)
        .where(
            percentile.c.environment == asked.environment,
            percentile.c.service == asked.service,
            percentile.c.signal == TPOT.sql,
            percentile.c.at_s >= asked.since_s,
        )
        .distinct()
    )
    models = sorted(connection.scalars(query))
    if len(models) == 1:
        return str(models[0])
    found = ", ".join(models) if models else f"none of service {asked.service}"
    raise WorkloadError(f"--model is missing: the database has recorded {found}; name one of its models")


def read(connection: "Connection", asked: Asked, share: float) -> Recorded:
    """The recorded pairs; `share` of the requests is what the promise speaks of."""
    stands_for, column = next((one for one in QUANTILES if one[0] >= share - 1e-9), QUANTILES[-1])
    running = _running(connection, asked)
    steps, source = _steps(connection, asked, column)
    pairs = tuple(Pair(running[start_s], step_s) for start_s, step_s in sorted(steps.items()) if start_s in running)
    return Recorded(pairs, stands_for, source)


def least_of(outcomes: Sequence[Outcome]) -> Outcome:
    """Of the outcomes of one objective each, the one that decides: nothing is chosen where one has too few records,
    else the least batch that one allows is within all the others."""

    def allows(one: Outcome) -> float:
        return -1 if one.fit is None else math.inf if one.predicted is None else one.predicted

    return replace(min(outcomes, key=allows), judged=tuple(name for one in outcomes for name in one.judged))


def judge(name: str, recorded: Recorded, threshold_s: float) -> Outcome:
    """What the pairs say of a promise of some name that a time per output token stays within."""
    batches = sorted(pair.running for pair in recorded.pairs)
    reach = quantile(batches, REACH) if batches else 0.0
    why_not = _too_little(batches)
    if why_not:
        return Outcome(name, (name,), recorded, threshold_s, reach, None, None, None, why_not)
    found = fit([Point(pair.running, ALONE, pair.step_s) for pair in recorded.pairs])
    largest = found.largest(threshold_s, ALONE)
    predicted = None if math.isinf(largest) else math.floor(largest + 1e-9)
    if predicted is not None and 1 <= predicted <= reach:
        return Outcome(name, (name,), recorded, threshold_s, reach, found, predicted, predicted)
    if predicted == 0:
        why_not = "even one sequence at a time would break the promise"
    else:
        guess = "that it grows with no batch" if predicted is None else f"a largest batch of {predicted}"
        why_not = (
            f"they reach to {reach:.1f} running at once, where the promise is kept; a fit gives {guess}, "
            "which is beyond what was recorded: test it with --target"
        )
    return Outcome(name, (name,), recorded, threshold_s, reach, found, predicted, None, why_not)


def _too_little(batches: Sequence[float]) -> str:
    if len(batches) < LEAST_PAIRS:
        return (
            f"only {len(batches)} windows of 5 minutes have both {ENGINE_RUNNING.sql} and {LEAST_REQUESTS} requests "
            f"of {TPOT.sql}, at least {LEAST_PAIRS} are needed: record longer, or test it with --target"
        )
    if batches[-1] < LEAST_SPREAD * batches[0]:
        return (
            f"all of them lie between {batches[0]:.1f} and {batches[-1]:.1f} running at once, too close together "
            "to see what one more costs: test it with --target"
        )
    return ""


def _running(connection: "Connection", asked: Asked) -> dict[int, float]:
    """For each window that begins at a multiple of its length, the mean over the instances that were working."""
    from sqlalchemy import func, select

    from collector.schema import gauge

    start_s = (gauge.c.start_s - gauge.c.start_s % WINDOW_S).label("window_start_s")
    query = (
        select(start_s, gauge.c.instance, func.avg(gauge.c.mean))
        .where(
            gauge.c.environment == asked.environment,
            gauge.c.service == asked.service,
            gauge.c.model == asked.model,
            gauge.c.name == ENGINE_RUNNING.sql,
            gauge.c.attribute == "",
            gauge.c.start_s >= asked.since_s,
            gauge.c.step_s <= WINDOW_S,
        )
        .group_by(start_s, gauge.c.instance)
    )
    found: dict[int, list[float]] = {}
    for window_s, _, mean in connection.execute(query):
        if mean > 0:
            found.setdefault(int(window_s), []).append(float(mean))
    return {window_s: sum(means) / len(means) for window_s, means in found.items()}


def _steps(connection: "Connection", asked: Asked, column: str) -> tuple[dict[int, float], str]:
    """The quantile of each such window, from the evaluation nearest its end, and who measured."""
    from sqlalchemy import select

    from collector.schema import percentile

    query = (
        select(percentile.c.at_s, percentile.c.source, percentile.c[column])
        .where(
            percentile.c.environment == asked.environment,
            percentile.c.service == asked.service,
            percentile.c.model == asked.model,
            percentile.c.signal == TPOT.sql,
            percentile.c.window_s == WINDOW_S,
            percentile.c.at_s >= asked.since_s,
            percentile.c[column].is_not(None),
            percentile.c.count >= LEAST_REQUESTS,
        )
        .order_by(percentile.c.at_s)
    )
    found: dict[str, dict[int, tuple[int, float]]] = {}
    for at_s, source, step_s in connection.execute(query):
        start_s = round(at_s / WINDOW_S) * WINDOW_S - WINDOW_S
        off_s = abs(at_s - start_s - WINDOW_S)
        nearest = found.setdefault(source, {})
        if off_s <= WINDOW_S / 4 and (start_s not in nearest or off_s < nearest[start_s][0]):
            nearest[start_s] = off_s, float(step_s)
    source = next((source for source in SOURCES if found.get(source)), SOURCES[0])
    return {start_s: step_s for start_s, (_, step_s) in found.get(source, {}).items()}, source
