"""One worker as a process, with the test in its parent's place."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from sidecar.address import HostPort
from sidecar.configuration.options import Options
from sidecar.otlp_settings import ExportSettings
from sidecar.transport.upstream import Target
from sidecar.workers.shared_address import SharedAddress, share
from sidecar.workers.worker_pipe import (
    Ask,
    Drain,
    Hurry,
    Message,
    Pipe,
    Ready,
    Reload,
    Report,
    Start,
    State,
    pair,
    pipe_over,
)
from slo.objective import Spec
from slo.signals import IN_FLIGHT, OBJECTIVE_HASH, REQUESTS, SLO_EVENTS, TTFT
from tests.sidecar.process import environment
from tests.sidecar.rig import (
    SSE_HEAD,
    Behind,
    Handler,
    Received,
    chat,
    chunk,
    completion,
    delta,
    on_a_loop,
    raw,
    read_message,
    serving,
    spec,
    until,
)

JUDGED = spec(
    "{name: first, signal: ttft, percentile: 95, threshold: 20s}",
    "{name: whole, signal: e2e, percentile: 95, threshold: 30s}",
    "{name: pace, signal: tpot, percentile: 95, threshold: 1s}",
    "{name: answered, signal: availability, target: 99.9%}",
)
NOTHING_KNOWN = State(None, False, None, 0, (), ())


@dataclass
class Hired:
    """A worker, as its parent has it."""

    process: asyncio.subprocess.Process
    pipe: Pipe
    address: SharedAddress
    asked: int = 0

    async def hear(self) -> Message | None:
        return await self.pipe.receive()

    async def report(self) -> Report:
        """What the worker counts and how it stands right now; what it told unasked before is added."""
        self.asked += 1
        self.pipe.send(Ask(self.asked))
        counters = []
        while True:
            message = await self.hear()
            assert isinstance(message, Report)
            counters += message.increment.counters
            if message.answers >= self.asked:
                return Report(
                    type(message.increment)(tuple(counters), message.increment.latencies),
                    *(getattr(message, name) for name in Report.__slots__[1:]),
                )

    async def last(self) -> list[Report]:
        """All that is still said until the end."""
        heard = []
        while (message := await self.hear()) is not None:
            assert isinstance(message, Report)
            heard.append(message)
        return heard

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        port = int(self.address.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def ask(self) -> Received:
        async with self.client() as (reader, writer):
            writer.write(chat())
            return await read_message(reader)

    async def refuses(self) -> bool:
        try:
            async with self.client():
                return False
        except ConnectionError:  # a reset, should it have been waiting when the listener went
            return True


@contextlib.asynccontextmanager
async def hired(
    handler: Handler, *, drain_s: float = 30.0, judged: Spec | None = JUDGED
) -> AsyncIterator[tuple[Hired, Behind]]:
    """A worker that takes requests, before a server that answers with `handler`."""
    async with serving(handler) as behind, started() as worker:
        options = Options(
            upstream=Target("http", "127.0.0.1", behind.port),
            listen=HostPort("127.0.0.1", 0),
            admin=HostPort("127.0.0.1", 0),
            service="chat",
            version="1",
            export=ExportSettings(traces=None, metrics=None),
            spec=judged,
            drain_s=drain_s,
        )
        worker.pipe.send(Start(1, options, options.plan(), judged))
        worker.pipe.send(NOTHING_KNOWN)
        while not isinstance(await worker.hear(), Ready):
            pass
        yield worker, behind


@contextlib.asynccontextmanager
async def started() -> AsyncIterator[Hired]:
    """A worker's process that waits to be told who it is."""
    ours, theirs = pair()
    address = await share(HostPort("127.0.0.1", 0), flag="--listen")
    sockets = [*theirs, *address.sockets()]
    numbers = [one.fileno() for one in sockets]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-W", "error", "-m", "sidecar.worker"),
        *map(str, numbers),
        pass_fds=numbers,
        env=environment(PYTHONPATH=str(Path(__file__).parents[2])),
    )
    for one in sockets:
        one.close()
    pipe = await pipe_over(ours)
    try:
        yield Hired(process, pipe, address)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await pipe.close()
        address.close()


def counted(report: Report, metric: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(value for key, value in n.attributes if key != OBJECTIVE_HASH): n.value
        for n in report.increment.counters
        if n.metric.name == metric
    }


async def half(request: Received, writer: asyncio.StreamWriter) -> None:
    """One token, and the rest when the request's connection to us is told to go on by the test: never."""
    writer.write(SSE_HEAD + chunk(delta("a")))
    await asyncio.sleep(1000)


