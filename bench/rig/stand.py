"""Everything running: the arms, a fleet of connections to each, and a line to the source for wishes of our own."""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rig.arms import Arm, source, starter
from rig.client import Ended, Fleet, chat, get, once, stream


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long a turn takes: what one gives for precision."""

    chunk_s: float = 1.5
    short_s: float = 0.7
    ttft_s: float = 3.0
    ttft_chunks: int = 20  # of a stream, about: so long is the climb
    idle_s: float = 4.0
    warm_wires: int = 256
    rounds: int = 5
    whole: bool = True  # with the measurements that take long
    scale: float = 1.0  # of the number of streams: less than 1 shows only that the bench works

    def streams(self, count: int) -> int:
        return max(2, round(count * self.scale))


FULL = Lengths()
QUICK = Lengths(chunk_s=0.6, short_s=0.3, ttft_s=1.0, idle_s=2.0, warm_wires=64, rounds=1, whole=False)
SMOKE = replace(QUICK, chunk_s=0.3, short_s=0.2, ttft_s=0.6, ttft_chunks=5, idle_s=0.3, scale=0.05)


class Stand:
    """The arms that run and what is known of them."""

    def __init__(self, arms: dict[str, Arm], source: Arm, lengths: Lengths) -> None:
        self.arms, self.lengths = arms, lengths
        self.idle = dict.fromkeys(arms, 0.0)  # share of a core that an arm takes with nothing to do
        self.fleets = {name: Fleet(arm.port) for name, arm in arms.items()}
        self._source, self._wishes = source, Fleet(source.port)

    def cpu_ns(self) -> int:
        """Of this whole run, so far."""
        return time.process_time_ns() + sum(arm.cpu_ns() for arm in (self._source, *self.arms.values()))

    async def wish(self, path: str) -> bytes:
        (wire,) = await self._wishes.wires(1)
        await once(wire, get(path))
        return wire.text

    async def end_streams(self) -> None:
        await self.wish("/bench/end")

    async def spans(self) -> int:
        """How many spans have come out of the arms so far."""
        return int(await self.wish("/bench/spans"))

    async def warm(self) -> None:
        """Connections made, code paths walked, and the sidecar sure of what its server sends."""
        brief = stream(chunks=8, every_s=0.02)
        for fleet in self.fleets.values():
            wires = await fleet.wires(self.lengths.streams(self.lengths.warm_wires))
            for request in (brief, brief, chat(), get("/version")):
                ended = Ended(len(wires))
                for wire in wires:
                    wire.ask(request, ended.one)
                await ended.wait()

    async def measure_idle(self) -> None:
        before = {name: arm.cpu_ns() for name, arm in self.arms.items()}
        await asyncio.sleep(self.lengths.idle_s)
        for name, arm in self.arms.items():
            self.idle[name] = (arm.cpu_ns() - before[name]) / 1e9 / self.lengths.idle_s

    def close(self) -> None:
        for fleet in (*self.fleets.values(), self._wishes):
            fleet.close()


class Cost:
    """CPU time of an arm since a moment, less what it takes with nothing to do."""

    def __init__(self, stand: Stand, name: str) -> None:
        self._arm, self._idle = stand.arms[name], stand.idle[name]
        self._cpu_ns, self._began_ns = self._arm.cpu_ns(), time.perf_counter_ns()

    def us(self) -> float:
        cpu_ns = self._arm.cpu_ns() - self._cpu_ns
        return (cpu_ns - self._idle * (time.perf_counter_ns() - self._began_ns)) / 1e3


@contextlib.contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Processes started inside run on these cores alone, and so does this one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def running(names: list[str], lengths: Lengths, *, pinned: bool) -> Iterator[Stand]:
    """The arms of these names before a source. Pinned: proxies on a core of their own, the two ends on the rest."""
    cores = sorted(os.sched_getaffinity(0))
    apart = pinned and len(cores) > 1
    ends, between = (set(cores[:-1]), {cores[-1]}) if apart else (set(cores), set(cores))
    arms: dict[str, Arm] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(on_cores(ends))
        behind = stack.enter_context(source())
        with on_cores(between):
            for name in names:
                start = starter(name)
                assert start is not None, f"no arm {name}"
                arms[name] = stack.enter_context(start(behind.port))
        yield Stand(arms, behind, lengths)
