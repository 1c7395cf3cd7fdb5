"""The yardstick of the tick: the same windows asked of a real Prometheus, as recording rules over three days of data.

The data is written by promtool into the blocks of a server of our own: a histogram with our own bucket edges for each
series, scraped every 15 s. The rules are written as whoever wants them cheap would: one `rate` a window, and each
quantile of what that recorded. What the server costs with nothing to do is measured before and taken off.
"""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from rig.arms import Arm, await_port, free_port, running

from slo.signals import LATENCY_BUCKETS_S

SCRAPE_S = 15
PAST_S = 3 * 86_400
WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
QUANTILES = (0.5, 0.95, 0.99)
IDLE_S = 3.0
EVERY_S = 5
PATIENCE_S = 120.0
EVALUATED = "prometheus_rule_group_iterations_total"


def is_installed() -> bool:
    """Whether both programs are on PATH."""
    return shutil.which("prometheus") is not None and shutil.which("promtool") is not None


def measure(series: int, rounds: int) -> float:
    """CPU microseconds of a quantile of a window of a series, of so many evaluations together."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _backfill(folder, series)
        with _server(folder) as arm:
            idle_ns = _spent_in(arm, IDLE_S) / IDLE_S
            (folder / "rules.yml").write_text(_rules())
            assert arm.pid is not None
            os.kill(arm.pid, signal.SIGHUP)
            _await(arm, 1)  # the first one finds nothing in its caches
            began_s, before_ns, first = time.monotonic(), arm.cpu_ns(), _evaluations(arm)
            _await(arm, first + rounds)
            spent_ns = arm.cpu_ns() - before_ns - idle_ns * (time.monotonic() - began_s)
            turns = _evaluations(arm) - first
    return spent_ns / 1000 / turns / (series * len(WINDOWS) * len(QUANTILES))


def _backfill(folder: Path, series: int) -> None:
    text, end_s = folder / "past.txt", int(time.time())
    with text.open("w") as file:
        file.write("# TYPE latency_seconds histogram\n")
        for number in range(series):
            file.writelines(_samples(f"model-{number:04d}", end_s))
        file.write("# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=24h", "--quiet", "openmetrics"]
    subprocess.run([*command, text, folder / "data"], check=True, capture_output=True)
    text.unlink()


def _samples(model: str, end_s: int) -> Iterator[str]:
    """Each bucket of a series from three days ago on; what comes between two scrapes is drawn anew each hour."""
    edges, dice = [*map(str, LATENCY_BUCKETS_S), "+Inf"], random.Random(model)
    hours = [sorted(dice.choices(range(12), k=len(edges))) for _ in range(PAST_S // 3600 + 1)]
    for bucket, edge in enumerate(edges):
        count = 0
        for number in range(PAST_S // SCRAPE_S):
            at_s = end_s - PAST_S + number * SCRAPE_S
            count += hours[number * SCRAPE_S // 3600][bucket]
            yield f'latency_seconds_bucket{{model="{model}",le="{edge}"}} {count} {at_s}\n'


def _rules() -> str:
    lines = ["groups:", "- name: windows", f"  interval: {EVERY_S}s", "  rules:"]
    for window in WINDOWS:
        rate = f"sum by (model, le) (rate(latency_seconds_bucket[{window}]))"
        lines.append(f"  - {{record: 'latency:rate{window}', expr: '{rate}'}}")
        for quantile in QUANTILES:
            expr = f"histogram_quantile({quantile}, latency:rate{window})"
            lines.append(f"  - {{record: 'latency:q{window}', labels: {{q: '{quantile}'}}, expr: '{expr}'}}")
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[Arm]:
    (folder / "prometheus.yml").write_text("rule_files: [rules.yml]\n")
    port = free_port()
    flags = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    flags += [f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=30d", "--log.level=error"]
    with running(["prometheus", *flags]) as process:
        await_port(process, port, "prometheus")
        yield Arm("prometheus", port, process.pid)


def _spent_in(arm: Arm, seconds: float) -> int:
    before_ns = arm.cpu_ns()
    time.sleep(seconds)
    return arm.cpu_ns() - before_ns


def _await(arm: Arm, evaluations: int) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while _evaluations(arm) < evaluations:
        if time.monotonic() > end_s:
            raise SystemExit(f"prometheus did not evaluate its rules {evaluations} times within {PATIENCE_S:.0f} s")
        time.sleep(0.1)


def _evaluations(arm: Arm) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{arm.port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith(f"{EVALUATED}{{"))
