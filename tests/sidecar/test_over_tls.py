"""The proxy's manners over TLS: each as over TCP, where the event loop's TLS would have others of its own."""

import asyncio
import contextlib
import logging
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pytest

from sidecar import limits
from sidecar.address import HostPort
from sidecar.relaying.proxy import Manners
from sidecar.transport.certificates import Identity
from sidecar.transport.listener import listen, listen_on
from sidecar.transport.tls import Presented
from tests.sidecar.certificates import AUTHORITY, client_context, connected, presented, read_to_the_end
from tests.sidecar.rig import (
    CHAT,
    SSE_HEAD,
    Handler,
    Received,
    Rig,
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
    until,
)

T = TypeVar("T")
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
GET = b"GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\n"


@dataclass
class Over:
    """A proxy that can also be reached over TLS, at `port`."""

    rig: Rig
    port: int
    identity: Identity


@contextlib.asynccontextmanager
async def over_tls(
    handler: Handler | None, *, files: Presented | None = None, manners: Manners | None = None, port: int = 1
) -> AsyncIterator[Over]:
    async with proxied(handler, manners=manners, port=port) as rig:
        identity = Identity(files or presented())
        listener = await listen(rig.door, HostPort("127.0.0.1", 0), flag="--listen", tls=identity.for_clients())
        assert listener.url == f"https://{listener.address}"
        try:
            yield Over(rig, listener.address.port, identity)
        finally:
            listener.close()


async def aside(act: Callable[[], T]) -> T:
    """On a thread of its own: what blocks there does not block the proxy."""
    return await asyncio.to_thread(act)


@contextlib.asynccontextmanager
async def client(port: int, context: ssl.SSLContext | None = None) -> AsyncIterator[ssl.SSLSocket]:
    """A connection that stands while the test goes on; what is done with it is done aside."""
    with contextlib.ExitStack() as stack:
        yield await aside(lambda: stack.enter_context(connected(port, context)))


@pytest.mark.parametrize("version", VERSIONS)
@on_a_loop
async def test_a_stream_is_the_servers_own_and_is_measured(version: ssl.TLSVersion) -> None:
    answer = completion("a", "b", "c")
    async with over_tls(raw(answer)) as over:

        def ask() -> tuple[bytes, bool]:
            context = client_context(version=version)
            context.set_alpn_protocols(["h2", "http/1.1"])
            with connected(over.port, context) as made:
                assert made.selected_alpn_protocol() == "http/1.1"
                made.sendall(chat(extra="Connection: close\r\n"))
                return read_to_the_end(made)

        got, said_goodbye = await aside(ask)
        assert got.endswith(answer.partition(b"\r\n\r\n")[2])
        assert said_goodbye
        assert over.rig.outcomes() == {"ok": 1}
        assert over.rig.ended[0].record.token_events == 3
        assert over.rig.ended[0].record.ttft_s is not None


@on_a_loop
async def test_connections_are_kept_and_requests_pipelined() -> None:
    async with over_tls(raw(completion("a"))) as over:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", over.port, ssl=client_context(), server_hostname="localhost"
        )
        for _ in range(3):
            writer.write(chat())
        for _ in range(3):
            assert (await read_message(reader)).body.endswith(b"data: [DONE]\n\n")
        assert over.rig.outcomes() == {"ok": 3}
        writer.close()


@pytest.mark.parametrize("version", VERSIONS)
@on_a_loop
async def test_a_connection_ends_without_waiting_for_the_clients_goodbye(version: ssl.TLSVersion) -> None:
    """A client's pool reads nothing of an idle connection: it would say goodbye when it needs it next."""
    close = "Connection: close\r\n"
    async with over_tls(raw(completion("a"))) as over, client(over.port, client_context(version=version)) as made:
        await aside(lambda: made.sendall(chat(extra=close)))
        await until(lambda: len(over.rig.ended) == 1 and not over.rig.door.connections)
        got, said_goodbye = await aside(lambda: read_to_the_end(made))
    assert got.endswith(b"0\r\n\r\n")
    assert said_goodbye


@on_a_loop
async def test_a_drain_does_not_wait_for_idle_clients() -> None:
    async with over_tls(raw(completion("a"))) as over, client(over.port) as fresh, client(over.port) as used:
        await aside(lambda: used.sendall(chat()))
        await until(lambda: len(over.rig.ended) == 1 and len(over.rig.door.connections) == 2)
        assert await asyncio.wait_for(over.rig.door.drain(1000), 10) == 0
        assert (await aside(lambda: read_to_the_end(used)))[1]
        assert await aside(lambda: read_to_the_end(fresh)) == (b"", True)


@on_a_loop
async def test_a_handshake_that_ends_during_the_drain_opens_no_door() -> None:
    async with over_tls(raw(completion("a"))) as over:
        over.rig.door.draining = True

        def late() -> bytes:
            with contextlib.suppress(ssl.SSLError, ConnectionError), connected(over.port) as made:
                return read_to_the_end(made)[0]
            return b""

        assert await aside(late) == b""
        assert not over.rig.door.connections
        over.rig.door.draining = False


