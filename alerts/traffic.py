"""Traffic drawn in segments, as the samples of a counter in promtool's notation."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """`steps` samples, each higher than the one before by so many good and bad events."""

    steps: int
    good: int = 0
    bad: int = 0


def drawn(segments: Sequence[tuple[int, int]]) -> str:
    """A counter's samples: from 0, so many steps of so much each, one segment after another."""
    value, parts = 0, ["0"]
    for steps, increment in segments:
        if steps > 0:
            parts.append(f"{value + increment}+{increment}x{steps - 1}")
            value += increment * steps
    return " ".join(parts)


def missing(steps: int) -> str:
    """So many moments without a sample."""
    return f"_x{steps}" if steps > 0 else ""
