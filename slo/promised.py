"""What a capacity was found for: the promises that its result holds, against those of today's spec.

A rate that was certified at p95 within 1 s says nothing of 500 ms. Compared are the promises that a load can be held
against, of the model and class that it was found with. A capacity found for less than is promised today would mislead;
one found for more still stands, and may be less than the server can do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from slo.objective import LATENCY_SIGNALS, Objective, Spec
from slo.quantity import duration_text, percent_text


@dataclass(frozen=True, slots=True)
class Promise:
    """`of` is what it speaks of: the signal, and which requests; at least `goal` of these stay within `threshold_s`."""

    name: str
    of: str
    goal: Decimal
    threshold_s: Decimal

    @property
    def text(self) -> str:
        return f"{percent_text(self.goal)} within {duration_text(self.threshold_s)}"


@dataclass(frozen=True, slots=True)
class Promised:
    """What a result says that it was found for."""

    spec: str
    model: str
    request_class: str | None
    promises: tuple[Promise, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """What the spec promises now and the result was not found for, and what it was found for and no longer counts."""

    more: tuple[str, ...] = ()
    less: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it, in a line; empty where nothing has changed."""
        return "; ".join((*self.more, *self.less))


def promised(result: object) -> Promised | None:
    """What a result of certify or batch was found for; None where it does not say, as one of an earlier release."""
    settings = result.get("settings") if isinstance(result, Mapping) else None
    if not isinstance(settings, Mapping) or not isinstance(settings.get("objectives"), list):
        return None
    try:
        promises = tuple(_read(one) for one in settings["objectives"] if one["signal"] in LATENCY_SIGNALS)
    except (KeyError, TypeError, ValueError, InvalidOperation):
        return None
    of_class = settings.get("class")
    return Promised(
        str(settings.get("spec")), str(settings.get("model")), None if of_class is None else str(of_class), promises
    )


def changed(found_for: Promised | None, spec: Spec) -> Changed:
    """What has changed since; nothing where the result does not say what it was found for."""
    if found_for is None or found_for.spec == spec.hash:
        return Changed()
    before = {one.of: one for one in found_for.promises}
    now = {one.of: one for one in _of(spec, found_for)}
    more = [_difference(one, before.get(of)) for of, one in now.items() if _is_more(one, before.get(of))]
    less = [
        f"{one.name} was {one.text} and is {f'{now[of].text} now' if of in now else 'promised no more'}"
        for of, one in before.items()
        if of not in now or (now[of].text != one.text and not _is_more(now[of], one))
    ]
    return Changed(tuple(more), tuple(less))


def _is_more(now: Promise, before: Promise | None) -> bool:
    return before is None or now.goal > before.goal or now.threshold_s < before.threshold_s


def _difference(now: Promise, before: Promise | None) -> str:
    if before is None:
        return f"{now.name} ({now.text}) was not looked at"
    return f"{now.name} was {before.text} and is {now.text} now"


def _of(spec: Spec, found_for: Promised) -> Iterator[Promise]:
    """The promises of a spec that such a run is held against; size of a prompt is told apart by none."""
    for one in spec.objectives:
        match = one.match
        is_asked = match.class_ in (None, found_for.request_class) and match.prompt_bytes is None
        if one.signal in LATENCY_SIGNALS and is_asked and match.holds_model(found_for.model):
            yield _read(as_kept(one))


def as_kept(objective: Objective) -> Mapping[str, object]:
    """An objective as results keep it."""
    return objective.model_dump(mode="json", exclude_defaults=True)


def _read(kept: Mapping[str, object]) -> Promise:
    """A promise of an objective as it is kept."""
    goal = kept.get("percentile", kept.get("target"))
    tokens = kept.get("min_output_tokens") if kept["signal"] == "tpot" else None
    of = f"{kept['signal']} {kept.get('match') or {}} {tokens}"
    return Promise(str(kept["name"]), of, Decimal(str(goal)), Decimal(str(kept["threshold"])))
