"""One spec for everybody: whether the files, the sidecars, the collectors and Prometheus's series agree."""

from collections.abc import Iterator

from firsttoken.doctor.facts import Facts, answering
from firsttoken.doctor.finding import Check, Finding
from firsttoken.doctor.page import spec_hashes
from slo.check import warnings
from slo.promql import HASH_LABEL, OBJECTIVE_LABEL
from slo.signals import ENVIRONMENT_LABEL, SERVICE_LABEL


def _hashes(facts: Facts) -> dict[str, dict[str, list[str]]]:
    """By service, whoever has each hash of its spec."""
    found: dict[str, dict[str, list[str]]] = {}

    def add(service: str, spec_hash: str, who: str) -> None:
        found.setdefault(service, {}).setdefault(spec_hash, []).append(who)

    for spec in facts.specs:
        add(spec.service, spec.hash, "the file of --slo")
    for kind, url, page in facts.pages:
        for service, spec_hash in spec_hashes(page).items():
            add(service, spec_hash, f"{kind} {url}")
    return found


def _differs(facts: Facts) -> Iterator[Finding]:
    for service, who in sorted(_hashes(facts).items()):
        if len(who) > 1:
            have = "; ".join(f"{spec_hash}: {', '.join(names)}" for spec_hash, names in sorted(who.items()))
            what = f"service {service} is judged by {len(who)} different specs"
            fix = "give all of them the same slo.yaml, and send SIGHUP (or run them with --watch-slo)"
            yield Finding("spec-differs", "error", what, have, fix)


def _not_in_force(facts: Facts) -> Iterator[Finding]:
    for collector in answering(facts.collectors):
        known = spec_hashes(collector.page)
        for spec in facts.specs:
            if spec.service not in known:
                what = f"does not know service {spec.service} of the file of --slo"
                fix = "give it that file (--slo may be repeated), or name here the file that it runs by"
                yield Finding("spec-not-in-force", "error", what, f"collector {collector.url}", fix)


def _series(facts: Facts) -> Iterator[Finding]:
    """Series in Prometheus that were counted by another rule than the file's, or under another environment."""
    for prometheus in facts.prometheuses:
        for spec in facts.specs:
            hashes = {objective.name: objective.hash for objective in spec.objectives}
            mine = [one for one in prometheus.events if one.get(SERVICE_LABEL) == spec.service]
            where = f"prometheus {prometheus.url}"
            others = {one.get(ENVIRONMENT_LABEL, "") for one in mine} - {spec.environment}
            if spec.environment and mine and others:
                seen = ", ".join(repr(one) for one in sorted(others))
                what = f"service {spec.service} is counted in environment {seen}, the spec says {spec.environment}"
                fix = "set deployment.environment.name in OTEL_RESOURCE_ATTRIBUTES of its sidecars"
                yield Finding("environment-differs", "error", what, where, fix)
            stale = {
                one.get(OBJECTIVE_LABEL, "")
                for one in mine
                if one.get(HASH_LABEL) != hashes.get(one.get(OBJECTIVE_LABEL, ""))
            }
            if stale:
                what = f"{', '.join(sorted(stale))} of service {spec.service}: counted by another spec than the file's"
                fix = "give the sidecars that file, and build the rules from it: firsttoken alerts build"
                yield Finding("spec-differs", "error", what, where, fix)


def _warned(facts: Facts) -> Iterator[Finding]:
    for spec in facts.specs:
        for warning in warnings(spec):
            fix = f"firsttoken slo check shows what each alert of {spec.service} can do"
            yield Finding("spec-warning", "note", warning, f"service {spec.service}", fix)


CHECKS = (
    Check(("spec-differs",), "files, sidecars and collectors that judge by different specs", _differs),
    Check(("spec-not-in-force",), "a service of the file that the collector does not know", _not_in_force),
    Check(("environment-differs", "spec-differs"), "series in Prometheus of another spec or environment", _series),
    Check(("spec-warning",), "what `slo check` warns of", _warned),
)
