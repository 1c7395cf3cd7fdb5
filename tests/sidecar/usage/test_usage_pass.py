"""Asking and hiding over real sockets: what the server gets, and what the client sees of its answer, byte for byte."""

import asyncio
import random
import re
from collections.abc import Callable

import orjson
import pytest

from sidecar import limits
from sidecar.engine.engines import UsageChunk
from sidecar.http.http_head import ResponseHead
from sidecar.limits import USAGE_HOLD_S
from sidecar.said.dialects import LOOK_BYTES
from sidecar.usage.usage_hide import UsageFilter
from sidecar.usage.usage_pass import UsagePass, unsized
from sidecar.usage.usage_policy import Mode, UsagePolicy
from slo.signals import TELEMETRY_FAULTS, USAGE_ASKED
from tests.sidecar.rig import (
    CHAT,
    SSE_HEAD,
    Handler,
    Received,
    Rig,
    chat,
    chunk,
    delta,
    on_a_loop,
    proxied,
    raw,
    read_message,
    sized,
    until,
)

TOKENS = [delta(str(number)) for number in range(5)]
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":17,"total_tokens":26}}\n\n'
DONE = b"data: [DONE]\n\n"
REST = b"".join((*TOKENS, FINISH, DONE))
STREAM = b"".join((*TOKENS, FINISH, USAGE, DONE))
LAST = b"0\r\n\r\n"
CLOSE = "Connection: close\r\n"
PLAIN_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def asking(rig: Rig, mode: Mode = "on", engine: str | None = "sglang") -> None:
    rig.eye.usage = UsagePolicy(mode, engine)


def by_chunks(events: list[bytes]) -> bytes:
    return SSE_HEAD + b"".join(map(chunk, events)) + LAST


def asked(rig: Rig) -> dict[str, int]:
    """Requests asked, by what came of it."""
    points = [point for point in rig.tally.totals() if point.metric is USAGE_ASKED]
    return {dict(point.attributes)["firsttoken.reason"]: int(point.value) for point in points}


def unchunked(framed: bytes) -> bytes:
    body, at = b"", 0
    while size := int(framed[at : (end := framed.index(b"\r\n", at))].split(b";")[0], 16):
        body += framed[end + 2 : end + 2 + size]
        at = end + 4 + size
    assert framed[end:].startswith(b"\r\n")
    return body


@on_a_loop
async def test_the_server_is_asked_and_the_client_sees_nothing_of_it() -> None:
    async with proxied(raw(by_chunks([*TOKENS, FINISH, USAGE, DONE]))) as rig:
        asking(rig)
        got = await rig.ask_all(chat(extra=CLOSE))
        head, _, rest = got.partition(b"\r\n\r\n")
        assert unchunked(rest) == REST
        assert head == SSE_HEAD.removesuffix(b"\r\n\r\n") + b"\r\nConnection: close"
        (request,) = rig.behind.requests
        sent = chat().partition(b"\r\n\r\n")[2]
        assert request.body == b'{"stream_options":{"include_usage":true},' + sent[1:]
        assert request.field("content-length") == str(len(request.body))
        record = rig.ended[0].record
        assert (record.token_count_source, record.output_tokens, record.token_events) == ("usage", 17, 5)
        assert rig.outcomes() == {"ok": 1}
        assert asked(rig) == {"hidden": 1}


@on_a_loop
async def test_events_in_chunks_and_reads_of_their_own_arrive_in_their_own_chunks() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        for piece in (SSE_HEAD, *map(chunk, [*TOKENS, FINISH, USAGE, DONE]), LAST):
            writer.write(piece)
            await steps.get()

    steps = asyncio.Queue[None]()
    async with proxied(handle) as rig, rig.client() as (reader, writer):
        asking(rig)
        writer.write(chat())
        for piece in (SSE_HEAD, *map(chunk, [*TOKENS, FINISH]), b"", chunk(DONE), LAST):
            assert await reader.readexactly(len(piece)) == piece
            steps.put_nowait(None)


def cut_up(answer: bytes, seed: int) -> Handler:
    """A server whose writes are cut anywhere."""

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        choice, start = random.Random(seed), 0
        while start < len(answer):
            end = start + choice.choice((1, 3, 20, 100, 400))
            writer.write(answer[start:end])
            await asyncio.sleep(0)
            start = end
        if b"hunked" not in answer and b"ontent-Length" not in answer:
            writer.close()

    return handle


