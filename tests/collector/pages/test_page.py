"""The page as HTML: whole, escaped, and open to those who do not see it."""

import gzip
import random
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from collector.answering.service import PACKING
from collector.answering.status import status
from collector.pages import page
from collector.pages.drill import Asked, drill
from collector.pages.history import History
from collector.pages.view import MAX_MODELS, Page, Seen
from collector.pages.view import page as made_page
from collector.replaying.whatif import answered
from collector.values.alerting import with_cause
from slo.objective import parse
from slo.signals import KV_OCCUPANCY
from tests.collector import browser, exports
from tests.collector.answering import test_status as made
from tests.collector.drift_scene import DRIFT
from tests.collector.pages.test_alert_lines import alert
from tests.collector.pages.test_drill import request
from tests.collector.pages.test_view import NO_PAST, many, many_of, past_of, seen
from tests.collector.replaying.test_whatif import asked
from tests.collector.replaying.test_whatif import read as read_past
from tests.collector.support import collector, send, until

NOTHING = Asked()
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


def about(found: Any, asked: Asked = NOTHING, *, specs: Any = made.SPECS, past: History = NO_PAST) -> str:
    """The page about the first objective."""
    scene = Seen(specs, status(specs, found, ()), past, (), 10)
    whole = made_page(scene)
    return page.objective(whole, drill(scene, whole, whole.cards[0], asked))


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
    html = about(made.FULL)
    read(html)
    assert 'scope="row">1h<' in html
    assert "28d" in html


def test_names_from_the_wire_are_escaped() -> None:
    evil = '<script>alert("x")</script>'
    found = made.evaluation(budgets=(made.budget("*"), made.budget(evil), made.budget("n")))
    for html in (page.front(seen(found)), about(found, Asked(worst=[request(1, 2.0, model=evil, outcome=evil)]))):
        assert evil not in html
    assert "&lt;script&gt;" in html


def test_every_picture_has_words_and_nothing_is_inline() -> None:
    tags = [*read(page.front(full())).tags, *read(about(made.FULL, Asked(worst=[request(1, 2.0)]))).tags]
    for tag, attributes in tags:
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        if tag == "svg":
            assert "aria-label" in attributes or attributes.get("aria-hidden") == "true"
        if tag == "script":
            assert attributes.get("src") in {f"/static/{name}" for name in page.STATIC}


def fifty() -> Page:
    """Ten services of five objectives each, with three hours of history, and all of them burn: as large as it gets."""
    kinds = ("ttft", "tpot", "e2e")
    lines = [f"  - {{name: o{n}, signal: {kinds[n % 3]}, percentile: 95, threshold: {n + 1}00ms}}" for n in range(5)]
    services = [f"service-{number}" for number in range(10)]
    specs = parse("---\n".join("\n".join((f"service: {service}", "objectives:", *lines, "")) for service in services))
    whom = [(service, f"o{n}") for service in services for n in range(5)]
    budgets = [made.BudgetRow(made.AT_S, "", who, "*", name, 9, 1, 2.0, 0.5, 60.0, 1.0, "counts") for who, name in whom]
    burns = [
        made.BurnRow(made.AT_S, "", who, "*", name, window_s, 9, 1, 2.0, 1.0, "counts", 0)
        for who, name in whom
        for window_s in (300, 1800, 3600, 7200, 21600, 86400, 259200, 2419200)
    ]
    alerts = [replace(made.firing(), key=replace(made.firing().key, service=who, objective=name)) for who, name in whom]
    chance = random.Random(1)
    times = range(made.AT_S - 10_800, made.AT_S + 1, 10)
    columns = {name: [(at_s, chance.random()) for at_s in times] for name in ("p50", "p90", "p95", "p99", "p999")}
    percentiles = {("", service, "*", kind): columns for service in services for kind in kinds}
    past = replace(NO_PAST, since_s=made.AT_S - 10_800, percentiles=percentiles)
    found = made.evaluation(budgets=tuple(budgets), burns=tuple(burns))
    return made_page(Seen(specs, status(specs, found, alerts), past, alerts, 10))


def test_fifty_objectives_stay_small() -> None:
    html = page.front(fifty())
    assert html.count('class="line ') == 50
    sent = [html.encode(), *(page.static(name) for name in page.STATIC)]
    assert sum(len(gzip.compress(one, PACKING)) for one in sent) < 150_000
    assert sum(map(len, sent)) < 600_000, "nor is it much to read for a browser"


def test_trouble_of_the_collector_itself_is_said_first() -> None:
    html = page.front(full(), trouble="the database cannot commit: disk full")
    read(html)
    assert html.index("disk full") < html.index("<h1>The contract is at risk")
    assert 'role="alert"' in html
    assert 'role="alert"' not in page.front(full())


def test_a_what_if_stands_beside_the_promise_with_its_bounds() -> None:
    question = asked(percentile="95", threshold="400ms")
    html = about(None, Asked(percentile="95", whatif=answered(question, read_past(question, unsure=1))))
    read(html)
    text = html.replace("\u00a0", " ")
    for said in ("as promised", "what if", "at least 1.0 %, at most 3.0 %", 'value="95"'):
        assert said in text


def test_the_form_asks_about_the_environment_of_its_page() -> None:
    def named(environment: str) -> list[str | None]:
        found = made.evaluation(budgets=(replace(made.budget("*"), environment=environment),))
        fields = (of for tag, of in read(about(found)).tags if tag == "input" and of.get("type") == "hidden")
        return [of["value"] for of in fields if of["name"] == "environment"]

    assert named("eu & us") == ["eu & us"]
    assert named("") == []


def test_a_service_without_an_objective_is_told_of() -> None:
    row = replace(made.percentile("m"), service="search")
    html = page.front(seen(made.evaluation(rows=(row,))))
    assert "<b>search</b> sends ttft of m" in html
    assert "Without an objective" not in page.front(full())


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
    html = about(many_of(MAX_MODELS + 12))
    read(html)
    assert "12 further models are not shown" in html
    assert "/api/v1/status?service=chat&amp;objective=ttft" in html
    assert f"{MAX_MODELS + 12} models" in page.front(many(MAX_MODELS + 12))
