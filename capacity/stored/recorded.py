"""What a collector has recorded of a service's requests: when they came and how long they were, as far as it keeps it.

It keeps counts of requests and sums of tokens by step (ten seconds when fresh, minutes and hours later), and how many
prompts fell into each of a few classes of length, but no single request. So requests are spread evenly by chance over
their step, and bursts within one are not seen; prompts are drawn from their classes, evenly by logarithm, with their
mean as recorded; and answers are drawn from a geometric distribution with the recorded mean. Requests of class
`synthetic`, ours, are left out.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.errors import WorkloadError
from capacity.schedule import MAX_TOKENS
from capacity.stored.database import asked
from capacity.traces import MAX_ROWS
from slo.quantity import HOUR_S
from slo.signals import (
    CLASS,
    LABELS,
    OUTCOME,
    PROMPT_EDGES_TOKENS,
    PROMPT_STRATA,
    REQUESTS,
    SYNTHETIC_CLASS,
    TOKEN_TYPE,
    TOKENS,
    TTFT_STRATA,
)

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Table
    from sqlalchemy.engine import URL, Connection

RECORDED = "recorded"
"""What stands for a file where the database is meant."""
NOTE = (
    "no single request is recorded: prompts are drawn from classes of length, and answers from a geometric "
    "distribution, with their means as recorded"
)
ANSWERED = "ok"
DRAWN = 20_000
LONGEST = 2
"""Prompts beyond the last edge are drawn up to so many times it."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Whose:
    """One service; of all models where `model` is None, and from a moment on."""

    environment: str
    service: str
    model: str | None
    since_s: int = 0

    @property
    def text(self) -> str:
        return self.service if self.model is None else f"{self.service}, model {self.model}"


@dataclass(frozen=True, slots=True)
class Steps:
    """Counts by step: start, length and requests of each."""

    rows: Sequence[tuple[int, int, float]]

    @property
    def longest_s(self) -> int:
        return max(step_s for _, step_s, _ in self.rows)

    def hours_of(self, requests: int) -> float:
        """How many hours back from the last step so many requests reach."""
        last_s, left = self.rows[-1][0] + self.rows[-1][1], float(requests)
        since_s = last_s
        for start_s, _, count in reversed(self.rows):
            left -= count
            if left < 0:
                break
            since_s = start_s
        return (last_s - since_s) / HOUR_S


@dataclass(frozen=True, slots=True)
class Tokens:
    """Mean tokens in and out of a request, and how many prompts fell into each class of length."""

    mean_in: float
    mean_out: float
    strata: tuple[int, ...]


def since_s(hours: float | None, now_s: float) -> int:
    """From when on records are read; from the first where no hours are named. Raises WorkloadError."""
    if hours is None:
        return 0
    if not 0 < hours < float("inf"):
        raise WorkloadError(f"--hours {hours:g}: must be above 0")
    return int(max(now_s - hours * HOUR_S, 0))


def recorded_arrivals(database: "URL", whose: Whose, seed: int) -> tuple[Floats, Steps]:
    """When the recorded requests came, in ascending order. Raises DatabaseError or WorkloadError."""
    steps = Steps(asked(database, lambda connection: _steps(connection, whose)))
    total = sum(count for _, _, count in steps.rows)
    if total < 1:
        lately = " in those hours" if whose.since_s else ""
        raise WorkloadError(f"the database has recorded no requests of service {whose.text}{lately}")
    if total > MAX_ROWS:
        raise WorkloadError(
            f"the database has recorded {total:,.0f} requests: more than {MAX_ROWS:,} cannot be replayed; "
            f"take the last of them by --hours, about {steps.hours_of(MAX_ROWS):.2g} of them fit"
        )
    return spread(steps, seed), steps


def recorded_lengths(database: "URL", whose: Whose, seed: int) -> tuple[tuple[int, int], ...]:
    """Pairs of tokens in and out, drawn as they were recorded; none where none were. Raises DatabaseError."""
    found = asked(database, lambda connection: _tokens(connection, whose))
    return () if found is None else drawn(found, seed)


def spread(steps: Steps, seed: int) -> Floats:
    """A moment within its step for each request."""
    chance = np.random.default_rng(seed)
    moments = [start_s + step_s * chance.random(round(count)) for start_s, step_s, count in steps.rows]
    found: Floats = np.sort(np.concatenate(moments))
    return found


