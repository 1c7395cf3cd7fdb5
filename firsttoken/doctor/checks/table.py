"""Every check there is, in the order in which they are told of."""

from firsttoken.doctor.checks import (
    alertmanager,
    clock,
    collector,
    counters,
    prometheus,
    reach,
    rules,
    server,
    sidecar,
    spec,
    stream,
)
from firsttoken.doctor.facts import Facts
from firsttoken.doctor.finding import SEVERITIES, Check, Finding

CHECKS: tuple[Check, ...] = tuple(
    check
    for room in (reach, server, stream, sidecar, collector, counters, spec, prometheus, rules, alertmanager, clock)
    for check in room.CHECKS
)
CODES = tuple(dict.fromkeys(code for check in CHECKS for code in check.codes))
"""Every code that a finding can have."""


def findings(facts: Facts) -> tuple[Finding, ...]:
    """All that the checks find, each once, worst first."""
    found = dict.fromkeys(finding for check in CHECKS for finding in check.find(facts))
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))
