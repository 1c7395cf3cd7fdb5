"""The page of a sizing."""

from dataclasses import replace

import pytest

from capacity.report.chart import Chart, Rule
from capacity.report.html import html
from capacity.sizing.page import page_of
from tests.capacity.report.test_html import assert_is_whole
from tests.capacity.sizing.test_replica import KNOWN
from tests.capacity.sizing.test_result import answer

SETTINGS = {"made": "2026-01-02 03:04 UTC"}


def test_the_page_has_the_answer_both_charts_and_every_row() -> None:
    said = answer()
    page = html(page_of(said, SETTINGS))
    assert_is_whole(page)
    assert said.sentence() in page
    assert '<header class="warn">' in page
    assert page.count('role="img"') == 2
    assert "<dt>made</dt><dd>2026-01-02 03:04 UTC</dd>" in page
    assert page.count("<tr") == 1 + len(said.sized.candidates)
    for warning in said.warnings():
        assert warning in page


def test_a_demand_that_does_as_poisson_says_is_good_news() -> None:
    said = answer()
    calm = replace(said, sized=replace(said.sized, by_poisson=said.sized.by_replay))
    assert '<header class="good">' in html(page_of(calm, SETTINGS))


def test_names_are_escaped() -> None:
    assert "<b>" not in html(
        page_of(replace(answer(), left_out=(), demand=replace(answer().demand, source="<b>.csv")), SETTINGS)
    )


def test_what_replicas_take_is_drawn_in_requests_of_the_demand() -> None:
    """Where these are more work, fewer of them are certified."""
    known = replace(KNOWN, mean_tokens=(100.0, 16.0))
    said = answer(known)
    assert said.work > 2
    chart = page_of(said, SETTINGS).parts[1]
    assert isinstance(chart, Chart)
    (rule,) = [mark for mark in chart.marks if isinstance(mark, Rule) and mark.hue == "good"]
    assert rule.at == pytest.approx(said.sized.needed * known.certified_rps / said.work)
