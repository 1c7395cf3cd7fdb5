"""The page of a certification."""

from capacity.certify.account import Account, Kept
from capacity.certify.html import good_share, page_of
from capacity.certify.judge import Rigour
from capacity.certify.result import Result
from tests.capacity.certify.test_result import BRACKET, CROWD, GOALS, result
from tests.capacity.report.test_page import assert_is_whole

SETTINGS = {"model": "m", "target": "http://h", "tokens": {"fixed": 5.0, "each": 2}, "left_out": [], "seed": 3}
SUMMARY = {"ttft": {"p95": 0.2}, "tpot": {"p95": None}, "e2e": {"p95": 2.0}, "completed_rps": 4.9}


def shown(found: Result) -> str:
    for kept in found.account.runs.values():
        kept.facts = {"summary": SUMMARY, "concurrency": CROWD}
    page = page_of(found, SETTINGS)
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
    assert page.count("<tr") == 1 + 2 * len(BRACKET)  # each rate with why it stands so
    assert '<tr class="marked noted"><td>5</td><td>certified</td>' in page
    assert "200 ms" in page
    assert "a peak of 4 requests/s leaves 20% of the certified rate free" in page
    assert "<dt>tokens</dt><dd>fixed 5, each 2</dd>" in page


def test_without_a_certificate_or_a_verdict_there_is_a_page_all_the_same() -> None:
    assert '<header class="bad">' in shown(result(why_not="too tight", needs=999.0))
    assert '<header class="warn">' in shown(Result(None, Account(), GOALS, Rigour(), None))


def test_a_request_is_good_when_no_objective_calls_it_bad() -> None:
    assert good_share(Kept({}, ("1111" + "0000" * 3, "1111" + "0011" * 3))) == 0.5
    assert good_share(Kept({}, ("--00", "0000"))) == 1
