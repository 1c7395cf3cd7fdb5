"""The look itself: asks every place that was named, then those that a Prometheus names, and gives the facts.

Places are asked at the same time, each within seconds. Where a counter shows that something went wrong since its
process started, the page is read again a while later: what still grows is wrong now. A token goes only where the user
himself pointed, never to an address that another server names.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from firsttoken.doctor import alertmanager_facts, collector_facts, engine_facts, prometheus_facts
from firsttoken.doctor.address import Address, plain_text
from firsttoken.doctor.ask import AT_ONCE, Answer, get, together
from firsttoken.doctor.checks.counters import is_troubled
from firsttoken.doctor.checks.stream import is_held_back
from firsttoken.doctor.facts import (
    NO_PAGE,
    AlertmanagerFacts,
    CollectorFacts,
    Facts,
    Kind,
    PrometheusFacts,
    ServerFacts,
    SidecarFacts,
    StreamSeen,
    answering,
)
from firsttoken.doctor.page import read_own
from firsttoken.doctor.probe import probe
from firsttoken.http_json import NOTHING_ASKED, Access
from slo.objective import Spec
from slo.signals import HEARTBEAT

MAX_FOUND = 32
"""Places of a kind that are looked at because a Prometheus names them."""
MAX_PROBES = 3
ALERTS_PATH = "/api/v2/alerts"
METRICS_PATH = "/metrics"
NO_SIDECAR = "is no sidecar's admin address: its page has no heartbeat"

Place = TypeVar("Place")
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Asked:
    """Whom to look at, by kind, and how.

    `own` is shown to the sidecars and collectors that were named, `server` to the servers, `foreign` to everybody else
    and to those that nobody named. `probes`: whether each server is sent a streamed request; `wait_s` is how long a
    counter that shows trouble is watched, 0 not at all.
    """

    places: dict[Kind, tuple[Address, ...]]
    specs: Sequence[Spec] = ()
    own: Access = NOTHING_ASKED
    foreign: Access = NOTHING_ASKED
    server: Access = NOTHING_ASKED
    probes: bool = False
    wait_s: float = 0.0

    def of(self, kind: Kind) -> tuple[Address, ...]:
        return self.places.get(kind, ())


def look(asked: Asked, *, ours: str, now_s: float) -> Facts:
    """Ask everybody; takes some seconds, and longer where the same has to be seen twice."""
    prometheuses = _each(partial(_prometheus, now_s=now_s, access=asked.foreign), asked.of("prometheus"))
    found = _found(prometheuses)
    named = Facts(
        now_s,
        ours=ours,
        specs=asked.specs,
        servers=_each(partial(_server, asked=asked), asked.of("server")),
        sidecars=_each(partial(_sidecar, access=asked.own), asked.of("sidecar")),
        collectors=_each(partial(_collector, access=asked.own), asked.of("collector")),
        prometheuses=prometheuses,
        alertmanagers=_each(partial(_alertmanager, access=asked.foreign), asked.of("alertmanager")),
    )
    return _seen_again(_with_found(named, found, asked), asked)


def _each(read: Callable[[Given], Place], given: Iterable[Given]) -> tuple[Place, ...]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return tuple(threads.map(read, given))


def _ask(where: Address, paths: Iterable[str], access: Access) -> tuple[Answer, ...]:
    return tuple(together(partial(get, where, path, access=access) for path in paths))


def _server(where: Address, *, asked: Asked) -> ServerFacts:
    fetch = partial(_fetch, where, asked.server)
    models, *versions = _ask(where, (engine_facts.MODELS_PATH, *engine_facts.VERSION_PATHS), asked.server)
    if all(one.error for one in (models, *versions)):  # who is silent is not asked for a dozen more pages in turn
        return ServerFacts(where.url, error=models.error)
    try:
        seen = engine_facts.find(where.url, fetch)
    except ValueError as error:
        return ServerFacts(where.url, error=str(error))
    found = ServerFacts(
        where.url,
        error=models.error,
        version=engine_facts.version(versions),
        via=" ".join(filter(None, (models.headers.get("server", ""), models.headers.get("via", "")))),
        offset_s=models.offset_s,
        stream=_stream(where, engine_facts.first_model(models), asked.server) if asked.probes else None,
    )
    if seen is None:
        return found
    return replace(
        found,
        engine=seen.engine,
        metrics_url=seen.url,
        sight=replace(seen.sight, models=seen.sight.models or tuple(filter(None, [engine_facts.first_model(models)]))),
        reaches=seen.reaches,
        names=seen.names,
    )


def _stream(where: Address, model: str, access: Access) -> StreamSeen:
    """A probe; one that looks held back is sent again, and believed when all of them do."""
    seen = probe(where, model, access=access)
    for _ in range(MAX_PROBES - 1):
        if not is_held_back(seen):
            break
        seen = probe(where, model, access=access)
    return seen


def _fetch(where: Address, access: Access, url: str) -> Answer:
    """A page of the server; what it asks for is shown to no other place, as Triton's port of metrics."""
    is_same = urlsplit(url).netloc == urlsplit(where.url).netloc
    authorization = where.authorization if is_same else ""
    return get(Address(url, authorization), "", access=access if is_same else replace(access, token=""))


