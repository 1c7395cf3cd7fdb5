"""The listening side: what is refused, what waits, what is closed, and how it all ends."""

import asyncio
import contextlib
import socket
import struct
import time

import pytest

from sidecar import limits
from sidecar.relaying.proxy import ClientConnection, Manners
from tests.sidecar.rig import (
    CHAT,
    Received,
    Rig,
    chat,
    completion,
    listening,
    on_a_loop,
    proxied,
    raw,
    sized,
    spec,
    until,
)

GET = b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
OK = sized(b"{}")

SMUGGLED = {
    "length and chunks": (400, "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"),
    "two lengths": (400, "Content-Length: 4\r\nContent-Length: 40\r\n"),
    "an odd coding": (400, "Transfer-Encoding: xchunked\r\n"),
    "a space before the colon": (400, "Transfer-Encoding : chunked\r\n"),
    "a head too long": (431, f"X-A: {'a' * 70_000}\r\n"),
    "a body too long": (413, "Content-Length: 99999999999\r\n"),
}


@pytest.mark.parametrize("case", SMUGGLED)
@on_a_loop
async def test_a_request_that_two_parsers_could_read_differently_never_leaves(case: str) -> None:
    status, fields = SMUGGLED[case]
    async with proxied(raw(OK)) as rig:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"
        got = await rig.ask_all(head.encode() + b"0\r\n\r\nGET /admin HTTP/1.1\r\nHost: h\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 %d " % status)
        assert got.count(b"HTTP/1.1 4") == 1
        assert b"Connection: close" in got
        assert rig.behind.requests == []


@on_a_loop
async def test_a_request_before_a_bad_one_is_answered_first() -> None:
    async with proxied(raw(OK)) as rig:
        got = await rig.ask_all(GET + b"NONSENSE\r\n\r\n")
        assert got.startswith(OK)
        assert got[len(OK) :].startswith(b"HTTP/1.1 400 ")


@on_a_loop
async def test_a_body_that_goes_wrong_on_its_way_ends_both_sides() -> None:
    async with proxied(raw(OK)) as rig:
        got = await rig.ask_all(
            f"POST {CHAT} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n".encode()
        )
        assert got.startswith(b"HTTP/1.1 400 ")
        assert rig.outcomes() == {"client_error": 1}
        assert rig.behind.requests == []
        await until(lambda: rig.behind.closed == rig.behind.connections)


@on_a_loop
async def test_a_chunked_body_over_the_limit_is_413() -> None:
    async with proxied(raw(OK), manners=Manners(max_body_bytes=1000)) as rig:
        head = b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        got = await rig.ask_all(head + b"3e8\r\n" + b"x" * 1000 + b"\r\n1\r\nx\r\n0\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 413 ")


@on_a_loop
async def test_host_is_the_clients_or_the_servers() -> None:
    async with proxied(raw(OK)) as rig:
        await rig.ask(GET)
        assert rig.behind.requests[0].field("host") == "h"
    async with proxied(raw(OK), manners=Manners(host=b"engine:8000")) as rig:
        await rig.ask(GET)
        assert rig.behind.requests[0].field("host") == "engine:8000"


