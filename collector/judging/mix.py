"""Whose doing a shift of a latency is: the server's, or that of another mix of prompt lengths.

Longer prompts take longer, so a time to first token may shift though the server is what it was. Within a *stratum*, a
class of prompt lengths, it does not. So the server's part of a shift is that within the strata, each weighed by the
requests that it has now; what is left of the whole is the mix's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from collector.values.verdicts import DriftKind


@dataclass(frozen=True, slots=True)
class Stratum:
    """One class of prompt lengths: a quantile of its latency before and now, in any unit (None where it is not known),
    and how many requests there are now."""

    before: float | None
    now: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Of a relative shift (0.25: a quarter longer), what the server did and what the mix did."""

    server: float
    mix: float

    @property
    def kind(self) -> DriftKind:
        """Whose the larger part is."""
        return "server" if abs(math.log1p(self.server)) >= abs(math.log1p(self.mix)) else "mix"


def parts(effect: float, strata: Sequence[Stratum]) -> Parts | None:
    """Split a shift. None when fewer than half of the requests lie in strata that are known before and now."""
    known = [(one.count, math.log(one.now / one.before)) for one in strata if one.before and one.now]
    requests = sum(count for count, _ in known)
    if not requests or 2 * requests < sum(one.count for one in strata):
        return None
    within = sum(count * shift for count, shift in known) / requests
    return Parts(math.expm1(within), math.expm1(math.log1p(effect) - within))
