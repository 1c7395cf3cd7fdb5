"""How well the search does on servers whose capacity is known, and whether that is well enough."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from capacity.certify.judge import Rigour
from queues.batching import Batching
from queues.cliff import Cliff
from queues.erlang import Erlang
from queues.freeze import Freeze
from queues.servers import Server, certified

MOST_OVER = 0.10
MOST_VIOLATION = 2.0
CLOSE, LEAST_CLOSE = 0.93, 0.95
PERIODS_SEEN = 10


@dataclass(frozen=True, slots=True)
class Bed:
    """A server, and how long its runs must last to see what is rare on it. `close`: how near the truth it is held."""

    name: str
    server: Server
    least_seconds: float = 0.0
    close: float = CLOSE


@dataclass(frozen=True, slots=True)
class Mark:
    """One search on one bed. Rates are parts of the truth; violation is the part of the budget that the certified rate
    really spends."""

    certified: float | None
    refuted: float | None
    violation: float
    requests: int
    probes: int


@dataclass(frozen=True, slots=True)
class Grade:
    """All searches on one bed."""

    bed: Bed
    truth: float
    marks: tuple[Mark, ...]

    @property
    def rates(self) -> tuple[float, ...]:
        return tuple(sorted(mark.certified for mark in self.marks if mark.certified is not None))

    @property
    def over(self) -> int:
        """Searches that certified more than the server can do."""
        return sum(mark.violation > 1 for mark in self.marks)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not as it must be; nothing where all is well."""
        return tuple(self._faults())

    def _faults(self) -> Iterator[str]:
        searches = len(self.marks)
        if self.over > MOST_OVER * searches:
            yield f"over capacity in {self.over} of {searches}"
        worst = max(mark.violation for mark in self.marks)
        if worst > MOST_VIOLATION:
            yield f"spends {worst:.2f} budgets"
        if not self.truth:
            return
        close = sum(rate >= self.bed.close for rate in self.rates)
        if close < LEAST_CLOSE * searches:
            yield f"within {1 - self.bed.close:.0%} of the truth in {close} of {searches}"

    def row(self) -> tuple[str, ...]:
        """The line of the table."""
        found, refuted = self.rates, [mark.refuted for mark in self.marks if mark.refuted is not None]
        lowest = f"{found[0]:.3f}" if found and self.truth else "-"
        middle = f"{median(found):.3f}" if found and self.truth else "-"
        return (
            self.bed.name,
            f"{self.truth:.3f}",
            str(len(self.marks) - len(found)),
            str(self.over),
            f"{max(mark.violation for mark in self.marks):.2f}",
            lowest,
            middle,
            f"{median(refuted):.3f}" if refuted and self.truth else "-",
            f"{median(mark.requests for mark in self.marks):,.0f}",
            ", ".join(self.faults) or "pass",
        )


HEAD = ("server", "truth", "none", "over", "worst", "least L", "median L", "median H", "requests", "verdict")


def grade(bed: Bed, seeds: Sequence[int], most_requests: int) -> Grade:
    """Search for the capacity of one bed, once a seed."""
    rigour = Rigour(tolerance=0.03, most_requests=most_requests, least_seconds=bed.least_seconds)
    truth = bed.server.truth()
    return Grade(bed, truth, tuple(_mark(bed.server, rigour, seed, truth) for seed in seeds))


def _mark(server: Server, rigour: Rigour, seed: int, truth: float) -> Mark:
    outcome, requests = certified(server, rigour, seed)
    found, refuted = outcome.certified, outcome.refuted
    violation = 0.0
    if found is not None:
        shares = server.shares(found.rate_rps)
        violation = max(share / goal.budget for share, goal in zip(shares, server.goals(), strict=True))
    scale = truth or 1.0
    return Mark(
        None if found is None else found.rate_rps / scale,
        None if refuted is None else refuted.rate_rps / scale,
        violation,
        requests,
        len(outcome.probes),
    )


def _erlang(servers: int, threshold: float, budget: float) -> Bed:
    return Bed(f"M/M/{servers}, {1 - budget:.0%} within {threshold:g}", Erlang(servers, threshold, budget))


BEDS = (
    _erlang(1, 10, 0.05),
    _erlang(1, 20, 0.01),
    _erlang(4, 4, 0.10),
    _erlang(4, 5, 0.05),
    _erlang(16, 5, 0.05),
    _erlang(16, 6.5, 0.01),
    _erlang(64, 4.5, 0.05),
    Bed("batching, bound by the wait", Batching(32, 50, 0.01, 0.001, 0.5, 0.050, (0.05, 0.05))),
    Bed("batching, bound by the step", Batching(32, 50, 0.01, 0.001, 1.0, 0.038, (0.05, 0.05))),
    Bed("batching, 99% of steps", Batching(64, 100, 0.02, 0.0005, 2.0, 0.045, (0.05, 0.01))),
    Bed("cliff far from the ceiling", Cliff(10, 13, 0.005, 0.6, 0.05)),
    Bed("cliff near the ceiling", Cliff(10, 10.5, 0.01, 0.3, 0.05)),
    Bed("freeze 1.5 s in 30 s", Freeze(100, 30, 1.5, 0.5, 0.10), 30.0 * PERIODS_SEEN, 0.90),
    Bed("freeze 0.6 s in 20 s", Freeze(50, 20, 0.6, 0.2, 0.05), 20.0 * PERIODS_SEEN, 0.85),
    _erlang(4, 2.5, 0.05),
    Bed("M/M/16, 95% within 2.99", Erlang(16, 2.99, 0.05)),
    Bed("cliff, 6% bad below", Cliff(10, 13, 0.06, 0.6, 0.05)),
    Bed("freeze 2.5 s in 30 s", Freeze(100, 30, 2.5, 0.5, 0.05), 30.0 * PERIODS_SEEN),
)
