"""The page of a sizing."""

from dataclasses import replace

from capacity.sizing.html import page_of
from tests.capacity.report.test_page import assert_is_whole
from tests.capacity.sizing.test_result import answer


def test_the_page_has_the_answer_both_charts_and_every_row() -> None:
    said = answer()
    page = page_of(said)
    assert_is_whole(page)
    assert said.sentence() in page
    assert '<header class="warn">' in page
    assert page.count('role="img"') == 2
    assert page.count("<tr") == 1 + len(said.sized.candidates)
    for warning in said.warnings():
        assert warning in page


def test_a_demand_that_does_as_poisson_says_is_good_news() -> None:
    said = answer()
    calm = replace(said, sized=replace(said.sized, by_poisson=said.sized.by_replay))
    assert '<header class="good">' in page_of(calm)


def test_names_are_escaped() -> None:
    assert "<b>" not in page_of(replace(answer(), left_out=(), demand=replace(answer().demand, source="<b>.csv")))
