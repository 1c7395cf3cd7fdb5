"""The table of troubles: names, who is told, and that each number can decide something."""

import re

from slo import trouble
from slo.signals import OUTCOMES, SIGNALS
from slo.trouble import SHARES, TROUBLES


def test_names_are_of_one_kind_and_none_is_that_of_a_burn() -> None:
    assert all(re.fullmatch(r"LLM[A-Z][A-Za-z0-9]+", name) for name in TROUBLES)
    assert not {signal.alert for signal in SIGNALS.values()} & set(TROUBLES)


def test_severity_follows_from_who_is_told() -> None:
    severities = {"page": "critical", "ticket": "warning", "none": "info"}
    assert all(one.severity == severities[one.notify] for one in TROUBLES.values())
    assert {name for name, one in TROUBLES.items() if one.notify == "page"} == {
        "LLMEngineStalled",
        "LLMTelemetryAbsent",
        "LLMGPULost",
    }


def test_shares_are_of_known_outcomes_and_below_that_of_a_page() -> None:
    for share in SHARES:
        assert share.name in TROUBLES
        assert share.outcome is None or share.outcome in OUTCOMES
        assert 0 < share.ticket_from < trouble.PAGE_FROM < 1


def test_a_short_window_is_part_of_its_long_one() -> None:
    assert trouble.SHARE_SHORT_S < trouble.SHARE_LONG_S
    assert trouble.SHARE_MIN_MINUTES * 60 < trouble.SHARE_LONG_S
    assert trouble.SILENT_S < trouble.LOST_S < trouble.FORGOTTEN_S
