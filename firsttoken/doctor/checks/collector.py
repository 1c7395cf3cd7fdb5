"""A collector: whether it hears, judges everything that it hears, once, and reaches those whom it tells."""

from collections.abc import Iterator

from firsttoken.doctor.checks.counters import RECEIVER
from firsttoken.doctor.facts import Facts, answering
from firsttoken.doctor.finding import Check, Finding
from firsttoken.doctor.page import samples, value
from slo import signals
from slo.quantity import about_text
from slo.signals import ALL_MODELS, LABELS, SERVICE_LABEL
from slo.words import visible

LAG_S = 60
OWN_EYES = frozenset({"proxy", "middleware"})
"""Sources that judge every request they see: a request that passes both is counted twice."""


def _silent(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.collectors):
        lag_s = value(one.page, signals.INTAKE_LAG)
        fix = "point OTEL_EXPORTER_OTLP_ENDPOINT of the sidecars at it, and look at their logs"
        if lag_s is None:
            yield Finding("no-telemetry", "error", "has counted nothing yet", f"collector {one.url}", fix)
        elif lag_s > LAG_S:
            what = f"the newest event that it has counted is {about_text(lag_s)} old"
            idle = f"{fix}; a sender without a heartbeat is silent while it is idle"
            yield Finding("collector-lag", "warning", what, f"collector {one.url}", idle)


def _receivers(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.collectors):
        for sample in samples(one.page, signals.RECEIVER_UP):
            if sample.value == 0:
                name = visible(sample.labels.get(RECEIVER, ""))
                what = f"the receiver {name} does not take what it is told: nobody hears of an alert"
                fix = "see that it is up, and that --alertmanager or --webhook and its credentials are right"
                yield Finding("receiver-down", "error", what, f"collector {one.url}", fix)


def _idle(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.collectors):
        rows = one.status.objectives if one.status is not None else ()
        whole = [row for row in rows if row.model == ALL_MODELS]
        busy = {(row.environment, row.service) for row in whole if row.state != "no_data"}
        for row in whole:
            if row.state == "no_data":
                others = (row.environment, row.service) in busy
                what = f"objective {row.service}/{row.name} has seen no event in its whole window"
                fix = "look at its match (model, class, prompt_bytes) and its signal: other objectives have traffic"
                if not others:
                    fix = "see that requests pass by a sidecar of that service; or remove the objective"
                yield Finding("objective-idle", "warning", what, f"collector {one.url}", fix)


def _unjudged(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.collectors):
        for service in one.unjudged:
            what = f"service {visible(service)} is heard, and no objective speaks of it"
            fix = "write objectives for it in the collector's slo.yaml, or mend the service name of its sidecar"
            yield Finding("service-unjudged", "warning", what, f"collector {one.url}", fix)


def _twice(facts: Facts) -> Iterator[Finding]:
    """Services whose requests two eyes of ours have seen: both export good and bad of each."""
    for one in answering(facts.collectors):
        seen: dict[str, set[str]] = {}
        for sample in samples(one.page, signals.LATENCY):
            source = sample.labels.get(LABELS[signals.SOURCE], "")
            seen.setdefault(sample.labels.get(SERVICE_LABEL, ""), set()).add(source)
        for service, sources in sorted(seen.items()):
            if sources >= OWN_EYES:
                what = f"service {visible(service)} is measured by a proxy and by a middleware: requests count twice"
                fix = "take one of the two away, or give them different service names (--service)"
                yield Finding("double-counting", "error", what, f"collector {one.url}", fix)


def _release(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.collectors):
        if one.version and facts.ours and one.version != facts.ours:
            what = f"is release {visible(one.version)}, and this command is {facts.ours}"
            fix = "upgrade the older of the two; a newer collector brings its database up to date by itself"
            yield Finding("release-differs", "note", what, f"collector {one.url}", fix)


CHECKS = (
    Check(("no-telemetry", "collector-lag"), "a collector that hears nothing, or nothing of late", _silent),
    Check(("receiver-down",), "a receiver that does not take what the collector tells", _receivers),
    Check(("objective-idle",), "objectives without any traffic", _idle),
    Check(("service-unjudged",), "services in traffic that no objective judges", _unjudged),
    Check(("double-counting",), "requests that two of our own eyes see", _twice),
    Check(("release-differs",), "a collector of another release", _release),
)
