"""How well the search for the batch does on servers whose best batch is known, and whether that is well enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from queues.batching import Batching
from queues.tuning import Tuning, tuned

LEAST_WITHIN = 0.90
MOST_REQUESTS = 400


@dataclass(frozen=True, slots=True)
class TuningBed:
    """A server with a knob."""

    name: str
    server: Tuning


@dataclass(frozen=True, slots=True)
class TuningGrade:
    """All searches on one bed: the batch each chose, 0 for none, and its requests."""

    bed: TuningBed
    chosen: tuple[int, ...]
    least: tuple[int, ...]
    requests: tuple[int, ...]

    @property
    def truth(self) -> int:
        """The largest batch that keeps every promise; 0 where none does."""
        largest, bed = self.bed.server.largest(), self.bed.server
        if bed.rate_rps is None:
            return largest
        least = bed.least()
        return 0 if least is None or least > largest else largest

    @property
    def within(self) -> int:
        """Searches that chose the truth or its neighbour; where there is none, those that chose none."""
        return sum(one == self.truth or (self.truth > 0 and abs(one - self.truth) == 1) for one in self.chosen)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not as it must be; nothing where all is well."""
        if self.within >= LEAST_WITHIN * len(self.chosen):
            return ()
        return (f"within one step in {self.within} of {len(self.chosen)}",)

    def row(self) -> tuple[str, ...]:
        """The line of the table."""
        least = None if self.bed.server.rate_rps is None else self.bed.server.least()
        return (
            self.bed.name,
            str(self.truth),
            str(self.chosen.count(self.truth)),
            str(self.within),
            f"{min(self.chosen)}-{max(self.chosen)}",
            "-" if least is None or not self.truth else str(least),
            f"{min(self.least)}-{max(self.least)}" if self.truth else "-",
            f"{median(self.requests):,.0f}",
            ", ".join(self.faults) or "pass",
        )


HEAD = ("server", "truth", "exact", "within one", "chosen", "least", "found least", "requests", "verdict")


def grade(bed: TuningBed, seeds: Sequence[int]) -> TuningGrade:
    """Search for the batch of one bed, once a seed."""
    found = [tuned(bed.server, seed, most_requests=MOST_REQUESTS) for seed in seeds]
    return TuningGrade(
        bed,
        tuple(outcome.chosen or 0 for outcome, _ in found),
        tuple(outcome.feasible_min or 0 for outcome, _ in found),
        tuple(requests for _, requests in found),
    )


def _server(step_s: float, each_s: float, longest_s: float, budget: float = 0.05) -> Batching:
    return Batching(1, 50, step_s, each_s, 0.5, longest_s, (0.05, budget))


BEDS = (
    TuningBed("steps scatter by 3 %", Tuning(_server(0.010, 0.001, 0.050), 0.03, rate_rps=9.0)),
    TuningBed("steps scatter by 8 %", Tuning(_server(0.010, 0.001, 0.050), 0.08, rate_rps=9.0)),
    TuningBed("99 % of steps", Tuning(_server(0.020, 0.0005, 0.045, 0.01), 0.02, rate_rps=12.0)),
    TuningBed("a few at once", Tuning(_server(0.010, 0.004, 0.050), 0.03, rate_rps=2.0)),
    TuningBed("no rate stated", Tuning(_server(0.010, 0.001, 0.050), 0.03)),
    TuningBed("one alone is too slow", Tuning(_server(0.060, 0.004, 0.050), 0.03, rate_rps=2.0)),
    TuningBed("more than any batch carries", Tuning(_server(0.010, 0.001, 0.050), 0.03, rate_rps=30.0)),
)
