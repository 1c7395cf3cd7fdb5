"""What a load's records say: counts by outcome, and quantiles of each latency.

A quantile is the nearest rank, the smallest value that at least a share q of all values does not exceed, so that "95 %
within x" is literally true of it. Requests without a value are not in a quantile; they are in the outcomes.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from capacity.record import Load

LATE_S = 0.010


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Seconds; every one None when `count` is 0."""

    count: int
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """A load in numbers. `late` is this client's own delay in sending; `hop_ttft` leaves that delay out."""

    seconds: float
    planned: int
    sent: int
    offered_rps: float
    completed_rps: float
    output_tokens_per_s: float
    outcomes: dict[str, int]
    ttft: Quantiles
    hop_ttft: Quantiles
    tpot: Quantiles
    e2e: Quantiles
    late: Quantiles

    @property
    def is_client_late(self) -> bool:
        """Whether this client fell behind its own schedule so far that the load was not what was asked for."""
        return self.late.p99 is not None and self.late.p99 > LATE_S

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def quantile(ascending: Sequence[float], share: float) -> float:
    """The nearest-rank quantile of at least one value in ascending order; `share` above 0 and at most 1."""
    assert ascending
    assert 0 < share <= 1
    # 0.95 * 20 is 19.000000000000004 for some shares: the rank must not jump for that.
    return ascending[max(math.ceil(round(share * len(ascending), 9)), 1) - 1]


def quantiles(values: Iterable[float | None]) -> Quantiles:
    """Quantiles of the values that are there."""
    ascending = sorted(value for value in values if value is not None)
    if not ascending:
        return Quantiles(0, None, None, None, None, None)
    p50, p90, p95, p99 = (quantile(ascending, share) for share in (0.5, 0.9, 0.95, 0.99))
    return Quantiles(len(ascending), p50, p90, p95, p99, ascending[-1])


def summarise(load: Load) -> Summary:
    """The whole load in numbers."""
    records = load.records
    ok = [record for record in records if record.outcome == "ok"]
    seconds = max(load.seconds, 1e-9)
    return Summary(
        seconds=load.seconds,
        planned=load.planned,
        sent=sum(record.sent_s is not None for record in records),
        offered_rps=len(records) / seconds,
        completed_rps=len(ok) / seconds,
        output_tokens_per_s=sum(record.output_tokens for record in records) / seconds,
        outcomes=dict(sorted(Counter(record.outcome for record in records).items())),
        ttft=quantiles(record.ttft_s for record in records),
        hop_ttft=quantiles(record.hop_ttft_s for record in records),
        tpot=quantiles(record.tpot_s for record in records),
        e2e=quantiles(record.e2e_s for record in ok),
        late=quantiles(record.late_s for record in records),
    )
