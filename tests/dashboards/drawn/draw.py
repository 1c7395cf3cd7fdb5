"""Draws every dashboard in a real Chromium, with Grafana's own libraries: `make draw-dashboards`.

A real demo runs first: an engine, a sidecar, a collector, users, an incident, and a Prometheus that scrapes them and
evaluates the generated rules. Then each dashboard is drawn over what that Prometheus has kept, while the incident's
page still fires; the one of GPUs, which the demo has not, over figures that were made up. The pictures are left in
`artifacts/dashboards`, dark and light. Exit code 1: a panel or a variable shows an error, the page complains, or a
panel has no data and no known reason.
"""

import base64
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path

from slo.capacity_result import CapacityResult
from slo.objective import load
from tests.collector import browser
from tests.collector.browser import Tab
from tests.collector.support import until
from tests.dashboards.demo_panels import EMPTY, HARDWARE
from tests.dashboards.drawn import serve, story
from tests.dashboards.drawn.story import Story
from tests.dashboards.support import Found, everything

PICTURES = Path(__file__).parents[3] / "artifacts" / "dashboards"
WIDTH, LEAST_HEIGHT = 1600, 900
SCRAPE_S = 2
PATIENCE_S = 60.0
CALM_S = 1.0
"""How long nothing is asked before a page is taken as drawn."""
THEMES = ("dark", "light")
BOTTOM = (
    "Math.max(0, ...[...document.querySelectorAll('.react-grid-item')]"
    ".map((one) => one.getBoundingClientRect().bottom))"
)
COMPLAINTS = ("Runtime.exceptionThrown", '"type": "error"', '"level": "error"')


def main() -> int:
    """Run the stories, draw, and report."""
    if not (serve.SITE / "index.html").exists() or browser.found() is None:
        print("the page is not built, or chromium is missing: run `make draw-dashboards`", file=sys.stderr)
        return 2
    with ExitStack() as held:
        made = Path(held.enter_context(tempfile.TemporaryDirectory()))
        devices = held.enter_context(story.devices(made / "devices"))
        demo = held.enter_context(story.demo(made / "demo"))
        return drawn(made / "demo" / "slo.yaml", made / "profile", demo, devices)


def drawn(slo: Path, profile: Path, demo: Story, devices: Story) -> int:
    """Every dashboard over its story; the exit code."""
    specs = load([slo])
    certified = CapacityResult(specs[0].service, certified_rps=Decimal(6), chosen_batch=Decimal(8))
    boards = everything("prometheus", specs, results=(certified,), scrape_interval_s=SCRAPE_S)
    PICTURES.mkdir(parents=True, exist_ok=True)
    began_s, faults, count = time.monotonic(), [], 0
    with browser.tab("about:blank", profile) as tab:
        for name, board in boards.items():
            standings = _both_themes(tab, name, board, devices if name in HARDWARE else demo)
            for theme, (found, complaints) in standings.items():
                faults += [f"{name}, {theme}: {fault}" for fault in (*_faults(found), *complaints)]
            shown, _ = standings[THEMES[0]]
            panels = [one for one in shown if not _is_variable(one)]
            empty = [one["title"] for one in panels if not one["hasData"]]
            print(f"{name}: {len(panels) - len(empty)} of {len(panels)} panels have data; empty: {empty or 'none'}")
            count += len(panels)
    print(f"{count} panels in {time.monotonic() - began_s:.0f} s, in {PICTURES}")
    for fault in faults:
        print(f"FAILED: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _both_themes(tab: Tab, name: str, board: Found, of: Story) -> dict[str, tuple[list[Found], list[str]]]:
    """A picture in each theme; how everything stood there, and what the page complained of."""
    found = {}
    with serve.site({name: board}, of.url) as url:
        for theme in THEMES:
            standings = _shown(tab, f"{url}/?{_query(name, of, theme)}")
            found[theme] = standings, list(_complaints(tab))
            _keep(tab, PICTURES / f"{name}-{theme}.png")
    return found


def _query(name: str, of: Story, theme: str) -> str:
    return f"board={name}&from={of.start_s * 1000:.0f}&to={of.end_s * 1000:.0f}&theme={theme}"


def _shown(tab: Tab, url: str) -> list[Found]:
    """How everything on the page stands once it has its answer, with the window as long as the page."""
    tab.complaints.clear()
    tab.call("Emulation.setScrollbarsHidden", hidden=True)
    _size(tab, LEAST_HEIGHT)
    tab.call("Page.navigate", url=url)
    until(lambda: tab.ask("typeof standings === 'function'"), patience_s=PATIENCE_S)
    until(lambda: tab.ask(f"{BOTTOM} > 0"), patience_s=PATIENCE_S)
    _size(tab, int(tab.ask(BOTTOM)) + 16)
    _settled(tab)
    found: list[Found] = tab.ask("standings()")
    return found


def _settled(tab: Tab) -> None:
    """Wait until nothing is asked any more and the page has been drawn after that."""
    deadline = time.monotonic() + PATIENCE_S
    done_at = None
    while time.monotonic() < deadline and (done_at is None or time.monotonic() < done_at + CALM_S):
        is_done = tab.ask("standings().every((one) => one.isDone)")
        done_at = (done_at or time.monotonic()) if is_done else None
        time.sleep(0.1)


def _size(tab: Tab, height: int) -> None:
    tab.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=height, deviceScaleFactor=1, mobile=False)


def _faults(standings: list[Found]) -> Iterator[str]:
    for one in standings:
        if not one["isDone"]:
            yield f"{one['title']}: no answer within {PATIENCE_S:g} s"
        yield from (f"{one['title']}: {error}" for error in one["errors"])
        if not (one["hasData"] or one["title"] in EMPTY or _is_variable(one)):
            yield f"{one['title']}: no data, and no known reason"


def _is_variable(one: Found) -> bool:
    """A variable may have no choices: a demo has no environment."""
    return str(one["title"]).startswith("$")


def _complaints(tab: Tab) -> Iterator[str]:
    """Errors of the page; what it merely tells is none."""
    return (said[:400] for said in tab.complaints if any(mark in said for mark in COMPLAINTS))


def _keep(tab: Tab, path: Path) -> None:
    shot = tab.call("Page.captureScreenshot", format="png")
    path.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    sys.exit(main())
