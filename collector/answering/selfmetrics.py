"""What the collector says of itself on `/metrics`: how much came, how late, what was dropped, what its work costs.

Takes what the shells tally, gives metric families as values; `exposition` alone knows the text they become. A figure
that is not known yet (no telemetry, no evaluation, a size nobody could ask for) gives no family.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from collector.keeping.tallies import Tallies
from collector.telling.notify import Deliveries
from collector.ticking.ticks import TickTallies
from slo import signals
from slo.signals import LABELS, Metric

UNLABELLED = ""


@dataclass(frozen=True, slots=True)
class Family:
    """One metric and its samples by the value of `label`; a metric without one has its sample under ''."""

    metric: Metric
    samples: Mapping[str, float]
    label: str = UNLABELLED


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes that the database takes; `wal_bytes` is SQLite's write-ahead log, which other databases have not."""

    main_bytes: int
    wal_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """The collector's work so far, at `now_s`. `evaluated_s` is the moment of the last evaluation."""

    now_s: float
    store: Tallies
    ticks: TickTallies
    waiting: int = 0
    evaluated_s: int | None = None
    size: Size | None = None
    deliveries: Mapping[str, Deliveries] = field(default_factory=dict)
    refused: Mapping[int, int] = field(default_factory=dict)


def families(work: Work) -> Iterator[Family]:
    """Every family of the collector's own."""
    yield from _intake(work)
    yield from _database(work)
    yield from _evaluations(work)
    sent = {name: delivery.sent for name, delivery in work.deliveries.items()}
    yield Family(signals.NOTIFIED, sent, "receiver")
    failed = {name: delivery.failures for name, delivery in work.deliveries.items()}
    yield Family(signals.NOTIFY_FAILURES, failed, "receiver")
    listening = {name: float(delivery.standing == "listens") for name, delivery in work.deliveries.items()}
    yield Family(signals.RECEIVER_UP, listening, "receiver")


def _intake(work: Work) -> Iterator[Family]:
    store, reason = work.store, LABELS[signals.REASON]
    yield _one(signals.INTAKE_BODIES, store.bodies)
    yield _one(signals.INTAKE_REPEATED, store.repeated)
    yield _one(signals.INTAKE_POINTS, store.points)
    yield _one(signals.INTAKE_SPANS, store.spans)
    yield Family(signals.INTAKE_DROPPED, dict(store.dropped), reason)
    yield Family(signals.INTAKE_REFUSED, {str(status): count for status, count in work.refused.items()}, reason)
    yield _one(signals.INTAKE_WAITING, work.waiting)
    if store.newest_s is not None:
        yield _one(signals.INTAKE_LAG, max(work.now_s - store.newest_s, 0.0))


def _database(work: Work) -> Iterator[Family]:
    yield _one(signals.COMMITS, work.store.commits)
    yield _one(signals.COMMIT_FAILURES, work.store.failures)
    yield _one(signals.COMMIT_TIME, work.store.commit_s)
    if work.size is not None:
        yield _one(signals.DATABASE_SIZE, work.size.main_bytes)
        if work.size.wal_bytes is not None:
            yield _one(signals.DATABASE_WAL, work.size.wal_bytes)


def _evaluations(work: Work) -> Iterator[Family]:
    ticks = work.ticks
    yield _one(signals.TICKS, ticks.ticks)
    yield _one(signals.TICK_FAILURES, ticks.failures)
    yield _one(signals.TICK_TIME, ticks.seconds)
    yield _one(signals.TICK_DURATION, ticks.last_s)
    yield _one(signals.TICK_UNSAVED, ticks.unsaved)
    yield _one(signals.LEADER, int(ticks.leads))
    if work.evaluated_s is not None:
        yield _one(signals.EVALUATION_AGE, max(work.now_s - work.evaluated_s, 0.0))


def _one(metric: Metric, value: float) -> Family:
    return Family(metric, {UNLABELLED: value})
