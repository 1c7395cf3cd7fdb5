"""What became of many months, summed up: figures of any group of them, and the tables that are printed."""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from corpus.incidents import INCIDENTS
from corpus.paging import SETS, Outcome
from corpus.service import OBJECTIVES
from corpus.verdicts import CLASSIC

NEVER = float("inf")
NOTHING = "-"
WANTS = {incident.name: incident.wants for incident in INCIDENTS}

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """One set of tiers over some months. `due` are those whose incident wants a page, `found` those of them that it got
    one; times are of those found, seconds."""

    months: int
    due: int
    found: int
    to_page_s: tuple[int, ...]
    reset_s: tuple[int, ...]
    pages: int
    ringing_again: int
    tickets: int
    false_pages: int


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the head, and rows of as many texts."""

    title: str
    head: Row
    rows: Sequence[Row]


def figures(outcomes: Iterable[Outcome]) -> Figures:
    """The figures of outcomes of one set."""
    held = list(outcomes)
    due = [one for one in held if WANTS[one.incident] == "page"]
    found = [one for one in due if one.page_after_s is not None]
    return Figures(
        months=len(held),
        due=len(due),
        found=len(found),
        to_page_s=tuple(one.page_after_s for one in found if one.page_after_s is not None),
        reset_s=tuple(one.reset_s for one in found if one.reset_s is not None),
        pages=sum(one.pages for one in found),
        ringing_again=sum(one.pages > 1 for one in found),
        tickets=sum(one.tickets for one in held),
        false_pages=sum(one.false_pages for one in held),
    )


def tables(outcomes: Sequence[Outcome]) -> Iterator[Table]:
    """By incident, by traffic, by objective."""
    incidents = list(dict.fromkeys(one.incident for one in outcomes))
    traffic = sorted({one.per_h for one in outcomes})
    head = ("tiers", "paged", "to page p50", "p95", "pages each", "reset p50", "tickets", "false pages / 30 d")
    yield Table(
        "By what happens, at any traffic",
        ("incident", "wants", *head),
        [row for name in incidents for row in _rows(outcomes, lambda one: one.incident, name, WANTS[name])],
    )
    yield Table(
        "By traffic, whatever happens",
        ("requests an hour", *head),
        [row for per_h in traffic for row in _rows(outcomes, lambda one: f"{one.per_h:,}", f"{per_h:,}")],
    )
    yield Table(
        "By objective and traffic: time to its own page, median over the months in which either set pages for it",
        ("objective", *(f"{per_h:,}/h" for per_h in traffic), "any", "false pages / 30 d"),
        [row for name in judged_objectives(outcomes) for row in _of_objective(outcomes, name, traffic)],
    )


def _rows(outcomes: Sequence[Outcome], by: Callable[[Outcome], str], label: str, *more: str) -> Iterator[Row]:
    for name in SETS:
        some = figures(one for one in outcomes if one.tiers == name and by(one) == label)
        told = (label, *more) if name == SETS[0] else ("", *("" for _ in more))
        yield (
            *told,
            name,
            f"{some.found}/{some.due}" if some.due else NOTHING,
            duration(_quantile(some.to_page_s, 0.5)),
            duration(_quantile(some.to_page_s, 0.95)),
            f"{some.pages / some.found:.2f}" if some.found else NOTHING,
            duration(_quantile(some.reset_s, 0.5)),
            f"{some.tickets / some.months:.1f}",
            f"{some.false_pages / some.months:.2f}",
        )


def _of_objective(outcomes: Sequence[Outcome], objective: str, traffic: Sequence[int]) -> Iterator[Row]:
    by_traffic = [times_to_page_s((one for one in outcomes if one.per_h == per_h), objective) for per_h in traffic]
    pooled = times_to_page_s(outcomes, objective)
    for name in SETS:
        some = [one for one in outcomes if one.tiers == name]
        false = sum(one.false_pages_by_objective[objective] for one in some) / max(len(some), 1)
        yield (
            f"{objective}, {name}",
            *(duration(median(times[name])) for times in by_traffic),
            duration(median(pooled[name])),
            f"{false:.2f}",
        )


def judged_objectives(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """The names of the objectives that these outcomes speak of."""
    return tuple(outcomes[0].false_pages_by_objective)


def times_to_page_s(outcomes: Iterable[Outcome], objective: str) -> dict[str, list[float]]:
    """How long each set took to page for an objective, over the same months: those whose incident wants a page and got
    one for this objective from either set. A set that did not page there took for ever."""
    by_month: dict[tuple[str, int, int], dict[str, float]] = {}
    for one in outcomes:
        if WANTS[one.incident] == "page":
            after_s = one.page_after_s_by_objective[objective]
            month = by_month.setdefault((one.incident, one.per_h, one.seed), {})
            month[one.tiers] = NEVER if after_s is None else after_s
    paged = [times for times in by_month.values() if min(times.values()) < NEVER]
    return {name: [times[name] for times in paged] for name in SETS}


def median(times: Sequence[float]) -> float | None:
    """The upper of the two in the middle: half are no later, and it is `NEVER` where half never came."""
    return statistics.median_high(times) if times else None


def duration(seconds: float | None) -> str:
    """Seconds for people; `never` where there is no end."""
    if seconds is None:
        return NOTHING
    if seconds == NEVER:
        return "never"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} m"
    return f"{minutes} m {rest:02d} s" if minutes else f"{rest} s"


def _quantile(values: Sequence[int], share: float) -> float | None:
    """The nearest-rank quantile; None without values."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)] if values else None


def stock_can_page(objective: str) -> bool:
    """Whether any share of bad events makes the classic set page for an objective."""
    allowed = next(one.allowed_bad for one in OBJECTIVES if one.name == objective)
    return any(tier.notify == "page" and tier.can_fire(allowed) for tier in CLASSIC)
