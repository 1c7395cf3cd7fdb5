"""The table of checks: silent on a healthy stack, and no code in it that no planted fault brings about."""

import re
from pathlib import Path

import pytest

from firsttoken.doctor.checks.table import CHECKS, CODES, findings
from firsttoken.doctor.facts import Facts
from tests.firsttoken.doctor.checks import (
    test_alertmanager,
    test_clock,
    test_collector,
    test_counters,
    test_prometheus,
    test_reach,
    test_rules,
    test_server,
    test_sidecar,
    test_spec,
    test_stream,
)
from tests.firsttoken.doctor.healthy import Plant, healthy

ROOT = Path(__file__).parents[4]

ROOMS = (
    test_reach,
    test_server,
    test_stream,
    test_sidecar,
    test_collector,
    test_counters,
    test_spec,
    test_prometheus,
    test_rules,
    test_alertmanager,
    test_clock,
)
PLANTED = {sentence: fault for room in ROOMS for sentence, fault in room.PLANTED.items()}


def test_a_healthy_stack_is_silent() -> None:
    found = findings(healthy())
    assert [finding for finding in found if finding.is_wrong] == []
    assert {finding.code for finding in found} == {"watchdog-unheard"}  # a note: nobody is told of the watchdog


def test_nothing_known_is_nothing_found() -> None:
    assert findings(Facts(0)) == ()


def test_every_code_is_brought_about_by_a_planted_fault() -> None:
    assert {code for code, _ in PLANTED.values()} == set(CODES)
    assert len(PLANTED) == sum(len(room.PLANTED) for room in ROOMS) >= 20


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_a_fault_is_told_with_its_place_and_its_fix_and_little_else(code: str, plant: Plant) -> None:
    found = findings(plant(healthy()))
    for finding in found:
        assert finding.code in CODES
        assert all((finding.what, finding.where, finding.fix))
        assert finding.fix == finding.fix.strip(" .")
    assert code in {finding.code for finding in found}
    # One fault may show in several places, but not everywhere.
    assert len({finding.code for finding in found if finding.is_wrong}) <= 4


def test_the_worst_stands_first_and_each_once() -> None:
    facts = test_counters.PLANTED["workers that are killed"][1](test_clock.PLANTED["a Prometheus ahead"][1](healthy()))
    severities = [finding.severity for finding in findings(facts)]
    assert severities == ["error", "warning", "note"]


def test_every_code_stands_in_the_docs() -> None:
    told = set(re.findall(r"`([a-z-]+)`", (ROOT / "docs/doctor.md").read_text()))
    assert set(CODES) <= told


def test_every_check_says_what_it_looks_for() -> None:
    assert all(check.codes and check.about for check in CHECKS)
