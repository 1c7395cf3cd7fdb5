"""What stands on the terminal."""

import io
import re
from dataclasses import replace

import numpy as np
from rich.console import Console

from capacity.certify.report import doing, notes, progress, report
from capacity.certify.search import Varied
from capacity.certify.trial import AskAlone, AskFlood, AskRun
from tests.capacity.certify.test_result import BRACKET, GOOD, found, result


def printed(*, width: int = 200, **given: object) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(report(result(*BRACKET, **given)))  # type: ignore[arg-type]
    return out.getvalue()


def test_the_verdict_comes_first_and_probes_stand_in_order_of_rate() -> None:
    lines = printed(peak_rps=6.0).splitlines()
    assert lines[0].startswith("5 requests/s certified, 8 refuted by tpot")
    rates = [line.split()[:2] for line in lines[2:8:2]]
    assert rates == [["5", "certified"], ["6", "unresolved"], ["8", "refuted"]]
    assert [line.split()[0] for line in lines[3:9:2]] == ["tpot"] * 3  # each objective has a row of its own
    text = " ".join(lines)
    assert "6/s is unresolved: why" in text
    assert "4.0 requests in the system, 95 % of the time at most 7" in text
    assert "a peak of 6 requests/s is 20% more than the certified rate" in text


def test_a_narrow_terminal_cuts_nothing_off() -> None:
    lines = printed(width=80, peak_rps=4.0).splitlines()
    assert "…" not in "".join(lines)
    assert any(line.split()[:2] == ["8", "refuted"] and line.rstrip().endswith("5%") for line in lines)
    assert "100.00% (99.01%-100.00%)" in "".join(lines)
    assert "a peak of 4 requests/s leaves 20% of the certified rate free" in lines


def test_what_other_workloads_do_is_said_as_surely_as_it_is_known() -> None:
    def words(bad: int) -> str:
        outcome = result(*BRACKET).outcome
        assert outcome is not None
        seen = np.zeros(400, dtype=np.int8)
        seen[100 :: max(300 // bad, 1)] = 1
        varied = (Varied("longer prompts", found(GOOD, seen if bad > 1 else GOOD), 1),)
        return " ".join(notes(replace(result(*BRACKET), outcome=replace(outcome, varied=varied))))

    assert "at the certified rate no request missed an objective" in words(1)
    assert "with prompts +20%: no request missed an objective" in words(1)
    assert "with prompts +20%: tpot spends 113% of its budget, from too few requests to be sure" in words(16)
    assert re.search(r"tpot spends \d+% of its budget, too much", words(150))


def test_progress_on_a_pipe_is_a_line_for_each_thing_asked() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=200), 0, 60) as show:
        for ask in (AskAlone(50), AskAlone(100), AskFlood(), AskRun(1, 5.0, "empty", 100)):
            show(ask, 3, 1.0)
    assert out.getvalue().splitlines() == [
        "requests alone; at most 59s left",
        "flood; at most 59s left",
        "run 1, 5 requests/s from empty; at most 58s left",
    ]


def test_progress_on_a_terminal_says_how_long_it_may_take() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=200, force_terminal=True), 20, 600) as show:
        show(AskFlood(), 3, 10.0)
    assert "at most 10m left" in out.getvalue() or "at most 9m" in out.getvalue()
    assert doing(AskFlood()) in out.getvalue()


def test_what_was_spent_is_taken_off_the_time_that_is_left() -> None:
    out = io.StringIO()
    with progress(Console(file=out, width=200), 100, 600) as show:
        for ask, seconds in ((AskRun(1, 5.0, "empty", 9), 60.0), (AskRun(2, 5.0, "overload", 9), 40.0)):
            show(ask, 9, seconds)
    assert [line.rpartition("; ")[2] for line in out.getvalue().splitlines()] == ["at most 7m left", "at most 7m left"]
    assert doing(AskRun(3, 5.0, "empty", 9, "longer prompts")) == "run 3, 5 requests/s with longer prompts"
