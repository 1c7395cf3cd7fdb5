"""Unit costs of a collector from a few runs of it, and what a fleet costs by them. Pure.

A second of a collector costs so much for standing there, for each service that it judges, each replica that it knows,
each body, each export of metrics (with the spans that go beside it) and each span. The runs are chosen so that each of
these differs from the others in one of them; the fit is by least squares of relative errors, so that a small run
counts as much as a large one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fleet.driving import Asked, Seen

RUNS = (
    Asked(replicas=50, services=1, rps=1),
    Asked(replicas=1_200, services=1, rps=1),
    Asked(replicas=1_200, services=1, rps=1, every_s=60),
    Asked(replicas=1_200, services=1, rps=1, joined=50),
    Asked(replicas=50, services=1, rps=100),
    Asked(replicas=50, services=50, rps=1),
)
"""What is measured: a little, and then more of one thing each time."""


@dataclass(frozen=True, slots=True)
class Units:
    """What a second costs: the six parts of something that adds up."""

    standing: float
    service: float
    replica: float
    body: float
    export: float
    span: float

    def of(self, asked: Asked) -> float:
        """What the fleet costs."""
        parts = (self.standing, self.service, self.replica, self.body, self.export, self.span)
        return sum(part * count for part, count in zip(parts, _counts(asked), strict=True))


def fit(asked: Sequence[Asked], measured: Sequence[float]) -> Units:
    """The parts that explain what was measured; none is below nothing, which only noise could make it."""
    counts = np.array([_counts(one) for one in asked])
    weights = 1 / np.array(measured)
    kept = list(range(counts.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(counts[:, kept] * weights[:, None], np.ones(len(asked)), rcond=None)
        if (found >= 0).all():
            return Units(*(float(found[kept.index(part)]) if part in kept else 0.0 for part in range(counts.shape[1])))
        kept.pop(int(np.argmin(found)))


@dataclass(frozen=True, slots=True)
class Costs:
    """What a fleet costs a collector: cores in all, the share of one core that its busiest thread takes (the first to
    be full), megabytes of memory, bytes a second to the disk and over the wire."""

    cpu: Units
    busiest: Units
    rss_mb: Units
    disk_bytes: Units
    wire_bytes: Units


def costs(seen: Sequence[Seen]) -> Costs:
    """Of the runs of `RUNS`."""
    asked = [one.asked for one in seen]
    names = ("cpu", "busiest", "rss_mb", "disk_bytes", "wire_bytes")
    return Costs(*(fit(asked, [getattr(one, name) for one in seen]) for name in names))


def _counts(asked: Asked) -> tuple[float, ...]:
    return 1.0, asked.services, asked.replicas, asked.bodies, asked.exports, asked.spans
