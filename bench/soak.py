"""A storm of requests through the sidecar: nothing leaks, and everything is counted.

    200 clients ─▶ sidecar ─▶ source                 sidecar ─OTLP─▶ sink, with outages

Each request names its own fate (`storm/kinds.py`): answers that are whole, empty, refused, reset, cut, stalled or never
given; clients that are slow, pause in the middle of what they send, or leave at any moment. What must be counted of
each is known before it is sent. In the end all of it is compared: requests by outcome, events of each objective, a
span for each request with its own outcome, the sum of all deltas that the sink took; files, connections, threads and
memory are looked at all the time.

`--check` makes the exit code say whether all of it holds. `--tree DIR` takes the sidecar of another checkout.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import uvloop

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script's own folder is on the path, the project's is not

from storm import taken, verdict
from storm.client import PATIENCE_S, Client
from storm.kinds import SPEC
from storm.ledger import Ledger
from storm.verdict import Line, total
from storm.watched import Reading, Samples, Sidecar, environment, running

from slo.signals import EXPORT_DROPPED, IN_FLIGHT, OVERDUE, REQUESTS

HERE = Path(__file__).parent
EXPORT = {
    "OTEL_METRIC_EXPORT_INTERVAL": "2000",
    "OTEL_BSP_SCHEDULE_DELAY": "500",
    "OTEL_EXPORTER_OTLP_TIMEOUT": "3000",
}
CLIENTS_NICE = 5  # clients give way to what they look at
SETTLE_S = 15.0  # more than connections rest in the pool
DELIVER_S = 75.0  # more than the exporter's longest pause


class Peer:
    """The source or the sink, as a process: told things on stdin, one line each."""

    def __init__(self, popen: "subprocess.Popen[str]") -> None:
        assert popen.stdin is not None
        assert popen.stdout is not None
        self._in: IO[str] = popen.stdin
        self._out: IO[str] = popen.stdout
        self.port = int(self._out.readline())

    def ask(self, word: str) -> str:
        self._in.write(f"{word}\n")
        self._in.flush()
        return self._out.readline().strip()


@contextmanager
def peer(module: str, *arguments: str) -> Iterator[Peer]:
    """A process of the storm, gone afterwards."""
    paths = os.pathsep.join((str(HERE), str(HERE.parent)))
    command, env = [sys.executable, "-m", module, *arguments], environment(PYTHONPATH=paths)
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as popen:
        try:
            yield Peer(popen)
        finally:
            popen.kill()


@dataclass
class Soak:
    """One run."""

    sidecar: Sidecar
    source: Peer
    sink: Peer
    seconds: float
    ledger: Ledger = field(default_factory=Ledger)
    curve: list[tuple[float, Reading]] = field(default_factory=list)
    fell: int = 0
    code: int | None = None
    weather: dict[str, int] = field(default_factory=dict)

    async def storm(self, streams: int, seed: str) -> None:
        """All clients at once, until the time is over and each has what it waits for."""
        began_s = time.monotonic()
        end_s = began_s + self.seconds
        clients = [
            Client(n, self.sidecar.proxy, rng=random.Random(f"{seed}-{n}"), ledger=self.ledger, end_s=end_s)
            for n in range(1, streams + 1)
        ]
        running = [asyncio.ensure_future(client.run()) for client in clients]
        watching = asyncio.ensure_future(self._watch(began_s))
        async with asyncio.timeout(self.seconds + 2 * PATIENCE_S):
            await asyncio.gather(*running)
        if watching.done():
            watching.result()  # it never ends by itself: this raises
        watching.cancel()

    async def _watch(self, began_s: float) -> None:
        """Read the system each second, and now and then the page; say where things stand."""
        loop, requests, told_s, step_s = asyncio.get_running_loop(), 0, 0.0, max(5.0, self.seconds / 30)
        while True:
            await asyncio.sleep(1)
            at_s = time.monotonic() - began_s
            reading = await loop.run_in_executor(None, self.sidecar.reading)
            self.curve.append((at_s, reading))
            if at_s - told_s >= step_s:
                told_s, before = at_s, requests
                page = await loop.run_in_executor(None, self.sidecar.page)
                requests = total(page, REQUESTS.prometheus)
                self.fell += requests < before
                self._say(at_s, page, reading)

    def _say(self, at_s: float, page: Samples, reading: Reading) -> None:
        flight, overdue = total(page, IN_FLIGHT.prometheus), total(page, OVERDUE.prometheus)
        print(
            f"{at_s:4.0f} s  {total(page, REQUESTS.prometheus):7d} requests, {flight:4d} in flight, "
            f"{overdue:3d} overdue  {reading.rss_mb:6.1f} MB, {reading.files:4d} files, {reading.threads} threads  "
            f"{total(page, EXPORT_DROPPED.prometheus)} dropped",
            flush=True,
        )

    def settled(self, base: Reading) -> tuple[Reading, Samples]:
        """The system and the page once nothing goes on any more, or time is up."""
        end_s = time.monotonic() + SETTLE_S
        while True:
            reading, page = self.sidecar.reading(), self.sidecar.page()
            lines = (*verdict.leaks(base, reading, self.ports), *verdict.gauges(page))
            if all(line.kept for line in lines) or time.monotonic() > end_s:
                return reading, page
            time.sleep(0.2)

    @property
    def ports(self) -> verdict.Ports:
        return verdict.Ports(proxy=self.sidecar.proxy, source=self.source.port, sink=self.sink.port)

    def delivered(self, file: Path) -> tuple[Samples, taken.Taken]:
        """The last page, and what the sink has, once the endpoint is well and all spans are there, or time is up; ends
        the sidecar."""
        self.sink.ask("calm")
        end_s = time.monotonic() + DELIVER_S
        while True:
            page = self.sidecar.page()
            dropped, counted = total(page, EXPORT_DROPPED.prometheus, signal="traces"), total(page, REQUESTS.prometheus)
            self.sink.ask("report")
            if len(taken.read(file).spans) + dropped >= counted or time.monotonic() > end_s:
                break
            time.sleep(1)
        self.code = self.sidecar.stop()
        self.weather = json.loads(self.sink.ask("report"))
        return page, taken.read(file)


def reported(source: Peer) -> verdict.Report:
    with urllib.request.urlopen(f"http://127.0.0.1:{source.port}/storm/report", timeout=30) as answer:
        said = json.loads(answer.read())
    left_at_s = {int(number): at_s for number, at_s in said["left_at_s"].items()}
    return verdict.Report(frozenset(said["seen"]), tuple(said["twice"]), left_at_s, said["playing"])


def run(given: argparse.Namespace, folder: Path) -> list[Line]:
    """The whole soak; what holds and what does not."""
    (folder / "slo.yaml").write_text(SPEC)
    file = folder / "taken"
    with peer("storm.source") as source, peer("storm.sink", str(file), given.seed) as sink:
        flags = ["--otlp-endpoint", f"http://127.0.0.1:{sink.port}", "--engine", "vllm", "--inject-usage", "on"]
        if given.workers > 1:
            flags += ["--workers", str(given.workers)]
        url = f"http://127.0.0.1:{source.port}"
        with running(url, *flags, cwd=folder, root=given.tree.resolve(), **EXPORT) as sidecar:
            soak = Soak(sidecar, source, sink, given.seconds)
            time.sleep(2)
            base = min((sidecar.reading() for _ in range(10)), key=lambda reading: reading.files)
            os.nice(CLIENTS_NICE)
            uvloop.run(soak.storm(given.streams, given.seed))
            last, page = soak.settled(base)
            lines = [*verdict.requests(soak.ledger, page), *verdict.gauges(page), *verdict.events(soak.ledger, page)]
            lines += [*verdict.sights(soak.ledger), *verdict.source(soak.ledger, reported(source))]
            lines += [*verdict.leaks(base, last, soak.ports), *verdict.memory(soak.curve, given.seconds)]
            lines.append(Line(soak.fell == 0, f"times that the number of requests fell: {soak.fell}"))
            page, received = soak.delivered(file)
            lines += [*verdict.spans(soak.ledger, page, received), *verdict.sums(page, received)]
            lines.append(Line(soak.code == 0, f"exit code {soak.code}"))
            lines += [
                Line(False, f"  log: {error}") for error in sidecar.errors if "shutdown:" in error or "fault" in error
            ]
            report(soak)
    return lines


def report(soak: Soak) -> None:
    """What was, without a verdict."""
    ledger, step = soak.ledger, max(1, len(soak.curve) // 20)
    print("RSS, MB:", " ".join(f"{reading.rss_mb:.1f}" for _, reading in soak.curve[::step]))
    print("sink:", ", ".join(f"{what} {times}" for what, times in sorted(soak.weather.items())))
    print(f"{len(ledger.sent)} requests, {ledger.over} over for their clients, {len(ledger.disturbed)} disturbed")
    print("log:", *soak.sidecar.errors[:20], sep="\n  ")


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Does the sidecar count everything and leak nothing?")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--streams", type=int, default=200, help="clients at a time")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--workers", type=int, default=1, help="of the sidecar")
    parser.add_argument("--tree", type=Path, default=HERE.parent, metavar="DIR", help="the checkout of the sidecar")
    parser.add_argument("--check", action="store_true", help="exit 1 if something does not hold")
    return parser


def main() -> int:
    given = flags().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = run(given, Path(folder))
    print(*lines, sep="\n")
    return 1 if given.check and not all(line.kept for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
