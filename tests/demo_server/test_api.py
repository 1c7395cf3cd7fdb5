"""The server as its clients meet it: a child process, real sockets, HTTP."""

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.types import Message, Scope

from demo_server.api import MAX_BATCH, MAX_TOKEN_BUDGET, Service, build_app
from demo_server.faults import HEALTHY
from demo_server.handover import Handover
from demo_server.intake import MAX_BODY_BYTES, Served
from demo_server.text import encode_chat
from tests.demo_server.support import (
    PATIENCE_S,
    Script,
    Server,
    chunks,
    eventually,
    running_server,
    samples,
    scripted_engine,
)

CHAT = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 6}
STREAM = CHAT | {"stream": True}
LONG = {"prompt": "x", "max_tokens": 1000, "ignore_eos": True, "stream": True}


@pytest.fixture(scope="module")
def faulty() -> Iterator[Server]:
    """A slow server with a small pool, for tests that switch faults; each must leave it healthy."""
    flags = ("--step-ms", "5", "--kv-blocks", "64", "--max-model-len", "1024", "--max-queue", "3", "--max-batch", "8")
    with running_server(*flags) as server:
        yield server


@pytest.fixture(autouse=True)
def healed(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "faulty" in request.fixturenames:
        server = request.getfixturevalue("faulty")
        assert httpx.delete(server.url + "/admin/faults").json() == HEALTHY.as_json()
        eventually(lambda: server.metric("vllm:kv_cache_usage_perc") == 0, "all blocks were free again")


def open_stream(server: Server, body: dict[str, object]) -> socket.socket:
    """Send a request by hand and return the socket, so that leaving is one `close`."""
    url = urlsplit(server.url)
    assert url.hostname is not None
    assert url.port is not None
    client = socket.create_connection((url.hostname, url.port), timeout=PATIENCE_S)
    content = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n"
    client.sendall(head.encode() + content)
    return client


def test_a_whole_chat(healthy: Server) -> None:
    reply = healthy.post("/v1/chat/completions", CHAT)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    body = reply.json()
    (choice,) = body["choices"]
    prompt = len(encode_chat([("user", "hello")]))
    assert (body["object"], body["model"], choice["finish_reason"]) == ("chat.completion", "demo", "length")
    assert body["usage"] == {"prompt_tokens": prompt, "completion_tokens": 6, "total_tokens": prompt + 6}
    text = choice["message"]["content"]
    assert len(text) == 6
    assert text.isascii()
    assert text.isprintable()


def test_a_stream_says_the_same_one_token_a_chunk(healthy: Server) -> None:
    whole = healthy.post("/v1/chat/completions", CHAT).json()
    reply = healthy.post("/v1/chat/completions", STREAM | {"stream_options": {"include_usage": True}})
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    role, *pieces, usage = chunks(reply.text)
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}  # type: ignore[index]
    texts = [piece["choices"][0]["delta"]["content"] for piece in pieces]  # type: ignore[index]
    assert "".join(texts) == whole["choices"][0]["message"]["content"]
    assert [len(text) for text in texts] == [1] * 6
    assert (usage["choices"], usage["usage"]) == ([], whole["usage"])
    assert len({piece["id"] for piece in (role, *pieces, usage)}) == 1


def test_a_completion_in_both_forms(healthy: Server) -> None:
    body = {"prompt": [72, 105], "max_tokens": 5, "model": "other"}
    whole = healthy.post("/v1/completions", body).json()
    assert (whole["object"], whole["model"]) == ("text_completion", "other")
    pieces = chunks(healthy.post("/v1/completions", body | {"stream": True}).text)
    assert "".join(piece["choices"][0]["text"] for piece in pieces) == whole["choices"][0]["text"]  # type: ignore[index]


def test_every_served_name_gives_the_same_model(healthy: Server) -> None:
    answers = [healthy.post("/v1/chat/completions", CHAT | {"model": name}).json() for name in ("demo", "other")]
    assert answers[0]["choices"] == answers[1]["choices"]


def test_a_stop_string_is_where_the_text_ends(healthy: Server) -> None:
    text = healthy.post("/v1/chat/completions", CHAT).json()["choices"][0]["message"]["content"]
    stop = text[2:4]
    choice = healthy.post("/v1/chat/completions", CHAT | {"stop": stop}).json()["choices"][0]
    assert choice["message"]["content"] == text[: text.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)


