"""An exchange over real sockets: what the client and the server behind see, byte for byte."""

import asyncio
import gc
import gzip
import hashlib
import random
import socket
import struct

import orjson
import pytest

from sidecar.relaying.proxy import Manners
from sidecar.transport.upstream import Target
from sidecar.usage.usage_policy import UsagePolicy
from tests.sidecar.rig import (
    CHAT,
    SSE_HEAD,
    STOP,
    Received,
    chat,
    chunk,
    completion,
    delta,
    listening,
    on_a_loop,
    proxied,
    raw,
    read_message,
    sized,
    spec,
    until,
)

GET = b"GET /v1/models HTTP/1.1\r\nHost: api.test\r\n\r\n"
CLOSING = b"GET /v1/models HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("seed", range(8))
@on_a_loop
async def test_the_bytes_of_a_stream_are_the_servers_own(seed: int) -> None:
    """Chunk framing, extensions and trailers included, however the server's writes are cut."""
    choice = random.Random(seed)
    body = b"".join(chunk(delta(str(number))) for number in range(50))
    answer = SSE_HEAD + body + b"a;x=y\r\n0123456789\r\n" + chunk(STOP) + b"0\r\nX-Trailer: t\r\n\r\n"

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        start = 0
        while start < len(answer):
            end = start + choice.randint(1, 400)
            writer.write(answer[start:end])
            await asyncio.sleep(0)
            start = end

    async with proxied(handle) as rig:
        got = await rig.ask_all(chat(extra="Connection: close\r\n"))
        head, _, rest = got.partition(b"\r\n\r\n")
        assert rest == answer[len(SSE_HEAD) :]
        assert head == SSE_HEAD.removesuffix(b"\r\n\r\n") + b"\r\nConnection: close"
        assert rig.outcomes() == {"ok": 1}
        assert rig.ended[0].record.token_events == 50


@on_a_loop
async def test_case_b15_head_and_each_event_arrive_when_they_are_sent() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        for piece in (SSE_HEAD, chunk(delta("a")), chunk(delta("b")), chunk(STOP) + b"0\r\n\r\n"):
            writer.write(piece)
            await step.wait()
            step.clear()

    step = asyncio.Event()
    async with proxied(handle) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        for expected in (SSE_HEAD, chunk(delta("a")), chunk(delta("b")), chunk(STOP) + b"0\r\n\r\n"):
            assert await reader.readexactly(len(expected)) == expected
            step.set()


@on_a_loop
async def test_connections_are_kept_and_used_again_on_both_sides() -> None:
    async with proxied(raw(sized(b"{}"))) as rig, rig.client() as (reader, writer):
        for _ in range(5):
            writer.write(GET)
            answer = await reader.readexactly(len(sized(b"{}")))
            assert answer == sized(b"{}")
        assert rig.behind.connections == 1
        assert len(rig.behind.requests) == 5


@on_a_loop
async def test_pipelined_requests_are_answered_in_order_one_at_a_time() -> None:
    async def handle(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(random.random() / 100)
        writer.write(sized(request.line.split()[1].encode()))

    async with proxied(handle) as rig:
        many = b"".join(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(30))
        got = await rig.ask_all(many + CLOSING)
        bodies = [part.rpartition(b"\r\n")[2] for part in got.split(b"HTTP/1.1 200 OK")[1:]]
        assert bodies == [b"/%d" % number for number in range(30)] + [b"/v1/models"]
        assert rig.behind.connections == 1


@on_a_loop
async def test_case_b01_a_client_that_leaves_closes_the_server_at_once() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD)
        for _number in range(10_000):
            writer.write(chunk(delta("x")))
            await asyncio.sleep(0.01)

    async with proxied(handle) as rig:
        async with rig.client() as (reader, writer):
            writer.write(chat(extra="X-Watch: 1\r\n"))
            await reader.readuntil(b"x")
        await asyncio.wait_for(rig.behind.close_seen.wait(), 5)
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        assert rig.ended[0].record.ttft_s is not None
        assert rig.door.pool.open_count == 0


