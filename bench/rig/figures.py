"""What many turns amount to: values by row, arm and round, and how two arms compare.

Arms are compared round by round, since what disturbs a machine lasts longer than a turn: the median of the rounds'
ratios (or differences) is the typical one. Beside it stands the ratio of the least values, each arm's own: what is
left when nothing disturbed. A round in which either arm has no value is left out.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Relation = Literal["times", "over", "alone"]

# A doubt is a share that is 0 when all is well; from this much on it is printed beside the figure.
DOUBTS = {
    "behind the pace": 0.03,  # of the chunks: the arm, or the machine, is saturated
    "chunks came joined": 0.05,  # several in one read: cheaper than they are in life
    "waited for a core": 0.05,  # of the turn: something else ran where the arm should have
    "spans missing": 0.005,  # of the requests: dropped, so that their export cost nothing
    "failed": 0.0,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was measured, its unit, and how arms relate to `base` in it."""

    title: str
    unit: str
    relation: Relation
    base: str = ""

    @property
    def headline(self) -> str:
        return f"{self.title} [{self.unit}]"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one arm's turn gave."""

    values: dict[Row, float] = field(default_factory=dict)
    doubts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """An arm to another in one row: of the least values, and of the rounds."""

    of_least: float
    median: float
    low: float
    high: float


class Figures:
    """All values of a run."""

    def __init__(self) -> None:
        self._values: dict[Row, dict[str, dict[int, float]]] = {}
        self._doubts: dict[tuple[Row, str], dict[str, list[float]]] = {}

    def add(self, number: int, arm: str, turn: Turn) -> None:
        for row, value in turn.values.items():
            self._values.setdefault(row, {}).setdefault(arm, {})[number] = value
            doubts = self._doubts.setdefault((row, arm), {})
            for doubt, share in turn.doubts.items():
                doubts.setdefault(doubt, []).append(share)

    def rows(self) -> Iterator[Row]:
        yield from self._values

    def row(self, title: str) -> Row | None:
        return next((row for row in self._values if row.title == title), None)

    def arms(self, row: Row) -> list[str]:
        return list(self._values[row])

    def values(self, row: Row, arm: str) -> list[float]:
        return list(self._values.get(row, {}).get(arm, {}).values())

    def compared(self, row: Row, arm: str, other: str, *, relation: Relation) -> Comparison | None:
        """`arm` as so many times `other`, or as so much over it; None if they share no round."""
        one, two = (self._values.get(row, {}).get(name, {}) for name in (arm, other))
        rounds = sorted(one.keys() & two.keys())
        if not rounds:
            return None

        def relate(a: float, b: float) -> float:
            return a / b if relation == "times" else a - b

        each = [relate(one[number], two[number]) for number in rounds]
        of_least = relate(min(one.values()), min(two.values()))
        return Comparison(of_least, statistics.median(each), min(each), max(each))

    def doubts(self, row: Row, arm: str) -> Iterator[str]:
        """What makes a figure doubtful, in words, the typical share of the turns."""
        for doubt, shares in self._doubts.get((row, arm), {}).items():
            if (share := statistics.median(shares)) > DOUBTS[doubt]:
                yield f"{doubt}: {share:.0%}" if share >= 0.01 else f"{doubt}: {share:.1%}"

    def as_json(self) -> dict[str, dict[str, list[float]]]:
        return {
            row.headline: {arm: list(by_round.values()) for arm, by_round in arms.items()}
            for row, arms in self._values.items()
        }
