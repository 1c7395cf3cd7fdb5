"""What was sent, and so what must have been counted; what clients saw that they should not have seen.

No socket, no clock. A request is entered before its first byte leaves, so that one that goes astray is missed.
"""

from collections import Counter
from dataclasses import dataclass, field

from slo.signals import BAD, GOOD
from storm.kinds import OBJECTIVES, SLACK_S, Kind, Request

_RESULTS = {"+": GOOD, "-": BAD}


@dataclass(slots=True)
class Ledger:
    """`sent`: the kind of each request by its number; `disturbed`: those that took so long that their events may count
    either way; `left_at_s`: when its client left (monotonic); `over`: how many are over."""

    sent: dict[int, Kind] = field(default_factory=dict)
    disturbed: set[int] = field(default_factory=set)
    left_at_s: dict[int, float] = field(default_factory=dict)
    surprises: Counter[str] = field(default_factory=Counter)
    over: int = 0

    def asked(self, asked: Request) -> None:
        """It is about to be sent, whole."""
        self.sent[asked.number] = asked.kind

    def answered(self, asked: Request, saw: str, *, took_s: float) -> None:
        """What came of it, for its client."""
        if saw != asked.kind.sees and (asked.kind.sees != "any" or saw == "other bytes"):
            self.surprise(asked.kind, f"saw {saw}, not {asked.kind.sees}")
        self._ended(asked, took_s)

    def left(self, asked: Request, *, at_s: float, took_s: float, same: bool) -> None:
        """Its client left, having had the bytes it should have until then if they are the `same`."""
        self.left_at_s[asked.number] = at_s
        if not same:
            self.surprise(asked.kind, "saw other bytes")
        self._ended(asked, took_s)

    def _ended(self, asked: Request, took_s: float) -> None:
        self.over += 1
        if took_s > asked.lasts_s + SLACK_S:
            self.disturbed.add(asked.number)

    def surprise(self, kind: Kind, what: str) -> None:
        """Something that must not happen."""
        self.surprises[f"{kind.name}: {what}"] += 1

    # What must have been counted.

    @property
    def outcomes(self) -> Counter[str]:
        """Requests of each outcome that is certain."""
        return Counter(kind.outcomes[0] for kind in self.sent.values() if len(kind.outcomes) == 1)

    @property
    def racing(self) -> Counter[tuple[str, ...]]:
        """Requests that may have one of several outcomes."""
        return Counter(kind.outcomes for kind in self.sent.values() if len(kind.outcomes) > 1)

    @property
    def synthetic(self) -> int:
        return sum(kind.synthetic for kind in self.sent.values())

    def events(self, racing_errors: int) -> dict[tuple[str, str], tuple[int, int]]:
        """The least and the most events by objective and result; `racing_errors`: racing requests that came to one."""
        least: Counter[tuple[str, str]] = Counter()
        for number, kind in self.sent.items():
            if number not in self.disturbed:
                least.update((o, _RESULTS[c]) for o, c in zip(OBJECTIVES, kind.counts, strict=True) if c in _RESULTS)
        more = {GOOD: len(self.disturbed), BAD: len(self.disturbed) + racing_errors}
        return {(o, r): (least[o, r], least[o, r] + more[r]) for o in OBJECTIVES for r in more}
