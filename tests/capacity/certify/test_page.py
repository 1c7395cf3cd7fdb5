"""The page of a certification."""

from dataclasses import replace

from capacity.certify.account import Account
from capacity.certify.judge import Rigour
from capacity.certify.page import page_of
from capacity.certify.result import Result
from capacity.certify.search import Varied
from capacity.report.html import html
from tests.capacity.certify.test_result import BAD, BRACKET, CROWD, GOALS, GOOD, found, result
from tests.capacity.report.test_html import assert_is_whole

SETTINGS = {"model": "m", "target": "http://h", "tokens": {"fixed": 5.0, "each": 2}, "left_out": [], "seed": 3}
SUMMARY = {"ttft": {"p95": 0.2}, "tpot": {"p95": None}, "e2e": {"p95": 2.0}, "completed_rps": 4.9}


def shown(made: Result) -> str:
    for kept in made.account.runs.values():
        kept.facts = {"summary": SUMMARY, "concurrency": CROWD}
    page = html(page_of(made, SETTINGS))
    assert_is_whole(page)
    return page


def test_a_bracket_has_its_verdict_all_plots_and_each_rate() -> None:
    page = shown(result(*BRACKET, peak_rps=4.0))
    assert "<h1>5 requests/s certified, 8 refuted by tpot" in page
    assert '<header class="good">' in page
    for title in (
        "Requests that miss tpot, by load",
        "p95 by load",
        "Throughput and goodput",
        "Requests in the system",
    ):
        assert f"<h2>{title}</h2><svg" in page
    assert page.count("<tr") == 1 + 2 * len(BRACKET) + 1 + len(BRACKET)  # each rate with why it stands so, and each run
    assert '<tr class="marked noted"><td>5</td><td>certified</td>' in page
    assert "200 ms" in page
    assert "a peak of 4 requests/s leaves 20% of the certified rate free" in page
    assert "<dt>tokens</dt><dd>fixed 5, each 2</dd>" in page


def test_without_a_certificate_or_a_verdict_there_is_a_page_all_the_same() -> None:
    assert '<header class="bad">' in shown(result(why_not="too tight", needs=999.0))
    assert '<header class="warn">' in shown(Result(None, Account(), GOALS, Rigour(), None))


def test_other_workloads_are_drawn_where_they_were_tried() -> None:
    made = result(*BRACKET)
    assert made.outcome is not None
    varied = (Varied("shorter prompts", found(GOOD, GOOD), 1), Varied("other prefix", found(GOOD, BAD), 2))
    page = shown(replace(made, outcome=replace(made.outcome, varied=varied)))
    assert "<h2>Other workloads at 5 requests/s</h2><svg" in page
    for name in ("as stated", "prompts −20%", "half shared"):
        assert f'text-anchor="middle">{name}</text>' in page
    assert "half shared: tpot missed by 100.00% of 300 requests" in page