@pytest.mark.parametrize("version", VERSIONS)
@on_a_loop
async def test_an_answer_that_was_cut_has_no_goodbye(version: ssl.TLSVersion) -> None:
    """Where the end of the connection ends the body, it is all that tells a whole one from a part."""

    async def breaks_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_message(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: half\n\n")
        await writer.drain()
        await asyncio.sleep(0.1)
        reset(writer)

    async with listening(breaks_off) as port, over_tls(None, port=port) as over:

        def ask() -> tuple[bytes, bool]:
            with connected(over.port, client_context(version=version)) as made:
                made.sendall(chat())
                return read_to_the_end(made)

        got, said_goodbye = await aside(ask)
        assert got.endswith(b"data: half\n\n")
        assert not said_goodbye
        await until(lambda: not over.rig.door.connections)


@pytest.mark.parametrize("version", VERSIONS)
@on_a_loop
async def test_an_early_answer_reaches_a_client_that_is_still_sending(version: ssl.TLSVersion) -> None:
    size = 40_000_000
    head = f"POST {CHAT} HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n".encode()
    async with over_tls(raw(b""), manners=Manners(max_body_bytes=1000)) as over:

        def ask() -> bytes:
            with connected(over.port, client_context(version=version)) as made:
                made.sendall(head)
                with contextlib.suppress(ssl.SSLError, ConnectionError):
                    for _ in range(20):
                        made.sendall(b"x" * 100_000)
                return read_to_the_end(made)[0]

        got = await aside(ask)
        assert got.startswith(b"HTTP/1.1 413 ")
        await until(lambda: not over.rig.door.connections)


@on_a_loop
async def test_a_client_that_leaves_is_left_by_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stream(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD + chunk(delta("a")))
        await asyncio.sleep(1000)

    async with over_tls(stream) as over:
        request = chat(extra="X-Watch: 1\r\n")
        async with client(over.port) as made:
            await aside(lambda: made.sendall(request))
            await aside(lambda: made.recv(1000))
        await asyncio.wait_for(over.rig.behind.close_seen.wait(), 5)
        await until(lambda: over.rig.outcomes() == {"cancelled": 1})


@contextlib.asynccontextmanager
async def narrow(over: Over) -> AsyncIterator[int]:
    """A port of the same proxy behind which the system takes little: the rest waits in the proxy."""
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 10)
        bound.bind(("127.0.0.1", 0))
        listener = await listen_on(over.rig.door, [bound], tls=over.identity.for_clients())
        with contextlib.closing(listener):
            yield listener.address.port


@contextlib.contextmanager
def narrow_client(port: int) -> Iterator[ssl.SSLSocket]:
    """A client for which the system takes little."""
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 10)
        plain.settimeout(20)
        plain.connect(("127.0.0.1", port))
        with client_context().wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as made:
            yield made


