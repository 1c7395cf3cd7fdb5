"""OpenSLO v1 documents (kinds SLO and SLI; of ours also Service) as promises.

Source: the OpenSLO specification, v1: "SLO", "Objectives", "SLI", "duration-shorthand". A document that `slo export`
wrote carries its objective whole in an annotation; where somebody has changed its target or window since, those win.
"""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from slo.objective import STATE_SIGNALS
from slo.openslo.carrying import objective_fields, refuse_service
from slo.openslo.promise import Found, LeftBehind, Measure, Promise, UncarriedError
from slo.openslo.query import of_ratio, of_threshold
from slo.openslo.values import Item, mapping_at, mappings_at, number_at, text_at, texts_of
from slo.quantity import percent_text
from slo.source import Document

VERSIONS = ("openslo/v1", "openslo.com/v1")
OBJECTIVE_ANNOTATION, SERVICE_ANNOTATION = "firsttoken/objective", "firsttoken/service"
KINDS = frozenset({"SLO", "SLI", "Service", "DataSource"})
ALERT_KINDS = frozenset({"AlertPolicy", "AlertCondition", "AlertNotificationTarget"})
SETTINGS = ("environment", "classes", "elastic")
QUERY_KEYS = ("query", "promql", "expr")
_SHORTHAND = re.compile(r"([1-9][0-9]{0,8})([mhdwMQY])")
_DAYS = {"M": 30, "Q": 90, "Y": 365}


def is_openslo(document: Document) -> bool:
    """Whether a document is of OpenSLO v1."""
    return isinstance(document.data, dict) and document.data.get("apiVersion") in VERSIONS


def read(documents: list[Document]) -> Found:
    """The promises of all documents of a file."""
    items = [one.data for one in documents if isinstance(one.data, dict)]
    indicators = {_name(one): mapping_at(one, "spec") for one in items if one.get("kind") == "SLI"}
    found = [each for one in items if one.get("kind") == "SLO" for each in _objectives(one, indicators)]
    promises = tuple(one for one in found if isinstance(one, Promise))
    left = tuple(one for one in found if isinstance(one, LeftBehind))
    settings = {_name(one): made for one in items if one.get("kind") == "Service" and (made := _settings(one))}
    return Found(promises, left, settings, tuple(_of_kinds({str(one.get("kind")) for one in items})))


def _of_kinds(kinds: set[str]) -> Iterator[str]:
    """What became of documents that are no promises."""
    if alerts := sorted(kinds & ALERT_KINDS):
        yield f"{', '.join(alerts)}: burn alerts follow from the targets here, see firsttoken slo check"
    if strange := sorted(kinds - ALERT_KINDS - KINDS):
        yield f"{', '.join(strange)}: no kind of OpenSLO v1, passed over"


def _name(item: Item) -> str:
    return text_at(mapping_at(item, "metadata"), "name") or "unnamed"


def _settings(item: Item) -> Mapping[str, object]:
    """What our own export says of a service; nothing where somebody has spoilt it, for all of it has a default."""
    text = text_at(mapping_at(mapping_at(item, "metadata"), "annotations"), SERVICE_ANNOTATION)
    return {key: value for key, value in (_object(text) or {}).items() if key in SETTINGS}


