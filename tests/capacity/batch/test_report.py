"""Rows of the terminal's table."""

from dataclasses import replace

from capacity.batch.report import memory_lines, table_rows, verdict_text
from tests.capacity.batch.test_result import plan, result


def test_rows_are_in_order_and_say_how_sure_they_are() -> None:
    made = result(plan(rate_rps=5.0))
    rows = table_rows(made)
    held = [row for row in rows if row[1] == "as many outstanding"]
    assert [row[0] for row in held] == ["40", "41"]
    assert [row[2] for row in held] == ["kept", "broken"]
    assert held[1][4].startswith("100.0% (")
    assert all(row[1] == "5 requests/s" for row in rows[len(held) :])


def test_the_cache_is_said_in_blocks() -> None:
    (line,) = memory_lines(result(plan(rate_rps=5.0)))
    assert line.startswith("KV cache: ")
    assert "tokens hold" not in line


def test_a_run_that_was_too_short_is_neither_kept_nor_broken() -> None:
    outcome = result(plan(rate_rps=5.0)).outcome
    assert outcome is not None
    probe = outcome.probes[0]
    assert verdict_text(probe) == "kept"
    assert verdict_text(replace(probe, is_too_short=True)) == "too short to tell"
    unsure = replace(probe.verdict, is_kept=False, is_sure=False)
    assert verdict_text(replace(probe, verdict=unsure)) == "broken, unsure"