def test_text_ends_by_itself_unless_the_end_is_ignored(healthy: Server) -> None:
    body = {"prompt": "x", "max_tokens": 1500, "temperature": 1.0, "seed": 1}
    ended = healthy.post("/v1/completions", body).json()
    assert ended["choices"][0]["finish_reason"] == "stop"
    assert len(ended["choices"][0]["text"]) == ended["usage"]["completion_tokens"] - 1
    assert healthy.post("/v1/completions", body).json()["choices"] == ended["choices"], "the seed decides"
    longer = ended["usage"]["completion_tokens"] + 20
    endless = healthy.post("/v1/completions", body | {"ignore_eos": True, "max_tokens": longer}).json()
    assert endless["usage"]["completion_tokens"] == longer == len(endless["choices"][0]["text"])


def test_many_at_once_get_what_each_would_get_alone(healthy: Server) -> None:
    bodies = [{"prompt": f"{n} says", "max_tokens": 12, "temperature": 0.8, "seed": n} for n in range(12)]

    def text(body: dict[str, object]) -> str:
        return str(healthy.post("/v1/completions", body).json()["choices"][0]["text"])

    alone = [text(body) for body in bodies]
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(text, bodies)) == alone
    assert len(set(alone)) > 6


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "param"),
    [
        ("/v1/chat/completions", CHAT | {"max_tokens": 0}, 400, "BadRequestError", "max_tokens"),
        ("/v1/chat/completions", CHAT | {"n": 2}, 400, "BadRequestError", "n"),
        ("/v1/chat/completions", CHAT | {"model": "nope"}, 404, "NotFoundError", "model"),
        ("/v1/completions", {"prompt": "x" * 3000}, 400, "BadRequestError", "prompt"),
        ("/v1/completions", ["x"], 400, "BadRequestError", None),
        ("/v1/nothing", {}, 404, "NotFoundError", None),
        ("/v1/models", {}, 405, "BadRequestError", None),
    ],
)
def test_refusals_have_openais_form(
    healthy: Server, path: str, body: object, status: int, kind: str, param: str | None
) -> None:
    reply = healthy.post(path, body)
    error = reply.json()["error"]
    assert (reply.status_code, error["type"], error["param"], error["code"]) == (status, kind, param, status)
    assert error["message"]


def test_a_body_without_end_is_cut_off(healthy: Server) -> None:
    reply = httpx.post(healthy.url + "/v1/completions", content=b" " * (MAX_BODY_BYTES + 1), timeout=PATIENCE_S)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, 413)


def test_the_request_id_is_taken_from_the_header(healthy: Server) -> None:
    def reply_id(**headers: str) -> str:
        return str(httpx.post(healthy.url + "/v1/chat/completions", json=CHAT, headers=headers).json()["id"])

    assert reply_id(**{"x-request-id": 'a"b'}) == 'chatcmpl-a"b'
    assert reply_id(**{"x-request-id": "x" * 500}) == "chatcmpl-" + "x" * 128
    assert reply_id() != reply_id()


def test_the_service_routes(healthy: Server) -> None:
    assert healthy.get("/health").status_code == 200
    assert [card["id"] for card in healthy.get("/v1/models").json()["data"]] == ["demo", "other"]
    assert set(healthy.get("/version").json()) == {"version"}
    assert healthy.get("/metrics").headers["content-type"].startswith("text/plain; version=")


def test_the_metrics_count_what_was_asked(healthy: Server) -> None:
    def read() -> Counter[str]:
        names = (
            *("prompt_tokens_total", "generation_tokens_total", "time_to_first_token_seconds_count"),
            *("inter_token_latency_seconds_count", "e2e_request_latency_seconds_count"),
        )
        return Counter({name: int(healthy.metric("vllm:" + name, model="other")) for name in names})

    before = read()
    usage = healthy.post("/v1/chat/completions", STREAM | {"model": "other"})
    assert usage.status_code == 200
    assert read() - before == {
        "prompt_tokens_total": len(encode_chat([("user", "hello")])),
        "generation_tokens_total": 6,
        "time_to_first_token_seconds_count": 1,
        "inter_token_latency_seconds_count": 5,
        "e2e_request_latency_seconds_count": 1,
    }


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_frees_its_blocks(healthy: Server, stream: bool) -> None:
    generated = healthy.metric("vllm:generation_tokens_total")
    client = open_stream(healthy, LONG | {"stream": stream})
    eventually(lambda: healthy.metric("vllm:generation_tokens_total") > generated, "tokens came")
    assert healthy.metric("vllm:kv_cache_usage_perc") > 0
    client.close()
    eventually(lambda: healthy.metric("vllm:kv_cache_usage_perc") == 0, "the blocks were free")
    assert healthy.metric("vllm:num_requests_running") == 0
    assert healthy.metric("vllm:generation_tokens_total") < generated + 1000, "it did not just run to its end"


