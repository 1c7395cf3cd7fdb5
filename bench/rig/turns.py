"""One turn of one arm at each measurement."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rig.arms import SPAN_DELAY_S
from rig.client import Ended, Wire, chat, get, stream
from rig.figures import Row, Turn
from rig.stand import Cost, Stand

ENDLESS = 1_000_000  # chunks of a stream that ends when the bench says so
LONGEST_S = 20.0  # that a turn waits for what should have happened
SPANS_S = 5.0  # spans must have come out of a sidecar by then
POLL_S = 0.05
SHORT_WIRES = 32
BRIEF = stream(chunks=1, every_s=0.001)
CLIMB_LIVES = 1.2  # after so many lives of a stream every connection has begun its second, or nearly
FEWEST_TTFT = 30  # samples; of fewer nothing can be said


async def started(wires: list[Wire], request: bytes) -> Ended:
    """Every wire asks, a few at a time, and has its first event when this returns."""
    ended = Ended(len(wires))
    for number, wire in enumerate(wires):
        wire.ask(request, ended.one)
        if number % 32 == 31:
            await asyncio.sleep(0.002)
    await until(lambda: all(wire.seen_event for wire in wires))
    return ended


async def until(happened: Callable[[], bool]) -> None:
    """At once if it has; TimeoutError if it does not for too long."""
    end_s = time.monotonic() + LONGEST_S
    while not happened():
        if time.monotonic() > end_s:
            raise TimeoutError
        await asyncio.sleep(0.01)


async def per_chunk(stand: Stand, name: str, *, streams: int, every_s: float, together: bool) -> Turn:
    """CPU between two moments at which the same streams are open, so no request begins or ends."""
    fleet, streams = stand.fleets[name], stand.lengths.streams(streams)
    ended = await started(await fleet.wires(streams), stream(chunks=ENDLESS, every_s=every_s, together=together))
    await asyncio.sleep(2 * every_s)
    events, reads, began_s = fleet.meter.events, fleet.meter.reads, time.perf_counter()
    cost = Cost(stand, name)
    await asyncio.sleep(stand.lengths.chunk_s)
    await until(lambda: fleet.meter.events > events)
    us, events, reads = cost.us(), fleet.meter.events - events, fleet.meter.reads - reads
    due = streams * (time.perf_counter() - began_s) / every_s
    await stand.end_streams()
    await ended.wait()
    row = Row(f"chunk, {streams} streams {'together' if together else 'apart'}", "us of CPU", "times", "nginx")
    return Turn({row: us / events}, {"behind the pace": 1 - events / due, "chunks came joined": 1 - reads / events})


async def per_request(stand: Stand, name: str, *, request: bytes, title: str, has_span: bool) -> Turn:
    """CPU of requests on kept-alive connections, each asking again when it has its answer, and of all their spans."""
    fleet = stand.fleets[name]
    wires = await fleet.wires(SHORT_WIRES)
    await Closed(wires, request).run(0.1)
    exporting = has_span and stand.arms[name].exports_spans
    spans = await settled_spans(stand) if exporting else 0
    answers, failures = fleet.meter.answers, fleet.meter.failures
    cost = Cost(stand, name)
    await Closed(wires, request).run(stand.lengths.short_s)
    answers, failures = fleet.meter.answers - answers, fleet.meter.failures - failures
    missing = 1 - await spans_after(stand, spans, wanted=answers) / answers if exporting else 0.0
    row = Row(title, "us of CPU", "times", "nginx")
    return Turn({row: cost.us() / answers}, {"spans missing": missing, "failed": failures / answers})


async def settled_spans(stand: Stand) -> int:
    """How many spans have come, once no more do."""
    spans, before = await stand.spans(), -1
    while spans != before:
        await asyncio.sleep(SPAN_DELAY_S + 0.1)
        spans, before = await stand.spans(), spans
    return spans


async def spans_after(stand: Stand, before: int, *, wanted: int) -> int:
    """How many more have come; waited for until they are as many as wanted, or time is up."""
    for _ in range(int(SPANS_S / POLL_S)):
        if await stand.spans() - before >= wanted:
            break
        await asyncio.sleep(POLL_S)
    return await stand.spans() - before


class Closed:
    """A closed loop: every wire asks again when it has its answer."""

    def __init__(self, wires: list[Wire], *requests: bytes) -> None:
        self._wires, self._requests = wires, requests
        self._ended = Ended(len(wires))
        self._going = True

    async def run(self, seconds: float) -> None:
        for number in range(len(self._wires)):
            self.ask(number)
        await asyncio.sleep(seconds)
        self.stop()
        await self.ended()

    def ask(self, number: int) -> None:
        wire = self._wires[number]
        if self._going and wire.alive:
            wire.ask(self._requests[number % len(self._requests)], lambda: self.ask(number))
        else:
            self._ended.one()

    def stop(self) -> None:
        self._going = False

    async def ended(self) -> None:
        await self._ended.wait()


async def ttft(stand: Stand, name: str, *, streams: int, every_s: float) -> Turn:
    """So many paced streams at any time, each followed by a new one; the first climb is not looked at.

    Gives what a chunk costs with its share of the request as well: that of streams as they are, not endless ones.
    """
    fleet, streams, chunks = stand.fleets[name], stand.lengths.streams(streams), stand.lengths.ttft_chunks
    # Lengths that differ keep the beginnings from falling into step.
    requests = [stream(chunks=chunks - 4 + number % 9, every_s=every_s) for number in range(streams)]
    loop = Closed(await fleet.wires(streams), *requests)
    for number in range(streams):
        asyncio.get_running_loop().call_later(number / streams * chunks * every_s, loop.ask, number)
    await asyncio.sleep(CLIMB_LIVES * chunks * every_s)
    fleet.meter.ttft_ns.clear()
    failures, events, cost = fleet.meter.failures, fleet.meter.events, Cost(stand, name)
    await asyncio.sleep(stand.lengths.ttft_s)
    await until(lambda: len(fleet.meter.ttft_ns) >= max(2, FEWEST_TTFT * stand.lengths.scale))
    us, events, found = cost.us(), fleet.meter.events - events, list(fleet.meter.ttft_ns)
    loop.stop()
    await stand.end_streams()
    await loop.ended()
    percentiles_ns = statistics.quantiles(found, n=100, method="inclusive")
    at = {p: Row(f"TTFT p{p}, {streams} streams", "ms", "over", "direct") for p in (50, 99)}
    values = {row: percentiles_ns[p - 1] / 1e6 for p, row in at.items()}
    if stand.arms[name].pid is not None:
        whole = Row(
            f"chunk with its share of the request, {streams} streams of {chunks}", "us of CPU", "times", "nginx"
        )
        values[whole] = us / events
    return Turn(values, {"failed": (fleet.meter.failures - failures) / len(found)})


async def memory(stand: Stand, name: str, *, streams: int = 1000, every_s: float = 0.5) -> Turn:
    """Resident memory with so many streams open."""
    streams = stand.lengths.streams(streams)
    ended = await started(await stand.fleets[name].wires(streams), stream(chunks=ENDLESS, every_s=every_s))
    await asyncio.sleep(2 * every_s)
    value_mb = stand.arms[name].rss_mb()
    await stand.end_streams()
    await ended.wait()
    return Turn({Row(f"RSS, {streams} streams", "MB", "alone"): value_mb})


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a turn does, and when; `has_direct`: it says something of no proxy at all, too."""

    group: str
    turn: Callable[[Stand, str], Awaitable[Turn]]
    has_direct: bool = False
    last_round_only: bool = False
    takes_long: bool = False


MEASUREMENTS = (
    Measurement("chunk", lambda s, a: per_chunk(s, a, streams=1000, every_s=0.25, together=False), takes_long=True),
    Measurement("chunk", lambda s, a: per_chunk(s, a, streams=64, every_s=0.04, together=False)),
    Measurement("chunk", lambda s, a: per_chunk(s, a, streams=256, every_s=0.1, together=True)),
    Measurement("short", lambda s, a: per_request(s, a, request=chat(), title="short chat request", has_span=True)),
    Measurement("short", lambda s, a: per_request(s, a, request=BRIEF, title="short stream, 3 chunks", has_span=True)),
    Measurement(
        "short", lambda s, a: per_request(s, a, request=get("/version"), title="GET, not looked at", has_span=False)
    ),
    Measurement("ttft", lambda s, a: ttft(s, a, streams=64, every_s=0.05), has_direct=True, takes_long=True),
    Measurement("ttft", lambda s, a: ttft(s, a, streams=256, every_s=0.1), has_direct=True),
    Measurement("rss", memory, last_round_only=True),
)
GROUPS = tuple(dict.fromkeys(measurement.group for measurement in MEASUREMENTS))
