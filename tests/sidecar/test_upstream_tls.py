"""Servers behind TLS and unix sockets: whom we believe, what we hear of them, and how their ends are met."""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.address import UnixPath
from sidecar.counting.tally import Tally
from sidecar.judging.deadline_timer import DeadlineTimer
from sidecar.judging.eye import Eye
from sidecar.judging.labels import ModelLabels
from sidecar.polling.poller import PollError, get
from sidecar.relaying.proxy import Door, Manners
from sidecar.said.record import EndedRequest
from sidecar.transport.certificates import ServerTls
from sidecar.transport.tls import Trust
from sidecar.transport.upstream import Pool, Target
from slo.signals import LATENCY_BUCKETS_S
from tests.sidecar.certificates import AUTHORITY, STRANGER, certificate, key, server_context
from tests.sidecar.rig import Received, chat, completion, listening, on_a_loop, raw, read_message, sized, until

Wild = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OURS = Trust(ca=AUTHORITY)
WHOLE = sized(b'{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}')


@contextlib.asynccontextmanager
async def behind_tls(wild: Wild, *, name: str = "server", asks_clients: bool = False) -> AsyncIterator[Target]:
    """A server over TLS that handles its connections itself."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            await wild(reader, writer)
        writer.close()

    context = server_context(name, asks_clients=asks_clients)
    server = await asyncio.start_server(connection, "127.0.0.1", 0, ssl=context)
    try:
        yield Target("https", "127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


@contextlib.asynccontextmanager
async def behind_unix(wild: Wild, path: Path) -> AsyncIterator[Target]:
    """The same at a unix socket."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await wild(reader, writer)
        writer.close()

    server = await asyncio.start_unix_server(connection, path)
    try:
        yield Target("http", "localhost", 80, unix=UnixPath(str(path)))
    finally:
        server.close()