def test_slow_multiplies_the_step(faulty: Server) -> None:
    def time_per_token_s() -> float:
        name = "vllm:request_time_per_output_token_seconds_sum"
        before = faulty.metric(name)
        faulty.post("/v1/completions", {"prompt": "x", "max_tokens": 6, "ignore_eos": True})
        return faulty.metric(name) - before

    assert time_per_token_s() >= 0.005
    assert faulty.post("/admin/faults", {"slow": 8.0}).json()["slow"] == 8.0
    assert time_per_token_s() >= 0.040


def test_hang_gives_nothing_until_it_is_lifted(faulty: Server) -> None:
    faulty.post("/admin/faults", {"hang": True})
    client = open_stream(faulty, LONG | {"max_tokens": 3})
    eventually(lambda: faulty.metric("vllm:num_requests_waiting") == 1, "the request waited")
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(PATIENCE_S)
    faulty.post("/admin/faults", {"hang": False})
    assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
    client.close()


def test_pressure_preempts_and_fills_the_gauge(faulty: Server) -> None:
    preempted = faulty.metric("vllm:num_preemptions_total")
    client = open_stream(faulty, LONG)
    eventually(lambda: faulty.metric("vllm:num_requests_running") == 1, "it ran")
    faulty.post("/admin/faults", {"kv_pressure": 1.0})
    eventually(lambda: faulty.metric("vllm:num_preemptions_total") > preempted, "it was preempted")
    assert faulty.metric("vllm:kv_cache_usage_perc") == 1.0
    assert (faulty.metric("vllm:num_requests_running"), faulty.metric("vllm:num_requests_waiting")) == (0, 1)
    client.close()
    eventually(lambda: faulty.metric("vllm:num_requests_waiting") == 0, "it left the queue")


def test_errors_come_at_once_or_in_the_stream(faulty: Server) -> None:
    faulty.post("/admin/faults", {"errors": 1.0})
    kinds: Counter[str] = Counter()
    for _ in range(24):
        reply = faulty.post("/v1/completions", {"prompt": "x", "max_tokens": 20, "stream": True, "ignore_eos": True})
        if reply.status_code == 500:
            assert reply.json()["error"]["type"] == "InternalServerError"
            kinds["at once"] += 1
        else:
            *pieces, error = chunks(reply.text)
            assert error["error"]["code"] == 500  # type: ignore[index]
            assert 1 <= len(pieces) < 20
            kinds["in the stream"] += 1
    assert min(kinds["at once"], kinds["in the stream"]) >= 3
    faulty.post("/admin/faults", {"errors": 0})
    assert faulty.post("/v1/completions", {"prompt": "x", "max_tokens": 2}).status_code == 200


def test_the_queue_fault_and_the_end_of_the_queue(faulty: Server) -> None:
    faulty.post("/admin/faults", {"queue": True})
    clients = [open_stream(faulty, LONG)]
    eventually(lambda: faulty.metric("vllm:num_requests_running") == 1, "one ran")
    clients += [open_stream(faulty, LONG) for _ in range(3)]
    eventually(lambda: faulty.metric("vllm:num_requests_waiting") == 3, "three waited")
    reply = faulty.post("/v1/completions", {"prompt": "x"})
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
    assert reply.json()["error"]["type"] == "ServiceUnavailableError"
    assert faulty.metric("vllm:num_requests_running") == 1
    for client in clients:
        client.close()


def test_a_wrong_fault_changes_nothing(faulty: Server) -> None:
    before = faulty.post("/admin/faults", {"slow": 2.0}).json()
    for patch in ({"slow": 3.0, "hang": "yes"}, {"queue": True, "speed": 1}, ["slow"]):
        reply = faulty.post("/admin/faults", patch)
        assert reply.status_code == 400
        assert "\n" not in reply.json()["error"]["message"]
        assert faulty.get("/admin/faults").json() == before


