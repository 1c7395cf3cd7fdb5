"""What the store has counted, dropped and committed since its start, for `/metrics`."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from collector.values.deltas import Deltas
from collector.values.measurement import Batch, Tally

MAX_REASONS = 100


@dataclass(slots=True)
class Tallies:
    """What the store has done since its start."""

    bodies: int = 0
    repeated: int = 0
    commits: int = 0
    failures: int = 0
    commit_s: float = 0.0
    points: int = 0
    spans: int = 0
    newest_s: int | None = None
    dropped: dict[str, int] = field(default_factory=dict)

    def take(self, batch: Batch) -> None:
        """Count what a body that was counted held."""
        self.points += batch.points
        self.spans += batch.span_latencies

    def drop(self, tallies: Iterable[Tally]) -> None:
        """Count what was dropped, by its reason; beyond `MAX_REASONS` of them as other."""
        for tally in tallies:
            known = tally.reason in self.dropped or len(self.dropped) < MAX_REASONS
            reason = tally.reason if known else "other"
            self.dropped[reason] = self.dropped.get(reason, 0) + tally.count

    def add(self, total: Deltas) -> None:
        """Count what a group added and dropped."""
        self.drop((*total.rejected, *total.ignored))
        known_s = (row.start_s for row in total.known)
        self.newest_s = max((*known_s, *filter(None, (self.newest_s,))), default=None)
