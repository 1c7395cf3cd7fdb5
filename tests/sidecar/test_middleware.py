"""The middleware inside real servers: what users get, what is counted, and that the host is never harmed."""

import asyncio
import importlib
import inspect
import logging
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fastapi.responses import PlainTextResponse
from prometheus_client.parser import text_string_to_metric_families

import sidecar.middleware
from sidecar.middleware import FirstTokenMiddleware
from sidecar.said.exchange import Exchange
from sidecar.within.asgi import Message, Receive, Scope, Send
from slo.signals import E2E, IN_FLIGHT, OVERDUE, TELEMETRY_FAULTS, TPOT, TTFT, WAITING_FIRST_TOKEN
from tests.sidecar.hosting import (
    Hosted,
    Seen,
    alone,
    chat_app,
    event,
    get,
    head,
    hosted,
    on_asyncio,
    piece,
    plain,
    request,
    served,
    within,
)
from tests.sidecar.process import environment
from tests.sidecar.receiver import attributes, receiving
from tests.sidecar.rig import CHAT, until

ROOT = Path(__file__).parents[2]
SPEC = """
service: chat
environment: test
objectives:
  - {name: first, signal: ttft, percentile: 95, threshold: 300ms}
  - {name: whole, signal: e2e, percentile: 95, threshold: 400ms}
  - {name: answered, signal: availability, target: 99.9%}
"""
PATIENT = SPEC.replace("300ms", "50s").replace("400ms", "50s")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    alone(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gauges(server: Hosted) -> dict[tuple[str, ...], float]:
    return {
        (point.metric.name, *(value for _, value in point.attributes)): point.value
        for point in server.telemetry.eye.gauges(time.monotonic_ns())
    }


def faults(server: Hosted) -> int:
    return sum(int(p.value) for p in server.telemetry.tally.totals() if p.metric is TELEMETRY_FAULTS)


REQUESTS = {
    "a stream": request("Connection: close", stream=True, tokens=50),
    "an answer": request("Connection: close"),
    "a refusal": request("Connection: close", how="busy"),
    "another path": request("Connection: close", path="/echo", text="x" * 100_000),
    "no such path": request("Connection: close", path="/v1/nothing/completions"),
    "a failure": request("Connection: close", how="break", secret="s"),
    "a chunked request": f"POST {CHAT} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    'a\r\n{"model":"\r\n4\r\nm"}\n\r\n0\r\n\r\n'.encode(),
    "a GET": b"GET /docs HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
    "no HTTP/1.1": request(stream=True, tokens=5).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
}


@pytest.mark.parametrize("http", ["h11", "httptools"])
@on_asyncio
async def test_users_get_the_same_bytes(http: str) -> None:
    async with served(chat_app(), http=http) as bare, hosted(chat_app(), http=http) as server:  # type: ignore[arg-type]
        for name, raw in REQUESTS.items():
            assert await server.raw(raw) == await Hosted(bare, server.middleware).raw(raw), name
        assert faults(server) == 0
        await until(lambda: sum(server.counts().values()) == 7)


@on_asyncio
async def test_two_models_are_counted_each_by_its_name(elsewhere: Path) -> None:
    (elsewhere / "slo.yaml").write_text(PATIENT)
    async with hosted(chat_app()) as server:
        for model in ("small", "large", "small"):
            answer = await server.ask(model=model, stream=True, tokens=40, pause_s=0.001)
            assert answer.count(b'"content"') == 40
        await server.ask(model="small")
        assert server.counts() == {("small", "ok"): 3, ("large", "ok"): 1}
        found = server.latencies()
        assert {key: buckets.count for key, buckets in found.items()} == {
            (TTFT.name, "small"): 2,
            (TTFT.name, "large"): 1,
            (TPOT.name, "small"): 2,
            (TPOT.name, "large"): 1,
            (E2E.name, "small"): 3,
            (E2E.name, "large"): 1,
        }
        # A token waits for its pause, and 39 of them fit into the whole.
        assert 0.001 <= found[TPOT.name, "large"].min <= found[E2E.name, "large"].max / 39
        assert found[TTFT.name, "large"].max < found[E2E.name, "large"].max - 0.039
        assert server.events() == {
            ("small", "first", "good"): 2,
            ("small", "whole", "good"): 3,
            ("small", "answered", "good"): 3,
            ("large", "first", "good"): 1,
            ("large", "whole", "good"): 1,
            ("large", "answered", "good"): 1,
        }
        tokens = {
            p.attributes[0][1]: p.value
            for p in server.telemetry.tally.totals()
            if ("gen_ai.token.type", "output") in p.attributes
        }
        assert tokens == {"small": 85, "large": 40}


@pytest.mark.parametrize("how", ["hang", "hang after one"])
@on_asyncio
async def test_bad_is_counted_at_the_deadline_while_the_request_is_open(how: str, elsewhere: Path) -> None:
    (elsewhere / "slo.yaml").write_text(SPEC + "    # x\n")
    seen = Seen()
    async with hosted(chat_app(seen)) as server:
        await server.ask()
        async with server.client() as (_, writer):
            writer.write(request(stream=True, how=how))
            await until(lambda: ("m", "whole", "bad") in server.events())
            shown = gauges(server)
            assert shown[IN_FLIGHT.name, "m"] == 1
            assert shown[OVERDUE.name, "m", "e2e"] == 1
            waits = how == "hang"
            assert shown[WAITING_FIRST_TOKEN.name, "m"] == shown[OVERDUE.name, "m", "ttft"] == waits
            events = server.events()
            assert ("m", "first", "bad") in events if waits else events["m", "first", "good"] == 1
            assert server.counts() == {("m", "ok"): 1}
        if not waits:
            await until(lambda: ("m", "cancelled") in server.counts())
        seen.gate.set()
        await until(lambda: sum(server.counts().values()) == 2)
        assert server.counts()["m", "cancelled"] == 1
        assert server.events()["m", "whole", "bad"] == 1


@pytest.mark.parametrize("http", ["h11", "httptools"])
@on_asyncio
async def test_a_client_that_leaves_cancels_the_app_and_is_counted_as_such(http: str) -> None:
    seen = Seen()
    async with hosted(chat_app(seen), http=http) as server:
        async with server.client() as (reader, writer):
            writer.write(request(stream=True, tokens=10_000, pause_s=0.005))
            await reader.readuntil(b" t20")
            assert server.counts() == {}
        await seen.closed.wait()
        assert seen.cancelled == 1
        await until(lambda: server.counts() == {("m", "cancelled"): 1})
        assert server.latencies()[TPOT.name, "m"].count == 1
        assert (E2E.name, "m") not in server.latencies()
        assert not server.telemetry.eye._in_flight


@on_asyncio
async def test_a_client_that_leaves_an_app_that_never_listens_is_known_by_uvicorns_note() -> None:
    gone = asyncio.Event()

    async def deaf(_: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        await gone.wait()
        await send(head("application/json"))
        await send(piece(b'{"choices":[{"message":{"content":"hi"}}]}', more=False))

    async with hosted(plain(deaf)) as server:
        async with server.client() as (_, writer):
            writer.write(request())
            await until(lambda: bool(server.middleware._attachment and server.telemetry.eye._in_flight))
        await asyncio.sleep(0.1)
        gone.set()
        await until(lambda: server.counts() == {("m", "cancelled"): 1})


@on_asyncio
async def test_an_exception_of_the_app_is_an_error_and_still_the_apps() -> None:
    raised: list[BaseException] = []

    async def note(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await inner(scope, receive, send)
        except BaseException as error:
            raised.append(error)
            raise

    app = chat_app()
    app.add_middleware(FirstTokenMiddleware)
    middleware, inner = within(app), app
    async with served(note) as port:
        server = Hosted(port, middleware)
        assert (await server.ask(stream=True, how="break", secret="s3cret")).startswith(b"HTTP/1.1 500 ")
        broken = await server.ask(stream=True, how="break after one", secret="s3cret")
        assert broken.count(b'"content"') == 1
        assert not broken.endswith(b"0\r\n\r\n")
        await until(lambda: server.counts() == {("other", "error"): 1, ("m", "error"): 1})
    assert [type(error) for error in raised] == [ValueError, ValueError]


def test_everything_is_sent_at_the_latest_when_the_app_shuts_down(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere / "slo.yaml").write_text(PATIENT)
    trace, parent, seen = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", Seen()
    with receiving() as receiver:
        alone(monkeypatch, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_RESOURCE_ATTRIBUTES="team=one")

        @on_asyncio
        async def run() -> None:
            async with hosted(chat_app(seen)) as server:
                field = f"Traceparent: 00-{trace}-{parent}-01"
                await server.ask(field, "X-Request-Id: r1", stream=True, tokens=3)
                await server.ask("X-Firsttoken-Class: synthetic", stream=True, how="break", secret="s3cret")
                assert receiver.spans() == []

        run()
        first, second = receiver.spans()
        assert (first.trace_id.hex(), first.parent_span_id.hex(), second.parent_span_id) == (trace, parent, b"")
        assert seen.headers[0]["traceparent"] == f"00-{trace}-{first.span_id.hex()}-01"
        assert seen.headers[1]["traceparent"] == f"00-{second.trace_id.hex()}-{second.span_id.hex()}-01"
        assert first.name == "chat m"
        said = attributes(first.attributes)
        assert said["firsttoken.outcome"] == "ok"
        assert said["gen_ai.usage.output_tokens"] == 3
        assert said["firsttoken.request_id"] == "r1"
        assert attributes(second.attributes)["error.type"] == "ValueError"
        assert attributes(second.attributes)["firsttoken.class"] == "synthetic"
        assert "s3cret" not in str(receiver.bodies)
        resource = receiver.resource()
        assert resource["firsttoken.source"] == "middleware"
        assert resource["service.name"] == "chat"
        assert resource["deployment.environment.name"] == "test"
        assert resource["team"] == "one"
        names = {metric.name for metric in receiver.metrics()}
        assert {"firsttoken.slo.events", "firsttoken.requests", "firsttoken.heartbeat", TTFT.name, TPOT.name} <= names


@on_asyncio
async def test_without_an_exporter_of_spans_the_trace_stays_the_clients() -> None:
    seen = Seen()
    async with hosted(chat_app(seen)) as server:
        field = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        await server.ask(f"Traceparent: {field}", stream=True)
        await server.ask(stream=True)
    assert [headers.get("traceparent") for headers in seen.headers] == [field, None]


WORKER = """
import asyncio, logging, sys
import uvicorn
from tests.sidecar.hosting import chat_app
from sidecar.middleware import FirstTokenMiddleware

logging.basicConfig(level="INFO", stream=sys.stdout, format="%(message)s")
app = chat_app()
app.add_middleware(FirstTokenMiddleware)
config = uvicorn.Config(app, port=0, http="h11", loop="asyncio", lifespan=sys.argv[1], log_config=None)
server = uvicorn.Server(config)

async def life():
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print("port", server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving

asyncio.run(life())
"""


def worker(lifespan: str, cwd: Path, **environ: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, lifespan],
        cwd=cwd,
        env=environment(PYTHONPATH=str(ROOT), **environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def line(process: "subprocess.Popen[str]", start: str) -> str:
    """The rest of the first line that begins so."""
    assert process.stdout is not None
    said = []
    for text in process.stdout:
        said.append(text)
        if text.startswith(start):
            return text[len(start) :].strip()
    raise AssertionError(said)


def test_a_worker_without_a_lifespan_shows_its_page_and_sends_its_last_at_exit(elsewhere: Path) -> None:
    (elsewhere / "slo.yaml").write_text(SPEC)
    with (
        receiving() as receiver,
        worker(
            "off",
            elsewhere,
            FIRSTTOKEN_ADMIN="127.0.0.1:0",
            FIRSTTOKEN_OTLP_ENDPOINT=receiver.url,
            FIRSTTOKEN_SERVICE="chat",
        ) as process,
    ):
        try:
            port = int(line(process, "port"))
            asked = asyncio.run(Hosted(port, None).ask(stream=True, tokens=100))  # type: ignore[arg-type]
            assert asked.count(b'"content"') == 100
            admin = int(line(process, "firsttoken middleware: admin: http://127.0.0.1:"))
            assert get(admin, "/readyz") == (200, "ready\n")
            _, text = get(admin, "/metrics")
            (tokens,) = [
                sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.name == "firsttoken_tokens_total" and sample.labels["type"] == "output"
            ]
            assert tokens == 100
            process.send_signal(signal.SIGINT)
            process.wait(60)
        finally:
            process.kill()
    assert [attributes(span.attributes)["gen_ai.usage.output_tokens"] for span in receiver.spans()] == [100]
    assert "firsttoken.slo.events" in {metric.name for metric in receiver.metrics()}


def test_of_two_workers_the_second_goes_without_a_page(elsewhere: Path) -> None:
    with worker("on", elsewhere, FIRSTTOKEN_ADMIN="127.0.0.1:0") as first:
        try:
            admin = line(first, "firsttoken middleware: admin: http://127.0.0.1:")
            with worker("on", elsewhere, FIRSTTOKEN_ADMIN=f"127.0.0.1:{admin}") as second:
                try:
                    assert "cannot listen on" in line(second, "firsttoken middleware: no /metrics page in process")
                    port = int(line(second, "port"))
                    asked = asyncio.run(Hosted(port, None).ask(stream=True))  # type: ignore[arg-type]
                    assert asked.count(b'"content"') == 3
                finally:
                    second.kill()
            assert get(int(admin), "/healthz") == (200, "ok\n")
        finally:
            first.kill()


@on_asyncio
async def test_a_fault_of_telemetry_is_counted_and_changes_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such thing")

    async with hosted(chat_app()) as server, served(chat_app()) as bare:  # type: ignore[arg-type]
        raw = REQUESTS["a stream"]
        expected = await Hosted(bare, server.middleware).raw(raw)
        for method in ("feed", "feed_and_learn", "feed_texts", "response_started", "record"):
            with monkeypatch.context() as patch:
                patch.setattr(Exchange, method, broken)
                before = faults(server) if server.middleware._attachment else 0
                assert await server.raw(raw) == expected
                await until(lambda: not server.telemetry.eye._in_flight)
                assert faults(server) > before, method
        assert await server.raw(raw) == expected
        assert server.counts()["m", "ok"] >= 1


@on_asyncio
async def test_what_cannot_be_attached_leaves_the_app_as_it_was(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(sidecar.middleware, "read", broken)
    async with hosted(chat_app()) as server:
        for _ in range(2):
            assert (await server.ask(stream=True)).count(b'"content"') == 3
    (line,) = [r.message for r in caplog.records if "cannot be attached" in r.message]
    assert re.fullmatch(
        r"firsttoken middleware: cannot be attached \(RuntimeError at .*\.broken:\d+\): nothing is measured", line
    )


@on_asyncio
async def test_a_bad_spec_is_told_and_shown_and_the_server_runs(
    elsewhere: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (elsewhere / "slo.yaml").write_text(SPEC.replace("99.9%", "100%"))
    async with hosted(chat_app()) as server:
        await server.ask(stream=True)
        await until(lambda: server.counts() == {("m", "ok"): 1})
        assert server.events() == {}
        assert not server.telemetry.sources().reload_ok()
    assert any("slo.yaml:7" in record.message for record in caplog.records if record.levelno == logging.ERROR)


@pytest.mark.parametrize("kind", ["websocket", "http"])
@on_asyncio
async def test_what_is_not_ours_passes_untouched(kind: str) -> None:
    called: list[tuple[object, object, object]] = []

    async def app(*given: object) -> None:
        called.append(given)  # type: ignore[arg-type]

    async def receive() -> Message:
        raise AssertionError

    async def send(_: Message) -> None:
        raise AssertionError

    scope = {"type": kind, "method": "GET", "path": CHAT, "headers": []}
    await FirstTokenMiddleware(app)(scope, receive, send)
    (given,) = called
    assert given[0] is scope
    assert given[1] is receive
    assert given[2] is send


BARE = """
import asyncio, sys
from sidecar.middleware import FirstTokenMiddleware

async def app(scope, receive, send):
    while True:
        message = await receive()
        if message["type"] == "http.request":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return

async def life():
    inbox, outbox = asyncio.Queue(), asyncio.Queue()
    middleware = FirstTokenMiddleware(app)
    inbox.put_nowait({"type": "lifespan.startup"})
    living = asyncio.create_task(middleware({"type": "lifespan"}, inbox.get, outbox.put))
    await outbox.get()
    asking = asyncio.Queue()
    asking.put_nowait({"type": "http.request", "body": b"{}"})
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    await middleware(scope, asking.get, outbox.put)
    await asyncio.sleep(1.5)
    assert middleware._attachment.shown_at.port > 0
    inbox.put_nowait({"type": "lifespan.shutdown"})
    await living
    assert outbox.qsize() == 3

asyncio.run(life())
print(*sorted({"httptools", "uvloop", "fastapi", "starlette", "uvicorn"} & set(sys.modules)))
"""


def test_it_needs_no_parser_loop_or_framework(elsewhere: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", BARE],
        cwd=elsewhere,
        env=environment(PYTHONPATH=str(ROOT), FIRSTTOKEN_ADMIN="127.0.0.1:0", FIRSTTOKEN_SCRAPE="off"),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (ran.returncode, ran.stdout) == (0, "\n"), ran.stderr
    assert ran.stderr == ""


def test_it_is_a_class_that_servers_find_by_its_dotted_name() -> None:
    module, _, name = "sidecar.middleware.FirstTokenMiddleware".rpartition(".")
    assert inspect.isclass(getattr(importlib.import_module(module), name))


@on_asyncio
async def test_a_stream_that_is_looked_at_in_runs_is_right_at_any_moment() -> None:
    turn, sent = asyncio.Event(), 0

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        await receive()
        await send(head())
        for number in range(200):
            await send(piece(event(f"{number}\n").encode()))
            sent = number + 1
            if sent in (7, 50, 133):
                await turn.wait()
                turn.clear()
        await send(piece(b"", more=False))

    async with hosted(plain(app)) as server, server.client() as (reader, writer):
        writer.write(request(stream=True))
        for stop in (7, 50, 133):
            await until(lambda stop=stop: sent == stop)  # type: ignore[misc]
            server.telemetry.eye.catch_up()
            (watch,) = server.telemetry.eye._in_flight
            assert watch._exchange is not None
            assert watch._exchange.token_events == stop
            assert server.telemetry.eye.last_token_ns == watch._exchange.last_token_at_ns
            turn.set()
        await reader.readuntil(b"0\r\n\r\n")
        await until(lambda: server.counts() == {("m", "ok"): 1})


@on_asyncio
async def test_a_token_that_came_in_time_is_good_although_the_loop_was_late(elsewhere: Path) -> None:
    (elsewhere / "slo.yaml").write_text(SPEC)

    async def app(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(head())
        await send(piece(event("a").encode()))
        time.sleep(0.6)  # noqa: ASYNC251  an engine that holds the loop
        await asyncio.sleep(0)
        await send(piece(event("b").encode(), more=False))

    async with hosted(plain(app)) as server:
        await server.ask(stream=True)
        await until(lambda: bool(server.counts()))
        assert server.events()["m", "first", "good"] == 1
        assert server.events()["m", "whole", "bad"] == 1


def test_the_engines_state_is_read_from_within_and_stands_on_the_span(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = '# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{model_name="m"} 0.25\n'
    with receiving() as receiver:
        alone(monkeypatch, FIRSTTOKEN_SCRAPE="auto", FIRSTTOKEN_OTLP_ENDPOINT=receiver.url)

        @on_asyncio
        async def run() -> None:
            app = chat_app()

            @app.get("/metrics")
            async def metrics() -> PlainTextResponse:
                return PlainTextResponse(page)

            async with hosted(app) as server:
                await server.ask(stream=True)
                await until(lambda: server.telemetry.eye.kv_occupancy == 0.25)
                await server.ask(stream=True)

        run()
        first, second = (attributes(span.attributes) for span in receiver.spans())
        assert "firsttoken.kv_cache.occupancy" not in first
        assert second["firsttoken.kv_cache.occupancy"] == 0.25
        occupancy = [m.gauge.data_points for m in receiver.metrics() if m.name == "firsttoken.kv_cache.occupancy"]
        assert occupancy[-1][0].as_double == 0.25