@on_a_loop
async def test_it_tells_what_it_counted_each_time_anew() -> None:
    async with hired(raw(completion("a", "b"))) as (worker, _):
        assert counted(await worker.report(), REQUESTS.name) == {}
        for _ in range(2):
            await worker.ask()
        report = await worker.report()
        assert counted(report, REQUESTS.name) == {("m", "ok"): 2}
        assert counted(report, SLO_EVENTS.name) == {
            ("m", name, "good"): 2 for name in ("first", "whole", "pace", "answered")
        }
        assert report.models == ("m",)
        assert report.reached
        assert (report.in_flight, report.at_stake) == (0, ())
        assert report.last_token_ns > 0
        await worker.ask()
        assert counted(await worker.report(), REQUESTS.name) == {("m", "ok"): 1}


@on_a_loop
async def test_it_says_what_would_be_lost_with_it() -> None:
    async with hired(half) as (worker, _), worker.client() as (reader, writer):
        writer.write(chat())
        await reader.readuntil(b"a")
        report = await worker.report()
        assert report.in_flight == 1
        assert [n.value for n in report.gauges if n.metric.name == IN_FLIGHT.name] == [1]
        at_stake = {tuple(v for k, v in n.attributes if k != OBJECTIVE_HASH): n.value for n in report.at_stake}
        # Its first token has come, and a pace is not judged of an answer that breaks off.
        assert at_stake == {("m", "error"): 1, ("m", "whole", "bad"): 1, ("m", "answered", "bad"): 1}


@on_a_loop
async def test_told_to_drain_it_lets_requests_end_and_tells_the_last_of_it() -> None:
    gate = asyncio.Event()

    async def gated(_: Received, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(completion("a"))

    async with hired(gated) as (worker, behind), worker.client() as (reader, writer):
        writer.write(chat())
        await until(lambda: bool(behind.requests))
        worker.process.send_signal(signal.SIGINT)  # not for it: the parent says when to end
        worker.process.send_signal(signal.SIGHUP)
        worker.process.send_signal(signal.SIGTERM)  # as a service manager sends it, to every process at once
        worker.pipe.send(Drain())
        while not await worker.refuses():
            pass
        assert (await worker.report()).in_flight == 1  # it still answers
        gate.set()
        assert (await read_message(reader)).body.endswith(b"data: [DONE]\n\n")
        last = await worker.last()
        assert sum(sum(counted(one, REQUESTS.name).values()) for one in last) == 1
        assert last[-1].in_flight == 0
        assert await worker.process.wait() == 0


@on_a_loop
async def test_told_to_hurry_it_waits_for_nobody() -> None:
    async with hired(half) as (worker, _), worker.client() as (reader, writer):
        writer.write(chat())
        await reader.readuntil(b"a")
        worker.pipe.send(Drain())
        assert (await worker.report()).in_flight == 1
        worker.pipe.send(Hurry())
        last = await worker.last()
        assert sum(sum(counted(one, REQUESTS.name).values()) for one in last) == 1
        assert await worker.process.wait() == 0


@on_a_loop
async def test_without_a_parent_it_drains_and_ends() -> None:
    async with hired(half, drain_s=0.3) as (worker, _), worker.client() as (reader, writer):
        writer.write(chat())
        await reader.readuntil(b"a")
        await worker.pipe.close()
        assert await worker.process.wait() == 0
        assert await worker.refuses()


@on_a_loop
async def test_without_a_parent_from_the_start_it_ends_at_once() -> None:
    async with started() as worker:
        await worker.pipe.close()
        assert await worker.process.wait() == 0


@on_a_loop
async def test_a_reload_is_in_force_for_the_next_request() -> None:
    async with hired(raw(completion("a"))) as (worker, _):
        await worker.ask()
        new = spec("{name: newer, signal: ttft, percentile: 95, threshold: 77ms}")
        worker.pipe.send(Reload(new))
        before = await worker.hear()
        assert isinstance(before, Report)
        assert counted(before, REQUESTS.name) == {("m", "ok"): 1}
        await worker.ask()
        report = await worker.report()
        assert {key[1] for key in counted(report, SLO_EVENTS.name)} == {"newer"}
        edges = {metric.name: latency.classic.edges for metric, _, latency in report.increment.latencies}
        assert 0.077 in edges[TTFT.name]


@on_a_loop
async def test_it_labels_and_marks_requests_by_what_the_parent_knows() -> None:
    async with hired(raw(b"HTTP/1.1 429 Full\r\nContent-Length: 0\r\n\r\n")) as (worker, _):
        await worker.ask()
        assert counted(await worker.report(), REQUESTS.name) == {("other", "quota"): 1}
        worker.pipe.send(State(0.5, True, "tgi", 1, ("m",), ("m", "n")))
        await worker.ask()
        report = await worker.report()
        assert counted(report, REQUESTS.name) == {("m", "rejected"): 1}
        assert report.models == ()  # nothing that the parent does not know
