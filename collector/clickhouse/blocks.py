"""Stretches of the past that are compared and sent one after the other, and at which step each is compared.

Both stores fold rows into longer steps as they age, each by its own clock. So a stretch is compared at the longest
step that either may have folded it to by now, and an hour or more before they may: what is young to the step, then by
the minute, and so on. No window reads what is that old at shorter steps: one that is held at the tick ends an hour
ago, and the step that it begins in is a minute long then. No stretch crosses a day: an insert is one part.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from slo.quantity import DAY_S, HOUR_S, MINUTE_S

GRAINS = ((HOUR_S + MINUTE_S, 1, 600), (DAY_S, MINUTE_S, HOUR_S), (7 * DAY_S, 600, 6 * HOUR_S))
"""(age up to which the past is compared at a step, the step, length of a stretch), in seconds."""
OLDEST = (HOUR_S, DAY_S)
"""The step and the length of a stretch of what is older."""


@dataclass(frozen=True, slots=True)
class Block:
    """The stretch from one moment to another, compared at steps of `grain_s`."""

    from_s: int
    until_s: int
    grain_s: int


def blocks(from_s: int, until_s: int, *, now_s: int) -> Iterator[Block]:
    """The stretches that cover a stretch of time, the oldest first. Each begins at a step that it is compared at."""
    at_s = from_s - from_s % DAY_S
    while at_s < until_s:
        grain_s, length_s, limit_s = _grain(at_s, now_s)
        end_s = min(at_s - at_s % length_s + length_s, limit_s)
        if end_s > from_s:
            yield Block(at_s, end_s, grain_s)
        at_s = end_s


def _grain(at_s: int, now_s: int) -> tuple[int, int, int]:
    """Of the stretch that begins then: its step, its length, and where what is compared at shorter steps begins."""
    limit_s = now_s + DAY_S
    for longest_s, grain_s, length_s in GRAINS:
        begin_s = (now_s - longest_s) // length_s * length_s
        if at_s >= begin_s:
            return grain_s, length_s, limit_s
        limit_s = begin_s
    return (*OLDEST, limit_s)
