"""What a run of load was like, in numbers for people: rates, latencies and how many requests were in the system.

Little's law ties them: a mean of N in the system is the rate times the mean time in it. How far the two sides are apart
says how far the run was from a steady state.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from capacity.record import Load, Record
from capacity.summary import Summary, quantile, summarise


@dataclass(frozen=True, slots=True)
class Crowd:
    """Requests in the system at once: mean, and what 95 % of the time stays within; the same mean by Little's law."""

    mean: float
    p95: float
    by_little: float

    @property
    def residual(self) -> float:
        """How far the two means are apart, as a share of the measured one."""
        return abs(self.mean - self.by_little) / self.mean if self.mean else 0.0


@dataclass(frozen=True, slots=True)
class Facts:
    """One run."""

    summary: Summary
    crowd: Crowd
    output_tokens: float

    def as_json(self) -> dict[str, object]:
        return {
            "summary": self.summary.as_json(),
            "concurrency": {**asdict(self.crowd), "residual": self.crowd.residual},
            "output_tokens": self.output_tokens,
        }


def facts(target: str, records: Sequence[Record], from_s: float, to_s: float) -> Facts:
    """The facts of the requests due within a span of time; `records` may hold more."""
    due = tuple(record for record in records if from_s <= record.intended_s < to_s)
    load = Load(target, from_s, to_s - from_s, len(due), due)
    return Facts(summarise(load), crowd(records, from_s, to_s), _tokens(due))


def alone(target: str, records: Sequence[Record]) -> dict[str, object]:
    """The facts of requests that were sent one after the other, each with a clock of its own."""
    load = Load(target, 0.0, sum(record.e2e_s for record in records), len(records), tuple(records))
    return {"summary": summarise(load).as_json(), "output_tokens": _tokens(records)}


def _tokens(records: Sequence[Record]) -> float:
    ok = [record for record in records if record.outcome == "ok"]
    return sum(record.output_tokens for record in ok) / len(ok) if ok else 0.0


def crowd(records: Sequence[Record], from_s: float, to_s: float) -> Crowd:
    """How many requests were in the system, from when each was due to its end, over a span of time."""
    if to_s <= from_s:
        return Crowd(0.0, 0.0, 0.0)
    moves = sorted(
        move
        for record in records
        if record.end_s > from_s and record.intended_s < to_s
        for move in ((max(record.intended_s, from_s), 1), (min(record.end_s, to_s), -1))
    )
    held: dict[int, float] = {}
    now_s, inside = from_s, 0
    for at_s, change in moves:
        held[inside] = held.get(inside, 0.0) + at_s - now_s
        now_s, inside = at_s, inside + change
    held[inside] = held.get(inside, 0.0) + to_s - now_s
    span_s = to_s - from_s
    stays = [record.e2e_s for record in records if from_s <= record.intended_s < to_s]
    return Crowd(sum(n * s for n, s in held.items()) / span_s, _p95(held, span_s), sum(stays) / span_s)


def _p95(held: dict[int, float], span_s: float) -> float:
    reached = 0.0
    for number in sorted(held):
        reached += held[number]
        if reached >= 0.95 * span_s:
            return float(number)
    return float(max(held))


def flood_rate(ends_s: Sequence[float]) -> tuple[float, float]:
    """Answers a second of a full server and the standard error, from when each of at least 20 answers ended.

    Taken between 10 % and 85 % of the departures: before, the server fills; after, it empties.
    """
    ascending = sorted(ends_s)
    first, last = int(0.10 * len(ascending)), int(0.85 * len(ascending))
    blocks = min(10, (last - first) // 2)
    edges = [ascending[first + (last - first) * block // blocks] for block in range(blocks + 1)]
    gaps = [max(b - a, 1e-9) for a, b in pairwise(edges)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1)
    rate = (last - first) / sum(gaps)
    return rate, rate * (variance / len(gaps)) ** 0.5 / mean


def at_work(records: Sequence[Record]) -> float:
    """How many answers were under way at once, from first to last token: what 90 % of the moments of a first token
    stay within."""
    spans = [(r.first_token_s, r.end_s) for r in records if r.first_token_s is not None]
    counts = sorted(sum(a <= at_s < b for a, b in spans) for at_s, _ in spans)
    return float(quantile([float(count) for count in counts], 0.9)) if counts else 0.0
