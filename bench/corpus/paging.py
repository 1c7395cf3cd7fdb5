"""What a person is told of a month's alerts, and what that says of the incident.

Pages of all objectives and tiers of a service are one notification for as long as any of them fires; one that ends and
comes back before the group is looked at again (5 m) never ended. Tickets are one an objective, and held back while a
page of that objective fires. Both sets are routed alike, as DESIGN 4.6 does: what differs is the tiers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from corpus.counts import Month
from corpus.incidents import HOUR_S
from corpus.service import OBJECTIVES
from corpus.verdicts import CLASSIC, Counter, Firing, fired, fired_classic
from slo.burn import tiers
from slo.objective import Objective

OURS, STOCK = "ours", "classic"
SETS = (OURS, STOCK)
GROUP_INTERVAL_S = 300
TICKET_WAIT_S = 60
AFTER_S = HOUR_S
"""An incident is found by a page that begins so soon after it: deadlines and short windows outlive it."""
AGAIN_S = 6 * HOUR_S
"""A page that begins so soon after an incident rings for it again: a page tier's long window still holds its events."""


@dataclass(frozen=True, slots=True)
class Alerts:
    """The firings of one objective, all its tiers together."""

    pages: tuple[Firing, ...]
    tickets: tuple[Firing, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one set of tiers made of one month. None: it never came. `bad_most`: so many bad events the objective had
    that was hit most."""

    tiers: str
    incident: str
    per_h: int
    seed: int
    bad_most: int
    page_after_s: int | None
    ticket_after_s: int | None
    page_after_s_by_objective: Mapping[str, int | None]
    pages: int
    false_pages: int
    false_pages_by_objective: Mapping[str, int]
    tickets: int
    reset_s: int | None


def outcomes(month: Month, objectives: Sequence[Objective] = OBJECTIVES) -> Iterator[Outcome]:
    """One for each set of tiers, over the objectives given."""
    counters = [(one, Counter(month.steps, month.by_objective[OBJECTIVES.index(one)])) for one in objectives]
    yield outcome(month, OURS, {one.name: _ours(one, counter) for one, counter in counters})
    yield outcome(month, STOCK, {one.name: _classic(one, counter) for one, counter in counters})


def _ours(objective: Objective, counter: Counter) -> Alerts:
    return _alerts([(tier.notify, fired(counter, tier)) for tier in tiers(objective)])


def _classic(objective: Objective, counter: Counter) -> Alerts:
    return _alerts([(tier.notify, fired_classic(counter, tier, objective.allowed_bad)) for tier in CLASSIC])


def _alerts(found: Sequence[tuple[str, list[Firing]]]) -> Alerts:
    return Alerts(
        joined(one for notify, some in found if notify == "page" for one in some),
        joined(one for notify, some in found if notify == "ticket" for one in some),
    )


def joined(firings: Iterable[Firing]) -> tuple[Firing, ...]:
    """Notifications that they are: those that overlap, or nearly, are one."""
    found: list[Firing] = []
    for one in sorted(firings, key=lambda firing: firing.begins_s):
        if found and one.begins_s < found[-1].ends_s + GROUP_INTERVAL_S:
            found[-1] = Firing(found[-1].begins_s, max(found[-1].ends_s, one.ends_s))
        else:
            found.append(one)
    return tuple(found)


def told(tickets: Iterable[Firing], pages: Iterable[Firing]) -> tuple[int, ...]:
    """When each ticket is told: as soon as no page holds it back for as long as its group waits."""
    held = sorted(pages, key=lambda firing: firing.begins_s)
    found = []
    for ticket in tickets:
        at_s = ticket.begins_s
        for page in held:
            if page.begins_s < at_s + TICKET_WAIT_S and page.ends_s > at_s:
                at_s = page.ends_s
        if at_s + TICKET_WAIT_S <= ticket.ends_s:
            found.append(at_s)
    return tuple(found)


def outcome(month: Month, tiers_name: str, alerts: Mapping[str, Alerts]) -> Outcome:
    """What these alerts say of the month."""
    pages = joined(one for some in alerts.values() for one in some.pages)
    due = [page for page in pages if _speaks_of(month, page)]
    told_at_s = [at_s for some in alerts.values() for at_s in told(some.tickets, some.pages)]
    tickets = [at_s for at_s in told_at_s if month.begins_s <= at_s < month.ends_s + AGAIN_S]
    return Outcome(
        tiers=tiers_name,
        incident=month.incident.name,
        per_h=month.per_h,
        seed=month.seed,
        bad_most=max(_bad(month, name) for name in alerts),
        page_after_s=_first_s(month, pages),
        ticket_after_s=min(tickets) - month.begins_s if tickets else None,
        page_after_s_by_objective={name: _first_s(month, some.pages) for name, some in alerts.items()},
        pages=len(due),
        false_pages=len(pages) - len(due),
        false_pages_by_objective={
            name: sum(not _speaks_of(month, page) for page in some.pages) for name, some in alerts.items()
        },
        tickets=len(tickets),
        reset_s=_reset_s(month, due),
    )


def _bad(month: Month, objective: str) -> int:
    """The bad events of an objective while a page would still find the incident."""
    counts = month.by_objective[[one.name for one in OBJECTIVES].index(objective)]
    starts_s = month.steps.starts_s
    return int(counts.bad[(starts_s >= month.begins_s) & (starts_s < month.ends_s + AFTER_S)].sum())


def _speaks_of(month: Month, page: Firing) -> bool:
    return month.incident.wants != "nothing" and month.begins_s <= page.begins_s < month.ends_s + AGAIN_S


def _first_s(month: Month, pages: Iterable[Firing]) -> int | None:
    """How long after the incident began the first page that finds it came."""
    found = next((page.begins_s for page in pages if _speaks_of(month, page)), None)
    return None if found is None or found >= month.ends_s + AFTER_S else found - month.begins_s


def _reset_s(month: Month, due: Iterable[Firing]) -> int | None:
    """How long after the incident the page that was there at its end went on."""
    last = [page.ends_s - month.ends_s for page in due if page.begins_s < month.ends_s <= page.ends_s]
    return last[-1] if last else None
