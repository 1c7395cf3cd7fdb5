"""What must hold of our tiers on the corpus, and whether a run shows that it does."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.incidents import INCIDENTS
from corpus.paging import OURS, STOCK, Outcome
from corpus.summary import duration, figures, judged_objectives, median, stock_can_page, times_to_page_s

MUST = tuple(incident.name for incident in INCIDENTS if incident.must)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a promise was kept, and what was seen."""

    kept: bool
    text: str

    def __str__(self) -> str:
        return f"{'kept    ' if self.kept else 'NOT KEPT'}  {self.text}"


def verdicts(outcomes: Sequence[Outcome]) -> Iterator[Verdict]:
    """One for each promise that the months given can show."""
    ours = [one for one in outcomes if one.tiers == OURS]
    for name in MUST:
        if some := [one for one in ours if one.incident == name]:
            yield _found(name, some)
    yield _false_pages(ours)
    for objective in judged_objectives(outcomes):
        yield from _to_page(outcomes, objective)
    yield _one_page(ours)


def _found(name: str, outcomes: Sequence[Outcome]) -> Verdict:
    missed = Counter(one.per_h for one in outcomes if one.page_after_s is None)
    where = "".join(f"; {count} missed at {per_h:,}/h" for per_h, count in sorted(missed.items()))
    return Verdict(not missed, f"every {name} is paged: {len(outcomes) - missed.total()} of {len(outcomes)}{where}")


def _false_pages(outcomes: Sequence[Outcome]) -> Verdict:
    count = sum(one.false_pages for one in outcomes)
    by_objective: Counter[str] = Counter()
    for one in outcomes:
        by_objective.update(one.false_pages_by_objective)
    where = "".join(f"; {number} by {name}" for name, number in by_objective.most_common() if number)
    return Verdict(count == 0, f"no false page in {len(outcomes)} months: {count}{where}")


def _to_page(outcomes: Sequence[Outcome], objective: str) -> Iterator[Verdict]:
    """At or under the classic set's median; where that can never page, an end to it."""
    times = times_to_page_s(outcomes, objective)
    ours, stock = median(times[OURS]), median(times[STOCK])
    if ours is None or stock is None:
        return
    told = f"{objective}: median time to page {duration(ours)}"
    if not stock_can_page(objective):
        yield Verdict(math.isfinite(ours), f"{told}, where the classic set never can, over {len(times[OURS])} months")
        return
    later = ", ".join(f"{per_h:,}/h" for per_h in _later(outcomes, objective))
    where = f"; later at {later}" if later else ""
    yield Verdict(ours <= stock, f"{told}, the classic set's {duration(stock)}{where}, over {len(times[OURS])} months")


def _later(outcomes: Sequence[Outcome], objective: str) -> Iterator[int]:
    """The levels of traffic at which our median is the later one."""
    for per_h in sorted({one.per_h for one in outcomes}):
        times = times_to_page_s((one for one in outcomes if one.per_h == per_h), objective)
        ours, stock = median(times[OURS]), median(times[STOCK])
        if ours is not None and stock is not None and ours > stock:
            yield per_h


def _one_page(outcomes: Sequence[Outcome]) -> Verdict:
    some = figures(outcomes)
    each = some.pages / some.found if some.found else 0.0
    text = f"one page for each incident: {each:.2f}; {some.ringing_again} of {some.found} rang again within six hours"
    return Verdict(some.ringing_again == 0, text)
