"""What the doctor says: a finding, and how a check that makes some is written down."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from firsttoken.doctor.facts import Facts

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""Worst first: something is lost or nobody is told; something misleads or will go wrong; good to know."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is missing or wrong: what it is, where it was seen, and what mends it."""

    code: str
    severity: Severity
    what: str
    where: str
    fix: str

    @property
    def is_wrong(self) -> bool:
        """Whether it is more than a note."""
        return self.severity != "note"

    def mapping(self) -> dict[str, str]:
        """The finding as JSON."""
        return {
            "code": self.code,
            "severity": self.severity,
            "what": self.what,
            "where": self.where,
            "fix": self.fix,
        }


def counted_both_ways(service: str, where: str) -> Finding:
    """Of a service with sidecars that requests pass by and others that only scrape."""
    what = (
        f"service {service} has sidecars that requests pass by and sidecars that only scrape: where both watch one "
        "server, its requests count twice"
    )
    fix = "take the scraping one away, or give it a service name of its own (--service)"
    return Finding("double-counting", "warning", what, where, fix)


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table: the codes that it can find, in words what it looks for, and the pure function."""

    codes: tuple[str, ...]
    about: str
    find: Callable[[Facts], Iterable[Finding]]
