"""How far predictions were off, and what that says of the next one: split conformal prediction.

Of the latest `GUARD_WINDOW` predictions that came due, the ratio of what came to what was said is kept. If the
next ratio is one more of the same kind, it lies at or under the k-th smallest of n with probability of at least
k / (n + 1), whatever their distribution (Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World", 2005). So a
prediction times the ratio of rank ceil((n + 1) * share) is kept with probability `share`; where n is too small for that
rank the largest stands in. A constant error cancels out in it.
"""

import math
from collections import deque

from sidecar.limits import GUARD_FEW, GUARD_FORGET_S, GUARD_WINDOW

TOO_LONG = 2.0
_FORGET_NS = GUARD_FORGET_S * 1_000_000_000


class ErrorRatios:
    """The latest ratios of actual to predicted. Times are nanoseconds of one monotonic clock."""

    __slots__ = ("_ranked", "_seen")

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque(maxlen=GUARD_WINDOW)
        self._ranked: list[float] | None = None

    def add(self, ratio: float, at_ns: int) -> None:
        """One more prediction came due."""
        self._seen.append((ratio, at_ns))
        self._ranked = None

    def margin(self, share: float, at_ns: int) -> float | None:
        """What to multiply a prediction by, so that it is kept with probability `share`; None: too few are known."""
        seen = self._seen
        while seen and at_ns - seen[0][1] > _FORGET_NS:
            seen.popleft()
            self._ranked = None
        if len(seen) < GUARD_FEW:
            return None
        if self._ranked is None:
            self._ranked = sorted(ratio for ratio, _ in seen)
        return self._ranked[min(math.ceil((len(seen) + 1) * share), len(seen)) - 1]

    @property
    def is_too_long(self) -> bool:
        """Whether most predictions were more than twice what came; to be asked once there is a margin."""
        ranked = self._ranked
        return ranked is None or ranked[len(ranked) // 2] < 1 / TOO_LONG