def drawn(tokens: Tokens, seed: int) -> tuple[tuple[int, int], ...]:
    """Pairs with the recorded means; prompts in the recorded classes where there are any, or else all of the mean."""
    chance = Random(seed)  # noqa: S311  chance for a load, no secret
    tokens_in = _prompts(tokens, chance)
    scale = tokens.mean_in * len(tokens_in) / sum(tokens_in)
    more = max(tokens.mean_out - 1, 0.0)
    return tuple(
        (_within(scale * one), _within(1 + (chance.expovariate(1 / more) if more else 0.0))) for one in tokens_in
    )


def _prompts(tokens: Tokens, chance: Random) -> list[float]:
    if not sum(tokens.strata):
        return [tokens.mean_in] * DRAWN
    edges = (1, *PROMPT_EDGES_TOKENS, LONGEST * PROMPT_EDGES_TOKENS[-1])
    classes = chance.choices(range(len(tokens.strata)), tokens.strata, k=DRAWN)
    return [edges[one] * (edges[one + 1] / edges[one]) ** chance.random() for one in classes]


def _within(tokens: float) -> int:
    return min(max(round(tokens), 1), MAX_TOKENS)


def _of(table: "Table", whose: Whose) -> "list[ColumnElement[bool]]":
    """What picks the rows of a service, and of a model if one is named."""
    c = table.c
    mine = [c.environment == whose.environment, c.service == whose.service]
    return mine if whose.model is None else [*mine, c.model == whose.model]


def _since(table: "Table", whose: Whose) -> "ColumnElement[bool]":
    """What picks the rows from a moment on."""
    return table.c.start_s >= whose.since_s


def _steps(connection: "Connection", whose: Whose, outcome: str | None = None) -> list[tuple[int, int, float]]:
    """Requests by step, in order of time; those of one outcome where it is named."""
    from sqlalchemy import func, select

    from collector.schema import counter

    c = counter.c
    question = (
        select(c.start_s, c.step_s, c.attributes, func.sum(c.value))
        .where(c.name == REQUESTS.sql, *_of(counter, whose), _since(counter, whose))
        .group_by(c.start_s, c.step_s, c.attributes)
        .order_by(c.start_s, c.step_s)
    )
    counts: dict[tuple[int, int], float] = {}
    for start_s, step_s, attributes, value in connection.execute(question):
        of = json.loads(attributes)
        if of.get(LABELS[CLASS]) != SYNTHETIC_CLASS and outcome in (None, of.get(LABELS[OUTCOME])):
            counts[start_s, step_s] = counts.get((start_s, step_s), 0.0) + value
    return [(start_s, step_s, value) for (start_s, step_s), value in counts.items()]


def _tokens(connection: "Connection", whose: Whose) -> Tokens | None:
    from sqlalchemy import func, select

    from collector.schema import counter

    c = counter.c
    question = select(c.attributes, func.sum(c.value)).where(
        c.name == TOKENS.sql, *_of(counter, whose), _since(counter, whose)
    )
    found = connection.execute(question.group_by(c.attributes))
    sums = {json.loads(kind).get(LABELS[TOKEN_TYPE]): value for kind, value in found}
    requests = sum(count for _, _, count in _steps(connection, whose, outcome=ANSWERED))
    if not requests or not sums.get("input") or not sums.get("output"):
        return None
    return Tokens(sums["input"] / requests, sums["output"] / requests, _strata(connection, whose))


def _strata(connection: "Connection", whose: Whose) -> tuple[int, ...]:
    """How many prompts fell into each class: values of its own time to first token."""
    from sqlalchemy import func, select

    from collector.schema import rollup, series

    question = (
        select(series.c.signal, func.sum(rollup.c["count"]))
        .join(rollup, rollup.c.series_id == series.c.id)
        .where(series.c.signal.in_(TTFT_STRATA.values()), *_of(series, whose), _since(rollup, whose))
        .group_by(series.c.signal)
    )
    counts = {signal: int(count) for signal, count in connection.execute(question)}
    return tuple(counts.get(TTFT_STRATA[stratum], 0) for stratum in PROMPT_STRATA)
