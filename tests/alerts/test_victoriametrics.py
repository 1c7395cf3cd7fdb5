"""The generated rules in VictoriaMetrics and vmalert, live: an incident pages there once, and resolves.

Every engine of rules evaluates chains of records and a memory in them (`firsttoken:burning:ratio`) in its own way; what
follows from documentation alone is not known. A minute long, so it runs when named: `make victoria`.
"""

import contextlib
import datetime as dt
import http.server
import itertools
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from alerts.artefacts import artefacts
from alerts.routes import Routing
from alerts.rules import Target
from slo import promql
from slo.objective import parse
from tests.alerts.support import events, heartbeat
from tests.ports import free_ports

pytestmark = [pytest.mark.victoria, pytest.mark.timeout(300)]

(SPEC,) = parse(
    """
service: chat
objectives:
  - name: ttft
    signal: ttft
    target: 95%
    threshold: 500ms
    window: 10m
    alerts: {tiers: [{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}]}
"""
)
PER_S = 20
WAIT_S = 120
ALERT = "LLMTTFTBudgetBurn"
UNKNOWN = re.compile(r"^ *keep_firing_for:.*\n", re.MULTILINE)
"""What Debian's vmalert of 2022 refuses (docs/alerts.md has a line for that); no burn alert has it."""


@dataclass(slots=True)
class Fleet:
    """A sidecar's counters, and what notifiers were told of them."""

    began_s: float = field(default_factory=time.monotonic)
    is_bad: bool = False
    good: float = 0.0
    bad: float = 0.0
    told: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    counted_s: float = field(default_factory=time.monotonic)

    def page(self) -> str:
        with self.lock:
            now_s = time.monotonic()
            grown, self.counted_s = PER_S * (now_s - self.counted_s), now_s
            if self.is_bad:
                self.bad += grown
            else:
                self.good += grown
            of_hash = SPEC.objectives[0].hash
            lines = [
                f"{events('good', of_hash=of_hash)} {int(self.good)}",
                f"{events('bad', of_hash=of_hash)} {int(self.bad)}",
                f"{heartbeat()} {int(now_s - self.began_s)}",
            ]
        return "\n".join((*lines, ""))

    def told_of(self, *, ended: bool) -> list[dict[str, Any]]:
        """Distinct incidents of the page, as a pager that joins by labels and beginning sees them."""
        with self.lock:
            mine = [one for one in self.told if one["labels"]["alertname"] == ALERT]
        now = time.time()
        wanted = [one for one in mine if (_ends_s(one) <= now) == ended]
        return list({(one["startsAt"], json.dumps(one["labels"], sort_keys=True)): one for one in wanted}.values())


def _ends_s(alert: dict[str, Any]) -> float:
    return dt.datetime.fromisoformat(alert["endsAt"]).timestamp()


@pytest.fixture
def fleet() -> Iterator[tuple[Fleet, int]]:
    """A server that is scraped, and takes notifications as Alertmanager does."""
    one = Fleet()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(one.page())

        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with one.lock:
                one.told += said
            self._answer("{}")

        def _answer(self, text: str) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield one, server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def program(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"{names[0]} is not on PATH: apt-get install victoria-metrics")
    return found


@contextlib.contextmanager
def running(log: Path, port: int, command: list[str]) -> Iterator[str]:
    """A server at the port, gone afterwards; its URL."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            end_s = time.monotonic() + WAIT_S
            while time.monotonic() < end_s:
                assert process.poll() is None, log.read_text()
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def eventually(what: Callable[[], object], log: Path) -> None:
    end_s = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < end_s, log.read_text()[-4000:]
        time.sleep(0.5)


@pytest.fixture
def store(tmp_path: Path, fleet: tuple[Fleet, int]) -> Iterator[str]:
    scrape = {"global": {"scrape_interval": "1s"}}
    target = {"job_name": "sidecar", "honor_labels": True, "static_configs": [{"targets": [f"127.0.0.1:{fleet[1]}"]}]}
    (tmp_path / "scrape.yaml").write_text(json.dumps(scrape | {"scrape_configs": [target]}))
    (port,) = free_ports(1)
    # What is newer than the offset is not answered, unless told so: alerts would be 30 s late.
    flags = [f"-httpListenAddr=127.0.0.1:{port}", "-search.latencyOffset=0s", "-retentionPeriod=1d"]
    flags += [f"-storageDataPath={tmp_path}/data", f"-promscrape.config={tmp_path}/scrape.yaml"]
    command = [program("victoria-metrics", "victoria-metrics-prod"), *flags]
    with running(tmp_path / "store.log", port, command) as url:
        yield url


def test_an_incident_pages_once_and_resolves(tmp_path: Path, fleet: tuple[Fleet, int], store: str) -> None:
    counted, port = fleet
    for name, text in artefacts((SPEC,), Target(eval_interval_s=2, scrape_interval_s=1), Routing()).items():
        if name.endswith(".rules.yaml"):
            (tmp_path / name).write_text(UNKNOWN.sub("", text))
    (at,) = free_ports(1)
    flags = [f"-rule={tmp_path}/chat.rules.yaml", f"-datasource.url={store}", f"-remoteWrite.url={store}"]
    flags += [f"-remoteRead.url={store}", f"-notifier.url=http://127.0.0.1:{port}", "-evaluationInterval=2s"]
    flags += [f"-httpListenAddr=127.0.0.1:{at}", "-remoteWrite.flushInterval=200ms"]
    log = tmp_path / "vmalert.log"
    with running(log, at, [program("vmalert", "vmalert-prod"), *flags]) as url:
        eventually(lambda: burn(store) == 0.0, log)
        assert failing(url) == []
        assert counted.told_of(ended=False) == []
        counted.is_bad = True
        eventually(lambda: counted.told_of(ended=False), log)
        counted.is_bad = False
        eventually(lambda: counted.told_of(ended=True), log)
        assert failing(url) == []
    (page,) = counted.told_of(ended=True)
    assert page["labels"] | {"notify": "page", "objective": "ttft", "burn_tier": "fast"} == page["labels"]


def burn(store: str) -> float | None:
    query = urllib.request.urlopen(f"{store}/api/v1/query?query={promql.burn_rate(60)}", timeout=10)
    found = json.load(query)["data"]["result"]
    return float(found[0]["value"][1]) if found else None


def failing(vmalert: str) -> list[str]:
    """Rules that their engine cannot evaluate."""
    groups = json.load(urllib.request.urlopen(f"{vmalert}/api/v1/rules", timeout=10))["data"]["groups"]
    rules = itertools.chain.from_iterable(group["rules"] for group in groups)
    return [f"{rule['name']}: {rule['lastError']}" for rule in rules if rule.get("lastError")]