def _object(text: str) -> Mapping[str, object] | None:
    """The JSON object that an annotation is; None for a text that is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _objectives(item: Item, indicators: Mapping[str, Item]) -> Iterator[Promise | LeftBehind]:
    spec, name = mapping_at(item, "spec"), _name(item)
    service = text_at(spec, "service")
    objectives = list(mappings_at(spec, "objectives"))
    if not objectives:
        yield LeftBehind(service or "no service", name, "has no objectives")
    for place, objective in enumerate(objectives, 1):
        own = name if len(objectives) == 1 else f"{name}-{place}"
        try:
            refuse_service(service)
            yield _promise(item, objective, own, indicators)
        except UncarriedError as error:
            yield LeftBehind(service or "no service", own, str(error))


def _promise(item: Item, objective: Item, name: str, indicators: Mapping[str, Item]) -> Promise:
    spec = mapping_at(item, "spec")
    notes: list[str] = []
    target, window = _target(objective), _window(spec, notes)
    metadata = mapping_at(item, "metadata")
    if text := text_at(mapping_at(metadata, "annotations"), OBJECTIVE_ANNOTATION):
        own = _exported(text, target, window)
        return Promise(text_at(spec, "service"), str(own.get("name", name)), own, tuple(notes))
    if "indicator" in objective or "indicatorRef" in objective:
        raise UncarriedError("is composed of several indicators")
    measure = _measure(_indicator(spec, indicators), objective)
    notes += [*measure.notes, *_of_budgeting(spec, measure)]
    if "alertPolicies" in spec:
        notes.append("its alert policies are not carried over: burn alerts follow from the target")
    fields = objective_fields(
        name, measure, target=target, window=window, labels=texts_of(mapping_at(metadata, "labels"))
    )
    return Promise(text_at(spec, "service"), name, fields, tuple(notes))


def _exported(text: str, target: Decimal, window: str | None) -> Mapping[str, object]:
    """The fields of an objective that we exported, with the target and the window that it has now."""
    own = _object(text)
    if own is None:
        raise UncarriedError(f"has an annotation {OBJECTIVE_ANNOTATION} that is no JSON object: restore or remove it")
    goal = "percentile" if "percentile" in own else "target"
    return {**own, goal: percent_text(target), **({} if window is None else {"window": window})}


def _target(objective: Item) -> Decimal:
    target, percent = number_at(objective, "target"), number_at(objective, "targetPercent")
    found = target if target is not None else None if percent is None else percent / 100
    if found is None:
        raise UncarriedError("has neither target nor targetPercent")
    return found


def _window(spec: Item, notes: list[str]) -> str | None:
    window = next(mappings_at(spec, "timeWindow"), None)
    if window is None:
        return None
    text = text_at(window, "duration")
    found = _SHORTHAND.fullmatch(text)
    if found is None:
        raise UncarriedError(f"has a time window of {text or 'no duration'}: write it as 28d")
    if "calendar" in window or window.get("isRolling") is False:
        notes.append("its window follows the calendar; here it rolls, and is as long")
    if found[2] not in _DAYS:
        return text
    notes.append(f"a window of {text} is taken as {int(found[1]) * _DAYS[found[2]]}d")
    return f"{int(found[1]) * _DAYS[found[2]]}d"


def _indicator(spec: Item, indicators: Mapping[str, Item]) -> Item:
    inline = mapping_at(mapping_at(spec, "indicator"), "spec")
    if inline:
        return inline
    named_one = text_at(spec, "indicatorRef")
    if named_one not in indicators:
        raise UncarriedError(f"refers to SLI {named_one or 'of no name'}, which is not in the file: put it there")
    return indicators[named_one]


def _measure(indicator: Item, objective: Item) -> Measure:
    ratio, threshold = mapping_at(indicator, "ratioMetric"), mapping_at(indicator, "thresholdMetric")
    if threshold:
        value = number_at(objective, "value")
        if value is None:
            raise UncarriedError("has no value to hold its threshold metric against")
        return of_threshold(_query(threshold), text_at(objective, "op"), value)
    if not ratio:
        raise UncarriedError("its indicator is neither a ratio nor a threshold metric")
    if "raw" in ratio:
        raise UncarriedError("its ratio was computed elsewhere, and does not say of what")
    good, bad = (_query(mapping_at(ratio, key)) if key in ratio else "" for key in ("good", "bad"))
    return of_ratio(good=good, bad=bad, total=_query(mapping_at(ratio, "total")))


def _query(metric: Item) -> str:
    source = mapping_at(metric, "metricSource")
    kind = text_at(source, "type")
    if kind and "prom" not in kind.lower() and kind.lower() not in ("mimir", "thanos", "victoriametrics", "cortex"):
        raise UncarriedError(f"is read from {kind}, and only queries of Prometheus are understood")
    whole = source.get("spec")
    texts = [whole] if isinstance(whole, str) else [text_at(mapping_at(source, "spec"), key) for key in QUERY_KEYS]
    query = next(filter(None, texts), "")
    if not query:
        raise UncarriedError("has an indicator without a query")
    return query


def _of_budgeting(spec: Item, measure: Measure) -> Iterator[str]:
    method = text_at(spec, "budgetingMethod") or "Occurrences"
    if method == "Occurrences":
        return
    if measure.signal not in STATE_SIGNALS and measure.percentile is None:
        raise UncarriedError(f"budgets by {method}, slices of time that are good or bad, and requests are counted here")
    if measure.signal in STATE_SIGNALS:
        yield f"{method}: here every second with work is counted, whatever the slice was"
