"""The client against a real server: connections kept, lost, refused; times taken where they happen."""

import asyncio
import socket
import time

import pytest

from capacity.client import Client, Exchange, Target, request_bytes, target
from capacity.errors import TargetError
from tests.capacity.sse_server import DONE, END, HEAD, Step, answer, event, serve

URLS = {
    "http://127.0.0.1:8001": Target("127.0.0.1", 8001),
    "http://127.0.0.1:8001/v1/": Target("127.0.0.1", 8001),
    "https://models.example/proxy/v1": Target("models.example", 443, "/proxy", is_tls=True),
    "http://[::1]:9/": Target("::1", 9),
}


@pytest.mark.parametrize(("url", "right"), URLS.items(), ids=URLS.keys())
def test_a_url_names_its_target(url: str, right: Target) -> None:
    assert target(url) == right


@pytest.mark.parametrize(
    "url",
    [
        *("", "127.0.0.1:8001", "ftp://h", "http://", "http://h:99999", "http://u:p@h", "http://h/?q", "http://h:0"),
        *("http://h/a b", "http://h/\u00e9", "http://a..b", f"http://{'a' * 70}.de"),
    ],
)
def test_a_url_that_names_none_is_refused(url: str) -> None:
    with pytest.raises(TargetError, match="write http://HOST:PORT"):
        target(url)


@pytest.mark.parametrize("url", ["http://me:secret@h", "me:secret@h", "http://me:se/secret@h", "http://me:se@secret@h"])
def test_a_password_in_a_url_is_not_shown(url: str) -> None:
    with pytest.raises(TargetError, match="write http://HOST:PORT") as refusal:
        target(url)
    assert "secret" not in str(refusal.value)


def test_a_request_names_host_length_and_class() -> None:
    to = Target("::1", 9, "/proxy")
    head = request_bytes(to, "/v1/x", body=b"{}", request_class="synthetic").decode().split("\r\n")
    assert head[:2] == ["POST /proxy/v1/x HTTP/1.1", "Host: [::1]:9"]
    assert {"Content-Length: 2", "x-firsttoken-class: synthetic"} < set(head)
    assert "x-firsttoken-class" not in request_bytes(to, "/v1/x", body=b"{}").decode()


async def one(client: Client, to: Target) -> Exchange:
    exchange = Exchange()
    await client.run(exchange, request_bytes(to, "/v1/chat/completions", body=b"{}"))
    return exchange


@pytest.mark.anyio
async def test_a_connection_is_used_again() -> None:
    async with serve(answer) as server:
        to = target(server.url)
        client = Client(to, time.perf_counter)
        for _ in range(3):
            assert (await one(client, to)).reply.is_complete
        assert server.connections == 1
        client.close()


@pytest.mark.anyio
async def test_times_stand_in_their_order() -> None:
    def script(_body: dict[str, object], _index: int) -> list[Step]:
        return [0.1, HEAD + event(content="a"), 0.1, event(content="b"), 0.1, DONE + END]

    async with serve(script) as server:
        to = target(server.url)
        client = Client(to, time.perf_counter)
        before = time.perf_counter()
        exchange = await one(client, to)
        after = time.perf_counter()
        client.close()
    reply = exchange.reply
    assert exchange.written_s is not None
    assert reply.first_token_s is not None
    assert reply.last_token_s is not None
    assert before <= exchange.written_s
    assert exchange.written_s + 0.1 <= reply.first_token_s
    assert reply.first_token_s + 0.09 <= reply.last_token_s
    assert reply.last_token_s + 0.09 <= after


@pytest.mark.anyio
async def test_a_kept_connection_that_the_server_closed_is_replaced() -> None:
    async with serve(answer, keep_alive=False) as server:
        to = target(server.url)
        client = Client(to, time.perf_counter)
        assert (await one(client, to)).reply.is_complete
        assert (await one(client, to)).reply.is_complete  # at once: the close may be on its way
        await asyncio.sleep(0.1)
        assert (await one(client, to)).reply.is_complete
        assert len(server.requests) == 3
        client.close()


@pytest.mark.anyio
async def test_a_reply_that_was_given_up_takes_its_connection_with_it() -> None:
    def script(_body: dict[str, object], _index: int) -> list[Step]:
        return [HEAD, 60.0]

    async with serve(script) as server:
        to = target(server.url)
        client = Client(to, time.perf_counter)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await one(client, to)
        client.close()
        assert not client._idle


@pytest.mark.anyio
async def test_bytes_that_nobody_asked_for_close_the_connection() -> None:
    def script(body: dict[str, object], index: int) -> list[Step]:
        return [*answer(body, index), 0.05, b"HTTP/1.1 408 Idle\r\n\r\n"]

    async with serve(script) as server:
        to = target(server.url)
        client = Client(to, time.perf_counter)
        await one(client, to)
        async with asyncio.timeout(30):
            while client._kept() is not None:
                await one(client, to)
                await asyncio.sleep(0.1)


@pytest.mark.anyio
async def test_nobody_listening_is_an_os_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        to = Target("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(OSError, match="onnect"):
            await one(Client(to, time.perf_counter), to)


@pytest.mark.anyio
async def test_a_request_larger_than_the_socket_takes_at_once_is_written_when_its_last_byte_is() -> None:
    started: list[float] = []

    async def slow_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        started.append(time.perf_counter())
        while not (await reader.read(1 << 20)).endswith(b"END"):
            pass
        writer.write(HEAD + event(content="a") + END)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(slow_reader, "127.0.0.1", 0)
    async with server:
        to = Target("127.0.0.1", server.sockets[0].getsockname()[1])
        client = Client(to, time.perf_counter)
        exchange = Exchange()
        await client.run(exchange, request_bytes(to, "/", body=b"x" * 32 * 1024 * 1024 + b"END"))
        client.close()
    assert exchange.written_s is not None
    assert exchange.written_s > started[0]
    assert exchange.reply.is_complete
