"""Whether those who were named answer, and are ready."""

from collections.abc import Iterator

from firsttoken.doctor.facts import Facts
from firsttoken.doctor.finding import Check, Finding

_FIX = {
    "server": "start it, or give the URL under which this machine reaches it",
    "sidecar": "give the admin address of the sidecar (--admin), and --token-file where it asks for a token",
    "collector": "give the address of the collector (--listen), and --token-file where it asks for a token",
    "prometheus": "give the root of Prometheus, as http://HOST:9090, with its path prefix where it has one",
    "alertmanager": "give the root of Alertmanager, as http://HOST:9093, with its path prefix where it has one",
}


def _unreachable(facts: Facts) -> Iterator[Finding]:
    for kind, url, error in facts.places:
        if error:
            yield Finding("unreachable", "error", error, f"{kind} {url}", _FIX[kind])


def _unready(facts: Facts) -> Iterator[Finding]:
    for one in facts.sidecars:
        if one.unready:
            fix = "see that the server behind it is up and reachable from the sidecar"
            yield Finding("not-ready", "error", f"is not ready: {one.unready}", f"sidecar {one.url}", fix)
    for other in facts.collectors:
        if other.unready:
            fix = "wait if it has just started; else look at its log and its database"
            yield Finding("not-ready", "error", f"is not ready: {other.unready}", f"collector {other.url}", fix)


CHECKS = (
    Check(("unreachable",), "somebody who was named gives no usable answer", _unreachable),
    Check(("not-ready",), "a sidecar or a collector says that it is not ready", _unready),
)
