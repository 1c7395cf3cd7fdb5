"""Rows of the terminal's table."""

import io
from dataclasses import replace

from rich.console import Console

from capacity.batch.report import change_lines, memory_lines, report, table_rows, verdict_text
from capacity.batch.result import Result
from tests.capacity.batch.test_result import plan, result


def test_rows_are_in_order_and_say_how_sure_they_are() -> None:
    made = result(plan(rate_rps=5.0))
    rows = table_rows(made)
    held = [row for row in rows if row[1] == "full"]
    assert [row[0] for row in held] == ["40", "41"]
    assert [row[2] for row in held] == ["kept", "broken"]
    assert held[1][4].startswith("100.00% (")
    assert all(row[1] == "5/s" for row in rows[len(held) :])


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


def test_a_change_is_said_with_the_way_back() -> None:
    made = result(plan(rate_rps=5.0))
    assert list(change_lines(made)) == []
    more = "from 20 to 40: a full server ends 20.0% more requests, and a step takes 50 ms for 30 ms"
    assert list(change_lines(replace(made, batch_before=20))) == [more, "the way back is 20"]
    assert "6.7% fewer requests" in next(change_lines(replace(made, batch_before=60)))
    assert list(change_lines(replace(made, batch_before=40))) == []


def printed(made: Result, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(report(made))
    return out.getvalue()


def test_a_narrow_terminal_cuts_nothing_off() -> None:
    assert "…" not in printed(result(plan(rate_rps=5.0)), 80)


def test_a_fit_that_is_far_off_is_warned_of() -> None:
    made = result(plan(rate_rps=5.0))
    assert made.outcome is not None
    assert "off the fit" not in printed(made, 200)
    far = replace(made.outcome.fit, b=0.0)
    assert "warning: a run was" in printed(replace(made, outcome=replace(made.outcome, fit=far)), 200)
