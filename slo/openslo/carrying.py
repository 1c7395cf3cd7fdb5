"""From what was found to the text of slo.yaml: every objective checked by our own rules before it is written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import yaml
from pydantic import ValidationError

from slo.fields import LABEL_NAME
from slo.labels import RESERVED
from slo.objective import LATENCY_SIGNALS, Objective, Spec
from slo.openslo.authored import authored, settings
from slo.openslo.promise import Found, LeftBehind, Measure, Promise, UncarriedError
from slo.quantity import percent_text
from slo.words import promise

OWNERS = ("owner", "team")
TAKEN_LABELS = RESERVED | {"service"}
_WIDE = 120


def objective_fields(
    name: str, measure: Measure, *, target: Decimal, window: str | None, labels: Mapping[str, str]
) -> dict[str, object]:
    """The fields of an objective in slo.yaml."""
    goal = percent_text(measure.percentile if measure.percentile is not None else target)
    is_latency = measure.signal in LATENCY_SIGNALS
    owner = next((labels[key] for key in OWNERS if key in labels), None)
    kept = {
        key: value
        for key, value in labels.items()
        if key not in TAKEN_LABELS | set(OWNERS) and LABEL_NAME.fullmatch(key)
    }
    found: dict[str, object] = {
        "name": named(name),
        "signal": measure.signal,
        "percentile" if is_latency else "target": goal,
        "threshold": measure.threshold,
        "window": window,
        "match": {"model": measure.model} if measure.model else None,
        "owner": None if owner is None else named(owner),
        "labels": kept or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def named(text: str) -> str:
    """A name of ours that is as near as can be to a foreign one."""
    found = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in text)
    return found.strip("._-")[:63] or "unnamed"


def refuse_service(name: str) -> None:
    """Raise UncarriedError for a name that no service can have here; series are found by it, so it is not mended."""
    if not name:
        raise UncarriedError("names no service")
    if name != named(name):
        raise UncarriedError(f"is of service {name!r}, which is no name here: rename it")


def checked(found: Found) -> Found:
    """The same, with what our own rules refuse moved to what is left behind, and names told apart."""
    kept: list[Promise] = []
    left = list(found.left)
    seen: set[tuple[str, str]] = set()
    for one in found.promises:
        name = _apart(one, seen)
        try:
            Objective.model_validate({**one.fields, "name": name})
        except ValidationError as error:
            left.append(LeftBehind(one.service, one.name, _why(error)))
        else:
            seen.add((one.service, name))
            kept.append(replace(one, name=name, fields={**one.fields, "name": name}))
    return replace(found, promises=tuple(kept), left=tuple(left))


def _apart(one: Promise, seen: set[tuple[str, str]]) -> str:
    name = named(one.name)
    names = [name, *(f"{name[:59]}-{place}" for place in range(2, 1000))]
    return next((each for each in names if (one.service, each) not in seen), name)


def _why(error: ValidationError) -> str:
    def said(path: tuple[int | str, ...], message: str) -> str:
        where = ".".join(map(str, path))
        return f"{where}: {message}" if where else message

    return "; ".join(
        said(fault["loc"], fault["msg"].removeprefix("Value error, ")) for fault in error.errors(include_url=False)
    )


def specs(found: Found) -> tuple[Spec, ...]:
    """The specs that what was found makes, a service each. Raises ValueError for one that our own rules refuse."""
    by_service: dict[str, list[Mapping[str, object]]] = {}
    for one in found.promises:
        by_service.setdefault(one.service, []).append(one.fields)
    return tuple(_spec(service, found.settings.get(service, {}), fields) for service, fields in by_service.items())


def _spec(service: str, own: Mapping[str, object], objectives: Sequence[Mapping[str, object]]) -> Spec:
    try:
        return Spec.model_validate({"service": named(service), **own, "objectives": objectives})
    except ValidationError as error:
        raise ValueError(f"service {service}: {_why(error)}") from None


def slo_yaml(made: Sequence[Spec], head: Iterable[str]) -> str:
    """The text of slo.yaml, with comments on top."""
    comments = "".join(f"# {line}\n" if line else "#\n" for line in head)
    documents = [
        {"service": spec.service, **settings(spec), "objectives": [authored(one) for one in spec.objectives]}
        for spec in made
    ]
    dumped = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=_WIDE)
    return comments + dumped


def told(found: Found, made: Sequence[Spec]) -> list[str]:
    """What became of each objective, a line each, its notes below."""
    promised = {(spec.service, one.name): promise(one) for spec in made for one in spec.objectives}
    lines = list(found.notes)
    for one in found.promises:
        lines.append(f"carried over: {one.service}/{one.name}: {promised[named(one.service), one.name]}")
        lines += [f"    {note}" for note in one.notes]
    lines += [f"left behind: {one.service}/{one.name}: {one.why}" for one in found.left]
    return lines
