"""What the collector may cost, and whether a run shows that it does not cost more.

By the least values, since what else runs on a machine only ever adds. Some promises have two ways: so much on one
core, or so many times a yardstick that was measured beside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rig.figures import Figures
from rig.promises import Verdict

OURS = "collector"


@dataclass(frozen=True, slots=True)
class Promise:
    """A row's figure in an arm: at most `most`, or at most so many times that of `to`."""

    row: str
    arm: str
    most: float | None = None
    to: str = ""
    times: float | None = None

    def verdict(self, figures: Figures) -> Verdict | None:
        """None where the row was not measured."""
        row = figures.row(self.row)
        values = [] if row is None else figures.values(row, self.arm)
        if row is None or not values:
            return None
        value, others, ways = min(values), figures.values(row, self.to), []
        if self.most is not None:
            ways.append((value <= self.most, f"at most {self.most:g} {row.unit}"))
        if self.times is not None and others:
            said = f"at most {self.times:.2g} times {self.to}, it is {value / min(others):.2g}"
            ways.append((value <= self.times * min(others), said))
        if not ways:
            return Verdict(False, f"{'not judged':10}  {self.row}, {self.arm}: {self.to} did not run")
        kept = any(good for good, _ in ways)
        words = ", or ".join(said for _, said in ways)
        return Verdict(kept, f"{'kept' if kept else 'NOT KEPT':10}  {self.row}, {self.arm}: {value:.2f}, {words}")


PROMISES = (
    *(
        Promise(f"span of {sender}", way, 5.0, "rotel", 2.2)
        for sender in ("a sidecar", "vLLM")
        for way in ("http", "grpc")
    ),
    *(Promise("histogram point of a sidecar", way, 10.0) for way in ("http", "grpc")),
    Promise("tick, 1000 series, 7 windows", OURS, 30.0),
    Promise("evaluation with a window of 30 days", OURS, to="with one of 90 minutes", times=1.1),
    Promise("quantile of a window of a series", OURS, to="prometheus", times=0.01),
    Promise("memory, 1000 series, 7 windows", OURS, 400.0),
)


def verdicts(figures: Figures) -> Iterator[Verdict]:
    """One for each promise whose row was measured."""
    found = (promise.verdict(figures) for promise in PROMISES)
    return (verdict for verdict in found if verdict is not None)
