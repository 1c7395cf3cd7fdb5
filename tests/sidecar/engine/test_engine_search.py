"""Which engine a server is: where each of them is looked for, and that each is found there over real HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import orjson
import pytest

from sidecar.address import UnixPath
from sidecar.engine import engine_search
from sidecar.engine.engine_search import Place, known_by, places
from sidecar.engine.engines import ENGINES
from sidecar.engine.scrape import AUTO, ServerSample
from sidecar.polling.poller import Poller
from sidecar.transport.upstream import Target
from slo.signals import ENGINE_RUNNING, KV_OCCUPANCY, SCRAPES_FAILED
from tests.sidecar.engine_pages import PAGES
from tests.sidecar.rig import Received, Rig, on_a_loop, proxied, raw, serving, sized
from tests.sidecar.streams import CAPTURES

HERE = Target("http", "e", 8000)

# Where each engine that says so keeps its page, by kept page; of some there are several.
KEPT = {
    "vllm-0.33.prom": ("vllm", "/metrics"),
    "vllm-0.10-multiproc-pid.prom": ("vllm", "/metrics"),
    "vllm-0.8.5.prom": ("vllm", "/metrics"),
    "vllm_metrics_after.txt": ("vllm", "/metrics"),
    "sglang-0.5.23.prom": ("sglang", "/metrics"),
    "tgi-3.3.prom": ("tgi", "/metrics"),
    "llamacpp.prom": ("llamacpp", "/metrics"),
    "llamasrv_metrics_busy.txt": ("llamacpp", "/metrics"),
    "llamasrv_slots_busy.json": ("llamacpp", "/slots"),
    "trtllm-serve.prom": ("trtllm", "/prometheus/metrics"),
    "triton-trtllm.prom": ("triton", "/metrics"),
    "lmdeploy-0.18.prom": ("lmdeploy", "/metrics"),
    "dynamo-frontend.prom": ("dynamo", "/metrics"),
    "litellm_metrics.txt": ("litellm", "/metrics/"),
}
# What servers say on pages that are none of those.
ELSEWHERE = {
    ("trtllm", "/metrics"): sized(b'[{"gpuMemUsage": 1, "iter": 2}]'),
    ("llamacpp", "/metrics"): sized(b'{"error":{"code":501,"type":"not_supported_error"}}', status="501 No"),
    ("litellm", "/metrics"): b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /metrics/\r\nContent-Length: 0\r\n\r\n",
    ("ollama", "/"): sized(b"Ollama is running", kind="text/plain; charset=utf-8"),
    ("triton", "/v2"): sized(b'{"name":"triton","version":"2.58.0","extensions":["classification"]}'),
}


class Server:
    """One engine, with the pages it has."""

    def __init__(self, name: str, kept: dict[str, bytes]) -> None:
        self.name, self.kept, self.asked = name, kept, list[str]()

    async def __call__(self, request: Received, writer: asyncio.StreamWriter) -> None:
        path = request.line.split()[1]
        self.asked.append(path)
        if path in self.kept:
            writer.write(sized(self.kept[path], kind="text/plain"))
        else:
            writer.write(ELSEWHERE.get((self.name, path), sized(b"", status="404 Not Found")))


def page(name: str) -> bytes:
    return ((PAGES if name.endswith(".prom") else CAPTURES) / name).read_bytes()


def asks_seldom(poller: Poller) -> bool:
    """Whether it will not ask again at the next interval."""
    return (poller._starting, poller._wanted) == (False, False)


@contextlib.asynccontextmanager
async def polling(server: Server, engine: str = AUTO) -> AsyncIterator[tuple[Poller, Rig]]:
    async with serving(server) as behind, proxied(raw(b"")) as rig:
        yield Poller(Target("http", "127.0.0.1", behind.port), rig.eye, engine=engine), rig


def test_each_engine_with_a_page_has_one_kept() -> None:
    assert {engine for engine, _ in KEPT.values()} | {"ollama"} == set(ENGINES)
    kept = [path.name for path in (*PAGES.iterdir(), *CAPTURES.iterdir()) if path.suffix in (".prom", ".txt", ".json")]
    assert set(KEPT) == set(kept)


@pytest.mark.parametrize("name", KEPT)
@on_a_loop
async def test_an_engine_is_recognised_by_what_it_serves_and_where(name: str) -> None:
    engine, path = KEPT[name]
    server = Server(engine, {path: page(name)})
    async with polling(server) as (poller, rig):
        for _ in range(2):
            assert await poller.poll_once()
        sample = poller.fresh(poller._sample_s)
        assert sample is not None
        assert sample.engine == engine
        assert rig.eye.overload_429 is (engine == "tgi")
        # Once it is found nothing else is asked for, but what llama.cpp tells on another page alone.
        assert server.asked[server.asked.index(path) :].count(path) == server.asked.count(path) == 2
        assert set(server.asked[server.asked.index(path) :]) <= {path, "/slots"}
        assert not [point for point in rig.tally.totals() if point.metric is SCRAPES_FAILED]


@on_a_loop
async def test_triton_is_known_by_its_name_and_read_at_its_other_port(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Server("metrics", {"/metrics": page("triton-trtllm.prom")})
    server = Server("triton", {})
    async with serving(metrics) as beside, polling(server) as (poller, _):
        monkeypatch.setattr(engine_search, "TRITON_METRICS_PORT", beside.port)
        for _ in range(3):
            assert await poller.poll_once()
        assert metrics.asked == ["/metrics"] * 3
        assert server.asked.count("/v2") == 1
        assert {point.metric for point in poller.gauges(poller._sample_s)} >= {KV_OCCUPANCY, ENGINE_RUNNING}


@on_a_loop
async def test_a_triton_without_metrics_is_asked_again_after_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_search, "TRITON_METRICS_PORT", 1)
    server = Server("triton", {})
    async with polling(server) as (poller, rig):
        assert not await poller.poll_once()
        assert asks_seldom(poller)
        assert not [point for point in rig.tally.totals() if point.metric is SCRAPES_FAILED]


@on_a_loop
async def test_ollama_is_known_by_its_greeting_and_has_no_page(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    server = Server("ollama", {})
    async with polling(server) as (poller, rig):
        for _ in range(2):
            assert not await poller.poll_once()
        assert rig.eye.usage._engine == "ollama"
        assert asks_seldom(poller)
        assert poller.fresh(0) is None
    told = [record.message for record in caplog.records if "ollama" in record.message]
    assert told == ["engine ollama has no metrics page: its state stays unknown"]


@on_a_loop
async def test_a_server_that_is_no_engine_is_asked_everywhere_once_and_stays_unknown() -> None:
    server = Server("another", {"/": b"<h1>hello</h1>", "/slots": b"[]", "/v2": b'{"name":"registry"}'})
    async with polling(server) as (poller, _):
        assert not await poller.poll_once()
        assert server.asked == [place.path for place in places(HERE, "/")]
        assert asks_seldom(poller)


@pytest.mark.parametrize(("first", "second"), [("vllm_metrics_after.txt", "trtllm-serve.prom")])
@on_a_loop
async def test_a_server_that_comes_back_as_another_engine_is_recognised_anew(first: str, second: str) -> None:
    (one, there), (other, elsewhere) = KEPT[first], KEPT[second]
    server = Server(one, {there: page(first)})
    async with polling(server) as (poller, _):
        assert await poller.poll_once()
        server.name, server.kept = other, {elsewhere: page(second)}
        assert not await poller.poll_once()
        assert poller.fresh(poller._sample_s) is None
        assert await poller.poll_once()
        assert poller._sample is not None
        assert poller._sample.engine == other


@pytest.mark.parametrize("engine", ["llamacpp", "litellm"])
@on_a_loop
async def test_a_named_engine_is_looked_for_where_it_can_be(engine: str) -> None:
    name = {"llamacpp": "llamasrv_slots_busy.json", "litellm": "litellm_metrics.txt"}[engine]
    server = Server(engine, {KEPT[name][1]: page(name)})
    async with polling(server, engine) as (poller, _):
        assert await poller.poll_once()
        assert server.asked == ["/metrics", "/metrics/", "/slots"][: 3 if engine == "llamacpp" else 2]


def paths(engine: str = AUTO, path: str = "/") -> list[str]:
    return [place.path for place in places(HERE, path, engine)]


def test_places() -> None:
    assert paths() == [
        "/metrics", "/metrics/", "/prometheus/metrics", "/prometheus/metrics/", "/v2", "/slots", "/",
    ]  # fmt: skip
    assert paths("vllm") == ["/metrics", "/metrics/"]
    assert paths("trtllm") == ["/prometheus/metrics", "/prometheus/metrics/"]
    assert paths("triton") == ["/metrics", "/metrics/", "/v2"]
    assert paths("ollama") == []
    assert paths(path="/m") == ["/m", "/m/"]
    assert paths("trtllm", "/m/") == ["/m/"]
    assert paths(path="/metrics?model=x") == ["/metrics?model=x"]


def test_only_tritons_name_leads_elsewhere() -> None:
    prefixed = Target("https", "e", 443, "/triton")
    assert Place(prefixed, "/v2", "triton").metrics == Place(Target("http", "e", 8002), "/metrics")
    assert Place(Target("http", "localhost", 80, unix=UnixPath("/run/t.sock")), "/v2", "triton").metrics is None
    assert Place(HERE, "/slots", "llamacpp").metrics is None
    assert Place(HERE, "/metrics").metrics is None


SIGNS = {
    "Triton's name": ("triton", b'{"name":"triton","version":"2"}', ServerSample("triton")),
    "another's name": ("triton", b'{"name":"x"}', ServerSample(None)),
    "no name": ("triton", b"[1]", ServerSample(None)),
    "no JSON": ("triton", b"<html>", ServerSample(None)),
    "Ollama's greeting": ("ollama", b"Ollama is running\n", ServerSample("ollama")),
    "another page": ("ollama", b"<h1>Ollama is running</h1>", ServerSample(None)),
    "slots": (
        "llamacpp",
        orjson.dumps([{"n_ctx": 10, "is_processing": busy, "n_prompt_tokens": 5} for busy in (True, False)]),
        ServerSample("llamacpp", running=1.0, kv_occupancy=0.25),
    ),
    "no slots": ("llamacpp", b"{}", ServerSample(None)),
}


@pytest.mark.parametrize("case", SIGNS)
def test_signs(case: str) -> None:
    engine, body, expected = SIGNS[case]
    assert known_by(Place(HERE, "/", engine), body) == expected
