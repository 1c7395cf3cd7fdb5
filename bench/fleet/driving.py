"""A real collector under a fleet in real time: what it costs a second, and whether it keeps up.

Each replica has a phase of its own, as replicas that started at different times have. Their bodies share some hundred
kept-alive connections, as they would behind a gateway; what an open connection costs is not in the figures.
"""

import asyncio
import contextlib
import heapq
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop
from rig.arms import Arm, environment, first_port, running
from rig.client import Fleet, Wire

from fleet.recording import METRICS, TRACES, spec
from fleet.replica import NS, Voice

WIRES = 400
LATE_S = 2.0
"""A body that is sent so long after its time waited for those before it: the collector does not keep up."""
GONE_S = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A fleet: replicas with so many requests a second each, over so many services of one model. Each sends its metrics
    every `every_s` and its spans twice as often; a gateway in between joins `joined` of them into one body."""

    replicas: int
    services: int
    rps: float
    every_s: int = 10
    joined: int = 1

    @property
    def exports(self) -> float:
        """Of all replicas, a second: of metrics, and so many times two of spans."""
        return self.replicas / self.every_s

    @property
    def bodies(self) -> float:
        """A second."""
        return 3 * self.exports / self.joined

    @property
    def spans(self) -> float:
        """A second."""
        return self.replicas * self.rps


@dataclass(frozen=True, slots=True)
class Seen:
    """What one collector took of it, each second of the looked-at time; `late` is the share of bodies that waited."""

    asked: Asked
    cpu: float
    busiest: float
    """The share of a core that its busiest thread took."""
    rss_mb: float
    disk_bytes: float
    wire_bytes: float
    late: float
    failed: int


def drive(asked: Asked, voice: Voice, *, warm_s: float, look_s: float, database: str = "", first: int = 0) -> Seen:
    """Run a collector under the fleet; `first` is the number of its first replica."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        where = database or str(folder / "bench.db")
        with collector(folder, where, services=asked.services) as arm:
            return uvloop.run(_drive(arm, asked, voice, _Times(warm_s, look_s, first), folder))


@contextlib.contextmanager
def collector(folder: Path, database: str, *, services: int) -> Iterator[Arm]:
    """A collector that judges so many services."""
    slo = folder / "slo.yaml"
    slo.write_text(spec(services))
    named = ["--slo", str(slo), "--database", database, "--log-level", "error"]
    places = ["--listen", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    with running([sys.executable, "-m", "collector", *named, *places], env=environment()) as process:
        yield Arm("collector", first_port(process, "the collector"), process.pid)


@dataclass(frozen=True, slots=True)
class _Times:
    warm_s: float
    look_s: float
    first: int


@dataclass(slots=True)
class _Sent:
    bodies: int = 0
    octets: int = 0
    late: int = 0


async def _drive(arm: Arm, asked: Asked, voice: Voice, times: _Times, folder: Path) -> Seen:
    fleet, sent = Fleet(arm.port), _Sent()
    talking = asyncio.create_task(_talk(_Lines(fleet), asked, voice, times, sent))
    await asyncio.sleep(times.warm_s)
    cpu_ns, threads, disk, before, began_s = arm.cpu_ns(), _threads(arm), _size(folder), replace(sent), time.monotonic()
    await asyncio.sleep(times.look_s)
    took_s = time.monotonic() - began_s
    bodies = max(sent.bodies - before.bodies, 1)
    seen = Seen(
        asked,
        cpu=(arm.cpu_ns() - cpu_ns) / NS / took_s,
        busiest=max((now - threads.get(name, 0.0)) / took_s for name, now in _threads(arm).items()),
        rss_mb=arm.rss_mb(),
        disk_bytes=(_size(folder) - disk) / took_s,
        wire_bytes=(sent.octets - before.octets) / took_s,
        late=(sent.late - before.late) / bodies,
        failed=fleet.meter.failures,
    )
    talking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await talking
    fleet.close()
    return seen


class _Lines:
    """Connections that are free; another is made while there is none, for one that never asks is closed."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._made = fleet, 0
        self._free: asyncio.LifoQueue[Wire] = asyncio.LifoQueue()

    async def free(self) -> Wire:
        if self._free.empty() and self._made < WIRES:
            self._made += 1
            return (await self._fleet.wires(self._made))[-1]
        async with asyncio.timeout(GONE_S):
            return await self._free.get()

    def ask(self, wire: Wire, request: bytes) -> None:
        wire.ask(request, lambda: self._free.put_nowait(wire))


async def _talk(lines: _Lines, asked: Asked, voice: Voice, times: _Times, sent: _Sent) -> None:
    """Every replica's bodies at their time, for ever."""
    waiting: dict[str, list[bytes]] = {METRICS: [], TRACES: []}
    for at_s, number, path in _due(asked):
        if (wait_s := at_s - time.monotonic()) > 0:
            await asyncio.sleep(wait_s)
        made = voice.metrics_of if path == METRICS else voice.spans_of
        joined = waiting[path]
        joined.append(made(times.first + number, time.time_ns()))
        if len(joined) < asked.joined:
            continue
        wire = await lines.free()
        body = b"".join(joined)  # repeated fields, one after the other: that is how protobuf joins messages
        joined.clear()
        sent.bodies += 1
        sent.octets += len(body)
        sent.late += time.monotonic() - at_s > LATE_S
        lines.ask(wire, _request(path, body))


def _due(asked: Asked) -> Iterator[tuple[float, int, str]]:
    """When which replica sends what, on the monotonic clock."""
    now_s, count = time.monotonic(), asked.replicas
    every = {METRICS: float(asked.every_s), TRACES: asked.every_s / 2}
    due = [(now_s + every[path] * number / count, number, path) for path in every for number in range(count)]
    heapq.heapify(due)
    while True:
        at_s, number, path = due[0]
        yield at_s, number, path
        heapq.heapreplace(due, (at_s + every[path], number, path))


def _request(path: str, body: bytes) -> bytes:
    kind = "Content-Type: application/x-protobuf"
    return f"POST {path} HTTP/1.1\r\nHost: c\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _threads(arm: Arm) -> dict[str, float]:
    """CPU seconds of each thread so far."""
    found = {}
    for task in Path(f"/proc/{arm.pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found[task.name] = int((task / "schedstat").read_text().split()[0]) / NS
    return found


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("bench.db*"))
