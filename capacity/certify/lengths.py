"""How long prompts and answers are: stated, never guessed, for a capacity is one of a workload.

Either spans by hand, `IN:OUT` in tokens, each `N` or `LOW-HIGH`; or a recorded trace (`traces`), whose pairs are drawn
as they stand, so that long prompts keep their long or short answers.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from capacity.arrivals import peak_rps
from capacity.errors import WorkloadError
from capacity.schedule import Span
from capacity.traces import read


@dataclass(frozen=True, slots=True)
class Lengths:
    """`source` as it was written; pairs of tokens in and out that are drawn evenly, or two spans; `note` is what must
    be known of how they were recorded, `digest` the SHA-256 of the trace."""

    source: str
    pairs: tuple[tuple[int, int], ...] = ()
    spans: tuple[Span, Span] | None = None
    peak_rps: float | None = None
    note: str = ""
    digest: str | None = None

    def draw(self, chance: Random) -> tuple[int, int]:
        """Tokens in and out of one request."""
        if self.spans is not None:
            return self.spans[0].draw(chance), self.spans[1].draw(chance)
        return chance.choice(self.pairs)

    @property
    def mean(self) -> tuple[float, float]:
        """Mean tokens in and out."""
        if self.spans is not None:
            return (self.spans[0].low + self.spans[0].high) / 2, (self.spans[1].low + self.spans[1].high) / 2
        return sum(pair[0] for pair in self.pairs) / len(self.pairs), sum(p[1] for p in self.pairs) / len(self.pairs)


def lengths(text: str) -> Lengths:
    """The lengths that `IN:OUT` or a trace's path names. Raises WorkloadError."""
    before, colon, after = text.partition(":")
    if (colon or before.isdecimal()) and not Path(text).exists():
        try:
            return Lengths(text, spans=(_span(before), _span(after)))
        except ValueError:
            raise WorkloadError(
                f"--workload {text} is neither lengths nor a file: write IN:OUT tokens as 512:128 or 100-900:20-200"
            ) from None
    return _recorded(Path(text))


def _span(text: str) -> Span:
    low, _, high = text.partition("-")
    return Span(int(low), int(high or low))


def _recorded(path: Path) -> Lengths:
    rows = read("--workload", path)
    pairs = tuple((row.tokens_in, row.tokens_out) for row in rows if row.tokens_in and row.tokens_out)
    if not pairs:
        raise WorkloadError(f"--workload {path} holds no request with tokens in and out")
    times = np.sort(np.array([row.at_s for row in rows if row.at_s is not None], dtype=np.float64))
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None  # a pipe is read once
    left_out = 1 - len(pairs) / len(rows)
    note = f"{left_out:.0%} of its requests have no tokens in or out, and none of these is sent" if left_out else ""
    return Lengths(str(path), pairs=pairs, peak_rps=peak_rps(times), note=note, digest=digest)