def ragged(seed: int, stream: bytes) -> bytes:
    """The stream in chunks that know nothing of events, with extensions and a trailer."""
    choice, start, chunks = random.Random(seed), 0, b""
    while start < len(stream):
        size = choice.randint(1, 300)
        piece = stream[start : start + size]
        chunks += b"%X;x=%d\r\n%b\r\n" % (len(piece), seed, piece)
        start += size
    return SSE_HEAD + chunks + b"0\r\nX-Trailer: t\r\n\r\n"


FRAMINGS: dict[str, Callable[[int, bytes], bytes]] = {
    "an event a chunk": lambda _, stream: by_chunks(re.findall(rb".*\n\r?\n", stream)),
    "one chunk": lambda _, stream: SSE_HEAD + chunk(stream) + LAST,
    "chunks across events": ragged,
    "the end of the connection": lambda _, stream: PLAIN_HEAD + stream,
    "a length": lambda _, stream: sized(stream, kind="text/event-stream"),
}


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("seed", range(3))
@on_a_loop
async def test_every_framing_cut_anywhere_brings_the_same_body(framing: str, ending: bytes, seed: int) -> None:
    stream, rest = STREAM.replace(b"\n", ending), REST.replace(b"\n", ending)
    answer = FRAMINGS[framing](seed, stream)
    async with proxied(cut_up(answer, seed)) as rig:
        asking(rig)
        head, _, got = (await rig.ask_all(chat(extra=CLOSE))).partition(b"\r\n\r\n")
        chunked = b"Transfer-Encoding: chunked" in head
        assert chunked is (framing != "the end of the connection")
        assert (unchunked(got) if chunked else got) == rest
        assert b"Content-Length" not in head
        assert got.endswith(b"X-Trailer: t\r\n\r\n") is (b"X-Trailer" in answer)
        assert rig.ended[0].record.output_tokens == 17


@pytest.mark.parametrize("framing", FRAMINGS)
@on_a_loop
async def test_an_old_client_gets_the_body_bare(framing: str) -> None:
    async with proxied(cut_up(FRAMINGS[framing](1, STREAM), 1)) as rig:
        asking(rig)
        got = await rig.ask_all(chat().replace(b"HTTP/1.1", b"HTTP/1.0"))
        head, _, body = got.partition(b"\r\n\r\n")
        assert body == REST
        assert b"chunked" not in head
        assert b"Content-Length" not in head


@on_a_loop
async def test_connections_are_used_again_behind_an_edited_answer() -> None:
    async with proxied(raw(by_chunks([*TOKENS, USAGE, DONE]))) as rig, rig.client() as (reader, writer):
        asking(rig)
        for _ in range(4):
            writer.write(chat())
            assert (await read_message(reader)).body == b"".join((*TOKENS, DONE))
            await asyncio.sleep(2 * limits.POOL_PROBATION_S)
        assert rig.behind.connections == 1


@on_a_loop
async def test_pipelined_requests_are_each_asked() -> None:
    async with proxied(raw(by_chunks([*TOKENS, USAGE, DONE]))) as rig, rig.client() as (reader, writer):
        asking(rig)
        writer.write(chat() * 5)
        for _ in range(5):
            assert (await read_message(reader)).body == b"".join((*TOKENS, DONE))
        assert asked(rig) == {"hidden": 5}


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize("chunked", [False, True])
@on_a_loop
async def test_a_request_in_pieces_arrives_whole(step: int, chunked: bool) -> None:
    head, _, body = chat(extra=CLOSE, pad=200).partition(b"\r\n\r\n")
    if chunked:
        head = head.rpartition(b"\r\nContent-Length")[0] + b"\r\nTransfer-Encoding: chunked"
        body = chunk(body[:100]) + chunk(body[100:]) + b"0\r\nX-Trailer: t\r\n\r\n"
    request = head + b"\r\n\r\n" + body
    async with proxied(raw(by_chunks([*TOKENS, USAGE, DONE]))) as rig, rig.client() as (reader, writer):
        asking(rig)
        for start in range(0, len(request), step):
            writer.write(request[start : start + step])
            await asyncio.sleep(0)
        assert unchunked((await reader.read()).partition(b"\r\n\r\n")[2]) == b"".join((*TOKENS, DONE))
        (seen,) = rig.behind.requests
        assert orjson.loads(seen.body)["stream_options"] == {"include_usage": True}
        assert (seen.field("transfer-encoding") == "chunked") is chunked
        assert seen.field("content-length") == (None if chunked else str(len(seen.body)))


