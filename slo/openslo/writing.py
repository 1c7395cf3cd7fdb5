"""slo.yaml as OpenSLO v1: for each objective an SLO over the sidecars' own counters, and a Service for each service.

Any tool that reads OpenSLO sees the right numbers, for good and bad were counted before it asks. What OpenSLO has no
field for stands in an annotation, from which `slo import` gives the objective back; a changed target or window is taken
over.
"""

import json
from collections.abc import Iterator, Sequence

import yaml

from slo.objective import Objective, Spec
from slo.openslo.authored import authored, settings
from slo.openslo.reading import OBJECTIVE_ANNOTATION, SERVICE_ANNOTATION
from slo.promql import events
from slo.quantity import plain
from slo.signals import GOOD, LABELS, RESULT
from slo.words import promise

API = "openslo/v1"
UNITS = {"d": 86400, "h": 3600, "m": 60}
MAX_NAME = 63
ONLY_OURS = {
    "patience": "patience",
    "stall": "stall",
    "min_output_tokens": "min_output_tokens",
    "alerts": "its own burn alerts",
    "policy": "its budget policy",
}
"""What no other tool acts on."""


def openslo(specs: Sequence[Spec]) -> str:
    """The text of all documents."""
    documents = [document for spec in specs for document in _documents(spec)]
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120)


def said(specs: Sequence[Spec]) -> Iterator[str]:
    """What other tools will not see of each objective."""
    for spec in specs:
        for objective in spec.objectives:
            where = f"{spec.service}/{objective.name}"
            kept = [words for key, words in ONLY_OURS.items() if key in authored(objective)]
            if kept:
                yield f"{where}: {', '.join(kept)}: kept in an annotation, for firsttoken slo import alone"
            if shorthand(objective.window) is None:
                yield f"{where}: OpenSLO knows no window of {objective.window} s: kept in the annotation alone"
            if (name := _name(spec, objective)) != f"{spec.service}-{objective.name}":
                yield f"{where}: is called {name} there"


def _documents(spec: Spec) -> Iterator[dict[str, object]]:
    own = settings(spec)
    annotations = {"annotations": {SERVICE_ANNOTATION: json.dumps(own)}} if own else {}
    # Its name is that by which its SLOs name it: labels of series are, and they are not bound to RFC 1123.
    yield {
        "apiVersion": API,
        "kind": "Service",
        "metadata": {"name": spec.service, **annotations},
        "spec": {"description": f"LLM service {spec.service}, measured by firsttoken"},
    }
    for objective in spec.objectives:
        yield _slo(spec, objective)


def _slo(spec: Spec, objective: Objective) -> dict[str, object]:
    name = _name(spec, objective)
    window = shorthand(objective.window)
    labels = {**objective.labels, **({"owner": objective.owner} if objective.owner else {})}
    return {
        "apiVersion": API,
        "kind": "SLO",
        "metadata": {
            "name": name,
            "displayName": objective.name,
            **({"labels": labels} if labels else {}),
            "annotations": {OBJECTIVE_ANNOTATION: json.dumps(authored(objective))},
        },
        "spec": {
            "description": promise(objective),
            "service": spec.service,
            "indicator": {"metadata": {"name": name}, "spec": {"ratioMetric": _ratio(spec, objective)}},
            **({} if window is None else {"timeWindow": [{"duration": window, "isRolling": True}]}),
            "budgetingMethod": "Occurrences",
            "objectives": [{"displayName": objective.name, "target": float(plain(objective.goal))}],
        },
    }


def _ratio(spec: Spec, objective: Objective) -> dict[str, object]:
    def source(more: dict[str, str]) -> dict[str, object]:
        return {"metricSource": {"type": "Prometheus", "spec": {"query": f"sum({events(spec, objective, more)})"}}}

    return {"counter": True, "good": source({LABELS[RESULT]: GOOD}), "total": source({})}


def shorthand(window_s: int) -> str | None:
    """A window in OpenSLO's shorthand; None for one that is no whole number of minutes."""
    return next((f"{window_s // seconds}{unit}" for unit, seconds in UNITS.items() if window_s % seconds == 0), None)


def _name(spec: Spec, objective: Objective) -> str:
    """What an objective is called there, by RFC 1123: small letters, digits and dashes. Names here are ASCII."""
    name = f"{spec.service}-{objective.name}".lower()
    found = "".join(letter if letter.isalnum() else "-" for letter in name)
    return found[:MAX_NAME].strip("-")
