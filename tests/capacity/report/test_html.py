"""A report is one file that any browser shows, in light and in dark, and that loads nothing."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from capacity.report.chart import Axis, Chart, Line
from capacity.report.html import html
from capacity.report.page import Facts, Page, Table, Words
from tests.collector.browser import found, tab
from tests.collector.support import until

VOID = {"meta", "link", "br", "hr", "img"}


class Balance(HTMLParser):
    """Whether every tag that is opened is closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_is_whole(text: str) -> None:
    """It is well formed and needs nothing else: no address, no script, no file."""
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    assert not re.search(r"<script|<link|<img|src=|url\(|@import", text)
    assert "prefers-color-scheme: dark" in text


PAGE = Page(
    "Title",
    "Verdict & more",
    "good",
    (
        Facts("", [("certified", "5/s")], are_large=True),
        Chart("Load", Axis("x"), Axis("y"), (Line("l", [(0, 1), (1, 3)]),), "What to see."),
        Table("Rows", ("a", "b"), [("1", "<2>"), ("3", "4")], frozenset({1}), "Said below.", ["", "<why>"]),
        Words("Words", ["one", "two"]),
        Words("Code", ["--flag <x>"], is_code=True),
    ),
)


def test_a_page_is_whole_and_escaped() -> None:
    made = html(PAGE)
    assert_is_whole(made)
    assert "<h1>Verdict &amp; more</h1>" in made
    assert '<tr><td>1</td><td>&lt;2&gt;</td></tr><tr class="marked noted">' in made
    assert '<tr class="note"><td colspan="2">&lt;why&gt;</td></tr></tbody>' in made
    assert "<pre>--flag &lt;x&gt;</pre>" in made
    assert "<p>one</p><p>two</p>" in made
    assert '<p class="says">What to see.</p>' in made


@pytest.mark.tools
def test_a_browser_shows_it_without_complaint_in_either_light(tmp_path: Path) -> None:
    assert found() is not None
    (tmp_path / "report.html").write_text(html(PAGE))
    with tab(f"file://{tmp_path}/report.html", tmp_path / "profile") as shown:
        until(lambda: shown.ask("document.readyState") == "complete")
        colours = []
        for scheme in ("light", "dark"):
            shown.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            colours.append(shown.ask("getComputedStyle(document.body).backgroundColor"))
        assert colours[0] != colours[1]
        assert shown.ask("document.querySelector('section.chart > svg').getBoundingClientRect().height > 100")
        assert shown.ask("document.documentElement.scrollWidth <= window.innerWidth")
        assert shown.complaints == []