def wanting_usage() -> bytes:
    body = b'{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}'
    head = f"POST {CHAT} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize("mode", ["on", "auto", "off"])
@on_a_loop
async def test_a_client_that_asks_itself_gets_the_very_bytes(mode: Mode) -> None:
    answer = ragged(1, STREAM)
    async with proxied(cut_up(answer, 1)) as rig:
        asking(rig, mode)
        got = await rig.ask_all(wanting_usage())
        assert got.partition(b"\r\n\r\n")[2] == answer[len(SSE_HEAD) :]
        assert rig.behind.requests[0].body == wanting_usage().partition(b"\r\n\r\n")[2]
        assert asked(rig) == {}


@pytest.mark.parametrize("size", [LOOK_BYTES, LOOK_BYTES + 1, 5 * LOOK_BYTES])
@pytest.mark.parametrize("chunked", [False, True])
@on_a_loop
async def test_a_body_too_large_to_look_into_is_not_held(size: int, chunked: bool) -> None:
    head, _, body = chat(extra=CLOSE, pad=size).partition(b"\r\n\r\n")
    request = head + b"\r\n\r\n" + body
    if chunked:
        coded = head.rpartition(b"\r\nContent-Length")[0] + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
        request = coded + chunk(body[:1000]) + chunk(body[1000:]) + LAST
    async with proxied(raw(by_chunks([*TOKENS, USAGE, DONE]))) as rig:
        asking(rig)
        got = await rig.ask_all(request)
        assert got.partition(b"\r\n\r\n")[2] == b"".join(map(chunk, [*TOKENS, USAGE, DONE])) + LAST
        assert rig.behind.requests[0].body == body
        assert asked(rig) == {}


@on_a_loop
async def test_a_connection_that_the_server_closes_while_a_request_is_held_is_replaced() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(by_chunks([*TOKENS, USAGE, DONE]))
        await held.wait()
        writer.close()

    held = asyncio.Event()
    async with proxied(handle) as rig, rig.client() as (reader, writer):
        asking(rig)
        writer.write(chat())
        assert (await read_message(reader)).body == b"".join((*TOKENS, DONE))
        await until(lambda: len(rig.door.pool._idle) == 1)
        await asyncio.sleep(2 * limits.POOL_PROBATION_S)
        writer.write(chat()[:-10])
        await until(lambda: rig.door.pool._idle == [])
        held.set()
        await until(lambda: rig.behind.connections == 2)
        writer.write(chat()[-10:])
        assert (await read_message(reader)).body == b"".join((*TOKENS, DONE))
        assert rig.behind.connections == 2
        assert rig.outcomes() == {"ok": 2}


@on_a_loop
async def test_an_error_is_passed_on_as_it_is() -> None:
    error = sized(b'{"error":{"message":"unknown field stream_options"}}', status="400 Bad Request")
    async with proxied(raw(error)) as rig:
        asking(rig)
        got = await rig.ask(chat())
        assert got.head + got.body == error
        assert asked(rig) == {"refused": 1}
        assert rig.outcomes() == {"client_error": 1}


@on_a_loop
async def test_auto_learns_from_a_stream_as_it_came_and_then_asks() -> None:
    async def handle(request: Received, writer: asyncio.StreamWriter) -> None:
        wanted = b"include_usage" in request.body
        writer.write(by_chunks([*TOKENS, FINISH, *([USAGE] if wanted else []), DONE]))

    async with proxied(handle) as rig:
        asking(rig, "auto")
        for source in ("chunks", "usage", "usage"):
            assert (await rig.ask(chat(extra="Accept-Encoding: gzip\r\n"))).body == REST
            assert rig.ended[-1].record.token_count_source == source
        assert asked(rig) == {"hidden": 2}


@on_a_loop
async def test_a_compressed_answer_passes_and_auto_asks_no_more() -> None:
    packed = sized(b"\x1f\x8b", kind="text/event-stream").replace(b"Length", b"Encoding: gzip\r\nContent-Length", 1)
    answers = [by_chunks([*TOKENS, DONE]), packed, packed]

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answers.pop(0))

    async with proxied(handle) as rig:
        asking(rig, "auto")
        await rig.ask(chat())
        for _ in range(2):
            got = await rig.ask(chat())
            assert got.head + got.body == packed
        assert asked(rig) == {"packed": 1}
        assert [b"include_usage" in request.body for request in rig.behind.requests] == [False, True, False]


