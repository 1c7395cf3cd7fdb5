"""What the sidecar may cost, and whether a run shows that it does not cost more.

A promise is judged by the least values: what else runs on a machine only ever adds to a figure. Latency can be so
disturbed that nothing can be said: where nginx itself, the lightest proxy, breaks a promise on latency, it isn't
judged, which counts as not shown.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rig.figures import Figures, Relation


@dataclass(frozen=True, slots=True)
class Promise:
    """At most so many times another arm's figure, so much over it, or so much alone."""

    row: str
    most: float
    relation: Relation
    to: str = ""

    def value(self, figures: Figures, arm: str) -> float | None:
        """What was measured, by the least values; None where nothing was."""
        row = figures.row(self.row)
        if row is None or not (values := figures.values(row, arm)):
            return None
        if self.relation == "alone":
            return min(values)
        found = figures.compared(row, arm, self.to, relation=self.relation)
        return None if found is None else found.of_least


PROMISES = (
    Promise("chunk, 1000 streams apart", 1.25, "times", "nginx"),
    Promise("chunk, 64 streams apart", 1.25, "times", "nginx"),
    Promise("chunk, 256 streams together", 1.25, "times", "nginx"),
    Promise("short chat request", 4.0, "times", "nginx"),
    Promise("chunk with its share of the request, 256 streams of 20", 0.1, "times", "fastapi"),
    Promise("TTFT p50, 256 streams", 0.3, "over", "direct"),
    Promise("TTFT p99, 256 streams", 1.0, "over", "direct"),
    Promise("RSS, 1000 streams", 80.0, "alone"),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a promise was shown to be kept, and the line that says so."""

    kept: bool
    line: str


def verdicts(figures: Figures, arms: Collection[str]) -> Iterator[Verdict]:
    """One for each promise whose row was measured and whose arms ran."""
    for promise in PROMISES:
        if figures.row(promise.row) is None or not {"sidecar", promise.to or "sidecar"} <= set(arms):
            continue
        value = promise.value(figures, "sidecar")
        if value is None:
            yield Verdict(False, f"{'NOT KEPT':10}  {promise.row}: an arm did not get through")
            continue
        kept = value <= promise.most + math.ulp(promise.most)
        nginx = promise.value(figures, "nginx") if promise.relation == "over" else None
        unclear = not kept and nginx is not None and nginx > promise.most
        word = "kept" if kept else "not judged" if unclear else "NOT KEPT"
        line = f"{word:10}  {promise.row}: {value:.2f}, {_words(promise, figures)}"
        if unclear:
            line += f"; nginx itself is {nginx:.2f} over: the machine is too busy for this"
        yield Verdict(kept, line)


def _words(promise: Promise, figures: Figures) -> str:
    row = figures.row(promise.row)
    unit = "" if row is None else row.unit
    match promise.relation:
        case "times":
            return f"at most {promise.most:g} times {promise.to}"
        case "over":
            return f"at most {promise.most:g} {unit} over {promise.to}"
        case "alone":
            return f"at most {promise.most:g} {unit}"
