"""A promise of somebody else's spec on its way into ours, and why one may stay behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal


class UncarriedError(ValueError):
    """A promise, or a part of one, that slo.yaml cannot make; the message says why, in words that follow its name."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What an indicator measures, in our words. `percentile` is given where the query itself names one; `notes` say
    what was taken for granted or left out."""

    signal: str
    threshold: str | None = None
    model: str | None = None
    percentile: Decimal | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Promise:
    """One objective of a foreign spec that can be carried over: `fields` are those of an objective in slo.yaml."""

    service: str
    name: str
    fields: Mapping[str, object]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """One objective that cannot be carried over."""

    service: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """All that a file holds. `settings` are of a service as a whole, by its name, and told by our own exports alone."""

    promises: Sequence[Promise] = ()
    left: Sequence[LeftBehind] = ()
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    notes: Sequence[str] = ()
