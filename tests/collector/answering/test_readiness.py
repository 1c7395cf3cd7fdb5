"""When the collector may be relied on, and what it says when not."""

import pytest

from collector.answering.readiness import LEAST_LATE_S, Health, trouble

CASES: dict[str, tuple[Health, str | None]] = {
    "just evaluated": (Health(1000.0, 10, 1000), None),
    "a few ticks behind": (Health(1059.0, 10, 1000), None),
    "far behind": (Health(1061.0, 10, 1000), "the last evaluation is 61 s old, with one due every 10 s"),
    "short ticks stumble": (Health(1000.0 + LEAST_LATE_S, 1, 1000), None),
    "short ticks stop": (Health(1001.0 + LEAST_LATE_S, 1, 1000), "16 s old"),
    "before the first": (Health(1000.0, 10, None), "not evaluated yet"),
    "the disk is full": (Health(1000.0, 10, 1000, failing="disk full"), "cannot commit: disk full"),
    "in the past": (Health(1000.0, 10, 1000, failing="gone", is_recalling=True), "reading the past"),
}


@pytest.mark.parametrize("case", CASES)
def test_trouble_is_said_in_words(case: str) -> None:
    health, says = CASES[case]
    found = trouble(health)
    assert (found is None) if says is None else (says in (found or ""))
