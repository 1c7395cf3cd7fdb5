"""The rules that a Prometheus runs: whether ours are there, whole, of this spec, and can fire; and names gone dead."""

import re
from collections import Counter
from collections.abc import Iterator

from alerts.group import Alert
from alerts.rules import Target, service_groups
from firsttoken.doctor.checks.prometheus import collector_notifies, has_alerts
from firsttoken.doctor.engine_facts import PREFIXES, RENAMED, family
from firsttoken.doctor.facts import Facts, LoadedRule, PrometheusFacts, answering
from firsttoken.doctor.finding import Check, Finding
from slo.objective import Spec
from slo.promql import OBJECTIVE_LABEL, OBJECTIVE_TARGET, OBJECTIVE_THRESHOLD, TIER_LABEL
from slo.signals import SERVICE_LABEL
from slo.words import visible

MAX_NAMED = 4
"""So many are named of what is missing; the rest is a number."""
_BUILD = (
    "build them from the spec and load them: firsttoken alerts build --slo FILE --out DIR; rule_files: "
    "[DIR/*.rules.yaml]"
)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`')
_WORD = re.compile(r"[a-zA-Z_:][\w:]*")
_Rule = tuple[str, str, frozenset[tuple[str, str]]]


def _absent(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.prometheuses):
        if one.is_itself and not has_alerts(one) and not collector_notifies(facts):
            what = "runs no rules of firsttoken, and no collector looked at here notifies: nobody is told of anything"
            fix = f"{_BUILD}; or let the collector notify (--alertmanager)"
            yield Finding("rules-absent", "error", what, f"prometheus {one.url}", fix)


def _failing(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.prometheuses):
        where = f"prometheus {one.url}"
        failing = [rule for group in one.own_groups for rule in group.rules if rule.health == "err"]
        for rule in failing[:MAX_NAMED]:
            what = f"rule {rule.name} of group {visible(rule.group)} fails: {rule.error}"
            fix = "mend what the error names; rules made for a newer Prometheus: --prometheus-version"
            yield Finding("rule-failing", "error", what, where, fix)
        if len(failing) > MAX_NAMED:
            what = f"{len(failing) - MAX_NAMED} further rules of firsttoken fail"
            yield Finding("rule-failing", "error", what, where, "see its page /rules")
        for group in one.own_groups:
            if group.interval_s and group.took_s > group.interval_s:
                what = f"group {visible(group.name)} takes {group.took_s:.1f} s and is due every {group.interval_s:g} s"
                fix = "give Prometheus more CPU, or build the rules with a longer --eval-interval"
                yield Finding("rules-slow", "error", what, where, fix)


def _incomplete(facts: Facts) -> Iterator[Finding]:
    """Rules that the spec makes and that are not loaded, and groups of objectives that it does not have."""
    for one in answering(facts.prometheuses):
        for spec in facts.specs:
            mine = [group for group in one.own_groups if group.name.startswith(f"firsttoken:{spec.service}:")]
            if mine:
                yield from _of_spec(one, spec, [rule for group in mine for rule in group.rules])


def _of_spec(one: PrometheusFacts, spec: Spec, loaded: list[LoadedRule]) -> Iterator[Finding]:
    where = f"prometheus {one.url}"
    wanted, found = _expected(spec), {_key(rule) for rule in loaded}
    if missing := sorted({_named(key) for key in wanted - found}):
        shown = ", ".join(missing[:MAX_NAMED])
        more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
        what = f"service {spec.service}: rules that its spec makes are not loaded: {shown}{more}"
        yield Finding("rules-incomplete", "error", what, where, _BUILD)
    known = {objective.name for objective in spec.objectives}
    gone = {rule.labels[OBJECTIVE_LABEL] for rule in loaded if OBJECTIVE_LABEL in rule.labels} - known
    changed = sorted(_changed(spec, loaded))
    if gone or changed:
        of = ", ".join([*(f"{name} is no objective any more" for name in sorted(gone)), *changed])
        what = f"service {spec.service}: its rules were built from another spec: {of}"
        yield Finding("rules-stale", "error", what, where, _BUILD)


def _expected(spec: Spec) -> set[_Rule]:
    found: set[_Rule] = set()
    for group in service_groups(spec, Target()):
        for rule in group.rules:
            name = rule.alert if isinstance(rule, Alert) else rule.record
            found.add((group.name, name, frozenset(rule.labels.items())))
    return found


def _key(rule: LoadedRule) -> _Rule:
    return rule.group, rule.name, frozenset(rule.labels.items())


def _named(key: _Rule) -> str:
    group, name, _ = key
    return f"{name} of {group}"


def _changed(spec: Spec, loaded: list[LoadedRule]) -> Iterator[str]:
    """Targets and thresholds that the loaded rules record otherwise."""
    for objective in spec.objectives:
        wanted = {OBJECTIVE_TARGET: objective.goal, OBJECTIVE_THRESHOLD: objective.threshold}
        for rule in loaded:
            if rule.name in wanted and rule.labels.get(OBJECTIVE_LABEL) == objective.name:
                now, text = wanted[rule.name], rule.query.removeprefix("vector(").removesuffix(")")
                if now is None or _number(text) != float(now):
                    kind = "target" if rule.name == OBJECTIVE_TARGET else "threshold"
                    yield f"{kind} of {objective.name} is {text} there"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _fruitless(facts: Facts) -> Iterator[Finding]:
    """Burn alerts over counters that no sidecar exports."""
    for one in answering(facts.prometheuses):
        where = f"prometheus {one.url}"
        counted = {(labels.get(SERVICE_LABEL, ""), labels.get(OBJECTIVE_LABEL, "")) for labels in one.events}
        services = {service for service, _ in counted}
        judged = _judged(one)
        for service in sorted({service for service, _ in judged} - services):
            what = f"has rules for service {service} and no series that it is counted in: they can never fire"
            fix = "scrape its sidecars, and let their service be called so (--service, OTEL_SERVICE_NAME)"
            yield Finding("rules-without-series", "error", what, where, fix)
        for service, objective in sorted(judged - counted):
            if service in services:
                what = f"no sidecar counts objective {service}/{objective}: its rules can never fire"
                fix = "give the sidecars the spec that the rules were built from; a scrape alone cannot back everything"
                yield Finding("rules-without-series", "error", what, where, fix)


def _judged(one: PrometheusFacts) -> set[tuple[str, str]]:
    rules = (rule for group in one.own_groups for rule in group.rules if rule.is_alert and TIER_LABEL in rule.labels)
    return {(rule.labels.get(SERVICE_LABEL, ""), rule.labels.get(OBJECTIVE_LABEL, "")) for rule in rules}


def _loaded_twice(facts: Facts) -> Iterator[Finding]:
    for one in answering(facts.prometheuses):
        twice = sorted(name for name, count in Counter(group.name for group in one.own_groups).items() if count > 1)
        if twice:
            what = f"has loaded {len(twice)} groups from two files each, as {visible(twice[0])}: both record the same"
            fix = "leave the rules in one of the folders that rule_files names"
            yield Finding("rules-twice", "error", what, f"prometheus {one.url}", fix)


def _dead_names(facts: Facts) -> Iterator[Finding]:
    """Rules of anybody over an engine's metrics that are not there, though others of that engine are."""
    new_names = {rename.old: rename.new for some in RENAMED.values() for rename in some}
    for one in answering(facts.prometheuses):
        there = one.names | {family(name) for name in one.names}
        dead: dict[str, list[str]] = {}
        for group in one.groups:
            for rule in group.rules:
                for name in engine_names(rule.query):
                    if family(name) not in there and _is_scraped(name, there):
                        dead.setdefault(name, []).append(rule.name)
        for name, rules in sorted(dead.items()):
            plain = family(name)
            hint = f": it is called {new_names[plain]} now" if plain in new_names else ""
            what = f"{name} is read by {', '.join(sorted(set(rules))[:MAX_NAMED])} and no series has that name{hint}"
            fix = "use the name that the engine's page shows; until then these rules give nothing"
            yield Finding("rule-series-absent", "error", what, f"prometheus {one.url}", fix)


def engine_names(query: str) -> set[str]:
    """The metrics of inference servers that a PromQL expression names."""
    return {word for word in _WORD.findall(_QUOTED.sub('""', query)) if word.startswith(PREFIXES)}


def _is_scraped(name: str, there: frozenset[str] | set[str]) -> bool:
    prefix = next(one for one in PREFIXES if name.startswith(one))
    return any(other.startswith(prefix) for other in there)


CHECKS = (
    Check(("rules-absent",), "rules of ours, where nobody else notifies", _absent),
    Check(("rule-failing", "rules-slow"), "rules that fail, or are late", _failing),
    Check(("rules-incomplete", "rules-stale"), "rules that are missing, or of another spec", _incomplete),
    Check(("rules-without-series",), "rules that can never fire, for nothing is counted", _fruitless),
    Check(("rules-twice",), "rule groups that are loaded twice", _loaded_twice),
    Check(("rule-series-absent",), "rules over metrics of an engine that are not there", _dead_names),
)
