"""A sidecar: whether it judges by a spec, reads the engine whose state is promised, and is heard by the collector."""

from collections.abc import Iterator, Sequence

from firsttoken.doctor.facts import CollectorFacts, Facts, SidecarFacts, answering
from firsttoken.doctor.finding import Check, Finding, counted_both_ways
from firsttoken.doctor.page import objectives, samples, sees_requests, services, spec_hashes, value
from slo import signals
from slo.objective import STATE_SIGNALS, Objective
from slo.signals import CONFIG_RELOAD_OK, COVERAGE, SERVICE_LABEL, SIGNALS

WARM_S = 60
"""A sidecar younger than this may not have been heard yet."""


def _no_spec(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.sidecars):
        if not spec_hashes(one.page):
            yield Finding(
                "no-spec",
                "error",
                "judges by no spec: it measures, and counts good and bad for nothing, so that no alert can fire",
                f"sidecar {one.url}",
                "start it with --slo FILE",
            )


def _not_reloaded(facts: Facts) -> Iterator[Finding]:
    fix = "run firsttoken slo check on its file, mend it, and send SIGHUP; the log says what is wrong"
    for kind, url, page in facts.pages:
        if value(page, CONFIG_RELOAD_OK) == 0:
            what = "could not use the slo.yaml or certificate that it was last told to read: the one before is in force"
            yield Finding("reload-failed", "error", what, f"{kind} {url}", fix)


def _uncounted(facts: Facts) -> Iterator[Finding]:
    """Objectives of which no sidecar counts anything, though some have seen enough of their service."""
    for spec in facts.specs:
        mine = [
            one for one in answering(facts.sidecars) if spec.service in {service for _, service in services(one.page)}
        ]
        counted = {name for one in mine for service, name in objectives(one.page) if service == spec.service}
        for objective in spec.objectives:
            able = [one for one in mine if _could_count(one, objective) and not _explained(facts, one)]
            if able and objective.name not in counted:
                yield _of_uncounted(able, f"{spec.service}/{objective.name}", objective)


def _speaks_of(one: SidecarFacts, name: str) -> bool:
    return any(service == name for _, service in services(one.page))


def _explained(facts: Facts, one: SidecarFacts) -> bool:
    """Whether what a scraping sidecar lacks is told better of the server itself, whose pages were read."""
    return not sees_requests(one.page) and any(server.sight is not None for server in facts.servers)


def _could_count(one: SidecarFacts, objective: Objective) -> bool:
    """Whether it has seen what the objective speaks of: a request, or of an engine's state a minute of life."""
    if objective.signal in STATE_SIGNALS or not sees_requests(one.page):
        return (value(one.page, signals.HEARTBEAT) or 0) >= WARM_S
    return (value(one.page, signals.REQUESTS) or 0) > 0


def _of_uncounted(able: Sequence[SidecarFacts], name: str, objective: Objective) -> Finding:
    where = ", ".join(f"sidecar {one.url}" for one in able)
    title = SIGNALS[objective.signal].title
    if not any(sees_requests(one.page) for one in able):
        what = f"objective {name} is not counted: the sidecar only scrapes, and cannot count its {title}"
        fix = "let requests pass by it: --upstream URL; its log says of each objective what is missing"
    elif objective.signal in STATE_SIGNALS:
        what = f"objective {name} is not counted: the engine's page does not tell its {title}"
        fix = "name the page: --scrape URL, and switch on what it lacks (--metrics, --enable-metrics, --slots)"
    else:
        what = f"objective {name} is not counted: no model seen so far is one that it matches, or its spec is another"
        fix = "look at match.model of the objective, and at the spec that the sidecar runs by"
    return Finding("sli-unbacked", "warning", what, where, fix)


def _twice(facts: Facts) -> Iterator[Finding]:
    """A service that is counted by sidecars that requests pass by and by others that only scrape."""
    ways: dict[str, dict[bool, list[str]]] = {}
    for one in answering(facts.sidecars):
        for service in sorted({service for service, _ in objectives(one.page)}):
            ways.setdefault(service, {}).setdefault(sees_requests(one.page), []).append(one.url)
    for service, found in sorted(ways.items()):
        if len(found) > 1:
            where = ", ".join(f"sidecar {url}" for urls in found.values() for url in urls)
            yield counted_both_ways(service, where)


def _unheard(facts: Facts) -> Iterator[Finding]:
    """Services of a sidecar that has lived a while, and of which the collector knows nothing of late."""
    for one in answering(facts.sidecars):
        if (value(one.page, signals.HEARTBEAT) or 0) < WARM_S:
            continue
        for collector in answering(facts.collectors):
            for _, service in sorted(services(one.page)):
                if not _hears(collector, service):
                    what = f"service {service} of this sidecar does not arrive at the collector {collector.url}"
                    fix = "see OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_METRICS_EXPORTER of the sidecar, and its log"
                    yield Finding("telemetry-lost", "error", what, f"sidecar {one.url}", fix)


def _hears(collector: CollectorFacts, service: str) -> bool:
    """Whether any window of the service is known at all; without one of its objectives, whether it has latencies."""
    known = list(samples(collector.page, COVERAGE, **{SERVICE_LABEL: service}))
    if known:
        return any(sample.value > 0 for sample in known)
    return service in collector.unjudged or any(samples(collector.page, signals.LATENCY, **{SERVICE_LABEL: service}))


CHECKS = (
    Check(("no-spec",), "a sidecar without a spec", _no_spec),
    Check(("reload-failed",), "a sidecar or collector that kept an old spec or certificate", _not_reloaded),
    Check(("sli-unbacked",), "objectives of which a sidecar counts nothing", _uncounted),
    Check(("double-counting",), "a server that a proxy and a scrape both count", _twice),
    Check(("telemetry-lost",), "a sidecar whose telemetry does not reach the collector", _unheard),
)
