"""Traffic that has misled alerts before, each kind as a model of its own beside the others, and which must fire.

    healthy      good events only                                                        silent
    spike        bad events enough for both windows, all within one step                 silent
    idle         no event for a night, but for one, and that is bad                      silent
    restarts     a new instance takes over in mid-window, good throughout                silent
    born         the counter of bad events appears with a large value, and stays there   silent
    resets       bad events only, and their counter falls to 0 halfway                   fires
    (no model)   bad events only, in series that lack the label of the model             fires

The first sample of a counter is no increase: a sidecar makes its counters at 0 before the first event.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from alerts.traffic import drawn, missing
from slo.promql import INSTANCE_LABEL
from slo.signals import BAD, GOOD, MODEL_LABEL

HEALTHY, SPIKE, IDLE, RESTARTS, BORN, RESETS, NO_MODEL = "healthy", "spike", "idle", "restarts", "born", "resets", ""
FIRING = (NO_MODEL, RESETS)
SILENT = (HEALTHY, SPIKE, IDLE, RESTARTS, BORN)
MORE_STEPS = 2
"""A step of events is lost where a counter falls to 0."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Steps of health, steps of only bad events that make the tier fire, a step's seconds and events."""

    healthy: int
    burning: int
    step_s: int
    events: int

    @property
    def steps(self) -> int:
        """Length of an episode."""
        return self.healthy + self.burning + MORE_STEPS


@dataclass(frozen=True, slots=True)
class Counted:
    """The samples of one counter of events, by its labels beyond those of service, objective and scrape."""

    labels: tuple[tuple[str, str], ...]
    result: str
    values: str


def episodes(pace: Pace) -> Iterator[Counted]:
    """The counters of all episodes."""
    calm, rest, each = pace.healthy, pace.steps - pace.healthy, pace.events
    good_all_along, none = drawn([(pace.steps, each)]), drawn([(pace.steps, 0)])
    burst = each * pace.steps * 10
    yield from _both(HEALTHY, good_all_along, none)
    yield from _both(SPIKE, good_all_along, drawn([(calm, 0), (1, burst), (rest - 1, 0)]))
    yield from _both(IDLE, none, drawn([(calm, 0), (1, 1), (rest - 1, 0)]))
    yield from _both(RESTARTS, f"{drawn([(calm, each)])} stale", f"{drawn([(calm, 0)])} stale")
    later = f"{missing(calm + 1)} "
    yield from _both(RESTARTS, later + drawn([(rest - 1, each)]), later + drawn([(rest - 1, 0)]), "sidecar-2:9464")
    yield from _both(BORN, good_all_along, f"{later}{burst}x{rest - 1}")
    half = rest // 2
    falling = f"{drawn([(calm, 0), (half, each)])} {drawn([(rest - half - 1, each)])}"
    yield from _both(RESETS, drawn([(calm, each), (rest, 0)]), falling)
    yield from _both(NO_MODEL, drawn([(calm, each), (rest, 0)]), drawn([(calm, 0), (rest, each)]))


def _both(model: str, good: str, bad: str, instance: str = "") -> Iterator[Counted]:
    labels = {MODEL_LABEL: model} if model else {}
    labels |= {INSTANCE_LABEL: instance} if instance else {}
    for result, values in ((GOOD, good), (BAD, bad)):
        yield Counted(tuple(labels.items()), result, values)
