"""Which objectives of a spec a load can be held against, and what each says of one request.

A request that was refused, broke off, or was never answered is bad for every objective that speaks of it: otherwise a
server would look better the more it turns away. Deadlines count from when the request was due.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capacity.certify.evidence import NO_EVENT, Series
from capacity.certify.trial import Goal
from capacity.errors import WorkloadError
from capacity.record import Record
from capacity.summary import LATE_S
from slo.objective import Objective, Spec

JUDGED = ("ttft", "tpot", "e2e", "availability")
ANSWERED = ("ok", "no_output")
LATE_PART = 0.1


@dataclass(frozen=True, slots=True)
class Promises:
    """The objectives that are judged, and why others are not."""

    judged: tuple[Objective, ...]
    left_out: tuple[str, ...]

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What the search wants; availability is only watched, for its budget is too small to be shown in an hour."""
        return tuple(Goal(one.name, float(one.allowed_bad), one.signal == "availability") for one in self.judged)

    @property
    def late_s(self) -> float:
        """How late a client may send before its own delay could be taken for the server's."""
        thresholds = (float(one.threshold or 0) for one in self.judged if one.signal in ("ttft", "e2e"))
        return max(LATE_PART * min(thresholds, default=0.0), LATE_S)


def promises(spec: Spec, model: str, request_class: str | None) -> Promises:
    """The objectives that requests of this model and class belong to. Raises WorkloadError if none is a latency."""
    judged, left_out = [], []
    for one in spec.objectives:
        why_not = _why_not(one, model, request_class)
        if why_not:
            left_out.append(f"{one.name}: {why_not}")
        else:
            judged.append(one)
    if not any(one.signal != "availability" for one in judged):
        raise WorkloadError(
            f"service {spec.service} promises no latency that a load could be held against"
            f"{' (' + '; '.join(left_out) + ')' if left_out else ''}: "
            "give it an objective of signal ttft, tpot or e2e"
        )
    return Promises(tuple(judged), tuple(left_out))


def _why_not(one: Objective, model: str, request_class: str | None) -> str:
    if one.signal not in JUDGED:
        return f"{one.signal} is not a property of a request"
    if not one.match.holds_model(model):
        return f"speaks of model {one.match.model}"
    if one.match.class_ is not None and one.match.class_ != request_class:
        return f"speaks of class {one.match.class_}"
    if one.match.prompt_bytes is not None:
        return "speaks of prompts of one size, which are not told apart here"
    return ""


def series(objective: Objective, records: Sequence[Record]) -> Series:
    """What an objective says of each record: 1 bad, 0 good, NO_EVENT."""
    return np.array([_verdict(objective, record) for record in records], dtype=np.int8)


def _verdict(objective: Objective, record: Record) -> int:
    if objective.signal == "availability":
        return int(record.outcome not in ANSWERED)
    if record.outcome != "ok":
        return 1
    if objective.signal == "tpot" and record.output_tokens < objective.min_tokens:
        return NO_EVENT
    value_s = {"ttft": record.ttft_s, "tpot": record.tpot_s, "e2e": record.e2e_s}[objective.signal]
    assert objective.threshold is not None
    if value_s is None:
        return NO_EVENT if objective.signal == "tpot" else 1
    return int(value_s > objective.threshold)
