"""What must hold of our tiers on the corpus, and whether a run shows that it does.

How soon an objective's page must come is measured by the classic set: at all traffic together, and at each level of it.
Where that set pages for nothing for the objective more than once a month, and so as soon as one bad event or two come,
it is no yardstick: both medians are told there, and nothing is judged. An incident in which fewer requests come than a
page asks for bad ones (`min_bad_events`) is counted apart.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.incidents import INCIDENTS
from corpus.paging import OURS, STOCK, Outcome
from corpus.summary import duration, figures, judged_objectives, median, stock_can_page, times_to_page_s
from slo.burn import MIN_BAD_EVENTS

YARDSTICK_FALSE_PAGES = 1.0
"""False pages a month of the classic set for an objective, up to which its time to page is one to keep."""
MUST = tuple(incident.name for incident in INCIDENTS if incident.must)

WORDS = {True: "kept", False: "NOT KEPT", None: "not judged"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a promise was kept, or None where nothing can tell, and what was seen."""

    kept: bool | None
    text: str

    def __str__(self) -> str:
        return f"{WORDS[self.kept]:<10}  {self.text}"


def verdicts(outcomes: Sequence[Outcome]) -> Iterator[Verdict]:
    """One for each promise that the months given can show."""
    ours = [one for one in outcomes if one.tiers == OURS]
    for name in MUST:
        if some := [one for one in ours if one.incident == name]:
            yield _found(name, some)
    yield _false_pages(ours)
    for objective in judged_objectives(outcomes):
        yield from _to_page(outcomes, objective)
    for per_h in sorted({one.per_h for one in outcomes}):
        yield from _at_level([one for one in outcomes if one.per_h == per_h], per_h)
    yield _one_page(ours)


def _found(name: str, outcomes: Sequence[Outcome]) -> Verdict:
    due = [one for one in outcomes if one.bad_most >= MIN_BAD_EVENTS or one.page_after_s is not None]
    missed = Counter(one.per_h for one in due if one.page_after_s is None)
    where = "".join(f"; {count} missed at {per_h:,}/h" for per_h, count in sorted(missed.items()))
    few = len(outcomes) - len(due)
    left = f"; {few} had fewer than {MIN_BAD_EVENTS} bad events" if few else ""
    told = f"every {name} is paged: {len(due) - missed.total()} of {len(due)}"
    return Verdict(None if not due else not missed, f"{told}{where}{left}")


def _false_pages(outcomes: Sequence[Outcome]) -> Verdict:
    count = sum(one.false_pages for one in outcomes)
    by_objective: Counter[str] = Counter()
    for one in outcomes:
        by_objective.update(one.false_pages_by_objective)
    where = "".join(f"; {number} by {name}" for name, number in by_objective.most_common() if number)
    return Verdict(count == 0, f"no false page in {len(outcomes)} months: {count}{where}")


def _to_page(outcomes: Sequence[Outcome], objective: str) -> Iterator[Verdict]:
    """At or under the classic set's median; where that can never page, an end to it."""
    found = _medians(outcomes, objective)
    if found is None:
        return
    told = f"{objective}: median time to page {duration(found.ours)}"
    if found.stock_can_page:
        later = ", ".join(f"{per_h:,}/h" for per_h in _later(outcomes, objective))
        told += f", the classic set's {duration(found.stock)}{f'; later at {later}' if later else ''}"
    else:
        told += ", where the classic set never can"
    yield Verdict(found.soon_enough, f"{told}, over {found.months} months")


def _later(outcomes: Sequence[Outcome], objective: str) -> Iterator[int]:
    """The levels of traffic at which our median is the later one."""
    for per_h in sorted({one.per_h for one in outcomes}):
        found = _medians([one for one in outcomes if one.per_h == per_h], objective)
        if found is not None and found.ours > found.stock:
            yield per_h


def _at_level(outcomes: Sequence[Outcome], per_h: int) -> Iterator[Verdict]:
    """The same at one level of traffic, all objectives in a line; in another those for which there is no yardstick."""
    found = [one for name in judged_objectives(outcomes) if (one := _medians(outcomes, name)) is not None]
    told = f"median time to page at {per_h:,}/h, and the classic set's: "
    if judged := [one for one in found if one.has_yardstick]:
        later = ", ".join(one.objective for one in judged if not one.soon_enough)
        yield Verdict(not later, f"{told}{', '.join(map(str, judged))}{f'; later: {later}' if later else ''}")
    if left := [one for one in found if not one.has_yardstick]:
        pages = ", ".join(f"{one.stock_false_pages:.1f}" for one in left)
        why = f"no yardstick: the classic set pages {pages} times a month for nothing there"
        yield Verdict(None, f"{told}{', '.join(map(str, left))}; {why}")


@dataclass(frozen=True, slots=True)
class _Medians:
    """Median times to page for an objective, seconds, over the months in which either set pages for it, and how often a
    month the classic set does so for nothing."""

    objective: str
    ours: float
    stock: float
    months: int
    stock_false_pages: float

    @property
    def stock_can_page(self) -> bool:
        return stock_can_page(self.objective)

    @property
    def has_yardstick(self) -> bool:
        return self.stock_false_pages <= YARDSTICK_FALSE_PAGES

    @property
    def soon_enough(self) -> bool:
        return self.ours <= self.stock if self.stock_can_page else math.isfinite(self.ours)

    def __str__(self) -> str:
        return f"{self.objective} {duration(self.ours)} ({duration(self.stock)})"


def _medians(outcomes: Sequence[Outcome], objective: str) -> _Medians | None:
    """None where neither set pages."""
    times = times_to_page_s(outcomes, objective)
    ours, stock = median(times[OURS]), median(times[STOCK])
    if ours is None or stock is None:
        return None
    false = [one.false_pages_by_objective[objective] for one in outcomes if one.tiers == STOCK]
    return _Medians(objective, ours, stock, len(times[OURS]), sum(false) / len(false))


def _one_page(outcomes: Sequence[Outcome]) -> Verdict:
    some = figures(outcomes)
    each = some.pages / some.found if some.found else 0.0
    text = f"one page for each incident: {each:.2f}; {some.ringing_again} of {some.found} rang again within six hours"
    return Verdict(some.ringing_again == 0, text)