@on_a_loop
async def test_a_client_that_leaves_before_any_byte_closes_the_server_too() -> None:
    async def handle(_: Received, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with proxied(handle) as rig:
        async with rig.client() as (_, writer):
            writer.write(chat(extra="X-Watch: 1\r\n"))
            await until(lambda: len(rig.behind.requests) == 1)
        await asyncio.wait_for(rig.behind.close_seen.wait(), 5)
        await until(lambda: rig.outcomes() == {"cancelled": 1})


@on_a_loop
async def test_an_unreachable_server_is_a_502_in_json_and_counted() -> None:
    async with proxied(None) as rig:
        answer = await rig.ask(chat())
        assert answer.line == "HTTP/1.1 502 Bad Gateway"
        error = orjson.loads(answer.body)["error"]
        assert (error["type"], error["code"]) == ("connect_refused", 502)
        assert "127.0.0.1" not in error["message"]
        assert rig.outcomes() == {"error": 1}
        assert rig.ended[0].record.error_type == "connect_refused"


@on_a_loop
async def test_after_a_502_the_clients_connection_goes_on() -> None:
    async with proxied(None) as rig, rig.client() as (reader, writer):
        for _ in range(2):
            writer.write(chat())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 502")
            await reader.readuntil(b"}}")
        assert rig.outcomes() == {"error": 2}


@on_a_loop
async def test_a_head_request_that_fails_has_no_body() -> None:
    async with proxied(None) as rig:
        got = await rig.ask_all(b"HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 502")
        assert got.endswith(b"\r\n\r\n")
        assert rig.outcomes() == {}


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "nowhere.invalid"])
@on_a_loop
async def test_a_server_whose_name_leads_nowhere_is_a_502_and_keeps_nobody_waiting(host: str) -> None:
    async with proxied(None) as rig:
        rig.door.pool.target = Target("http", host, 80)
        answer = await rig.ask(chat())
        assert answer.line == "HTTP/1.1 502 Bad Gateway"
        assert rig.outcomes() == {"error": 1}
        assert rig.ended[0].record.error_type == "connect_failed"


