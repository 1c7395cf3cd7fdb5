"""Whether the collector may be relied on now, in words. Pure.

It is ready when what it shows is of now and what it is sent can be kept. Anything else is said with its reason, so that
whoever sends it traffic waits, and whoever looks knows what for.
"""

from dataclasses import dataclass

LATE_TICKS = 6
LEAST_LATE_S = 15
"""An evaluation is late after six ticks, and never sooner than this: ticks of a second may stumble."""


@dataclass(frozen=True, slots=True)
class Health:
    """What readiness follows from. `evaluated_s` is None before the first evaluation; `failing` is why the database
    cannot commit, None when it can."""

    now_s: float
    tick_s: int
    evaluated_s: int | None
    failing: str | None = None
    is_recalling: bool = False


def trouble(health: Health) -> str | None:
    """Why the collector is not ready; None when it is."""
    if health.is_recalling:
        return "reading the past: what is stored is read anew before anything is counted or judged"
    if health.evaluated_s is None:
        return "not evaluated yet"
    if health.failing is not None:
        return f"the database cannot commit: {health.failing}"
    late_s = health.now_s - health.evaluated_s
    if late_s > max(LATE_TICKS * health.tick_s, LEAST_LATE_S):
        return f"the last evaluation is {late_s:.0f} s old, with one due every {health.tick_s} s"
    return None
