"""Everything that `firsttoken alerts build` writes, as names and texts: the same specs and flags, the same bytes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files

from alerts.annotations import ALERT_PLACE
from alerts.crd import Place, object_name, prometheus_rule
from alerts.document import document
from alerts.errors import SpecLabelError, TargetError
from alerts.fleet import FLEET, fleet_groups
from alerts.grafana import Provisioning, provisioning
from alerts.group import FLOOR, QUERY_OFFSET_SINCE, Alert, Group, group_mapping
from alerts.routes import Routing, alertmanager, route_tests
from alerts.rules import Target, service_groups
from alerts.unit_tests import service_tests, slow_tests
from slo.burn import tiers
from slo.labels import RESERVED
from slo.objective import Objective, Spec
from slo.quantity import duration_text

RULES_SUFFIX, TESTS_SUFFIX, SLOW_TESTS_SUFFIX = ".rules.yaml", ".tests.yaml", ".slow.tests.yaml"
CRD_SUFFIX, GRAFANA_SUFFIX = ".prometheusrule.yaml", ".grafana.yaml"
SUFFIXES = (RULES_SUFFIX, TESTS_SUFFIX, CRD_SUFFIX, GRAFANA_SUFFIX)
ALERTMANAGER_FILE, ROUTE_TESTS_FILE = "alertmanager.yaml", "alertmanager-routes.yaml"
RUNBOOKS = "runbooks"
SCRAPES_A_WINDOW = 4


@dataclass(frozen=True, slots=True)
class Formats:
    """What the rules are written as beside rule files: a PrometheusRule, alert rules of Grafana (None: not)."""

    crd: Place | None = None
    grafana: Provisioning | None = None


def artefacts(
    specs: tuple[Spec, ...], target: Target, routing: Routing, formats: Formats | None = None
) -> Mapping[str, str]:
    """Texts by path below the output folder: rules and their tests for each service and for the fleet, the Alertmanager
    configuration of them all with tests of its routes, and a runbook for each alert that links to one of these.

    Raises `TargetError` and `SpecLabelError`.
    """
    _check_target(target)
    formats = Formats() if formats is None else formats
    if formats.crd is not None:
        _check_object_names(specs)
    if target.scrape_interval_s is not None:
        _check_scrapes(specs, target.scrape_interval_s)
    for spec in specs:
        _check_labels(spec)
    groups = {name: made for name, _, made in _made(specs, target)}
    texts: dict[str, str] = {}
    for name, of, made in _made(specs, target):
        rules = {"groups": [group_mapping(group, target.version) for group in made]}
        texts[f"{name}{RULES_SUFFIX}"] = document(rules, of)
    for spec in specs:
        texts |= _unit_tests(spec, groups[spec.service], target)
    texts |= _other_formats(specs, target, formats)
    everything = [group for made in groups.values() for group in made]
    texts[ALERTMANAGER_FILE] = document(alertmanager(specs, routing), specs)
    texts[ROUTE_TESTS_FILE] = document(route_tests(specs, everything, routing), specs)
    if target.links.runbook.startswith(f"{RUNBOOKS}/"):
        alertnames = {rule.alert for group in everything for rule in group.rules if isinstance(rule, Alert)}
        texts |= {f"{RUNBOOKS}/{alertname}.md": runbook(alertname) for alertname in sorted(alertnames)}
    return texts


def _made(specs: tuple[Spec, ...], target: Target) -> Iterator[tuple[str, tuple[Spec, ...], tuple[Group, ...]]]:
    """The name of each rule file, the specs that it is made from, and its groups."""
    for spec in specs:
        yield spec.service, (spec,), service_groups(spec, target)
    yield FLEET, specs, fleet_groups(target.links, dcgm=target.dcgm, query_offset_s=target.query_offset_s)


def _unit_tests(spec: Spec, groups: tuple[Group, ...], target: Target) -> dict[str, str]:
    rules_file = f"{spec.service}{RULES_SUFFIX}"
    tests = service_tests(spec, groups, rules_file, target)
    texts = {f"{spec.service}{TESTS_SUFFIX}": document(tests, (spec,))}
    slow = slow_tests(spec, groups, rules_file)
    return texts if slow is None else texts | {f"{spec.service}{SLOW_TESTS_SUFFIX}": document(slow, (spec,))}


def _other_formats(specs: tuple[Spec, ...], target: Target, formats: Formats) -> dict[str, str]:
    texts: dict[str, str] = {}
    if formats.crd is not None:
        for name, of, made in _made(specs, target):
            rule = prometheus_rule(name, made, target.version, formats.crd)
            texts[f"{name}{CRD_SUFFIX}"] = document(rule, of)
    if formats.grafana is not None:
        silent = replace(target, links=replace(target.links, asks=False))
        for name, of, made in _made(specs, silent):
            texts[f"{name}{GRAFANA_SUFFIX}"] = document(provisioning(made, formats.grafana), of)
    return texts


def runbook(alertname: str) -> str:
    """The runbook of an alert."""
    return files("alerts").joinpath(RUNBOOKS, f"{alertname}.md").read_text(encoding="utf-8")


def needed_scrape_interval_s(objective: Objective) -> int:
    """How often Prometheus must scrape, in seconds, for the shortest window of the objective's alerts to hold four
    scrapes: an increase needs two, and may find one lost."""
    shorts = [tier.short_s for tier in tiers(objective)]
    return min(shorts, default=objective.window // 12) // SCRAPES_A_WINDOW


def _check_scrapes(specs: tuple[Spec, ...], scrape_interval_s: int) -> None:
    for spec in specs:
        for objective in spec.objectives:
            needed_s = needed_scrape_interval_s(objective)
            if scrape_interval_s > needed_s:
                raise TargetError(
                    f"--scrape-interval {duration_text(scrape_interval_s)} is too long for service {spec.service}, "
                    f"objective {objective.name}: the short window of its fastest alert would hold fewer than "
                    f"{SCRAPES_A_WINDOW} scrapes: scrape every {duration_text(max(needed_s, 1))}, or give its tiers "
                    "a longer short window"
                )


def _check_object_names(specs: tuple[Spec, ...]) -> None:
    seen: dict[str, str] = {}
    for spec in specs:
        name = object_name(spec.service)
        if name in seen:
            raise TargetError(
                f"--crd: services {seen[name]} and {spec.service} are both {name} to Kubernetes: rename one"
            )
        seen[name] = spec.service


def _check_target(target: Target) -> None:
    def text(version: tuple[int, int]) -> str:
        return ".".join(map(str, version))

    if target.version < FLOOR:
        raise TargetError(f"--prometheus-version {text(target.version)} is too old: {text(FLOOR)} or newer is needed")
    if target.query_offset_s and target.version < QUERY_OFFSET_SINCE:
        since = text(QUERY_OFFSET_SINCE)
        raise TargetError(
            f"--query-offset needs Prometheus {since}: give --prometheus-version {since} or newer, or leave it out"
        )
    if ALERT_PLACE not in target.links.runbook:
        raise TargetError(f"--runbook-url {target.links.runbook} names no alert: put {ALERT_PLACE} where its name goes")


def _check_labels(spec: Spec) -> None:
    """An objective's labels must be none of those that tell alerts apart or route them."""
    for objective in spec.objectives:
        for label in objective.labels:
            if label in RESERVED:
                where = f"service {spec.service}, objective {objective.name}: label {label}"
                raise SpecLabelError(f"{where} is one that alerts have already: rename it")
