"""What the status page costs who looks at it: bytes, requests, the first paint, and an answer of /api/v1/status.

A real collector holds fifty objectives of ten services, nineteen models each: a status of 1,000 rows. Chromium
opens the page again and again, with nothing kept; the status is asked for while ticks go by. README.md beside this
file says more.

    bench/page.py                  everything, about a minute
    bench/page.py --check          1 if a promise is not kept
    bench/page.py --loads 5 --asks 50
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from slo import signals
from slo.objective import Spec, parse
from tests.collector import browser, exports, messages
from tests.collector.browser import Tab
from tests.collector.support import collector, send, until

SERVICES, MODELS = 10, 19
SIGNALS = ("ttft", "tpot", "e2e", "ttft", "e2e")
PAST_S, STEP_S = 600, 60
TICK = "10s"
PAINTS = "JSON.stringify(performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime))"
WEIGHT = (
    "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    ".filter((one) => one.initiatorType !== 'other').map((one) => one.transferSize)"
)


@dataclass(frozen=True, slots=True)
class Promise:
    """At most so much."""

    title: str
    unit: str
    most: float


PROMISES = (
    Promise("page transferred", "KB", 150),
    Promise("requests for the page", "", 7),
    Promise("first paint, median", "ms", 300),
    Promise("/api/v1/status, p95", "ms", 20),
)


def main() -> int:
    """Measure, print, and judge when asked to."""
    flags = _flags().parse_args()
    if browser.found() is None:
        print("bench/page.py: chromium is missing: install it, as with apt-get install chromium", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, _filled(Path(folder)) as url:
        with browser.tab("about:blank", Path(folder) / "profile") as tab:
            weights, paints = _loads(tab, url, flags.loads)
        answers = sorted(_asks(url, flags.asks))
    values = (sum(weights) / 1000, len(weights), sorted(paints)[len(paints) // 2], _p95(answers))
    kept = [value <= promise.most for promise, value in zip(PROMISES, values, strict=True)]
    for promise, value, good in zip(PROMISES, values, kept, strict=True):
        said = f"{'kept' if good else 'NOT KEPT':10}" if flags.check else ""
        print(f"{said}{promise.title:24} {value:8.1f} {promise.unit:3} at most {promise.most:g}")
    print(f"first paint, least {min(paints):.0f} ms, most {max(paints):.0f} ms of {len(paints)} loads")
    print(f"/api/v1/status, median {answers[len(answers) // 2]:.1f} ms, most {answers[-1]:.1f} ms of {len(answers)}")
    return 1 if flags.check and not all(kept) else 0


def _flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What the status page costs.")
    parser.add_argument("--loads", type=int, default=15, help="times that Chromium opens the page (%(default)s)")
    parser.add_argument("--asks", type=int, default=300, help="times that the status is asked for (%(default)s)")
    parser.add_argument("--check", action="store_true", help="exit 1 if a promise is not kept")
    return parser


@contextmanager
def _filled(folder: Path) -> Iterator[str]:
    """The address of a collector that has heard of every series, over and over."""
    text = _spec()
    with collector(folder, "--tick", TICK, spec=text) as running:
        now_s = int(time.time())
        for at_s in range(now_s - PAST_S, now_s + 1, STEP_S):
            for spec in parse(text):
                send(running.url, _said(spec, at_s))
        until(lambda: len(urlopen(f"{running.url}/api/v1/status?limit=5000").read()) > SERVICES * MODELS * 5_000)
        yield running.url


def _spec() -> str:
    lines = [
        f"  - {{name: o{n}, signal: {signal}, percentile: 95, threshold: {n + 1}00ms}}"
        for n, signal in enumerate(SIGNALS)
    ]
    return "---\n".join("\n".join((f"service: s{n}", "objectives:", *lines, "")) for n in range(SERVICES))


def _said(spec: Spec, at_s: int) -> messages.ExportMetricsServiceRequest:
    """What the sidecar of a service would export of a second: events of each objective, for each of its models."""
    metrics = exports.heartbeat(at_s=at_s)
    for number in range(MODELS):
        model = f"model-{number}"
        metrics += exports.latencies([0.1 + at_s % 7 / 10, 0.2], at_s=at_s, model=model)
        for one in spec.objectives:
            metrics += exports.events(good=19, bad=1, at_s=at_s, model=model, of=one)
    return messages.metrics(*metrics, resource=exports.RESOURCE | {signals.SERVICE_NAME: spec.service})


def _loads(tab: Tab, url: str, loads: int) -> tuple[Sequence[float], Sequence[float]]:
    """The bytes of each request of the last load, and the first paint of each load in ms."""
    tab.call("Network.enable")
    tab.call("Network.setCacheDisabled", cacheDisabled=True)
    paints: list[float] = []
    weights: Sequence[float] = ()
    for _ in range(loads):
        tab.call("Page.navigate", url="about:blank")
        tab.call("Page.navigate", url=f"{url}/")
        until(lambda: tab.ask("location.pathname") == "/" and tab.ask(PAINTS) not in (None, "[]"))
        paints.append(float(tab.ask(PAINTS).strip("[]")))
        weights = tab.ask(WEIGHT)
    return weights, paints


def _asks(url: str, count: int) -> Iterator[float]:
    """How long each answer took, in ms, until its last byte; over more than one tick."""
    for _ in range(count):
        started = time.perf_counter()
        with urlopen(f"{url}/api/v1/status?limit=1000") as answer:
            answer.read()
        yield (time.perf_counter() - started) * 1000
        time.sleep(0.03)


def _p95(ascending: Sequence[float]) -> float:
    return ascending[min(len(ascending) * 95 // 100, len(ascending) - 1)]


if __name__ == "__main__":
    sys.exit(main())