@on_a_loop
async def test_a_finish_is_not_held_for_long() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(TOKENS[0]) + chunk(FINISH))
        await go_on.wait()
        writer.write(chunk(USAGE) + chunk(DONE) + LAST)

    go_on = asyncio.Event()
    async with proxied(handle) as rig, rig.client() as (reader, writer):
        asking(rig, "on", "vllm")
        writer.write(chat())
        assert await reader.readexactly(len(SSE_HEAD)) == SSE_HEAD
        assert await reader.readexactly(len(chunk(TOKENS[0]))) == chunk(TOKENS[0])
        started_s = asyncio.get_running_loop().time()
        assert await reader.readexactly(len(chunk(FINISH))) == chunk(FINISH)
        assert asyncio.get_running_loop().time() - started_s > USAGE_HOLD_S / 2
        go_on.set()
        assert await reader.readexactly(len(chunk(DONE) + LAST)) == chunk(DONE) + LAST


@on_a_loop
async def test_a_moved_fingerprint_goes_back_over_the_wire() -> None:
    usage = USAGE.replace(b'"choices"', b'"system_fingerprint":"f","choices"')
    async with proxied(cut_up(by_chunks([*TOKENS, FINISH, usage, DONE]), 5)) as rig:
        asking(rig, "on", "vllm")
        got = (await rig.ask(chat())).body
        assert got == b"".join((*TOKENS, FINISH[:-3] + b',"system_fingerprint":"f"}\n\n', DONE))


@pytest.mark.parametrize("whole", [False, True])
@on_a_loop
async def test_what_was_held_reaches_the_client_of_a_server_that_breaks_off(whole: bool) -> None:
    cut = FINISH if whole else USAGE[:40]

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(TOKENS[0]) + chunk(cut))
        await writer.drain()
        writer.close()

    async with proxied(handle) as rig:
        asking(rig, "on", "vllm")
        got = (await rig.ask_all(chat())).partition(b"\r\n\r\n")[2]
        assert unchunked(got + LAST) == TOKENS[0] + cut
        assert not got.endswith(LAST)


@on_a_loop
async def test_a_client_that_leaves_leaves_nothing_behind() -> None:
    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(TOKENS[0]) + chunk(FINISH))
        await asyncio.sleep(1000)

    async with proxied(handle) as rig:
        asking(rig, "on", "vllm")
        async with rig.client() as (reader, writer):
            writer.write(chat(extra="X-Watch: 1\r\n"))
            await reader.readuntil(b'"0"')
        await until(lambda: sum(rig.outcomes().values()) == 1)
        await asyncio.sleep(2 * USAGE_HOLD_S)
        assert rig.door.connections == set()
        assert rig.tally.totals() != []
        assert not [point for point in rig.tally.totals() if point.metric is TELEMETRY_FAULTS and point.value]


class Faulty(UsageFilter):
    """Breaks on the third read."""

    def feed(self, data: bytes) -> bytes:
        if data == TOKENS[2]:
            raise RuntimeError("a fault")
        return super().feed(data)


@on_a_loop
async def test_a_fault_of_the_filter_costs_no_byte() -> None:
    faults: list[str] = []

    def look(act: Callable[..., object], *args: object) -> None:
        try:
            act(*args)
        except RuntimeError as error:
            faults.append(str(error))

    written: list[bytes] = []
    way = UsagePass(written.append, Faulty(UsageChunk(moves_fingerprint=True)), chunks=True, look=look)
    for payload in (TOKENS[0], FINISH, TOKENS[2], USAGE, DONE):
        way.pass_on(payload)
    way.end(((b"X", b"1"),))
    assert written == [*map(chunk, (TOKENS[0], FINISH + TOKENS[2], USAGE, DONE)), b"0\r\nX: 1\r\n\r\n"]
    assert faults == ["a fault"]


@pytest.mark.parametrize(
    ("framing", "minor", "shown", "headers"),
    [
        ("length", 1, "chunked", [b"X", b"Transfer-Encoding"]),
        ("length", 0, "close", [b"X"]),
        ("chunked", 1, "chunked", [b"X", b"content-length"]),
        ("close", 0, "close", [b"X", b"content-length"]),
    ],
)
def test_a_length_is_not_promised(framing: str, minor: int, shown: str, headers: list[bytes]) -> None:
    fields = ((b"X", b"1"), (b"content-length", b"5"))
    head = unsized(ResponseHead(200, b"OK", fields, keep_alive=True, framing=framing), minor=minor)  # type: ignore[arg-type]
    assert (head.framing, [name for name, _ in head.headers]) == (shown, headers)
