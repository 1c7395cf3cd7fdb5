"""Sloth's `prometheus/v1` specs as promises, and the same as its Kubernetes resource (`sloth.slok.dev/v1`).

Source: Sloth's API, pkg/prometheus/api/v1. A window is no part of such a spec: Sloth is told it by a flag, 30 days
unless told otherwise.
"""

from collections.abc import Iterator

from slo.openslo.carrying import objective_fields, refuse_service
from slo.openslo.promise import Found, LeftBehind, Measure, Promise, UncarriedError
from slo.openslo.query import of_ratio
from slo.openslo.values import Item, mapping_at, mappings_at, number_at, text_at, texts_of
from slo.source import Document

VERSION, RESOURCE = "prometheus/v1", "sloth.slok.dev/v1"
WINDOW = "30d"


def is_sloth(document: Document) -> bool:
    """Whether a document is a spec of Sloth's."""
    data = document.data
    return isinstance(data, dict) and (data.get("version") == VERSION or data.get("apiVersion") == RESOURCE)


def read(documents: list[Document]) -> Found:
    """The promises of all documents of a file."""
    items = [one.data for one in documents if isinstance(one.data, dict)]
    found = [each for one in items for each in _slos(mapping_at(one, "spec") or one)]
    promises = tuple(one for one in found if isinstance(one, Promise))
    left = tuple(one for one in found if isinstance(one, LeftBehind))
    return Found(promises, left, notes=(f"Sloth's period is taken as {WINDOW}, its default",))


def _slos(spec: Item) -> Iterator[Promise | LeftBehind]:
    service, slos = text_at(spec, "service"), list(mappings_at(spec, "slos"))
    if not slos:
        yield LeftBehind(service or "no service", "unnamed", "has no slos")
    for slo in slos:
        name = text_at(slo, "name") or "unnamed"
        try:
            refuse_service(service)
            yield _promise(spec, slo)
        except UncarriedError as error:
            yield LeftBehind(service or "no service", name, str(error))


def _promise(spec: Item, slo: Item) -> Promise:
    percent = number_at(slo, "objective")
    if percent is None:
        raise UncarriedError("has no objective, a percentage")
    measure = _measure(mapping_at(slo, "sli"))
    labels = texts_of(mapping_at(spec, "labels")) | texts_of(mapping_at(slo, "labels"))
    name = text_at(slo, "name")
    fields = objective_fields(name, measure, target=percent / 100, window=WINDOW, labels=labels)
    alerting = mapping_at(slo, "alerting")
    runbook = texts_of(mapping_at(alerting, "annotations"))
    url = next((runbook[key] for key in ("runbook", "runbook_url") if runbook.get(key, "").startswith("http")), None)
    return Promise(
        text_at(spec, "service"),
        name,
        {**fields, **({} if url is None else {"runbook_url": url})},
        (*measure.notes, *_of_alerts(alerting)),
    )


def _measure(sli: Item) -> Measure:
    events = mapping_at(sli, "events")
    if not events:
        kind = next(iter(sli), "nothing")
        raise UncarriedError(f"its SLI is {kind}, which does not say what its events are")
    bad = text_at(events, "error_query") or text_at(events, "errorQuery")
    total = text_at(events, "total_query") or text_at(events, "totalQuery")
    if not bad or not total:
        raise UncarriedError("has no error_query and total_query")
    return of_ratio(bad=bad, total=total)


def _of_alerts(alerting: Item) -> Iterator[str]:
    for kind in ("page", "ticket"):
        alert = mapping_at(alerting, f"{kind}_alert") or mapping_at(alerting, f"{kind}Alert")
        if alert.get("disable") is True:
            yield f"its {kind} alert was switched off: give the objective alerts.tiers without one that is a {kind}"
        elif "labels" in alert:
            yield f"the labels of its {kind} alert are not carried over: routes go by notify, severity and owner"
