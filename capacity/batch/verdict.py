"""Whether a batch keeps a promise, by the requests seen of it.

A batch is kept while the share of bad requests lies within every budget. The verdict is sure where the evidence alone
says so, at the stated error; a share near its budget may never be, and then what was seen most decides, unsurely.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from capacity.certify.evidence import Evidence, Series, evidence
from capacity.certify.trial import Goal

ERROR = 0.05
"""The chance that a verdict is sure by accident; who looks several times, each time at a part of it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One batch, judged: `found` is the evidence of each goal, `binding` the one that spends most of its budget."""

    is_kept: bool
    is_sure: bool
    binding: str
    part_spent: float
    found: tuple[Evidence, ...]


def verdict(goals: Sequence[Goal], bad: Sequence[Series], error: float = ERROR) -> Verdict:
    """The verdict on at least one goal, sure but for a chance of `error`."""
    assert goals
    found = tuple(evidence([series]) for series in bad)
    pairs = tuple(zip(goals, found, strict=True))
    part, name = max((one.share / goal.budget, goal.name) for goal, one in pairs)
    is_kept = part <= 1
    if is_kept:
        is_sure = all(one.chance_if_at_least(goal.budget) <= error for goal, one in pairs)
    else:
        is_sure = any(one.chance_if_at_most(goal.budget) <= error / len(goals) for goal, one in pairs)
    return Verdict(is_kept, is_sure, name, part, found)