def test_the_batch_is_changed_or_left(faulty: Server) -> None:
    assert faulty.post("/admin/batch", {"max_batch": 5}).json() == {"max_batch": 5, "token_budget": 512}
    assert faulty.post("/admin/batch", {"token_budget": 64}).json() == {"max_batch": 5, "token_budget": 64}
    wrong: tuple[object, ...] = (
        {"max_batch": 0},
        {"max_batch": True},
        {"max_batch": MAX_BATCH + 1},
        {"max_batch": "9"},
        {"token_budget": 0},
        {"token_budget": MAX_TOKEN_BUDGET + 1, "max_batch": 4},
        {},
        [5],
    )
    for body in (*wrong, {"max_batch": 3, "more": 1}):
        assert faulty.post("/admin/batch", body).status_code == 400
    assert faulty.get("/admin/batch").json() == {"max_batch": 5, "token_budget": 64}
    assert faulty.post("/admin/batch", {"max_batch": 8, "token_budget": 512}).status_code == 200


async def ask_from(
    app: FastAPI,
    host: str,
    method: str,
    path: str,
    *,
    kind: str = "http.request",
    fields: tuple[tuple[bytes, bytes], ...] = (),
) -> int:
    """The status an ASGI call from `host` gets; a test cannot come from another machine over a real socket."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": kind, "body": b"{}", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": list(fields),
        "client": (host, 1),
        "server": ("x", 1),
    }
    await app(scope, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.9.9.9", 200),
        ("::1", 200),
        ("::ffff:127.0.0.1", 200),
        ("192.0.2.1", 403),
        ("::ffff:192.0.2.1", 403),
        ("2001:db8::1", 403),
        ("", 403),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/admin/faults"), ("POST", "/admin/faults"), ("DELETE", "/admin/faults")]
)
def test_admin_answers_this_machine_only(host: str, status: int, method: str, path: str) -> None:
    engine, _, metrics = scripted_engine(Script())
    app = build_app(Service(engine, metrics, Served(("demo",), 100), "1"), Handover(engine))
    assert asyncio.run(ask_from(app, host, method, path)) == status
    for verb in ("GET", "POST"):
        found = asyncio.run(ask_from(app, host, verb, "/admin/batch"))
        assert found == (403 if status == 403 else {"GET": 200, "POST": 400}[verb])


ASKED = {
    (b"host", b"127.0.0.1:8000"): 200,
    (b"host", b"LOCALHOST:8000"): 200,
    (b"host", b"localhost"): 200,
    (b"host", b"[::1]:8000"): 200,
    (b"host", b"[::1]"): 200,
    (b"host", b"gpu-7.example:8001"): 403,
    (b"host", b"192.0.2.1"): 403,
    (b"host", b"localhost.example"): 403,
    (b"host", b""): 403,
    (b"x-forwarded-for", b"192.0.2.1"): 403,
    (b"via", b"1.1 edge"): 403,
}


@pytest.mark.parametrize("field", ASKED, ids=repr)
def test_admin_does_not_answer_what_a_proxy_on_this_machine_brings(field: tuple[bytes, bytes]) -> None:
    engine, _, metrics = scripted_engine(Script())
    app = build_app(Service(engine, metrics, Served(("demo",), 100), "1"), Handover(engine))
    assert asyncio.run(ask_from(app, "127.0.0.1", "GET", "/admin/faults", fields=(field,))) == ASKED[field]


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/admin/faults", "/admin/batch"])
def test_a_client_that_leaves_while_sending_is_no_fault_of_the_server(path: str) -> None:
    engine, _, metrics = scripted_engine(Script())
    app = build_app(Service(engine, metrics, Served(("demo",), 100), "1"), Handover(engine))
    # What escaped here would be a traceback in the log for every client that hangs up.
    assert asyncio.run(ask_from(app, "127.0.0.1", "POST", path, kind="http.disconnect")) == 400


def test_a_crash_of_the_engine_fails_everyone_and_shows_in_health(caplog: pytest.LogCaptureFixture) -> None:
    engine, _, metrics = scripted_engine(Script(fail_at_step=4))
    app = build_app(Service(engine, metrics, Served(("demo",), 200), "1"), Handover(engine))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
                assert client.get("/health").status_code == 200
                streamed = client.post("/v1/chat/completions", json=STREAM)
                *pieces, error = chunks(streamed.text)
                assert (len(pieces), set(error)) == (4, {"error"})
                assert client.get("/health").status_code == 503
                for body in (CHAT, STREAM):
                    reply = client.post("/v1/chat/completions", json=body)
                    assert reply.status_code == 500
                    assert "the device is gone" in reply.json()["error"]["message"]
                assert samples(client.get("/metrics").text), "what it counted can still be read"
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
