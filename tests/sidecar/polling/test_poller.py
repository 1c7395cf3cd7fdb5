import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from sidecar import limits
from sidecar.address import UnixPath
from sidecar.engine import scrape
from sidecar.engine.engines import Engine as KnownEngine
from sidecar.engine.metrics_text import Page
from sidecar.engine.scrape import ServerSample
from sidecar.http.http_head import RequestHead
from sidecar.polling.poller import Poller, PollError, get, page_of, split_url
from sidecar.said.dialects import CHAT
from sidecar.transport.upstream import Target
from sidecar.usage.usage_policy import UsagePolicy
from slo.objective import Spec
from slo.signals import (
    ENGINE_PREEMPTIONS,
    ENGINE_RUNNING,
    ENGINE_WAITING,
    KV_OCCUPANCY,
    REASON,
    REQUEST_MODEL,
    SCRAPES_FAILED,
    TELEMETRY_FAULTS,
)
from tests.sidecar.rig import Received, Rig, on_a_loop, proxied, raw, serving, sized, spec, until

VLLM = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="{model}"}} {running}
vllm:num_requests_waiting{{engine="0",model_name="{model}"}} 2.0
vllm:kv_cache_usage_perc{{engine="0",model_name="{model}"}} 0.25
vllm:num_preemptions_total{{engine="0",model_name="{model}"}} {preemptions}
"""


@dataclass
class Engine:
    """A server with a metrics page that the test can change."""

    page: str = VLLM.format(model="m", running=3.0, preemptions=5.0)
    models: tuple[str, ...] = ("m",)
    status: str = "200 OK"
    asked: list[str] = field(default_factory=list)

    async def __call__(self, request: Received, writer: asyncio.StreamWriter) -> None:
        path = request.line.split()[1]
        self.asked.append(path)
        if path == "/metrics":
            writer.write(sized(self.page.encode(), kind="text/plain", status=self.status))
        elif path == "/v1/models":
            writer.write(sized(orjson.dumps({"data": [{"id": name} for name in self.models]})))
        else:
            writer.write(sized(b"", status="404 Not Found"))


@contextlib.asynccontextmanager
async def polling(
    engine_: Engine, /, *, objectives: Spec | None = None, **how: object
) -> AsyncIterator[tuple[Poller, Rig]]:
    async with serving(engine_) as behind, proxied(raw(b""), objectives=objectives) as rig:
        target = Target("http", "127.0.0.1", behind.port)
        yield Poller(target, rig.eye, **how), rig  # type: ignore[arg-type]


def gauges(poller: Poller, at_s: float | None = None) -> dict[str, float]:
    now_s = poller._sample_s if at_s is None else at_s
    return {point.metric.name: point.value for point in poller.gauges(now_s)}


def failures(rig: Rig) -> dict[str, float]:
    return {point.attributes[0][1]: point.value for point in rig.tally.totals() if point.metric is SCRAPES_FAILED}


@on_a_loop
async def test_a_known_engine_is_recognised_and_its_state_shown() -> None:
    async with polling(Engine()) as (poller, rig):
        assert await poller.poll_once()
        assert gauges(poller) == {ENGINE_RUNNING.name: 3, ENGINE_WAITING.name: 2, KV_OCCUPANCY.name: 0.25}
        assert all(point.attributes == ((REQUEST_MODEL, "m"),) for point in poller.gauges(poller._sample_s))
        assert rig.eye.labels.sole == "m"


@on_a_loop
async def test_the_engine_decides_whether_it_is_asked_for_counts() -> None:
    head = RequestHead(b"POST", b"/v1/chat/completions", 1, (), keep_alive=True, length=10)
    async with polling(Engine()) as (poller, rig):
        rig.eye.usage = UsagePolicy("auto")
        assert rig.eye.usage.candidate(head, CHAT) is None
        await poller.poll_once()
        assert rig.eye.usage.candidate(head, CHAT) is not None


@on_a_loop
async def test_what_a_server_showed_is_forgotten_once_it_cannot_be_reached() -> None:
    async with serving(Engine()) as behind, proxied(raw(b"")) as rig:
        rig.eye.usage = UsagePolicy("auto", "vllm")
        known = rig.eye.usage._server
        poller = Poller(Target("http", "127.0.0.1", behind.port), rig.eye)
        await poller.poll_once()
        assert rig.eye.usage._server is known
    assert not await poller.poll_once()
    assert rig.eye.usage._server is not known


@on_a_loop
async def test_the_engine_decides_what_its_429_means() -> None:
    full = Engine(page="# TYPE tgi_queue_size gauge\ntgi_queue_size 7\n")
    for engine, means_overload in ((full, True), (Engine(), False)):
        async with polling(engine) as (poller, rig):
            assert not rig.eye.overload_429
            await poller.poll_once()
            assert rig.eye.overload_429 is means_overload


@on_a_loop
async def test_an_engine_that_was_named_is_known_without_a_page() -> None:
    for name in ("tgi", "vllm"):
        async with polling(Engine(status="404 No"), engine=name) as (_, rig):
            assert rig.eye.overload_429 is (name == "tgi")


@on_a_loop
async def test_a_sample_is_gone_after_three_intervals() -> None:
    async with polling(Engine(), interval_s=1.0) as (poller, _):
        await poller.poll_once()
        assert poller.fresh(poller._sample_s + 3.0) is not None
        assert poller.fresh(poller._sample_s + 3.1) is None
        assert gauges(poller, poller._sample_s + 3.1) == {}


@on_a_loop
async def test_preemptions_are_counted_from_the_first_poll_on_and_over_a_restart() -> None:
    engine = Engine()
    async with polling(engine) as (poller, rig):
        key = ((REQUEST_MODEL, "m"),)
        totals = []
        for preemptions in (5.0, 9.0, 2.0):
            engine.page = VLLM.format(model="m", running=1.0, preemptions=preemptions)
            await poller.poll_once()
            totals.append(rig.tally.total(ENGINE_PREEMPTIONS, key))
        assert totals == [0, 4, 6]


@on_a_loop
async def test_a_page_that_fails_after_it_worked_is_counted_and_keeps_no_value_alive() -> None:
    engine = Engine()
    async with polling(engine) as (poller, rig):
        await poller.poll_once()
        engine.status = "500 Oh"
        assert not await poller.poll_once()
        engine.status, engine.page = "200 OK", "nothing here\n"
        assert not await poller.poll_once()
        assert failures(rig) == {"http_500": 1, "unknown_engine": 1}


@on_a_loop
async def test_case_c10_a_failed_poll_is_a_gap_and_no_outage() -> None:
    objective = spec("{name: answered, signal: availability, target: 99.9%}")
    engine, occupancies = Engine(), list[float | None]()
    pages = (("200 OK", 0.7), ("500 Oh", 0.7), ("500 Oh", 0.7), ("200 OK", None), ("200 OK", 0.2))
    async with polling(engine, objectives=objective) as (poller, rig):
        for engine.status, occupancy in pages:
            engine.page = "python_info 1\n" if occupancy is None else f"vllm:kv_cache_usage_perc {occupancy}\n"
            await poller.poll_once()
            occupancies.append(gauges(poller).get(KV_OCCUPANCY.name))
        assert occupancies == [0.7, None, None, None, 0.2]
        assert failures(rig) == {"http_500": 2, "unknown_engine": 1}
        assert rig.events() == {}


@on_a_loop
async def test_an_engine_without_a_page_is_no_failure_unless_one_was_asked_for() -> None:
    engine = Engine(status="404 Not Found")
    async with polling(engine) as (poller, rig):
        assert not await poller.poll_once()
        assert failures(rig) == {}
    async with (
        serving(engine) as behind,
        polling(engine, url=f"http://127.0.0.1:{behind.port}/metrics") as (poller, rig),
    ):
        assert not await poller.poll_once()
        assert failures(rig) == {"http_404": 1}


@on_a_loop
async def test_a_server_that_is_not_there_is_a_failure_of_a_page_that_was_asked_for() -> None:
    async with polling(Engine(), url="http://127.0.0.1:1/metrics") as (poller, rig):
        assert not await poller.poll_once()
        assert failures(rig) == {"connection": 1}


@on_a_loop
async def test_the_models_of_the_server_are_learned() -> None:
    async with polling(Engine(models=("a", "b"))) as (poller, rig):
        reached: list[bool] = []
        poller.on_reached = lambda: reached.append(True)
        assert await poller.models_once()
        assert rig.eye.labels.known == ("a", "b")
        assert reached == [True]
    engine = Engine()
    async with polling(engine) as (poller, rig):
        engine.models = ()
        assert await poller.models_once()
        assert rig.eye.labels.known == ()


@pytest.mark.parametrize("body", [b"[]", b"not json", b'{"data": 3}', b'{"data": [1, {"id": 2}, {"id": "ok"}]}'])
@on_a_loop
async def test_a_strange_list_of_models_does_no_harm(body: bytes) -> None:
    async with serving(raw(sized(body))) as behind, proxied(raw(b"")) as rig:
        assert await Poller(Target("http", "127.0.0.1", behind.port), rig.eye).models_once()
        assert rig.eye.labels.known in ((), ("ok",))


@on_a_loop
async def test_llamacpp_tells_its_occupancy_on_another_page() -> None:
    captures = Path(__file__).parents[2] / "data" / "sidecar" / "captures"

    async def llamacpp(request: Received, writer: asyncio.StreamWriter) -> None:
        name = "llamasrv_slots_busy.json" if "/slots" in request.line else "llamasrv_metrics_busy.txt"
        writer.write(sized((captures / name).read_bytes()))

    async with serving(llamacpp) as behind, proxied(raw(b"")) as rig:
        poller = Poller(Target("http", "127.0.0.1", behind.port), rig.eye)
        assert await poller.poll_once()
        assert 0 < gauges(poller)[KV_OCCUPANCY.name] <= 1


@on_a_loop
async def test_polling_goes_on_through_failures() -> None:
    engine = Engine()
    async with polling(engine, interval_s=0.02, engine="vllm") as (poller, rig):
        engine.status = "503 Starting"
        task = asyncio.ensure_future(poller.poll_metrics())
        await until(lambda: engine.asked.count("/metrics") >= 3)
        engine.status = "200 OK"
        await until(lambda: poller._sample is not None)
        task.cancel()
        assert failures(rig)["http_503"] >= 3


ANSWERS = {
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", b"abc"),
    "until the close": (b"HTTP/1.0 200 OK\r\n\r\nabc", b"abc"),
    "a length": (sized(b"abc"), b"abc"),
    "an error": (sized(b"", status="500 Oh"), "http_500"),
    "cut short": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "cut_short"),
    "no head": (b"HTTP/1.1 200 OK\r\n", "not_http"),
    "not HTTP": (b"SSH-2.0\r\n\r\n", "not_http"),
}


@pytest.mark.parametrize("case", ANSWERS)
@on_a_loop
async def test_what_a_get_brings(case: str) -> None:
    answer, expected = ANSWERS[case]

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    async with serving(handle) as behind:
        target = Target("http", "127.0.0.1", behind.port)
        if isinstance(expected, bytes):
            assert await get(target, "/x") == expected
        else:
            with pytest.raises(PollError, match=str(expected)):
                await get(target, "/x")


@on_a_loop
async def test_a_page_is_read_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a page of megabytes takes a second, and every stream would stand still for it."""
    threads = list[threading.Thread]()
    read = scrape.sample_of

    def sample_of(page: Page, engine: str) -> ServerSample:
        threads.append(threading.current_thread())
        return read(page, engine)

    monkeypatch.setattr(scrape, "sample_of", sample_of)
    async with polling(Engine()) as (poller, _):
        assert await poller.poll_once()
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


