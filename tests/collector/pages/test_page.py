"""The page as HTML: whole, escaped, and open to those who do not see it."""

import gzip
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from collector.answering.status import status
from collector.pages import page
from collector.pages.view import MAX_MODELS, Page, Seen
from collector.pages.view import page as made_page
from collector.values.alerting import with_cause
from slo.objective import parse
from slo.signals import KV_OCCUPANCY
from tests.collector import browser, exports
from tests.collector.answering import test_status as made
from tests.collector.drift_scene import DRIFT
from tests.collector.pages.test_alert_lines import alert
from tests.collector.pages.test_view import NO_PAST, many, past_of, seen
from tests.collector.support import collector, send, until

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Balance(HTMLParser):
    """Fails on tags that do not close in order; keeps what it met."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(html: str) -> Balance:
    found = Balance()
    found.feed(html)
    assert found.open == []
    return found


def full() -> Page:
    points = {name: [(made.AT_S - 60, 0.4), (made.AT_S, 0.6)] for name in ("p50", "p90", "p95", "p99", "p999")}
    gauges = {("chat", KV_OCCUPANCY.sql): [(made.AT_S - 9, 0.2), (made.AT_S, 0.3)]}
    past = past_of(percentiles={("", "chat", "m", "ttft"): points}, gauges=gauges)
    return seen(replace(made.FULL, drifts=(DRIFT,)), alert("firing", "page"), past=past)


def test_the_page_answers_first_and_is_well_formed() -> None:
    html = page.front(full()).replace("\u00a0", " ")
    read(html)
    order = [
        *(
            "The contract is at risk",
            "Alerts now",
            "Latency drift",
            "Objectives",
            "first token within 500 ms",
            "budget left",
        ),
        *("Engines", "KV cache", "Past alerts"),
    ]
    places = [html.index(text) for text in order]
    assert places == sorted(places)


def test_an_alert_shows_what_is_behind_it_and_escapes_it() -> None:
    one = with_cause(alert("firing", "page"), "requests fail (instance <b> alone), 100 % sure: failed 25 %")
    html = page.front(seen(made.FULL, one)).replace("\u00a0", " ")
    read(html)
    assert "<b>Cause:</b> requests fail (instance &lt;b&gt; alone), 100 % sure: failed 25 %." in html
    assert "Cause:" not in page.front(full())


def test_an_empty_page_says_so_in_words() -> None:
    html = page.front(seen(None))
    read(html)
    for text in ("Nothing heard yet", "waiting for the first events", "nothing to draw yet", "No alert has fired yet"):
        assert text in html


def test_the_page_of_an_objective_has_every_window() -> None:
    shown = full()
    html = page.objective(shown, shown.cards[0])
    read(html)
    assert 'scope="row">1h<' in html
    assert "28d" in html


def test_names_from_the_wire_are_escaped() -> None:
    evil = '<script>alert("x")</script>'
    found = made.evaluation(budgets=(made.budget("*"), made.budget(evil), made.budget("n")))
    shown = seen(found)
    for html in (page.front(shown), page.objective(shown, shown.cards[0])):
        assert evil not in html
    assert "&lt;script&gt;" in html


def test_every_picture_has_words_and_nothing_is_inline() -> None:
    found = read(page.front(full()))
    for tag, attributes in found.tags:
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        if tag == "svg":
            assert "aria-label" in attributes or attributes.get("aria-hidden") == "true"
        if tag == "script":
            assert attributes.get("src") == "/static/live.js"


def test_fifty_objectives_stay_small() -> None:
    objectives = "\n".join(
        f"  - {{name: o{number}, signal: ttft, percentile: 95, threshold: {number + 1}00ms}}" for number in range(50)
    )
    specs = parse(f"service: chat\nobjectives:\n{objectives}\n")
    budgets = tuple(
        made.BudgetRow(made.AT_S, "", "chat", "*", f"o{number}", 9, 1, 2.0, 0.5, 60.0, 1.0, "counts")
        for number in range(50)
    )
    burns = tuple(
        made.BurnRow(made.AT_S, "", "chat", "*", f"o{number}", window_s, 9, 1, 2.0, 1.0, "counts", 0)
        for number in range(50)
        for window_s in (300, 1800, 3600, 7200, 21600, 86400, 259200, 2419200)
    )
    found = made.evaluation(budgets=budgets, burns=burns)
    shown = made_page(Seen(specs, status(specs, found, ()), NO_PAST, (), 10))
    assert (
        len(gzip.compress(page.front(shown).encode())) + sum(len(page.static(name)) for name in page.STATIC) < 150_000
    )


@pytest.mark.tools
def test_a_real_browser_draws_it_and_keeps_it_fresh(tmp_path: Path) -> None:
    """No message on the console (a broken policy would be one), and news show without a reload."""
    if browser.found() is None:
        pytest.skip("chromium is missing: install it, as with apt-get install chromium")
    with (
        collector(tmp_path, "--tick", "1s") as running,
        browser.tab(running.url, tmp_path / "profile") as shown,
    ):
        until(lambda: shown.ask("document.readyState") == "complete" and shown.ask("location.host"))
        assert shown.ask("document.querySelector('h1').innerText") == "Nothing heard yet"
        shown.ask("window.stays = true")
        send(running.url, exports.second(good=99, bad=1, at_s=int(time.time())))
        until(lambda: shown.ask("document.querySelector('h1').innerText") == "The contract is kept")
        assert shown.ask("document.title").startswith("The contract is kept")
        assert shown.ask("window.stays") is True
        assert shown.ask("getComputedStyle(document.querySelector('.card')).borderRadius") == "12px"
        assert shown.complaints == []
        running.process.kill()
        until(lambda: "has not answered" in shown.ask("document.getElementById('live').innerText"))


def test_a_long_page_begins_with_every_objective_at_a_glance() -> None:
    names = [f"o{number}" for number in range(50)]
    lines = "\n".join(f"  - {{name: {name}, signal: ttft, percentile: 95, threshold: 1s}}" for name in names)
    html = page.front(seen(specs=parse(f"service: chat\nobjectives:\n{lines}\n")))
    found = read(html)
    glance = html[html.index('class="glance') : html.index("</nav>")]
    ids = {attributes.get("id") for _, attributes in found.tags}
    for name in names:
        assert f'href="#chat-{name}"' in glance
        assert f"chat-{name}" in ids
    assert 'class="glance' not in page.front(full())


def test_models_that_are_not_shown_are_counted_and_reachable() -> None:
    html = page.objective(many(MAX_MODELS + 12), many(MAX_MODELS + 12).cards[0])
    read(html)
    assert "12 further models are not shown" in html
    assert "/api/v1/status?service=chat&amp;objective=ttft" in html
    assert f"{MAX_MODELS + 12} models" in page.front(many(MAX_MODELS + 12))