@on_a_loop
async def test_a_client_that_floods_is_read_no_faster_than_it_is_served() -> None:
    gate = asyncio.Event()

    async def handle(_: Received, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(OK)

    async with proxied(handle) as rig, rig.client() as (reader, writer):
        flood = GET * 200_000
        sending = asyncio.ensure_future(_send(writer, flood))
        await asyncio.sleep(0.3)
        (connection,) = rig.door.connections
        assert not sending.done()
        assert len(connection._pending) < 40_000  # one read's worth, not all of it
        sending.cancel()
        gate.set()
        assert await reader.readexactly(len(OK)) == OK
        writer.transport.abort()


async def _unread(rig: Rig, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ClientConnection:
    """The proxy's side of a client that has stopped to read, with little room on the way to it."""
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    await until(lambda: bool(rig.door.connections))
    (connection,) = rig.door.connections
    assert connection._transport is not None
    for side in (writer, connection._transport):
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            side.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, buffer, 4096)
    return connection


@on_a_loop
async def test_a_client_that_takes_no_answers_gets_no_more_of_them_made() -> None:
    """The answers are our own here, and no server's connection holds them back."""
    async with proxied(None) as rig, rig.client() as (reader, writer):
        connection = await _unread(rig, reader, writer)
        sending = asyncio.ensure_future(_send(writer, GET * 200_000))
        await until(lambda: connection._full and connection._paused)
        await asyncio.sleep(0.3)
        assert connection._transport is not None
        assert connection._transport.get_write_buffer_size() < 100_000
        assert not sending.done()
        sending.cancel()
        writer.transport.abort()


@on_a_loop
async def test_a_client_that_takes_its_answers_late_gets_them_all() -> None:
    asked = 1000
    async with proxied(None) as rig, rig.client() as (reader, writer):
        connection = await _unread(rig, reader, writer)
        writer.write(GET * asked)
        await until(lambda: connection._full)
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(asked):
            assert (await reader.readuntil(b"}}")).startswith(b"HTTP/1.1 502 ")


@on_a_loop
async def test_an_early_answer_is_not_cut_while_its_client_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is still sending: its connection lingers, and ends before all was sent only if nothing is taken."""
    monkeypatch.setattr(limits, "LINGER_S", 0.05)
    body = b"x" * 200_000

    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 No\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await reader.read()

    async with listening(early) as port, proxied(None, port=port) as rig, rig.client() as (reader, writer):
        connection = await _unread(rig, reader, writer)
        writer.write(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
        await until(lambda: connection._full)
        for _ in range(6):
            await asyncio.sleep(0.1)
            reader._transport.resume_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(0)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        assert (await reader.read()).partition(b"\r\n\r\n")[2] == body


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


@on_a_loop
async def test_a_server_that_reads_slowly_slows_the_client_and_fills_no_memory() -> None:
    async def deaf(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with listening(deaf) as port, proxied(None, port=port) as rig, rig.client() as (_, writer):
        writer.write(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n")
        sending = asyncio.ensure_future(_send(writer, b"x" * 100_000_000))
        await asyncio.sleep(0.3)
        (connection,) = rig.door.connections
        assert connection._paused
        assert not sending.done()
        sending.cancel()
        writer.transport.abort()


@on_a_loop
async def test_a_client_that_leaves_while_it_is_not_read_is_noticed() -> None:
    async def deaf(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with listening(deaf) as port, proxied(None, port=port) as rig:
        async with rig.client() as (_, writer):
            writer.write(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 20_000_000)
            await until(lambda: any(connection._paused for connection in rig.door.connections))
            rig.door.sweep()
            assert rig.door.connections
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        await asyncio.sleep(0.05)
        rig.door.sweep()
        await until(lambda: not rig.door.connections)
        assert rig.door.pool.open_count == 0


@on_a_loop
async def test_a_client_that_stops_sending_its_body_is_given_up() -> None:
    async with proxied(raw(OK), manners=Manners(client_stall_s=0.05)) as rig, rig.client() as (reader, writer):
        writer.write(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
        await until(lambda: any(connection._relay for connection in rig.door.connections))
        await asyncio.sleep(0.1)
        rig.door.sweep()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        await until(lambda: rig.door.pool.open_count == 0)


@on_a_loop
async def test_connections_are_limited() -> None:
    async with proxied(raw(OK), manners=Manners(max_connections=2)) as rig, rig.client() as (a, to_a), rig.client():
        await until(lambda: len(rig.door.connections) == 2)
        async with rig.client() as (reader, _):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        to_a.write(GET)
        assert await a.readexactly(len(OK)) == OK


SPENT = {
    "idle from the start": (b"", Manners(client_idle_s=0.05)),
    "idle after an answer": (GET, Manners(client_idle_s=0.05)),
    "a head that never ends": (b"GET /x HTTP/1.1\r\nHost", Manners(client_head_s=0.05)),
}


@pytest.mark.parametrize("case", SPENT)
@on_a_loop
async def test_a_connection_of_which_nothing_comes_is_closed(case: str) -> None:
    data, manners = SPENT[case]
    async with proxied(raw(OK), manners=manners) as rig, rig.client() as (reader, writer):
        writer.write(data)
        if data == GET:
            await reader.readexactly(len(OK))
        await asyncio.sleep(0.1)
        rig.door.sweep()
        assert await reader.read() == b""


@on_a_loop
async def test_a_queued_request_is_never_cut_by_an_idle_limit() -> None:
    async def slow(_: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(completion("a"))

    manners = Manners(client_idle_s=0.01, client_head_s=0.01, client_stall_s=0.01)
    async with proxied(slow, manners=manners) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        for _ in range(10):
            await asyncio.sleep(0.02)
            rig.door.sweep()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")


@on_a_loop
async def test_a_client_that_takes_nothing_is_given_up() -> None:
    async def gush(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()

    async with proxied(gush, manners=Manners(client_stall_s=0.05)) as rig:
        _, writer = await asyncio.open_connection("127.0.0.1", rig.port, limit=1024)
        writer.write(GET)
        await until(lambda: any(connection._full for connection in rig.door.connections))
        await asyncio.sleep(0.1)
        rig.door.sweep()
        await until(lambda: not rig.door.connections and rig.door.pool.open_count == 0)
        writer.transport.abort()


@on_a_loop
async def test_a_drain_lets_requests_end_and_closes_what_idles() -> None:
    async def slow(_: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        writer.write(completion("a"))

    async with proxied(slow) as rig, rig.client() as (idle, _), rig.client() as (reader, writer):
        writer.write(chat())
        await until(lambda: len(rig.behind.requests) == 1 and len(rig.door.connections) == 2)
        assert await rig.door.drain(10) == 0
        got = await reader.read()
        assert got.startswith(b"HTTP/1.1 200")
        assert b"Connection: close" in got
        assert got.endswith(b"0\r\n\r\n")
        assert await idle.read() == b""
        assert rig.outcomes() == {"ok": 1}


@on_a_loop
async def test_a_drain_breaks_off_what_takes_too_long_and_counts_it() -> None:
    async def hang(_: Received, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with proxied(hang) as rig, rig.client() as (reader, writer):
        writer.write(chat())
        await until(lambda: len(rig.behind.requests) == 1)
        began = time.monotonic()
        assert await rig.door.drain(0.1) == 1
        assert time.monotonic() - began < 5
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert rig.outcomes() == {"error": 1}
        assert rig.ended[0].record.error_type == "proxy_shutdown"


@on_a_loop
async def test_a_drain_can_be_hurried() -> None:
    async def hang(_: Received, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with proxied(hang) as rig, rig.client() as (_, writer):
        writer.write(chat())
        await until(lambda: len(rig.behind.requests) == 1)
        draining = asyncio.ensure_future(rig.door.drain(1000))
        await asyncio.sleep(0.05)
        rig.door.hurry()
        assert await draining == 1


@on_a_loop
async def test_requests_of_one_connection_are_each_counted() -> None:
    async with proxied(raw(completion("a", "b"))) as rig, rig.client() as (reader, writer):
        for _ in range(20):
            writer.write(chat())
            await reader.readuntil(b"0\r\n\r\n")
        assert rig.outcomes() == {"ok": 20}
        assert len({ended.context.span_id for ended in rig.ended}) == 20


@pytest.mark.parametrize("framing", [b"Content-Length: 2000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n7d0\r\n"])
@on_a_loop
async def test_case_b09_a_body_over_the_limit_is_refused_and_counted_however_it_is_framed(framing: bytes) -> None:
    """A limit that is set too low must not turn clients away unseen."""
    judged = spec("{name: answered, signal: availability, target: 99%}")
    async with proxied(raw(sized(b"{}")), manners=Manners(max_body_bytes=1000), objectives=judged) as rig:
        answer = await rig.ask(f"POST {CHAT} HTTP/1.1\r\nHost: h\r\n".encode() + framing + b"x" * 2000)
        assert answer.line == "HTTP/1.1 413 Content Too Large"
        assert rig.outcomes() == {"client_error": 1}
        assert rig.events() == {}


@on_a_loop
async def test_without_spans_of_ours_the_server_joins_the_clients_own() -> None:
    parent = f"00-{'ab' * 16}-{'cd' * 8}-01"
    async with proxied(raw(sized(b"{}"))) as rig:
        rig.eye.exports_spans = False
        await rig.ask(chat(extra=f"traceparent: {parent}\r\n"))
        await rig.ask(chat())
        assert [request.field("traceparent") for request in rig.behind.requests] == [parent, None]