GET_AND_CLOSE = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("size", [50_000, 180_000])
@on_a_loop
async def test_a_slow_client_gets_the_whole_of_an_answer_behind_which_the_connection_ends(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of it waits long after we were done with it: in the transport's buffer, or in that of TLS as well."""
    monkeypatch.setattr(limits, "LINGER_S", 0.05)
    body = (bytes(range(256)) * 1000)[:size]
    async with over_tls(raw(sized(body, kind="application/octet-stream"))) as over, narrow(over) as port:

        def ask() -> tuple[bytes, bool]:
            with narrow_client(port) as made:
                made.sendall(GET_AND_CLOSE)
                threading.Event().wait(1.0)
                return read_to_the_end(made)

        got, said_goodbye = await aside(ask)
        assert got.partition(b"\r\n\r\n")[2] == body
        assert said_goodbye
        await until(lambda: not over.rig.door.connections)


@on_a_loop
async def test_a_client_that_never_takes_the_end_of_its_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINGER_S", 0.05)
    manners = Manners(client_idle_s=0.2)
    async with over_tls(raw(sized(b"x" * 50_000)), manners=manners) as over, narrow(over) as port:
        with contextlib.ExitStack() as stack:
            made = await aside(lambda: stack.enter_context(narrow_client(port)))
            await aside(lambda: made.sendall(GET_AND_CLOSE))
            await until(lambda: len(over.rig.behind.requests) == 1)
            await asyncio.sleep(0.3)
            assert over.rig.door.connections
            over.rig.door.sweep()
            await until(lambda: not over.rig.door.connections)


@on_a_loop
async def test_a_cut_does_not_wait_for_a_client_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINGER_S", 0.05)

    async def breaks_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 50_000)
        await writer.drain()
        await asyncio.sleep(0.1)
        reset(writer)

    async with listening(breaks_off) as behind, over_tls(None, port=behind) as over, narrow(over) as port:
        with contextlib.ExitStack() as stack:
            made = await aside(lambda: stack.enter_context(narrow_client(port)))
            await aside(lambda: made.sendall(GET))
            await until(lambda: bool(over.rig.door.connections))
            await until(lambda: not over.rig.door.connections)


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection so that its peer can tell that it was cut."""
    no_lingering = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_lingering)
    writer.transport.abort()


@on_a_loop
async def test_a_client_that_takes_nothing_holds_the_server_back_and_is_given_up() -> None:
    sent = 0

    async def gush(_: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()
            sent += 65536

    async with over_tls(gush, manners=Manners(client_stall_s=0.2)) as over, client(over.port) as made:
        await aside(lambda: made.sendall(GET))
        await until(lambda: any(connection._full for connection in over.rig.door.connections))
        await asyncio.sleep(0.3)
        before = sent
        await asyncio.sleep(0.1)
        assert sent == before
        over.rig.door.sweep()
        await until(lambda: not over.rig.door.connections and over.rig.door.pool.open_count == 0)


@on_a_loop
async def test_a_server_that_takes_nothing_holds_the_client_back() -> None:
    async def deaf(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        reader._transport.pause_reading()
        await asyncio.sleep(1000)

    head = f"POST {CHAT} HTTP/1.1\r\nHost: h\r\nContent-Length: 900000000\r\n\r\n".encode()
    async with listening(deaf) as port, over_tls(None, port=port) as over:
        async with client(over.port) as made:
            made.settimeout(0.5)

            def fill() -> None:
                made.sendall(head)
                with contextlib.suppress(TimeoutError):
                    while True:
                        made.sendall(b"x" * 100_000)

            await aside(fill)
            (connection,) = over.rig.door.connections
            assert connection._paused
        await until(lambda: connection._left_unseen() or not over.rig.door.connections)
        over.rig.door.sweep()
        await until(lambda: not over.rig.door.connections)


@on_a_loop
async def test_a_handshake_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_S", 0.2)
    async with over_tls(raw(b"")) as over:
        reader, writer = await asyncio.open_connection("127.0.0.1", over.port)
        writer.write(b"\x16\x03\x01")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        assert over.rig.outcomes() == {}


@on_a_loop
async def test_handshakes_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TLS_HANDSHAKES", 2)
    monkeypatch.setattr(limits, "TLS_HANDSHAKE_S", 1000)
    async with over_tls(raw(completion("a"))) as over:
        begun = [await asyncio.open_connection("127.0.0.1", over.port) for _ in range(2)]
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection("127.0.0.1", over.port)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        for _, one in begun:
            one.close()
        await asyncio.sleep(0.1)
        async with contextlib.AsyncExitStack() as stack:  # whose handshake is over counts no more
            made = [await stack.enter_async_context(client(over.port)) for _ in range(4)]
            await aside(lambda: made[-1].sendall(chat(extra="Connection: close\r\n")))
            assert (await aside(lambda: read_to_the_end(made[-1])))[0].startswith(b"HTTP/1.1 200 ")


@on_a_loop
async def test_plain_http_at_the_tls_port_ends_and_counts_as_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with over_tls(raw(completion("a"))) as over:
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", over.port)
            writer.write(chat())
            with contextlib.suppress(ConnectionError):
                assert b"200" not in await reader.read()
            writer.close()
        assert over.rig.outcomes() == {}
        assert over.rig.behind.requests == []
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in told] == ["a client's TLS handshake failed: http request (told once)"]


@on_a_loop
async def test_tls_at_the_plain_port_ends_and_counts_as_nothing() -> None:
    async with proxied(raw(completion("a"))) as rig:

        def ask() -> None:
            with pytest.raises((ssl.SSLError, ConnectionError)), connected(rig.port):
                pass

        await aside(ask)
        await until(lambda: not rig.door.connections)
        assert rig.outcomes() == {}
        assert rig.behind.requests == []


@pytest.mark.parametrize("version", VERSIONS)
@on_a_loop
async def test_only_clients_of_the_wanted_authority_come_in(version: ssl.TLSVersion) -> None:
    async with over_tls(raw(completion("a")), files=presented(client_ca=AUTHORITY)) as over:

        def ask(shown: str | None) -> bytes:
            try:
                with connected(over.port, client_context(shown, version=version)) as made:
                    made.sendall(chat(extra="Connection: close\r\n"))
                    return read_to_the_end(made)[0]
            except (ssl.SSLError, ConnectionError):
                return b""

        assert (await aside(lambda: ask("client"))).startswith(b"HTTP/1.1 200 ")
        assert await aside(lambda: ask(None)) == b""
        assert await aside(lambda: ask("intruder")) == b""
        assert over.rig.outcomes() == {"ok": 1}


@on_a_loop
async def test_an_upgraded_connection_passes_both_ways_and_ends_with_a_goodbye() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
        while (line := await reader.readline()) != b"end\n":
            writer.write(line)

    async with listening(echo) as port, over_tls(None, port=port) as over:

        def talk() -> tuple[bytes, bool]:
            with connected(over.port) as made:
                made.sendall(b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
                head = made.recv(1000)
                made.sendall(b"one\ntwo\n")
                made.sendall(b"end\n")
                more, said_goodbye = read_to_the_end(made)
                return head + more, said_goodbye

        got, said_goodbye = await aside(talk)
        assert got.startswith(b"HTTP/1.1 101 ")
        assert got.endswith(b"\r\n\r\none\ntwo\n")
        assert said_goodbye
        await until(lambda: not over.rig.door.connections)
