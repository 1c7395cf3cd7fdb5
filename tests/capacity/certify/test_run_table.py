"""Each run in numbers."""

from dataclasses import replace

from capacity.certify.account import Kept
from capacity.certify.run_table import HEADINGS, fact, good_share, run_table
from capacity.certify.search import Varied
from capacity.certify.trial import AskRun, Seen
from tests.capacity.certify.test_result import BRACKET, CROWD, GOOD, found, result

SUMMARY = {
    "ttft": {"p50": 0.1, "p95": 0.2, "p99": 2.0},
    "tpot": {"p50": None},
    "late": {"p99": 0.002},
    "completed_rps": 4.9,
    "outcomes": {"ok": 300, "rejected": 4, "timeout": 1},
}


def test_a_row_for_each_run_that_was_kept() -> None:
    made = result(*BRACKET)
    for kept in made.account.runs.values():
        kept.facts = {"summary": SUMMARY, "concurrency": CROWD}
    made.account.hear(AskRun(4, 5.0, "empty", 400, "longer prompts"), Seen((GOOD, GOOD), 40.0, 4.0))
    made.account.over({"summary": {}})
    assert made.outcome is not None
    varied = (Varied("longer prompts", found(GOOD, GOOD), 4),)
    table = run_table(replace(made, outcome=replace(made.outcome, varied=varied)))
    assert all(len(row) == len(HEADINGS) for row in table.rows)
    first, *_, last = table.rows
    assert first[:8] == ("1", "5", "empty", "40 s", "33.3", "4.9", "5", "5")
    assert first[8:] == ("100 / 200 / 2,000", "- / - / -", "4 / 7", "2 ms")
    assert (last[0], last[2], last[5], last[7], last[-1]) == ("4", "prompts +20%", "-", "0", "-")


def test_a_request_is_good_when_no_objective_calls_it_bad() -> None:
    assert good_share(Kept({}, ("1111" + "0000" * 3, "1111" + "0011" * 3))) == 0.5
    assert good_share(Kept({}, ("--00", "0000"))) == 1


def test_a_fact_that_is_not_there_is_none() -> None:
    kept = Kept({}, facts={"a": {"b": 3}, "c": "text"})
    assert (fact(kept, "a", "b"), fact(kept, "a", "x"), fact(kept, "c", "b"), fact(kept, "c")) == (
        3.0,
        None,
        None,
        None,
    )
