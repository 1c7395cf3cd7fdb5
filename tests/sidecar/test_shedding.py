"""The queue guard on the wire: who is refused, how a client is told, and what the refused count as."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import orjson
import pytest

from sidecar.guarding.queue_guard import Promise, QueueGuard, Shedding
from sidecar.limits import POOL_PROBATION_S
from slo.signals import GUARDED, OUTCOMES, REQUESTS, SLO_EVENTS, Metric
from tests.sidecar.guarding.queues import Server, poisson, run, steady
from tests.sidecar.process import engine, sidecar
from tests.sidecar.rig import (
    CHAT,
    Handler,
    Received,
    Rig,
    chat,
    completion,
    on_a_loop,
    proxied,
    read_message,
    spec,
    until,
)

TTFT = "{name: ttft, signal: ttft, percentile: 95, threshold: 1s}"
ANSWERED = "{name: answered, signal: availability, target: 99%}"
DEEP = 14
"""Requests of 0.1 s each: nobody behind them has a first token within 1 s."""


def seasoned(mode: Shedding) -> QueueGuard:
    """A guard that until a moment ago saw a server that takes 0.1 s for each request, one at a time."""
    guard, seconds = QueueGuard(mode), 60.0
    begun_s = time.monotonic() - seconds - 10
    times = [begun_s + at_s for at_s in poisson(9.5, seconds, Random(4))]
    run(
        guard,
        Server(steady(0.1), size=lambda _: len(chat().partition(b"\r\n\r\n")[2])),
        times,
        promise=Promise(10**9, 0.95),
    )
    return guard


@contextlib.asynccontextmanager
async def pressed(mode: Shedding, *, objectives: str = TTFT) -> AsyncIterator[Rig]:
    """A proxy whose server has begun nothing of a deep queue, and answers all that come after it at once."""

    async def handle(request: Received, writer: asyncio.StreamWriter) -> None:
        if request.field("x-stuck"):
            await asyncio.sleep(60)
        writer.write(completion("a", "b"))
        await writer.drain()

    async with proxied(handle, objectives=spec(objectives, ANSWERED)) as rig, contextlib.AsyncExitStack() as clients:
        guard = rig.eye.guard = seasoned(mode)
        for number in range(DEEP):
            if guard._probes:
                break  # the queue is deep enough, and the next one will not be let in to see whether it moves
            _, writer = await clients.enter_async_context(rig.client())
            writer.write(chat(extra="X-Stuck: 1\r\n"))
            await until(lambda number=number: len(rig.behind.requests) > number)  # type: ignore[misc]
            rig.eye.catch_up()
        rig.behind.requests.clear()
        yield rig


def verdicts(rig: Rig) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for point in rig.tally.totals():
        if point.metric is GUARDED and point.value:
            (_, _), (_, verdict), (_, result) = point.attributes
            found[verdict, result] += int(point.value)
    return found


@on_a_loop
async def test_a_late_stream_is_refused_and_never_reaches_the_server() -> None:
    async with pressed("on") as rig, rig.client() as (reader, writer):
        for number in (1, 2):
            writer.write(chat())
            refusal = await read_message(reader)
            assert refusal.line == "HTTP/1.1 503 Service Unavailable"
            assert 1 <= int(refusal.field("retry-after") or "0") <= 3
            assert orjson.loads(refusal.body)["error"]["type"] == "overloaded"
            assert rig.outcomes() == {"rejected": number}
            assert verdicts(rig) == {("shed", "bad"): number}
        assert rig.behind.requests == []
        writer.write(b"GET /health HTTP/1.1\r\nHost: api.test\r\n\r\n")
        assert (await read_message(reader)).line == "HTTP/1.1 200 OK", "the connection goes on"


@on_a_loop
async def test_the_refused_are_bad_for_both_promises_and_marked_on_their_span() -> None:
    async with pressed("on") as rig:
        await rig.ask(chat())
        assert rig.events() == {("other", "ttft", "bad"): 1, ("other", "answered", "bad"): 1}
        (ended,) = rig.ended
        assert (ended.verdict, ended.record.outcome, ended.record.status) == ("shed", "rejected", 503)
        assert ended.predicted_ttft_s is not None
        assert ended.predicted_ttft_s > 1
        assert ended.violated
        assert rig.latencies() == {}, "of no duration"


@on_a_loop
async def test_the_connection_kept_for_it_serves_the_next() -> None:
    async with pressed("on") as rig:
        await rig.ask(b"GET /health HTTP/1.1\r\nHost: api.test\r\n\r\n")
        connections = rig.behind.connections
        await asyncio.sleep(1.5 * POOL_PROBATION_S)
        await rig.ask(chat())
        await rig.ask(b"GET /health HTTP/1.1\r\nHost: api.test\r\n\r\n")
        assert rig.behind.connections == connections


@on_a_loop
async def test_of_many_at_once_before_an_idle_server_those_that_would_be_late_are_refused() -> None:
    async def handle(_: Received, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async with proxied(handle, objectives=spec(TTFT, ANSWERED)) as rig, contextlib.AsyncExitStack() as clients:
        rig.eye.guard = seasoned("on")
        for _ in range(60):
            _, writer = await clients.enter_async_context(rig.client())
            writer.write(chat())
        await until(lambda: sum(rig.outcomes().values()) + len(rig.behind.requests) == 60)
        assert rig.outcomes()["rejected"] >= 60 - DEEP


@pytest.mark.parametrize("framing", ["a length", "chunks"])
def test_a_body_in_pieces_is_refused_with_its_last(framing: str) -> None:
    @on_a_loop
    async def test() -> None:
        head, _, body = chat(pad=200).partition(b"\r\n\r\n")
        begin, end = body[:50], body[50:]
        if framing == "chunks":
            head = head.split(b"\r\nContent-Length")[0] + b"\r\nTransfer-Encoding: chunked"
            begin, end = (b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (begin, end))
            end += b"0\r\n\r\n"
        async with pressed("on") as rig, rig.client() as (reader, writer):
            writer.write(head + b"\r\n\r\n" + begin)
            await asyncio.sleep(0.05)
            writer.write(end)
            assert (await read_message(reader)).line == "HTTP/1.1 503 Service Unavailable"
            assert rig.behind.requests == []
            assert rig.outcomes() == {"rejected": 1}
            writer.write(b"GET /health HTTP/1.1\r\nHost: api.test\r\n\r\n")
            assert (await read_message(reader)).line == "HTTP/1.1 200 OK"

    test()


@on_a_loop
async def test_a_client_is_told_in_the_form_of_its_api() -> None:
    async with pressed("on") as rig:
        refusal = await rig.ask(chat().replace(CHAT.encode(), b"/v1/messages"))
        assert orjson.loads(refusal.body)["error"]["type"] == "overloaded_error"


@pytest.mark.parametrize(
    ("what", "request_bytes"),
    [
        ("synthetic load", chat(extra="X-Firsttoken-Class: synthetic\r\n")),
        ("an answer that does not stream", chat(stream=False)),
        ("another path", chat().replace(CHAT.encode(), b"/v1/embeddings")),
        ("a health check", b"GET /health HTTP/1.1\r\nHost: api.test\r\n\r\n"),
    ],
)
def test_never_refused_is(what: str, request_bytes: bytes) -> None:
    @on_a_loop
    async def test() -> None:
        async with pressed("on") as rig:
            assert (await rig.ask(request_bytes)).line == "HTTP/1.1 200 OK", what
            assert verdicts(rig) == {}

    test()


@on_a_loop
async def test_in_shadow_the_same_stream_goes_on_and_is_marked() -> None:
    async with pressed("shadow") as rig:
        assert (await rig.ask(chat())).line == "HTTP/1.1 200 OK"
        assert [ended.verdict for ended in rig.ended] == ["would_shed"]
        assert verdicts(rig) == {("would_shed", "good"): 1}, "which it was not, this time"


@on_a_loop
async def test_another_threshold_holds_from_the_reload_on() -> None:
    async with pressed("on") as rig:
        assert (await rig.ask(chat())).line.startswith("HTTP/1.1 503")
        rig.eye.load(spec(TTFT.replace("1s", "20s"), ANSWERED))
        assert (await rig.ask(chat())).line == "HTTP/1.1 200 OK"
        rig.eye.load(spec(ANSWERED))
        assert (await rig.ask(chat())).line == "HTTP/1.1 200 OK", "nothing is promised of a first token"


@on_a_loop
async def test_of_two_thresholds_the_looser_one_decides() -> None:
    loose = "{name: loose, signal: ttft, percentile: 99, threshold: 20s}"
    async with pressed("on", objectives=f"{TTFT}\n  - {loose}") as rig:
        assert (await rig.ask(chat())).line == "HTTP/1.1 200 OK"


@on_a_loop
async def test_without_a_guard_nothing_is_said() -> None:
    async with proxied(answer(), objectives=spec(TTFT)) as rig:
        rig.eye.guard = None
        await rig.ask(chat())
        assert verdicts(rig) == {}
        assert [ended.predicted_ttft_s for ended in rig.ended] == [None]


def test_of_several_workers_each_refuses_and_the_page_agrees_with_the_clients(tmp_path: Path) -> None:
    objectives = f"  - {TTFT.replace('1s', '200ms')}\n  - {ANSWERED}\n"
    (tmp_path / "slo.yaml").write_text(f"service: chat\nobjectives:\n{objectives}")
    served: list[bytes] = []
    statuses: Counter[int] = Counter()
    with (
        engine(completion("a"), chunks_s=0.02, served=served) as url,
        sidecar(url, "--workers", "2", "--shed", "on", "--gpu", "off", cwd=tmp_path) as process,
        ThreadPoolExecutor(40) as clients,
    ):
        end_s = time.monotonic() + 60
        while statuses[503] < 40 and time.monotonic() < end_s:  # queues of many lengths, until both know the server
            for many in (8, 16, 40):
                statuses.update(clients.map(lambda _: process.ask()[0], range(many)))
        page = process.metrics()

    def counted(metric: Metric, *labels: str) -> float:
        named = [(set(name.split()), value) for name, value in page.items() if name.startswith(metric.prometheus)]
        return sum(value for name, value in named if name >= set(labels))

    asked, refused = statuses.total(), statuses[503]
    assert statuses == {200: asked - refused, 503: refused}
    assert refused >= 40
    assert len(served) == asked - refused, "no refused request reached the server"
    assert counted(REQUESTS, "outcome=ok") == asked - refused
    assert counted(REQUESTS, "outcome=rejected") == counted(GUARDED, "verdict=shed") == refused
    assert counted(GUARDED) == asked
    assert counted(SLO_EVENTS, "objective=answered", "result=bad") == refused, "the refused stay in the SLI"
    assert counted(SLO_EVENTS, "objective=answered", "result=good") == asked - refused
    assert counted(SLO_EVENTS, "objective=ttft") == asked
    assert counted(SLO_EVENTS, "objective=ttft", "result=bad") >= refused


def answer() -> Handler:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(completion("a", "b"))
        await writer.drain()

    return handle


@on_a_loop
async def test_a_fault_of_the_guard_refuses_nobody() -> None:
    class Broken(QueueGuard):
        def join(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise RuntimeError

    async with proxied(answer(), objectives=spec(TTFT)) as rig:
        rig.eye.guard = Broken("on")
        rig.eye.guard._room = 0
        assert (await rig.ask(chat())).line == "HTTP/1.1 200 OK"
        assert set(rig.outcomes()) <= set(OUTCOMES)
        assert rig.outcomes() == {"ok": 1}
