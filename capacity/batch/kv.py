"""How much KV cache a batch needs, so that a running sequence hardly ever loses its place in it.

A sequence seen at a random moment is one of a long answer more likely than one of a short answer, for that one stays
longer: with I tokens in and O out it holds I + U O, U even from 0 to 1, weighted by O. Of N such sequences the sum is
near normal, so N fit into K tokens, with a chance of at most `overflow` to need more, while N m + z sqrt(N) s <= K.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

OVERFLOW = 0.05


@dataclass(frozen=True, slots=True)
class Holding:
    """Tokens a running sequence holds: mean and standard deviation."""

    mean: float
    deviation: float

    def tokens_for(self, sequences: float, *, overflow: float = OVERFLOW) -> float:
        """Tokens that hold so many sequences."""
        return sequences * self.mean + _steps(overflow) * math.sqrt(sequences) * self.deviation

    def sequences_in(self, tokens: float, *, overflow: float = OVERFLOW) -> int:
        """How many sequences so many tokens hold."""
        # N m + z s sqrt(N) = K is a quadratic in sqrt(N).
        slack = _steps(overflow) * self.deviation
        root = (math.sqrt(slack * slack + 4 * self.mean * tokens) - slack) / (2 * self.mean)
        return math.floor(root * root + 1e-9)


def holding(lengths: Sequence[tuple[int, int]]) -> Holding:
    """What sequences of these lengths, tokens in and out, hold at a random moment."""
    weight = sum(out for _, out in lengths)
    assert weight > 0
    mean = sum(out * (tokens_in + out / 2) for tokens_in, out in lengths) / weight
    square = sum(out * (tokens_in * tokens_in + tokens_in * out + out * out / 3) for tokens_in, out in lengths) / weight
    return Holding(mean, math.sqrt(max(square - mean * mean, 0.0)))


def blocks(holds: Holding, sequences: int, block_size: int) -> int:
    """Blocks that hold so many sequences; each leaves half a block unused on average."""
    return math.ceil((holds.tokens_for(sequences) + sequences * block_size / 2) / block_size)


def _steps(overflow: float) -> float:
    return NormalDist().inv_cdf(1 - overflow)
