"""Which objectives an engine's own metrics can back, and what to say of those they cannot.

A latency objective is counted exactly where its threshold is an edge of the engine's histogram: what lies at or under
that edge is good, the rest bad, and nothing is guessed. Between two edges the numbers of good and bad are not known;
the histogram alone goes out, and the collector estimates. Nothing backs availability: who scrapes an engine sees
neither the request that never reached it nor the one it never answers, and an engine that is down would look perfect.

Where requests pass by, only what speaks of the engine's state needs its pages (`StateSight`).
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from sidecar.engine.engine_requests import TOLD
from sidecar.engine.scrape import ServerSample
from sidecar.judging.deadlines import speaks_of
from slo.objective import STATE_SIGNALS, Objective
from slo.quantity import duration_text
from slo.signals import SIGNALS, Metric

log = logging.getLogger(__name__)

MIN_TOKENS = 2
"""From so many output tokens on a request is in an engine's histogram of time per output token."""

_NO_SCRAPE_SEES = "scraping sees no request that the engine never got, or never answers"


@dataclass(frozen=True, slots=True)
class Sight:
    """What the pages of an engine show: the edges of its latencies by model, and whether they tell its state.
    `models`: those that it serves, as far as they are known."""

    engine: str
    edges_s: Mapping[tuple[Metric, str], tuple[float, ...]] = field(default_factory=dict)
    occupancy: bool = False
    waiting: bool = False
    models: tuple[str, ...] = ()

    def edges_of(self, metric: Metric | None, model: str | None) -> tuple[float, ...] | None:
        """The edges of a latency of `model`, or those that all models have; None when it is not shown."""
        found = [edges for (of, name), edges in self.edges_s.items() if of is metric and model in (None, name)]
        return tuple(edge for edge in found[0] if all(edge in edges for edges in found)) if found else None


@dataclass(frozen=True, slots=True)
class Backing:
    """How an objective is backed: by exact counts, by the histogram alone, or not at all; and if not by counts, why."""

    basis: Literal["counts", "histogram", "none"]
    why: str = ""


COUNTS = Backing("counts")


def backing(objective: Objective, sight: Sight, *, model: str | None = None) -> Backing:
    """What `sight` can do for an objective, of one model or of all together."""
    blind = _blind(objective.signal, sight)
    if blind:
        return Backing("none", blind)
    if objective.signal in STATE_SIGNALS and not speaks_of(objective, sight.models):
        return Backing("none", f"{sight.engine} serves no model that it matches")
    edges_s = sight.edges_of(SIGNALS[objective.signal].metric, model)
    if edges_s is None or objective.threshold is None:
        return COUNTS
    if objective.match.class_ is not None or objective.match.prompt_bytes is not None:
        return Backing("none", f"{sight.engine} tells neither classes nor prompt sizes apart")
    if objective.signal == "tpot" and objective.min_tokens > MIN_TOKENS:
        why = f"{sight.engine}'s histogram has the answers under {objective.min_tokens} tokens too"
        return Backing("histogram", why)
    if not edges_s:
        return Backing("histogram", f"the models of {sight.engine} have no edge in common")
    if between := _between(objective.threshold, edges_s):
        why = f"{duration_text(objective.threshold)} lies {between} of {sight.engine}'s histogram"
        hidden = float(objective.threshold) < min(edges_s)
        return Backing("histogram", f"{why}, so that all under it counts as bad" if hidden else why)
    return COUNTS


def lines(objectives: Iterable[Objective], sight: Sight) -> list[str]:
    """One line for each objective that is not counted exactly; without objectives, for each signal that cannot be."""
    named = list(objectives)
    if not named:
        return [f"{SIGNALS[name].title} cannot be backed: {why}" for name in SIGNALS if (why := _blind(name, sight))]
    words = {"histogram": "is estimated by the collector, not counted", "none": "cannot be backed"}
    found = [(one.name, backing(one, sight)) for one in named]
    return [f"objective {name} {words[each.basis]}: {each.why}" for name, each in found if each.basis != "counts"]


def _blind(signal: str, sight: Sight) -> str:
    """Why an engine tells nothing of a signal; '' when it tells something."""
    engine, told = sight.engine, TOLD[sight.engine]
    untold = dict(told.untold).get(signal)
    if signal == "availability":
        return f"{engine} {untold}, and {_NO_SCRAPE_SEES}" if untold else _NO_SCRAPE_SEES
    metric = SIGNALS[signal].metric
    if signal in STATE_SIGNALS:
        shown = sight.occupancy if signal == "kv_occupancy" else sight.waiting
        return "" if shown else f"{engine}'s page does not tell its {SIGNALS[signal].title}"
    if sight.edges_of(metric, None) is not None:
        return ""
    if untold:
        return f"{engine} {untold}"
    rows = [row for row in told.histograms if row.metric is metric]
    needs = "; ".join(row.needs for row in rows if row.needs) or "it may come with the first request"
    return f"{engine}'s page does not show {rows[0].names[0]} yet ({needs})" if rows else f"{engine} does not tell it"


def _between(threshold: Decimal, edges_s: tuple[float, ...]) -> str:
    """Where a threshold lies that is no edge; '' when it is one."""
    wanted = float(threshold)
    if wanted in edges_s:
        return ""
    under = [edge for edge in edges_s if edge < wanted]
    over = [edge for edge in edges_s if edge > wanted]
    if under and over:
        return f"between the edges {duration_text(under[-1])} and {duration_text(over[0])}"
    if under:
        return f"above the last edge {duration_text(under[-1])}"
    return f"under the first edge {duration_text(over[0])}"


class Said:
    """What the log was told of objectives that cannot be counted: each line once, and when it is no longer so."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def say(self, found: list[str]) -> None:
        """These lines are true now, and no others."""
        before, self._lines = self._lines, found
        for line in found:
            if line not in before:
                log.warning("%s", line)
        for line in before:
            if line not in found:
                log.info("no longer so: %s", line)


class StateSight:
    """What the pages of the engine behind a proxy have shown of its state; says which objectives lack it."""

    def __init__(self) -> None:
        self._sight: Sight | None = None
        self._said = Said()

    def page(self, sample: ServerSample, objectives: Iterable[Objective], *, models: tuple[str, ...]) -> None:
        """A page of a known engine, which serves `models` as far as they are known, gave `sample`."""
        assert sample.engine is not None
        before = self._sight
        if before is None or before.engine != sample.engine:
            before = Sight(sample.engine)
        self._sight = Sight(
            sample.engine,
            occupancy=before.occupancy or sample.kv_occupancy is not None,
            waiting=before.waiting or sample.waiting is not None,
            models=models,
        )
        of_state = [one for one in objectives if one.signal in STATE_SIGNALS]
        self._said.say(lines(of_state, self._sight) if of_state else [])
