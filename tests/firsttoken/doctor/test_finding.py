"""A finding, and what counts as wrong."""

import pytest

from firsttoken.doctor.finding import SEVERITIES, Finding, Severity


@pytest.mark.parametrize("severity", SEVERITIES)
def test_all_but_notes_are_wrong(severity: Severity) -> None:
    finding = Finding("no-spec", severity, "what", "where", "fix")
    assert finding.is_wrong == (severity != "note")
    assert finding.mapping() == {
        "code": "no-spec",
        "severity": severity,
        "what": "what",
        "where": "where",
        "fix": "fix",
    }