@on_a_loop
async def test_a_server_whose_name_is_none_is_a_failed_poll() -> None:
    with pytest.raises(PollError, match="connection"):
        await get(Target("http", "a..b", 80), "/metrics")


@on_a_loop
async def test_a_get_does_not_wait_for_ever() -> None:
    async def hang(_: Received, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with serving(hang) as behind:
        with pytest.raises(PollError, match="timeout"):
            await get(Target("http", "127.0.0.1", behind.port), "/x", timeout_s=0.1)


def test_a_page_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCRAPE_BYTES", 1000)

    @on_a_loop
    async def run() -> None:
        async with serving(raw(sized(b"x" * 2000))) as behind:
            with pytest.raises(PollError, match="too_large"):
                await get(Target("http", "127.0.0.1", behind.port), "/x")

    run()


@on_a_loop
async def test_whoever_asks_is_handed_each_page_of_an_engine_with_its_requests() -> None:
    engine, pages = Engine(), list[tuple[str, float | None, bool]]()
    ttft = 'vllm:time_to_first_token_seconds_bucket{le="1"} 3\n'

    def on_page(page: Page, engine: KnownEngine, sample: ServerSample) -> None:
        pages.append((engine.name, sample.running, "vllm:time_to_first_token_seconds_bucket" in page))

    async with polling(engine, on_page=on_page) as (poller, _):
        for text in (engine.page, engine.page + ttft, "nothing here\n"):
            engine.page = text
            await poller.poll_once()
    assert pages == [("vllm", 3, False), ("vllm", 3, True)]


@on_a_loop
async def test_a_fault_in_what_is_made_of_a_page_ends_no_polling() -> None:
    def on_page(*_: object) -> None:
        raise ValueError

    async with polling(Engine(), on_page=on_page) as (poller, rig):
        assert await poller.poll_once()
        assert rig.tally.total(TELEMETRY_FAULTS, ((REASON, "ValueError"),)) == 1


def test_a_page_without_a_path_is_the_engines_usual_one() -> None:
    target = Target("http", "e", 1)
    assert page_of("http://e:1", "auto") == (target, "/metrics")
    assert page_of("http://e:1/", "trtllm") == (target, "/prometheus/metrics")
    assert page_of("http://e:1/m", "trtllm") == (target, "/m")
    assert page_of("http://e:1", "ollama") == (target, "/")


def test_a_page_is_a_server_and_a_path() -> None:
    assert split_url("http://e:1/a?b=c") == (Target("http", "e", 1), "/a?b=c")
    assert split_url("https://e") == (Target("https", "e", 443), "/")
    engine = Target("http", "localhost", 80, unix=UnixPath("/run/e"))
    assert split_url("unix:/run/e:/a?b=c") == (engine, "/a?b=c")
    assert page_of("unix:/run/e", "trtllm") == (engine, "/prometheus/metrics")
    with pytest.raises(ValueError, match="write"):
        split_url("e:1/metrics")
