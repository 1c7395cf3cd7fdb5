"""What is demanded: when requests come, and how many tokens each takes, as a trace or a collector has recorded it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from capacity.arrivals import mean_rps
from capacity.errors import WorkloadError
from capacity.traces import Row, read
from slo.quantity import DAY_S

Floats = NDArray[np.float64]
LEAST_REQUESTS = 20
MAX_SPAN_S = 10 * 366 * DAY_S
"""Longer ago than anybody recorded: a time in another unit than its column says."""


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """`times_s` ascend from 0. `tokens` are those in and out of each request, empty where the source does not say;
    `note` is what must be known of how it was recorded."""

    source: str
    times_s: Floats
    tokens: tuple[tuple[int, int], ...] = ()
    note: str = ""

    @property
    def span_s(self) -> float:
        return float(self.times_s[-1])

    @property
    def mean_rps(self) -> float:
        return mean_rps(self.times_s)

    @property
    def mean_tokens(self) -> tuple[float, float] | None:
        """Tokens in and out of a mean request."""
        if not self.tokens:
            return None
        tokens_in, tokens_out = np.array(self.tokens, dtype=np.float64).mean(axis=0).tolist()
        return tokens_in, tokens_out

    def grown(self, factor: float) -> "Demand":
        """The same requests in a shorter time: all rates are so many times higher, and bursts stay as large."""
        return replace(self, times_s=self.times_s / factor)


def demand_at(source: str, times_s: Floats, note: str = "", tokens: tuple[tuple[int, int], ...] = ()) -> Demand:
    """The demand of requests at such times, in ascending order. Raises WorkloadError where that is no load."""
    if times_s.size < LEAST_REQUESTS:
        raise WorkloadError(
            f"--trace {source} has {times_s.size} requests with a time: at least {LEAST_REQUESTS} make a load"
        )
    if times_s[-1] == times_s[0]:
        raise WorkloadError(f"--trace {source}: all requests come at the same moment, which is no load over time")
    if not times_s[-1] - times_s[0] <= MAX_SPAN_S:
        raise WorkloadError(f"--trace {source} goes on for more than ten years: see whether a time in it is wrong")
    return Demand(source, times_s - times_s[0], tokens, note)


def of_file(path: str) -> Demand:
    """The demand of a trace file. Raises WorkloadError."""
    timed = [(row.at_s, row) for row in read("--trace", Path(path)) if row.at_s is not None]
    timed.sort(key=lambda one: one[0])
    tokens, note = _lengths([row for _, row in timed])
    times_s = np.array([at_s for at_s, _ in timed], dtype=np.float64)
    return demand_at(path, times_s, note, tokens)


def _lengths(rows: Sequence[Row]) -> tuple[tuple[tuple[int, int], ...], str]:
    """Tokens of each request, and what is to be said of them. Where some say none, theirs are drawn from those of the
    others; where nobody does, there are none."""
    pairs = [(one.tokens_in, one.tokens_out) for one in rows]
    known = [(into, out) for into, out in pairs if into is not None and out is not None]
    if not known or len(known) == len(pairs):
        return tuple(known), ""
    chance = Random(len(known))  # noqa: S311  chance for lengths, no secret
    whole = tuple((into, out) if into is not None and out is not None else chance.choice(known) for into, out in pairs)
    missing = 1 - len(known) / len(pairs)
    return whole, f"{missing:.0%} of its requests do not say how long they are: they are taken for such as the others"
