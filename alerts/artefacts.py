"""Everything that `firsttoken alerts build` writes, as names and texts: the same specs and flags, the same bytes."""

import re
from collections.abc import Mapping
from importlib.resources import files

from alerts.annotations import ALERT_PLACE
from alerts.document import document
from alerts.errors import SpecLabelError, TargetError
from alerts.group import FLOOR, QUERY_OFFSET_SINCE, Alert, group_mapping
from alerts.routes import Routing, alertmanager
from alerts.rules import Target, service_groups
from alerts.unit_tests import service_tests
from slo.objective import Spec
from slo.promql import TIER_LABEL, VERDICT_KEY

RULES_SUFFIX, TESTS_SUFFIX, ALERTMANAGER_FILE = ".rules.yaml", ".tests.yaml", "alertmanager.yaml"
RUNBOOKS = "runbooks"
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
RESERVED_LABELS = {
    *VERDICT_KEY,
    *("alertname", "alertstate", "severity", "notify", "owner", TIER_LABEL, "long_window", "short_window"),
}


def artefacts(specs: tuple[Spec, ...], target: Target, routing: Routing) -> Mapping[str, str]:
    """Texts by path below the output folder: rules and their tests for each service, the Alertmanager configuration
    of them all, and a runbook for each alert that links to one of these.

    Raises `TargetError` and `SpecLabelError`.
    """
    _check_target(target)
    texts: dict[str, str] = {}
    alertnames: set[str] = set()
    for spec in specs:
        _check_labels(spec)
        groups = service_groups(spec, target)
        rules_file = f"{spec.service}{RULES_SUFFIX}"
        texts[rules_file] = document({"groups": [group_mapping(group) for group in groups]}, (spec,))
        texts[f"{spec.service}{TESTS_SUFFIX}"] = document(service_tests(spec, groups, rules_file, target), (spec,))
        alertnames |= {rule.alert for group in groups for rule in group.rules if isinstance(rule, Alert)}
    texts[ALERTMANAGER_FILE] = document(alertmanager(specs, routing), specs)
    if target.links.runbook.startswith(f"{RUNBOOKS}/"):
        texts |= {f"{RUNBOOKS}/{alertname}.md": runbook(alertname) for alertname in sorted(alertnames)}
    return texts


def runbook(alertname: str) -> str:
    """The runbook of an alert."""
    return files("alerts").joinpath(RUNBOOKS, f"{alertname}.md").read_text(encoding="utf-8")


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
    """An objective's labels must be labels to Prometheus, and none of those that tell alerts apart or route them."""
    for objective in spec.objectives:
        for label in objective.labels:
            where = f"service {spec.service}, objective {objective.name}: label {label}"
            if LABEL_NAME.fullmatch(label) is None:
                raise SpecLabelError(f"{where} is no label name: use letters, digits and underscore")
            if label in RESERVED_LABELS:
                raise SpecLabelError(f"{where} is one that alerts have already: rename it")
