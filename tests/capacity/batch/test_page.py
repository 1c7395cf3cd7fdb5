"""The page of what was recorded; that of a test is with `test_result`."""

from capacity.batch.page import page_of, page_of_records
from capacity.batch.recorded import Pair, Recorded, judge
from capacity.report.html import html
from tests.capacity.batch.test_result import SETTINGS, plan, result


def test_recorded_windows_are_drawn_with_the_fit() -> None:
    pairs = tuple(Pair(float(n), 0.01 + 0.001 * n) for n in range(1, 40))
    made = html(page_of_records(judge("tpot", Recorded(pairs, 0.95, "proxy"), 0.030), SETTINGS))
    assert "a batch of 20 keeps tpot, by 39 recorded windows" in made
    assert "p95 of the time per output token" in made
    assert "<svg" in made


def test_too_few_are_drawn_without() -> None:
    made = html(page_of_records(judge("tpot", Recorded((Pair(2.0, 0.02),), 0.95, "proxy"), 0.030), SETTINGS))
    assert "the records choose no batch for tpot" in made


def test_a_server_where_nothing_is_feasible_has_a_page_too() -> None:
    assert "no batch is feasible" in html(page_of(result(plan(), limit_s=0.001), SETTINGS))
