"""What a run says about the share of bad requests, when its requests are not independent of each other.

A queue that is long makes one request after the other bad, so n requests in a row say less than n requests drawn apart.
Each run is cut into 20 blocks. Block means that vary more than chance among independent requests would let them widen
the verdict by Student's t; block means that resemble their neighbours (lag-1 correlation r, kept from its bias of about
-1/blocks) count as fewer, B (1 - r)/(1 + r) of B. Where bad requests are rare the t interval is blind, and the exact
binomial over the effective number of requests decides: of the two, what says less is believed.

A series holds one number a request, in the order they were due: 1 bad, 0 good, NO_EVENT for one that the objective does
not speak of.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.certify.distributions import few_or_less, least, many_or_more, student_above

Series = NDArray[np.int8]
NO_EVENT = -1
BLOCKS = 20
LEAST_BLOCKS = 3.0
WARM_UP_PARTS = 4
"""Into so many parts a run is cut, of which the first is left out: it remembers how the run was started."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Judged requests of one objective: how many, how many of them bad, and how much they are worth.

    `blocks` is the effective number of blocks, `deviation` the standard deviation of one block's mean, and `worth` the
    number of independent requests that say as much by their count.
    """

    requests: int
    bad: int
    blocks: float
    deviation: float
    worth: float

    @property
    def share(self) -> float:
        """The share of bad requests; 1 where none was judged, so that nothing is taken for good."""
        return self.bad / self.requests if self.requests else 1.0

    @property
    def error(self) -> float:
        """The standard error of the share."""
        if not self.requests:
            return 1.0
        return max(self.deviation / math.sqrt(self.blocks), math.sqrt(self.share * (1 - self.share) / self.worth))

    def chance_if_at_least(self, share: float) -> float:
        """The chance to see so few bad ones, or fewer, where the true share is at least this."""
        if not self.requests:
            return 1.0
        return max(few_or_less(self.share * self.worth, self.worth, share), self._student(share - self.share))

    def chance_if_at_most(self, share: float) -> float:
        """The chance to see so many bad ones, or more, where the true share is at most this."""
        if not self.requests:
            return 1.0
        return max(many_or_more(self.share * self.worth, self.worth, share), self._student(self.share - share))

    def _student(self, distance: float) -> float:
        if self.deviation == 0:
            return 0.0 if distance > 0 else 1.0
        return student_above(distance * math.sqrt(self.blocks) / self.deviation, max(self.blocks - 1, 1.0))

    def interval(self, miss: float) -> tuple[float, float]:
        """The shares that this does not speak against, each bound missed with at most this chance."""
        low = least(lambda share: self.chance_if_at_most(share) > miss, 0.0, self.share) if self.bad else 0.0
        high = least(lambda share: self.chance_if_at_least(share) <= miss, self.share, 1.0)
        return low, high

    def twice(self) -> "Evidence":
        """The same again: what a second run like this would add up to."""
        return Evidence(2 * self.requests, 2 * self.bad, 2 * self.blocks, self.deviation, 2 * self.worth)


def evidence(runs: Sequence[Series], *, clump: float = 1.0, warm_up: int = WARM_UP_PARTS) -> Evidence:
    """The evidence of runs of one rate, each without its warm-up, one part in so many. Bad requests may come `clump` at
    a time: then so many requests are never worth more than one."""
    settled = [_events(run[run.size // warm_up :]) for run in runs]
    requests, bad = sum(run.size for run in settled), sum(int(run.sum()) for run in settled)
    cut = [means for run in settled if (means := _block_means(run)).size]
    if not cut:
        return Evidence(requests, bad, LEAST_BLOCKS, 0.0, max(requests / clump, 1.0))
    blocks = sum(means.size for means in cut)
    deviation, correlation = _spread(cut, bad / requests)
    effective = max(LEAST_BLOCKS, blocks * (1 - correlation) / (1 + correlation))
    return Evidence(requests, bad, effective, deviation, max(requests * min(effective / blocks, 1 / clump), 1.0))


def _events(series: Series) -> Series:
    events: Series = series[series != NO_EVENT]
    return events


def _block_means(events: Series) -> NDArray[np.float64]:
    """The mean of each of 20 equal blocks; what does not fill them is left out at the front."""
    length = events.size // BLOCKS
    if not length:
        return np.empty(0)
    means: NDArray[np.float64] = events[events.size - length * BLOCKS :].reshape(BLOCKS, length).mean(axis=1)
    return means


def _spread(cut: Sequence[NDArray[np.float64]], mean: float) -> tuple[float, float]:
    """The deviation of block means about the common mean, and their lag-1 correlation, from 0 to under 1."""
    squares = sum(float(((means - mean) ** 2).sum()) for means in cut)
    blocks = sum(means.size for means in cut)
    if squares == 0:
        return 0.0, 0.0
    products = sum(float(((means[1:] - mean) * (means[:-1] - mean)).sum()) for means in cut)
    pairs = sum(means.size - 1 for means in cut)
    correlation = products / pairs / (squares / blocks) + len(cut) / blocks
    return math.sqrt(squares / (blocks - 1)), min(max(correlation, 0.0), 0.95)
