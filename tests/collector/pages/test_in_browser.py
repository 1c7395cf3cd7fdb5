"""The pages in a real Chromium: what they say in each state, that they follow without a reload, that everybody can use
them (axe-core's rules), and what they weigh.

One browser and one collector serve all of it; states are what the collector is sent.
"""

import base64
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.pages import page
from slo import signals
from slo.objective import parse
from tests.collector import browser, exports, messages
from tests.collector.browser import Tab
from tests.collector.messages import Value
from tests.collector.support import Running, ask, collector, send, until

AXE = Path(__file__).parent / "axe/node_modules/axe-core/axe.min.js"
PICTURES = Path(__file__).parents[3] / "artifacts/page"
pytestmark = [
    pytest.mark.tools,
    pytest.mark.skipif(
        browser.found() is None, reason="chromium is missing: install it, as with apt-get install chromium"
    ),
]
with_axe = pytest.mark.skipif(not AXE.exists(), reason="axe-core is missing: tests/install_tools.sh fetches it")

TIER = "alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}]}"
SPEC = f"""\
service: chat
objectives:
  - {{name: ttft, signal: ttft, percentile: 95, threshold: 500ms, window: 10m, {TIER}}}
  - {{name: answered, signal: availability, target: 99.9%}}
"""
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
DRILL = "/objectives/chat/ttft"
SIZES_SENT = (
    "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    ".filter((one) => one.initiatorType !== 'other' && one.initiatorType !== 'fetch').map((one) => one.transferSize)"
)
TRACE = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser.tab("about:blank", tmp_path_factory.mktemp("browser") / "profile") as tab:
        yield tab


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with collector(tmp_path_factory.mktemp("empty"), "--tick", "1s", spec=SPEC) as running:
        yield running