def _sidecar(where: Address, *, access: Access) -> SidecarFacts:
    metrics, ready = _ask(where, (METRICS_PATH, "/readyz"), access)
    page = read_own(metrics.body) if metrics.is_fine else NO_PAGE
    error = metrics.trouble or ("" if HEARTBEAT.prometheus in page else NO_SIDECAR)
    return SidecarFacts(where.url, error, page, None, collector_facts.unready(ready))


def _collector(where: Address, *, access: Access) -> CollectorFacts:
    answers = _ask(where, collector_facts.PATHS, access)
    return collector_facts.collector_facts(where.url, answers, answers[0].offset_s)


def _prometheus(where: Address, *, now_s: float, access: Access) -> PrometheusFacts:
    paths = prometheus_facts.paths(now_s)
    answers = _ask(where, paths.values(), access)
    return prometheus_facts.prometheus_facts(where.url, dict(zip(paths, answers, strict=True)))


def _alertmanager(where: Address, *, access: Access) -> AlertmanagerFacts:
    answers = _ask(where, alertmanager_facts.PATHS, access)
    return alertmanager_facts.alertmanager_facts(where.url, answers, answers[0].offset_s)


def _found(prometheuses: Sequence[PrometheusFacts]) -> dict[Kind, tuple[Address, ...]]:
    """Whom they name, each once, and no credential that stands in their URLs."""
    found: dict[Kind, dict[str, None]] = {"sidecar": {}, "collector": {}, "alertmanager": {}}
    for one in prometheuses:
        for target in one.targets:
            key, root = (target.job, target.instance), plain_text(target.url).removesuffix(METRICS_PATH)
            if key in one.collectors:
                found["collector"][root] = None
            elif key in one.sidecars:
                found["sidecar"][root] = None
        found["alertmanager"] |= {plain_text(url).removesuffix(ALERTS_PATH): None for url in one.alertmanagers}
    return {kind: tuple(map(Address, list(urls)[:MAX_FOUND])) for kind, urls in found.items()}


def _with_found(named: Facts, found: dict[Kind, tuple[Address, ...]], asked: Asked) -> Facts:
    new = {kind: [one for one in some if one not in _roots(asked.of(kind))] for kind, some in found.items()}
    sidecars = _each(partial(_sidecar, access=asked.foreign), new["sidecar"])
    collectors = _each(partial(_collector, access=asked.foreign), new["collector"])
    alertmanagers = _each(partial(_alertmanager, access=asked.foreign), new["alertmanager"])
    known = replace(
        named,
        sidecars=(*named.sidecars, *answering(sidecars)),
        collectors=(*named.collectors, *answering(collectors)),
        alertmanagers=(*named.alertmanagers, *answering(alertmanagers)),
    )
    silent = Facts(0, sidecars=sidecars, collectors=collectors, alertmanagers=alertmanagers).places
    return replace(known, unread={url: error for _, url, error in silent if error})


def _roots(given: Iterable[Address]) -> frozenset[Address]:
    return frozenset(Address(one.url) for one in given)


def _seen_again(facts: Facts, asked: Asked) -> Facts:
    troubled = [url for _, url, page in facts.pages if is_troubled(page)]
    if not troubled or not asked.wait_s:
        return facts
    time.sleep(asked.wait_s)
    named = {one.url: one for one in (*asked.of("sidecar"), *asked.of("collector"))}
    asking = {url: named.get(url, Address(url)) for url in troubled}
    answers = together(
        partial(get, where, METRICS_PATH, access=asked.own if url in named else asked.foreign)
        for url, where in asking.items()
    )
    pages = {url: read_own(one.body) for url, one in zip(asking, answers, strict=True) if one.is_fine}
    return replace(
        facts,
        sidecars=tuple(replace(one, later=pages.get(one.url)) for one in facts.sidecars),
        collectors=tuple(replace(one, later=pages.get(one.url)) for one in facts.collectors),
    )
