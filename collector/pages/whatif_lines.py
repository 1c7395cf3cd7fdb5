"""What another promise would have cost, in words: a line for each figure, as promised beside as asked. Pure.

A figure that is not exact stands with what it is at least and at most.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from collector.pages.alert_lines import DOES
from collector.pages.standing import Tone
from collector.replaying.whatif import HISTOGRAM, Bounded, Cost, WhatIf
from collector.values import words
from slo.objective import Objective
from slo.quantity import duration_text, plain
from slo.signals import SIGNALS
from slo.words import limit


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure, how it stands against the promise, and the share of a bar that it fills; None where it is no bar."""

    text: str
    bounds: str = ""
    tone: Tone = "none"
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, of each promise."""

    name: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the replay found; `trouble` says why there is nothing, and is empty else."""

    heading: Sequence[str] = ()
    rows: Sequence[Row] = ()
    over: str = ""
    basis: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """What can be asked: a percentile, and a threshold where histograms may tell of another. `threshold_s` is the
    promised one in seconds, about which a slider is made; None where there is nothing to slide."""

    percentile: str
    threshold: str
    threshold_s: float | None
    promised_percentile: str
    promised_threshold: str


def form(objective: Objective, *, percentile: str = "", threshold: str = "") -> Form:
    """The form of an objective, filled in with what was asked, else with what is promised."""
    is_latency = SIGNALS[objective.signal].threshold == "duration"
    promised = plain(objective.goal * 100), (limit(objective) or "") if is_latency else ""
    return Form(
        percentile=percentile or promised[0],
        threshold=threshold or promised[1],
        threshold_s=float(objective.threshold) if is_latency and objective.threshold else None,
        promised_percentile=promised[0],
        promised_threshold=promised[1],
    )


def answer(found: WhatIf) -> Answer:
    """The words of an answer."""
    if found.asked is None:
        return Answer(trouble=f"The stored past cannot answer: {found.why}.")
    costs = [cost for cost in (found.promised, found.asked) if cost is not None]
    return Answer(
        heading=["as promised" if cost is found.promised else "what if" for cost in costs],
        rows=_rows(costs),
        over=f"the last {words.duration(found.to_s - found.from_s)} that are stored",
        basis=_basis(found.asked),
    )


def _basis(cost: Cost) -> str:
    if HISTOGRAM not in cost.basis:
        return "Exact: every event was judged by this very threshold at its source."
    said = "Read off the stored histograms."
    if not cost.bad.is_exact:
        said += " Events in the bucket that the threshold cuts may be good or bad, so figures have bounds."
    if cost.missing:
        lacking = f"{words.count(cost.missing)} events that were counted are in no histogram"
        said += f" {lacking}, as those of requests that still wait: at most, they are bad."
    return said


def _rows(costs: Sequence[Cost]) -> list[Row]:
    rows = [
        _row("promise", costs, lambda cost: Cell(words.promise(cost.objective))),
        _row("bad events", costs, _bad),
        _row("budget spent", costs, _spent),
        _row("least budget left", costs, _left),
    ]
    names = dict.fromkeys(tier.tier.name for cost in costs for tier in cost.tiers)
    return rows + [_row(f"{name} alert", costs, partial(_fired, name)) for name in names]


def _row(name: str, costs: Sequence[Cost], cell: Callable[[Cost], Cell]) -> Row:
    return Row(name, [cell(cost) for cost in costs])


def _bad(cost: Cost) -> Cell:
    if cost.bad_share is None:
        return Cell("no events")
    of = f" of {words.count(cost.total)}"
    return Cell(words.share(cost.bad_share.likely) + of, _bounds(cost.bad_share, words.share))


def _spent(cost: Cost) -> Cell:
    spent = Bounded(*(1 - left for left in (cost.remaining.likely, cost.remaining.most, cost.remaining.least)))
    tone: Tone = "bad" if spent.likely >= 1 else "good"
    return Cell(words.share(spent.likely), _bounds(spent, words.share), tone, 100 * min(max(spent.likely, 0.0), 1.0))


def _left(cost: Cost) -> Cell:
    lowest = cost.lowest
    return Cell(words.share(lowest.likely), _bounds(lowest, words.share), "bad" if lowest.likely <= 0 else "none")


def _fired(name: str, cost: Cost) -> Cell:
    tier = next((one for one in cost.tiers if one.tier.name == name), None)
    if tier is None:
        return Cell("would not exist: no share of bad events could reach it")
    after = (
        f"{DOES[tier.tier.notify]} above {words.burn(float(tier.tier.factor))} over {duration_text(tier.tier.long_s)}"
    )
    if not tier.times.likely:
        return Cell("would not have fired" + ("" if tier.times.is_exact else ", or might have"), after)
    times = "once" if tier.times.likely == 1 else f"{tier.times.likely:.0f} times"
    in_all, reach = f"{words.duration(tier.firing_s.likely)} in all", _bounds(tier.firing_s, words.duration)
    in_all += f" ({reach})" if reach else ""
    told = ", ".join(filter(None, (_bounds(tier.times, words.count), in_all, after)))
    return Cell(times, told, "bad" if tier.tier.notify == "page" else "warn")


def _bounds(figure: Bounded, said: Callable[[float], str]) -> str:
    if figure.is_exact:
        return ""
    least, most = said(figure.least), said(figure.most)
    return f"at least {least}, at most {most}" if least != most else ""
