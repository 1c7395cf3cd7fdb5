"""What is nobody's service: the collector, the rules themselves, GPUs of dcgm-exporter, and the watchdog.

Made once for all services, as a rule file of its own whose name no service can have. Nothing here needs an exporter to
be there: a series that is missing makes no alert. Rules that fail and groups that are late show only where Prometheus
scrapes itself.
"""

from alerts.annotations import Links
from alerts.gpu_alert import dcgm_faulty
from alerts.group import Alert, Group
from slo import promql
from slo.quantity import duration_text
from slo.signals import DCGM_GPU_LABEL, EVALUATION_AGE, TICKS
from slo.trouble import (
    COLLECTOR_DOWN,
    FORGOTTEN_S,
    GPU_FAULTY,
    RULES_FAILING,
    RULES_WINDOW_S,
    SILENT_S,
    TROUBLES,
    WATCHDOG,
)

FLEET = "_fleet"
"""No name of a service: these begin with a letter or digit."""
INTERVAL_S = 30
MISSED_GROUPS = 3


def fleet_groups(links: Links, *, dcgm: str, query_offset_s: int) -> tuple[Group, ...]:
    """The groups; `dcgm` are matchers that choose among the GPUs of dcgm-exporter."""
    alerts = {
        "watchdog": (_watchdog(links),),
        "telemetry": (_collector_down(links), _rules_failing(links)),
        "gpu": (_dcgm(dcgm, links),),
    }
    return tuple(
        Group(f"firsttoken:{FLEET}:{name}", INTERVAL_S, rules, query_offset_s) for name, rules in alerts.items()
    )


def _alert(name: str, expr: str, links: Links, *, summary: str, description: str) -> Alert:
    trouble = TROUBLES[name]
    labels = {"severity": trouble.severity, "notify": trouble.notify}
    annotations = {"summary": summary, "description": description, "runbook_url": links.runbook_url(name)}
    return Alert(name, expr, labels, annotations, for_s=trouble.for_s, keep_firing_for_s=trouble.keep_s)


def _watchdog(links: Links) -> Alert:
    return _alert(
        WATCHDOG,
        "vector(1)",
        links,
        summary="Alerts reach this far.",
        description="This alert always fires. Who expects it and hears it no more knows that others would be lost too.",
    )


def _collector_down(links: Links) -> Alert:
    ever = f"group by (job) (last_over_time({TICKS.prometheus}[{duration_text(FORGOTTEN_S)}]))"
    of_late = f"last_over_time({TICKS.prometheus}[{duration_text(SILENT_S)}])"
    idle = f"min by (job) ({EVALUATION_AGE.prometheus}) > {SILENT_S}"
    return _alert(
        COLLECTOR_DOWN,
        f"{ever}\nunless on (job) {of_late}\nor\n{idle}",
        links,
        summary="No collector has evaluated anything for five minutes.",
        description="Job {{ $labels.job }}: no collector is heard, or none evaluates: SQL, status page and drift stand "
        "still, and where the collector notifies nobody is told.",
    )


def _rules_failing(links: Links) -> Alert:
    ours, window = promql.selector({"rule_group=~": ".*;firsttoken:.*"}), duration_text(RULES_WINDOW_S)
    failed = f"sum by (rule_group) (increase({promql.RULE_FAILURES}{ours}[{window}])) > 0"
    missed = f"sum by (rule_group) (increase({promql.RULE_GROUPS_MISSED}{ours}[{window}])) >= {MISSED_GROUPS}"
    return _alert(
        RULES_FAILING,
        f"{failed}\nor\n{missed}",
        links,
        summary="Rules of firsttoken fail or are late.",
        description="Group {{ $labels.rule_group }}: what it records is missing or old, and its alerts cannot fire.",
    )


def _dcgm(matchers: str, links: Links) -> Alert:
    return _alert(
        GPU_FAULTY,
        dcgm_faulty(matchers),
        links,
        summary="A GPU reports errors (dcgm-exporter).",
        description="GPU {{ $labels.gpu }} ({{ $labels."
        + DCGM_GPU_LABEL
        + " }}) of {{ $labels.Hostname }}: an XID, or a "
        "row of memory that had to be or could not be remapped.",
    )
