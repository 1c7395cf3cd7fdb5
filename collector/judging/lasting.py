"""How long a state must stand before its alert fires, and how long the alert outlives it.

A rule engine asks at every evaluation and remembers since when the answer was yes (`for`), and when it last was
(`keep_firing_for`). Here the recent past can be asked itself: at each tick behind now as long as the alert's own
times reach back. So a place's answer depends on what was counted alone, and a restart forgets nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from collector.values.alerting import Alert, AlertKey
from collector.values.histogram import Counts
from slo.trouble import Trouble

Answers = NDArray[np.bool_]
"""Whether the state stood, at each of the moments."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """Whether a state stands now, has stood as long as its alert waits, and stood so lately that an alert which fires
    goes on."""

    stands: bool
    long: bool
    lately: bool


def moments_s(trouble: Trouble, *, now_s: int, tick_s: int) -> Counts:
    """The ticks that decide, ascending, now the last."""
    before = max(_ticks(trouble.for_s, tick_s), _ticks(trouble.keep_s, tick_s))
    return now_s - tick_s * np.arange(before, -1, -1, dtype=np.int64)


def lasting(trouble: Trouble, answers: Answers, *, tick_s: int) -> Lasting:
    """What the answers at those moments say."""
    waited, kept = _ticks(trouble.for_s, tick_s), _ticks(trouble.keep_s, tick_s)
    return Lasting(bool(answers[-1]), bool(answers[-waited - 1 :].all()), bool(answers[-kept - 1 :].any()))


def state(
    key: AlertKey, places: Iterable[Lasting], *, alerts: Mapping[AlertKey, Alert]
) -> Literal["pending", "firing"] | None:
    """The state of an alert that speaks of all these places; None when it has nothing to say."""
    places = tuple(places)
    fires = key in alerts and alerts[key].state == "firing"
    if any(one.long for one in places) or (fires and any(one.lately for one in places)):
        return "firing"
    return "pending" if any(one.stands for one in places) else None


def _ticks(seconds: int, tick_s: int) -> int:
    return -(-seconds // tick_s)