class Before:
    """A proxy before a target, and what its eye saw."""

    def __init__(self, target: Target, trust: Trust | None = None, *, connect_s: float = 5.0) -> None:
        self._ended = list[EndedRequest]()
        loop = asyncio.get_running_loop()
        self.eye = Eye(
            DeadlineTimer(loop),
            tally=Tally(lambda _: LATENCY_BUCKETS_S),
            labels=ModelLabels(100),
            ended=self._ended.append,
            class_header=b"x-firsttoken-class",
        )
        self.door = Door(Pool(target, connect_s=connect_s, tls=ServerTls(trust)), self.eye, Manners())
        self.port = 0

    @property
    def ended(self) -> list[EndedRequest]:
        """Every request that was over until now."""
        self.eye.catch_up()
        return self._ended

    async def __aenter__(self) -> "Before":
        self._server = await asyncio.get_running_loop().create_server(self.door, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self.door.drain(0)
        await asyncio.sleep(0)

    async def ask(self, request: bytes) -> Received:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            return await read_message(reader)
        finally:
            writer.close()


def answering(answer: bytes) -> Wild:
    async def wild(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await raw(answer)(await read_message(reader), writer)

    return wild


BELIEVED = {
    "an authority of a file": ("server", OURS),
    "a name that is not the URL's host": ("engine", Trust(ca=AUTHORITY, server_name="engine.test")),
    "no check at all": ("engine", Trust(insecure=True)),
}


@pytest.mark.parametrize("case", BELIEVED)
@on_a_loop
async def test_a_server_is_believed_by(case: str) -> None:
    name, trust = BELIEVED[case]
    async with behind_tls(answering(WHOLE), name=name) as target, Before(target, trust) as before:
        for _ in range(3):
            assert WHOLE.endswith((await before.ask(chat(stream=False))).body)
        assert [ended.record.outcome for ended in before.ended] == ["ok"] * 3
        assert before.door.pool.open_count == 1
        assert await get(target, "/metrics", tls=ServerTls(trust)) == WHOLE.partition(b"\r\n\r\n")[2]


DOUBTED = {
    "an authority that is not known": ("server", Trust(ca=STRANGER), "unable to get local issuer certificate"),
    "another host's name": ("engine", OURS, "IP address mismatch"),
    "another name than was told": ("server", Trust(ca=AUTHORITY, server_name="engine.test"), "Hostname mismatch"),
}


@pytest.mark.parametrize("case", DOUBTED)
def test_a_server_is_not_believed_with(case: str, caplog: pytest.LogCaptureFixture) -> None:
    name, trust, why = DOUBTED[case]
    _is_not_spoken_to(name, trust)
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 2  # by the pool, and by the poller that asks for itself here
    assert all(line.startswith("no TLS with the server behind: ") and why in line for line in told)


@on_a_loop
async def _is_not_spoken_to(name: str, trust: Trust) -> None:
    heard = list[bytes]()

    async def wild(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())

    async with behind_tls(wild, name=name) as target, Before(target, trust) as before:
        for _ in range(3):
            answer = await before.ask(chat())
            assert answer.head.startswith(b"HTTP/1.1 502 ")
            assert b'"type":"connect_tls"' in answer.body
        assert [(ended.record.outcome, ended.record.error_type) for ended in before.ended] == [
            ("error", "connect_tls")
        ] * 3
        with pytest.raises(PollError, match=r"^tls$"):
            await get(target, "/metrics", tls=ServerTls(trust))
    assert not any(heard)


@on_a_loop
async def test_a_server_that_asks_who_we_are_is_shown_our_certificate() -> None:
    shown = Trust(ca=AUTHORITY, certificate=certificate("client"), key=key("client"))
    async with behind_tls(answering(WHOLE), asks_clients=True) as target, Before(target, shown) as before:
        assert (await before.ask(chat(stream=False))).head.startswith(b"HTTP/1.1 200 ")
        assert await get(target, "/metrics", tls=ServerTls(shown)) == WHOLE.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("who", ["nobody", "intruder"])
def test_a_server_that_does_not_believe_us_is_told_of_in_the_log(who: str, caplog: pytest.LogCaptureFixture) -> None:
    ours = OURS if who == "nobody" else replace(OURS, certificate=certificate(who), key=key(who))

    def once(server: socket.socket) -> None:
        peer, _ = server.accept()
        context = server_context(asks_clients=True)
        with context.wrap_socket(peer, server_side=True, do_handshake_on_connect=False) as made:
            with pytest.raises(ssl.SSLError):
                made.do_handshake()
            made.shutdown(socket.SHUT_WR)
            while made.recv(1000):
                pass

    @on_a_loop
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            thread = threading.Thread(target=once, args=(server,))
            thread.start()
            async with Before(Target("https", "127.0.0.1", server.getsockname()[1]), ours) as before:
                assert (await before.ask(chat())).head.startswith(b"HTTP/1.1 502 ")
                assert [ended.record.outcome for ended in before.ended] == ["error"]
            thread.join()

    run()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    why = "tlsv13 alert certificate required" if who == "nobody" else "tlsv1 alert unknown ca"
    assert line == f"no TLS with the server behind: {why} (told once)"


@on_a_loop
async def test_a_server_without_tls_is_told_from_one_that_is_down() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(sized(b"", status="400 Bad Request"))
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    target = Target("https", "127.0.0.1", server.sockets[0].getsockname()[1])
    async with Before(target, OURS) as before:
        await before.ask(chat())
        server.close()
        await before.ask(chat())
        assert [ended.record.error_type for ended in before.ended] == ["connect_tls", "connect_refused"]


def test_the_systems_authorities_can_be_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", AUTHORITY)

    @on_a_loop
    async def run() -> None:
        async with behind_tls(answering(completion("a"))) as target, Before(target) as before:
            assert (await before.ask(chat())).head.startswith(b"HTTP/1.1 200 ")

    run()


def test_authorities_are_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ca = tmp_path / "ca.pem"
    wrong, right = Path(STRANGER).read_bytes(), Path(AUTHORITY).read_bytes()
    ca.write_bytes(wrong)

    @on_a_loop
    async def run() -> None:
        async with behind_tls(answering(completion("a"))) as target:
            tls = ServerTls(Trust(ca=str(ca)))
            pool = Pool(target, tls=tls)
            with pytest.raises(ssl.SSLError):
                await pool.connect()
            ca.write_text("nonsense")
            assert not await tls.reload()
            with pytest.raises(ssl.SSLError):
                await pool.connect()
            ca.write_bytes(right)
            assert await tls.reload()
            assert (await pool.connect()).alive
            pool.close()
            await until(lambda: pool.open_count == 0)

    run()
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert line.startswith(f"reload: --upstream-ca {ca} cannot be used (")
    assert line.endswith("what was read before stays")


@on_a_loop
async def test_a_slow_client_gets_all_that_a_server_sent_before_it_closed() -> None:
    """The server is long gone while the end of its answer still waits for the client, and is not even decrypted."""
    body = bytes(range(256)) * 40_000
    answer = sized(body, kind="application/octet-stream").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)

    def once(server: socket.socket) -> None:
        peer, _ = server.accept()
        with server_context().wrap_socket(peer, server_side=True) as made:
            made.recv(1000)
            made.sendall(answer)

    def ask(port: int) -> bytes:
        with socket.socket() as made:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
            made.settimeout(20)
            made.connect(("127.0.0.1", port))
            made.sendall(b"GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            data = b""
            while more := made.recv(64 << 10):
                data += more
                threading.Event().wait(0.002)
            return data

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=once, args=(server,))
        thread.start()
        async with Before(Target("https", "127.0.0.1", server.getsockname()[1]), OURS) as before:
            got = await asyncio.to_thread(ask, before.port)
        thread.join()
    assert got.partition(b"\r\n\r\n")[2] == body


@on_a_loop
async def test_an_idle_connection_that_the_server_closed_is_not_taken() -> None:
    closing = asyncio.Event()

    async def wild(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await closing.wait()
        writer.transport.abort()

    async with behind_tls(wild) as target:
        pool = Pool(target, tls=ServerTls(OURS))
        connection = await pool.connect()
        pool.give(connection)
        assert pool.take() is connection
        pool.give(connection)
        closing.set()
        await until(lambda: pool.take() is None)
        await until(lambda: pool.open_count == 0)


@on_a_loop
async def test_what_waits_unread_on_an_idle_connection_is_its_end_or_a_session_ticket() -> None:
    """The event loop stands still meanwhile: nobody has seen either."""
    closing, closed = threading.Event(), threading.Event()

    def once(server: socket.socket) -> None:
        peer, _ = server.accept()
        with server_context().wrap_socket(peer, server_side=True):
            closing.wait(20)
        closed.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=once, args=(server,))
        thread.start()
        pool = Pool(Target("https", "127.0.0.1", server.getsockname()[1]), tls=ServerTls(OURS))
        connection = await pool.connect()
        time.sleep(0.2)  # noqa: ASYNC251  the tickets come
        pool.give(connection)
        assert pool.take() is connection
        pool.give(connection)
        closing.set()
        closed.wait(20)
        assert pool.take() is None
        thread.join()
        await until(lambda: pool.open_count == 0)


@on_a_loop
async def test_a_client_that_leaves_ends_the_servers_connection() -> None:
    left = asyncio.Event()

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_message(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await reader.read()
        left.set()

    async with behind_tls(stream) as target, Before(target, OURS) as before:
        reader, writer = await asyncio.open_connection("127.0.0.1", before.port)
        writer.write(chat())
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        await asyncio.wait_for(left.wait(), 10)
        await until(lambda: [ended.record.outcome for ended in before.ended] == ["cancelled"])


# Unix sockets.


def test_a_server_at_a_unix_socket_is_asked_as_any_other(tmp_path: Path) -> None:
    heads = list[bytes]()

    async def wild(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await read_message(reader)
            heads.append(request.head)
            writer.write(WHOLE)

    @on_a_loop
    async def run() -> None:
        async with behind_unix(wild, tmp_path / "s") as target, Before(target) as before:
            for _ in range(2):
                assert WHOLE.endswith((await before.ask(chat(stream=False))).body)
            assert before.door.pool.open_count == 1
            assert await get(target, "/metrics")
            assert [ended.record.outcome for ended in before.ended] == ["ok", "ok"]

    run()
    assert b"\r\nHost: api.test\r\n" in heads[0]
    assert heads[2].startswith(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")


def test_a_unix_socket_that_is_not_there_is_a_server_that_is_down(tmp_path: Path) -> None:
    @on_a_loop
    async def run() -> None:
        target = Target("http", "localhost", 80, unix=UnixPath(str(tmp_path / "s")))
        async with Before(target) as before:
            assert (await before.ask(chat())).head.startswith(b"HTTP/1.1 502 ")
            assert before.ended[0].record.error_type == "connect_failed"
            with pytest.raises(PollError, match=r"^connection$"):
                await get(target, "/metrics")

    run()


@on_a_loop
async def test_a_server_that_lets_us_wait_for_its_connection_is_a_timeout() -> None:
    """Our own limit ends the request, so that is its outcome."""

    async def silent(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with listening(silent) as port, Before(Target("https", "127.0.0.1", port), connect_s=0.05) as before:
        answer = await before.ask(chat())
        assert answer.head.startswith(b"HTTP/1.1 504 Gateway Timeout")
        assert b'"type":"connect_timeout"' in answer.body
        record = before.ended[0].record
        assert (record.outcome, record.error_type) == ("timeout", "connect_timeout")


def test_a_full_queue_at_a_unix_socket_is_waited_for(tmp_path: Path) -> None:
    """TCP would wait by itself; here each attempt is refused at once."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server, contextlib.ExitStack() as stack:
        server.bind(str(path))
        server.listen(0)
        waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
        waiting.connect(str(path))

        @on_a_loop
        async def run() -> None:
            target = Target("http", "localhost", 80, unix=UnixPath(str(path)))
            with pytest.raises(TimeoutError):
                await Pool(target, connect_s=0.1).connect()
            pool = Pool(target)
            connecting = asyncio.ensure_future(pool.connect())
            await asyncio.sleep(0.1)
            assert not connecting.done()
            stack.enter_context(server.accept()[0])
            assert (await connecting).alive
            pool.close()
            await until(lambda: pool.open_count == 0)

        run()
