"""What happens to the service, as data: phases that follow each other, and what people want to be told of them."""

from dataclasses import dataclass
from typing import Literal

from corpus.service import WELL, Condition

MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86400

Wants = Literal["page", "ticket", "nothing"]


@dataclass(frozen=True, slots=True)
class Phase:
    """A condition for so long, in whole ticks of ten seconds."""

    lasts_s: int
    condition: Condition


@dataclass(frozen=True, slots=True)
class Incident:
    """One kind of thing that happens. `must`: a page is promised, at any traffic."""

    name: str
    wants: Wants
    phases: tuple[Phase, ...]
    must: bool = False

    @property
    def lasts_s(self) -> int:
        return sum(phase.lasts_s for phase in self.phases)


def _rising(lasts_s: int, *plus_s: float) -> tuple[Phase, ...]:
    """A queue that grows: each step adds a longer wait."""
    return tuple(Phase(lasts_s, Condition(arrivals=1.6, ttft_plus_s=wait_s)) for wait_s in plus_s)


INCIDENTS = (
    # Streams that ran when it began fall silent; whoever comes after gets nothing. Users keep coming.
    Incident(
        "total hang",
        "page",
        (Phase(10, Condition(stalled=1.0)), Phase(2 * HOUR_S, Condition(unanswered=1.0))),
        must=True,
    ),
    Incident("2x slow", "page", (Phase(6 * HOUR_S, Condition(ttft_times=2, tpot_times=2)),), must=True),
    Incident("1.2x slow", "ticket", (Phase(DAY_S, Condition(ttft_times=1.2, tpot_times=1.2)),)),
    Incident("brown-out of 1 in 4", "page", (Phase(3 * HOUR_S, Condition(share=0.25, ttft_times=4, tpot_times=4)),)),
    Incident("error burst", "page", (Phase(15 * MINUTE_S, Condition(refused=0.3)),)),
    # Preemption comes in waves: alerts should not.
    Incident(
        "KV thrash",
        "page",
        18
        * (
            Phase(4 * MINUTE_S, Condition(ttft_plus_s=1.0, tpot_times=1.7, stalled=0.15)),
            Phase(6 * MINUTE_S, WELL),
        ),
    ),
    Incident(
        "queue overload",
        "page",
        (
            *_rising(6 * MINUTE_S, 0.2, 0.5, 1.0, 3.0, 8.0),
            Phase(HOUR_S, Condition(arrivals=1.6, ttft_plus_s=12.0, refused=0.1)),
        ),
    ),
    Incident("night trickle outage", "page", (Phase(6 * HOUR_S, Condition(arrivals_most_per_h=12, unanswered=1.0)),)),
    # Five clients wait, two minutes each, before they leave and ask again: nobody else gets in line.
    Incident(
        "admits almost nothing", "page", (Phase(2 * HOUR_S, Condition(arrivals_most_per_h=150, unanswered=0.95)),)
    ),
    Incident("decode +31 ms", "page", (Phase(6 * HOUR_S, Condition(tpot_plus_s=0.031)),)),
    # Of nine requests three would fail, and now and then five: whoever sees no more must call that an outage.
    Incident("1 of 3 fails at night", "nothing", (Phase(3 * HOUR_S, Condition(arrivals_most_per_h=1, refused=0.34)),)),
    Incident("deploy blip", "nothing", (Phase(30, Condition(refused=0.5, ttft_plus_s=2.0)),)),
    Incident(
        "daily season",
        "nothing",
        3
        * (
            Phase(10 * HOUR_S, Condition(arrivals=2.5, ttft_times=1.15)),
            Phase(14 * HOUR_S, Condition(arrivals=0.05)),
        ),
    ),
    Incident("traffic x10", "nothing", (Phase(3 * HOUR_S, Condition(arrivals=10, ttft_times=1.1)),)),
    Incident("idle", "nothing", (Phase(8 * HOUR_S, Condition(arrivals=0)),)),
    # Whoever comes first after the silence meets a cold engine, and fills the windows alone.
    Incident(
        "cold start", "nothing", (Phase(8 * HOUR_S, Condition(arrivals=0)), Phase(30, Condition(ttft_plus_s=3.0)))
    ),
    Incident(
        "restart",
        "nothing",
        (
            Phase(20, Condition(refused=1.0)),
            Phase(4 * MINUTE_S, Condition(arrivals=0, known=False)),
            Phase(MINUTE_S, Condition(ttft_plus_s=1.0)),
        ),
    ),
)