@pytest.fixture(scope="module")
def burning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A collector whose objective burns: some minutes were good, and the last is bad. A service has no objective."""
    with collector(tmp_path_factory.mktemp("burning"), "--tick", "1s", spec=SPEC) as running:
        now_s = int(time.time())
        for ago_s in (*range(300, 60, -10), *range(60, -1, -1)):
            tell(running, at_s=now_s - ago_s, bad=30 if ago_s <= 60 else 0)
        playground = messages.metrics(*exports.latencies([0.2], at_s=now_s), resource=resource("playground"))
        send(running.url, playground)
        slow = messages.span({signals.LATENCY_TTFT: 4.25, signals.REQUEST_MODEL: "m", signals.OUTPUT_TOKENS: 12})
        slow.trace_id, slow.span_id = bytes.fromhex(TRACE), b"\7" * 8
        slow.start_time_unix_nano, slow.end_time_unix_nano = (now_s - 9) * 10**9, (now_s - 4) * 10**9
        send(running.url, messages.traces(slow, resource=exports.RESOURCE), kind="traces")
        until(lambda: ask(f"{running.url}/api/v1/alerts").json["alerts"])
        yield running


def resource(service: str) -> dict[str, Value]:
    return exports.RESOURCE | {signals.SERVICE_NAME: service}


def tell(running: Running, *, at_s: int, bad: int, good: int = 60) -> None:
    """A second of traffic for both objectives."""
    ttft, answered = parse(SPEC)[0].objectives
    parts = [
        exports.events(good=good, bad=bad, at_s=at_s, of=ttft),
        exports.events(good=good + bad, bad=0, at_s=at_s, of=answered),
        exports.latencies([0.1] * good + [2.0] * bad, at_s=at_s),
        exports.heartbeat(at_s=at_s),
        exports.gauge(signals.KV_OCCUPANCY, 0.4, at_s=at_s),
    ]
    send(running.url, exports.export(*parts))


def go(tab: Tab, url: str) -> None:
    """Open a page, whole."""
    tab.complaints.clear()
    tab.call("Page.navigate", url=url)
    until(lambda: tab.ask("document.readyState") == "complete" and tab.ask("location.href") == url)


def look(tab: Tab, size: str, *, dark: bool) -> None:
    width, height = SIZES[size]
    tab.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=size == "phone"
    )
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    tab.call("Emulation.setEmulatedMedia", features=scheme)


def findings(tab: Tab, *, state: str = "") -> list[str]:
    """What axe-core finds serious or critical in the page, in each size and colour. `state` is for the pictures' names,
    where the heading does not tell it."""
    called = f"{state} {heading(tab)}".strip()
    tab.call("Runtime.evaluate", expression=AXE.read_text())
    found = []
    for size in SIZES:
        for dark in (False, True):
            look(tab, size, dark=dark)
            keep(tab, f"{called}-{size}-{'dark' if dark else 'light'}")
            run = "axe.run({resultTypes: ['violations']}).then((all) => JSON.stringify(all.violations))"
            told = tab.call("Runtime.evaluate", expression=run, awaitPromise=True, returnByValue=True)
            for one in json.loads(told["result"]["value"]):
                if one["impact"] in ("serious", "critical"):
                    places = [node["html"][:120] for node in one["nodes"]]
                    found.append(f"{size} {'dark' if dark else 'light'}: {one['id']}: {places}")
    look(tab, "desktop", dark=False)
    return found


def keep(tab: Tab, name: str) -> None:
    """A picture of the page for people to look at, where tests keep such things: with CI=true."""
    if os.environ.get("CI") == "true":
        PICTURES.mkdir(parents=True, exist_ok=True)
        shot = tab.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        (PICTURES / f"{name.replace(' ', '-')}.png").write_bytes(base64.b64decode(shot["data"]))


def heading(tab: Tab) -> str:
    return " ".join(tab.ask("document.querySelector('h1').innerText").split())


@with_axe
@pytest.mark.parametrize("path", ["/", DRILL, "/?state=exhausted"])
def test_nothing_keeps_anybody_out_of_an_empty_page(shown: Tab, empty: Running, path: str) -> None:
    go(shown, f"{empty.url}{path}")
    assert heading(shown) == {"/": "Nothing heard yet", DRILL: "ttft no data"}.get(path, "Nothing matches")
    assert findings(shown) == []
    assert shown.complaints == []


@with_axe
@pytest.mark.parametrize("path", ["/", DRILL, f"{DRILL}?percentile=90&threshold=1s", f"{DRILL}?percentile=none"])
def test_nothing_keeps_anybody_out_of_a_page_in_trouble(shown: Tab, burning: Running, path: str) -> None:
    go(shown, f"{burning.url}{path}")
    assert findings(shown) == []
    assert shown.complaints == []


@with_axe
@pytest.mark.parametrize("path", ["/", DRILL])
def test_nothing_keeps_anybody_out_of_a_page_that_is_healthy_and_then_stale(
    shown: Tab, tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    with collector(tmp_path_factory.mktemp("kept"), "--tick", "1s", spec=SPEC) as running:
        now_s = int(time.time())
        for ago_s in range(90, -1, -5):
            tell(running, at_s=now_s - ago_s, bad=0)
        go(shown, f"{running.url}{path}")
        until(lambda: heading(shown) in ("The contract is kept", "ttft kept"))
        assert findings(shown, state="healthy") == []
        assert shown.complaints == []
        running.process.kill()
        until(lambda: "has not answered" in shown.ask("document.getElementById('live').innerText"))
        assert findings(shown, state="stale") == []
        go(shown, "about:blank")  # it would ask on, and complain on the next page


def test_no_page_is_wider_than_a_phone(shown: Tab, burning: Running) -> None:
    for path in ("/", f"{DRILL}?percentile=90"):
        go(shown, f"{burning.url}{path}")
        look(shown, "phone", dark=False)
        wide = shown.ask("document.documentElement.scrollWidth"), shown.ask("document.documentElement.clientWidth")
        look(shown, "desktop", dark=False)
        assert wide[0] <= wide[1], path


@pytest.mark.parametrize("path", ["/", f"{DRILL}?percentile=90"])
def test_a_page_is_few_requests_and_few_bytes(shown: Tab, burning: Running, path: str) -> None:
    shown.call("Network.enable")
    shown.call("Network.setCacheDisabled", cacheDisabled=True)
    go(shown, f"{burning.url}{path}")
    sizes = shown.ask(SIZES_SENT)
    shown.call("Network.setCacheDisabled", cacheDisabled=False)
    shown.call("Network.disable")
    assert len(sizes) <= len(page.STATIC) + 1
    assert 0 < sum(sizes) < 30_000


def test_the_first_screen_leads_to_each_objective(shown: Tab, burning: Running) -> None:
    go(shown, f"{burning.url}/")
    shown.ask("document.querySelector('#chat-ttft h3 a').click()")
    until(lambda: shown.ask("location.pathname") == DRILL and shown.ask("document.readyState") == "complete")
    text = shown.ask("document.getElementById('main').innerText")
    for said in (
        "budget spent",
        "bad events, where",
        "fast",
        "firing for",
        "p95 over 1 min",
        TRACE,
        "4.25 s",
        "Its past alerts",
    ):
        assert said in text


def test_a_service_without_an_objective_is_told_of(shown: Tab, burning: Running) -> None:
    go(shown, f"{burning.url}/")
    text = shown.ask("document.getElementById('main').innerText")
    assert "Without an objective" in text
    assert "playground sends ttft of m" in text


def test_the_sliders_ask_without_a_reload_and_survive_news(shown: Tab, burning: Running) -> None:
    go(shown, f"{burning.url}{DRILL}")
    shown.ask("window.stays = true")
    slide = "const range = document.querySelectorAll('#ask input[type=range]')[0];"
    shown.ask(f"{{ {slide} range.focus(); range.value = 0.2; range.dispatchEvent(new Event('input')); }}")
    until(lambda: "as promised" in shown.ask("document.getElementById('answer').innerText"))
    asked = shown.ask("document.getElementById('percentile').value")
    assert 50 < float(asked) < 95
    assert f"percentile={asked}" in shown.ask("location.search")
    before = shown.ask("document.querySelector('#live time').innerText")
    until(lambda: shown.ask("document.querySelector('#live time').innerText") != before)
    assert shown.ask("document.activeElement.type") == "range"
    assert "budget spent" in shown.ask("document.getElementById('answer').innerText")
    assert shown.ask("window.stays") is True
    assert shown.complaints == []


def test_without_scripts_a_form_asks_the_same(shown: Tab, burning: Running) -> None:
    shown.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        go(shown, f"{burning.url}{DRILL}?percentile=90&threshold=500ms")
        text = shown.ask("document.getElementById('answer').innerText")
    finally:
        shown.call("Emulation.setScriptExecutionDisabled", value=False)
    assert "90 % of requests get a first token within 500 ms" in text.replace("\u00a0", " ")


def test_a_chart_tells_its_values_to_a_pointer_and_to_the_arrow_keys(shown: Tab, burning: Running) -> None:
    go(shown, f"{burning.url}{DRILL}")
    until(lambda: shown.ask("document.querySelector('.chart.large .line') !== null"))
    told = "document.querySelector('.told').hidden ? '' : document.querySelector('.told').innerText"
    box = "document.querySelector('.chart.large').getBoundingClientRect()"
    point = f"({{clientX: {box}.right - 1, clientY: {box}.top + 9, bubbles: true}})"
    shown.ask(f"document.querySelector('.chart.large').dispatchEvent(new PointerEvent('pointermove', {point}))")
    assert shown.ask(told).endswith(" s")
    shown.ask("document.querySelector('.chart.large').focus()")
    for _ in range(2):
        for kind in ("keyDown", "keyUp"):
            shown.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight")
    assert "UTC" in shown.ask(told)


def test_the_page_follows_from_burning_to_recovery_without_a_reload(
    shown: Tab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with collector(tmp_path_factory.mktemp("story"), "--tick", "1s", spec=SPEC) as running:
        go(shown, f"{running.url}{DRILL}")
        shown.ask("window.stays = true")
        now_s = int(time.time())
        for ago_s in range(90, 60, -1):
            tell(running, at_s=now_s - ago_s, bad=0)
        until(lambda: heading(shown) == "ttft kept")
        for ago_s in range(60, -1, -1):
            tell(running, at_s=now_s - ago_s, bad=60, good=0)
        until(lambda: heading(shown) in ("ttft burning", "ttft budget spent"))
        tell(running, at_s=int(time.time()), bad=0, good=500_000)
        until(lambda: heading(shown) == "ttft kept")
        assert shown.ask("window.stays") is True
        until(lambda: "ended" in shown.ask("document.getElementById('main').innerText"))
        running.process.kill()
        until(lambda: "has not answered" in shown.ask("document.getElementById('live').innerText"))
        colour = "getComputedStyle(document.querySelector('h1')).color"
        assert shown.ask(colour) == "rgb(93, 100, 106)", "what is no news is not green"