HANGING = {
    "another protocol": b"SSH-2.0-OpenSSH\r\n",
    "noise": b"\x00\xff\x00",
    "a page without a head": b"<html>",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
    "HTTP/2": b"HTTP/2 200 OK\r\nContent-Length: 0",
    "no status": b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("case", HANGING)
@on_a_loop
async def test_a_server_that_can_never_answer_is_not_waited_for(case: str) -> None:
    """Its connection stays open: without a look at what came, the client would wait for ever."""

    async def wild(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_message(reader)
        writer.write(HANGING[case])
        await reader.read()

    async with listening(wild) as port, proxied(None, port=port) as rig:
        answer = await rig.ask(chat())
        assert answer.line == "HTTP/1.1 502 Bad Gateway"
        assert rig.ended[0].record.error_type == "upstream_protocol"
        assert rig.door.pool.open_count == 0


@on_a_loop
async def test_a_flood_of_interim_answers_passes_and_the_answer_behind_it() -> None:
    flood = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 5000
    async with proxied(raw(flood + completion("a"))) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        assert await reader.readexactly(len(flood + completion("a"))) == flood + completion("a")
        await until(lambda: rig.outcomes() == {"ok": 1})


@on_a_loop
async def test_a_token_in_the_read_that_breaks_off_has_come() -> None:
    objective = spec("{name: ttft, signal: ttft, percentile: 95, threshold: 20s}")
    async with proxied(raw(SSE_HEAD + chunk(delta("a")) + b"zz\r\n"), objectives=objective) as rig:
        got = await rig.ask_all(chat())
        assert got.startswith(SSE_HEAD + chunk(delta("a")))
        assert rig.outcomes() == {"error": 1}
        assert rig.events() == {("m", "ttft", "good"): 1}


@on_a_loop
async def test_an_http_10_client_gets_the_good_part_of_a_read_that_breaks_off() -> None:
    async with proxied(raw(SSE_HEAD + chunk(b"data: a\n\n") + b"zz\r\n")) as rig, rig.client() as (reader, writer):
        writer.write(b"POST /v1/chat/completions HTTP/1.0\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readuntil(b"\n\n") == b"data: a\n\n"
        with pytest.raises(ConnectionResetError):
            await reader.read()


@on_a_loop
async def test_a_reset_answer_that_only_the_close_ends_is_seen_to_be_cut() -> None:
    """A plain close would tell the client that it has everything."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + delta("a")
    step = asyncio.Event()

    async def wild(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_message(reader)
        writer.write(answer)
        await step.wait()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with listening(wild) as port, proxied(None, port=port) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        assert (await reader.readuntil(delta("a"))).startswith(b"HTTP/1.1 200 OK")
        step.set()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        assert rig.outcomes() == {"error": 1}
        assert not rig.door.connections


@on_a_loop
async def test_a_request_that_was_answered_half_sent_names_its_model() -> None:
    async with proxied(None) as rig, rig.client() as (reader, writer):
        rig.eye.learn("m")
        writer.write(b"POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n" % CHAT.encode())
        writer.write(b'{"model":"m","stream":true,"messages":[')
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 502")
        record = rig.ended[0].record
        assert (record.request_model, record.stream, record.outcome) == ("m", True, "error")


BROKEN = {
    "closes without a word": b"",
    "speaks something else": b"SSH-2.0-OpenSSH\r\n\r\n",
    "never ends its head": b"HTTP/1.1 200 OK\r\n" + b"X-A: aaaaaaaaaaaaaaaaaaa\r\n" * 8000,
    "switches protocols unasked": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
}


@pytest.mark.parametrize("case", BROKEN)
@on_a_loop
async def test_a_server_without_a_valid_answer_is_a_502(case: str) -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(BROKEN[case])
        writer.close()

    async with proxied(handle) as rig:
        answer = await rig.ask(chat())
        assert answer.line == "HTTP/1.1 502 Bad Gateway"
        assert rig.outcomes() == {"error": 1}


@on_a_loop
async def test_a_server_that_dies_in_mid_stream_is_seen_by_the_client_and_counted() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(delta("a")))
        await writer.drain()
        writer.close()

    async with proxied(handle) as rig:
        got = await rig.ask_all(chat())
        assert got == SSE_HEAD + chunk(delta("a"))  # no last chunk: the client can tell
        assert rig.outcomes() == {"error": 1}


@on_a_loop
async def test_bytes_beyond_an_answer_reach_no_other_request() -> None:
    async with proxied(raw(sized(b"{}") + sized(b"stray"))) as rig:
        got = await rig.ask_all(GET + GET)
        assert got.count(b"200 OK") <= 2
        assert not got.endswith(sized(b"{}"))
        assert rig.door.pool.open_count == 0


@on_a_loop
async def test_case_b06_an_http_10_client_gets_no_chunks() -> None:
    async with proxied(raw(completion("a", "b"))) as rig:
        got = await rig.ask_all(chat().replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, _, body = got.partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head.lower()
        assert body == delta("a") + delta("b") + STOP
        assert rig.outcomes() == {"ok": 1}


@on_a_loop
async def test_an_http_10_client_may_stay() -> None:
    async with proxied(raw(sized(b"{}"))) as rig, rig.client() as (reader, writer):
        for _ in range(2):
            writer.write(b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert b"Connection: keep-alive" in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(2) == b"{}"


@on_a_loop
async def test_a_body_until_the_close_ends_with_it() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + delta("a") + STOP)
        writer.close()

    async with proxied(handle) as rig:
        got = await rig.ask_all(chat())
        assert got == (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + delta("a") + STOP
        )
        assert rig.outcomes() == {"ok": 1}


METHODS = {
    "HEAD": (b"HEAD /v1/models", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
    "OPTIONS": (b"OPTIONS " + CHAT.encode(), b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n\r\n"),
    "DELETE": (b"DELETE /v1/files/x", sized(b"{}")),
    "PATCH": (b"PATCH /x", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
}


@pytest.mark.parametrize("method", METHODS)
@on_a_loop
async def test_case_b10_every_method_passes_and_none_of_these_is_counted(method: str) -> None:
    line, answer = METHODS[method]
    async with proxied(raw(answer)) as rig, rig.client() as (reader, writer):
        for _ in range(2):
            writer.write(line + b" HTTP/1.1\r\nHost: h\r\nOrigin: o\r\n\r\n")
            assert await reader.readexactly(len(answer)) == answer
        assert rig.outcomes() == {}
        assert rig.behind.connections == 1


@pytest.mark.parametrize(
    "target", ["/v1/models/org%2Fmodel-7b", "/a%252Fb", "/x/%2E%2E/y", "/s%20p?q=1%2B1&q=&z=%C3%A9", "//double/"]
)
@on_a_loop
async def test_case_b11_the_target_goes_through_raw(target: str) -> None:
    async with proxied(raw(sized(b"{}"))) as rig:
        await rig.ask(f"GET {target} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        assert rig.behind.requests[0].line == f"GET {target} HTTP/1.1"


@on_a_loop
async def test_the_servers_span_becomes_our_child() -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    async with proxied(raw(completion("a"))) as rig:
        await rig.ask(chat(extra=f"traceparent: 00-{trace}-{parent}-01\r\nX-Request-Id: r-1\r\n"))
        await rig.ask(chat())
        first, second = (request.field("traceparent") or "" for request in rig.behind.requests)
        ours = rig.ended[0].context
        assert first == f"00-{trace}-{ours.span_id.hex()}-01"
        assert ours.parent_id == bytes.fromhex(parent)
        assert second.split("-")[1] not in (trace, "0" * 32)
        assert rig.behind.requests[0].field("x-request-id") == "r-1"
        assert rig.ended[0].request_id == "r-1"


@on_a_loop
async def test_what_is_no_generation_keeps_its_own_traceparent() -> None:
    async with proxied(raw(sized(b"{}"))) as rig:
        await rig.ask(b"GET /health HTTP/1.1\r\nHost: h\r\ntraceparent: 00-aa-bb-01\r\n\r\n")
        assert rig.behind.requests[0].field("traceparent") == "00-aa-bb-01"


@on_a_loop
async def test_expect_continue_is_the_servers_to_answer() -> None:
    async def careful(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"Expect: 100-continue" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert await reader.readexactly(5) == b"hello"
        writer.write(sized(b"{}"))
        await writer.drain()
        writer.close()

    async with listening(careful) as port, proxied(None, port=port) as rig, rig.client() as (reader, writer):
        writer.write(b"POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"hello")
        assert await reader.readexactly(len(sized(b"{}"))) == sized(b"{}")


@on_a_loop
async def test_case_b09_a_big_body_streams_both_ways_of_framing() -> None:
    size = 8 << 20
    body = random.Random(1).randbytes(size)
    seen: list[str] = []

    async def handle(request: Received, writer: asyncio.StreamWriter) -> None:
        seen.append(hashlib.sha256(request.body).hexdigest())
        writer.write(sized(b"{}"))

    async with proxied(handle) as rig:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n".encode()
        await rig.ask(head + b"Content-Length: %d\r\n\r\n" % size + body)
        pieces = b"".join(chunk(body[start : start + 65536]) for start in range(0, size, 65536))
        await rig.ask(head + b"Transfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")
        assert seen == [hashlib.sha256(body).hexdigest()] * 2
        assert len(rig.ended) == 2


@on_a_loop
async def test_an_early_answer_to_an_upload_is_read_before_the_connection_ends() -> None:
    async def impatient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sized(b"no", status="413 Content Too Large"))
        await writer.drain()
        writer.close()

    async with listening(impatient) as port, proxied(None, port=port) as rig:
        got = await rig.ask_all(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 100_000)
        assert got.endswith(b"\r\n\r\nno")


@on_a_loop
async def test_case_b19_websocket_bytes_flow_both_ways() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x02hi")

    async with proxied(handle) as rig, rig.client() as (reader, writer):
        writer.write(
            b"GET /v1/realtime HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        assert await reader.readexactly(4) == b"\x81\x02hi"
        assert rig.behind.requests[0].field("upgrade") == "websocket"
        # The server reads requests: a whole one through the tunnel shows that bytes go that way too.
        writer.write(b"GET /through-the-tunnel HTTP/1.1\r\n\r\n")
        await until(lambda: len(rig.behind.requests) == 2)


@on_a_loop
async def test_a_declined_upgrade_goes_on_as_http() -> None:
    async with proxied(raw(sized(b"{}"))) as rig, rig.client() as (reader, writer):
        writer.write(b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + GET)
        assert await reader.readexactly(2 * len(sized(b"{}"))) == sized(b"{}") * 2


@on_a_loop
async def test_a_slow_client_slows_the_server_and_fills_no_memory() -> None:
    sent = 0

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _number in range(2000):
            writer.write(chunk(b"x" * 65_536))
            sent += 65_536
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async with proxied(handle) as rig:
        reader, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1024)
        writer.write(GET)
        await asyncio.sleep(0.5)
        before = sent
        await asyncio.sleep(0.3)
        assert sent == before < 40 << 20  # what the kernel's buffers and ours hold, of 131 MB
        total = 0
        while data := await reader.read(1 << 20):
            total += len(data)
            if data.endswith(b"0\r\n\r\n"):
                break
        assert total > 2000 * 65_536
        writer.close()


@on_a_loop
async def test_a_get_is_asked_again_when_its_kept_connection_dies_unanswered() -> None:
    answered = 0

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        answered += 1
        if answered == 2:
            writer.close()  # the kept connection: closed with the request in hand
        else:
            writer.write(sized(b"{}"))

    async with proxied(handle) as rig, rig.client() as (reader, writer):
        for _ in range(2):
            writer.write(GET)
            assert await reader.readexactly(len(sized(b"{}"))) == sized(b"{}")
        assert answered == 3


@on_a_loop
async def test_a_completion_is_never_asked_twice() -> None:
    asked = 0

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            writer.close()
        else:
            writer.write(completion("a"))

    async with proxied(handle) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(chat())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 502")
        assert asked == 2


@on_a_loop
async def test_case_b08_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(completion("a"))
        await writer.drain()
        writer.close()  # without having said so: the proxy keeps the connection until it sees the end

    async with proxied(handle) as rig, rig.client() as (reader, writer):
        for number in range(100):
            writer.write(chat())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200"), number
            await reader.readuntil(b"0\r\n\r\n")
        assert rig.outcomes() == {"ok": 100}
        assert len(rig.behind.requests) == 100


async def counting(_: Received, writer: asyncio.StreamWriter) -> None:
    """A stream of some length, that takes its time."""
    writer.write(SSE_HEAD)
    for number in range(30):
        writer.write(chunk(delta(str(number))))
        await asyncio.sleep(0.005)
    writer.write(chunk(STOP) + b"0\r\n\r\n")


@pytest.mark.parametrize("extra", ["", "Accept-Encoding: gzip\r\n"])
@on_a_loop
async def test_case_b03_a_server_whose_client_left_may_be_let_end_its_answer(extra: str) -> None:
    async with proxied(counting, manners=Manners(drain_disconnected=True)) as rig:
        async with rig.client() as (reader, writer):
            writer.write(chat(extra=extra))
            await reader.readuntil(b'"3"')
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        assert rig.ended[0].record.token_events < 30
        assert rig.door.pool.open_count == 1
        await until(lambda: rig.door.pool.take() is not None)  # it ended cleanly, and may be used again
        assert rig.behind.closed == 0
        assert rig.outcomes() == {"cancelled": 1}


@on_a_loop
async def test_a_client_that_left_before_the_head_is_drained_too_and_nothing_is_sent_twice() -> None:
    async def late(request: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        await counting(request, writer)

    async with proxied(late, manners=Manners(drain_disconnected=True)) as rig:
        async with rig.client() as (_, writer):
            writer.write(chat())
            await until(lambda: len(rig.behind.requests) == 1)
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        await until(lambda: rig.door.pool.take() is not None)
        assert len(rig.behind.requests) == 1


@on_a_loop
async def test_a_server_that_never_ends_its_drained_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.limits.LEFTOVER_S", 0.1)

    async def endless(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(delta("a")))
        await asyncio.sleep(1000)

    async with proxied(endless, manners=Manners(drain_disconnected=True)) as rig:
        async with rig.client() as (reader, writer):
            writer.write(chat(extra="X-Watch: 1\r\n"))
            await reader.readuntil(b'"a"')
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        assert rig.door.pool.open_count == 1
        assert rig.door.leftovers.answers == 1
        await until(lambda: rig.door.pool.open_count == 0)
        assert rig.door.leftovers.answers == 0


@on_a_loop
async def test_only_so_many_answers_are_let_end_whose_clients_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.limits.LEFTOVERS", 2)
    gate = asyncio.Event()

    async def gated(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(delta("a")))
        await gate.wait()
        writer.write(chunk(STOP) + b"0\r\n\r\n")

    async with proxied(gated, manners=Manners(drain_disconnected=True)) as rig:

        async def leave() -> None:
            async with rig.client() as (reader, writer):
                writer.write(chat(extra="X-Watch: 1\r\n"))
                await reader.readuntil(b'"a"')

        for _ in range(4):
            await leave()
        await until(lambda: rig.outcomes() == {"cancelled": 4})
        await until(lambda: rig.door.pool.open_count == 2)
        assert rig.door.leftovers.answers == 2
        gate.set()
        await until(lambda: rig.door.leftovers.answers == 0)
        gate.clear()
        await leave()
        await until(lambda: rig.door.leftovers.answers == 1)  # there is room again
        gate.set()


@on_a_loop
async def test_a_server_that_breaks_off_a_leftover_answer_makes_room_too() -> None:
    async def broken(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(delta("a")))
        await asyncio.sleep(0.05)
        writer.close()

    async with proxied(broken, manners=Manners(drain_disconnected=True)) as rig:
        async with rig.client() as (reader, writer):
            writer.write(chat())
            await reader.readuntil(b'"a"')
        await until(lambda: rig.outcomes() == {"cancelled": 1})
        assert rig.door.leftovers.answers == 1
        await until(lambda: rig.door.pool.open_count == 0)
        assert rig.door.leftovers.answers == 0


@on_a_loop
async def test_half_a_request_is_not_drained() -> None:
    async with proxied(counting, manners=Manners(drain_disconnected=True)) as rig:
        async with rig.client() as (_, writer):
            writer.write(chat(pad=100_000)[:90_000])
            await until(lambda: rig.door.pool.open_count == 1)
        await until(lambda: rig.door.pool.open_count == 0)
        assert rig.outcomes() == {}


@on_a_loop
async def test_no_request_is_lost_to_a_server_that_hangs_up_after_each_stream() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_message(reader)
        writer.write(completion("a", "b"))
        await asyncio.sleep(random.random() / 500)
        writer.close()

    async with listening(hang_up) as port, proxied(None, port=port) as rig, rig.client() as (reader, writer):
        for _ in range(100):
            writer.write(chat())
            assert (await read_message(reader)).line == "HTTP/1.1 200 OK"
        assert rig.outcomes() == {"ok": 100}


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
PACKED_HEAD = SSE_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
ANSWERS = {
    "a stream, its usage hidden": SSE_HEAD + chunk(delta("a")) + chunk(STOP) + chunk(USAGE) + b"0\r\n\r\n",
    "a packed stream": PACKED_HEAD + chunk(gzip.compress(delta("a") + STOP)) + b"0\r\n\r\n",
    "a stream that breaks off": SSE_HEAD + chunk(delta("a")) + b"no chunk\r\n",
    "a whole answer": sized(b"{}"),
}


@pytest.mark.parametrize("sentence", ANSWERS)
@on_a_loop
async def test_a_request_leaves_nothing_to_the_garbage_collector(sentence: str) -> None:
    """Which a process of ours runs so seldom that what waits for it would be most of its memory."""
    async with proxied(raw(ANSWERS[sentence])) as rig:
        rig.eye.usage = UsagePolicy("on", "sglang")
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for _ in range(3):
                await rig.ask_all(chat(extra="Connection: close\r\n", pad=9000))
            await until(lambda: not rig.door.connections)
            gc.collect()
            left = {type(found).__qualname__ for found in gc.garbage if type(found).__module__.startswith("sidecar.")}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert left == set()
