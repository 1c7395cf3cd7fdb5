"""One line for each case and path: what its pager should have been told, and what it was told. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from firsttoken.pager import Notification
from paging_parts.account import Account, account

HEAD = ("case", "path", "expected", "told", "to page", "to resolve", "verdict", "what happened")


@dataclass(frozen=True, slots=True)
class Played:
    """What happened. Of an incident: when it began and ended (epoch seconds), and how many burns that are tickets fired
    by each path while the page stood. Of a quiet case, that it was one: `fault` says why it proves nothing."""

    seen: str
    began_s: float | None = None
    ended_s: float = 0.0
    tickets_held: Mapping[str, int] | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What people want of a case: pages (each to be resolved), and within how long of its begin. Tickets: none."""

    pages: int = 0
    within_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """One path of one case; times are None where nothing was told."""

    case: str
    path: str
    wanted: Wanted
    pages: Account
    tickets: Account
    played: Played

    @property
    def to_page_s(self) -> float | None:
        """From the begin of the incident to its page."""
        began_s = self.played.began_s
        return None if began_s is None or not self.pages.opened else self.pages.opened[0] - began_s

    @property
    def to_resolve_s(self) -> float | None:
        """From the end of the incident to the end of its page."""
        return (
            None
            if self.played.began_s is None or not self.pages.closed
            else self.pages.closed[-1] - self.played.ended_s
        )

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not as it should be."""
        return tuple(self._faults())

    def _faults(self) -> Iterator[str]:
        if self.played.fault:
            yield self.played.fault
        if len(self.pages.opened) != self.wanted.pages:
            yield f"{len(self.pages.opened)} pages"
        if len(self.pages.closed) != len(self.pages.opened):
            yield f"{len(self.pages.closed)} resolved"
        if self.tickets.opened:
            yield f"{len(self.tickets.opened)} tickets told: {', '.join(self.tickets.names)}"
        if not self.wanted.pages:
            return
        if self.to_page_s is not None and not 0 <= self.to_page_s <= self.wanted.within_s:
            yield f"paged after {self.to_page_s:.0f} s, not within {self.wanted.within_s:g} s"
        if self.played.tickets_held is not None and not self.played.tickets_held[self.path]:
            yield "no ticket burned that the page could have held back"

    @property
    def cells(self) -> tuple[str, ...]:
        """As `HEAD` names them."""
        verdict = "as it should be" if not self.faults else f"WRONG: {'; '.join(self.faults)}"
        times = ("" if each is None else f"{each:.0f} s" for each in (self.to_page_s, self.to_resolve_s))
        held = (self.played.tickets_held or {}).get(self.path)
        seen = self.played.seen if held is None else f"{self.played.seen}; {held} tickets held back"
        return (
            self.case,
            self.path,
            _counts(self.wanted.pages, self.wanted.pages, 0),
            self._told,
            *times,
            verdict,
            seen,
        )

    @property
    def _told(self) -> str:
        joined = f" (+{self.pages.joined} joined)" if self.pages.joined else ""
        return _counts(len(self.pages.opened), len(self.pages.closed), len(self.tickets.opened)) + joined


def line(case: str, path: str, wanted: Wanted, *, messages: Sequence[Notification], played: Played) -> Line:
    """The line of a path whose pager was told these messages."""
    return Line(case, path, wanted, account(messages, "page"), account(messages, "ticket"), played)


def table(lines: Sequence[Line], *, markdown: bool = False) -> Iterator[str]:
    """All of them under their head."""
    rows = [HEAD, *(one.cells for one in lines)]
    if markdown:
        rows.insert(1, ("---",) * len(HEAD))
        yield from (f"| {' | '.join(row)} |" for row in rows)
        return
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _counts(pages: int, resolved: int, tickets: int) -> str:
    if not (pages or resolved or tickets):
        return "nothing"
    return f"{pages} page, {resolved} resolved" + (f", {tickets} ticket" if tickets else "")
