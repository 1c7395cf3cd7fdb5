import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable

import pytest

from sidecar import limits
from sidecar.address import UnixPath
from sidecar.transport.upstream import Connection, Pool, Target, parse_target
from tests.sidecar.rig import listening, on_a_loop, raw, serving, until

GOOD = {
    "http://127.0.0.1:8000": Target("http", "127.0.0.1", 8000),
    "http://engine": Target("http", "engine", 80),
    "https://engine/base/": Target("https", "engine", 443, "/base"),
    "http://[::1]:8000": Target("http", "::1", 8000),
    "http://b\u00fccher.test": Target("http", "b\u00fccher.test", 80),
    "unix:/run/engine.sock": Target("http", "localhost", 80, unix=UnixPath("/run/engine.sock")),
    "unix:/run/engine.sock:/base/": Target("http", "localhost", 80, "/base", UnixPath("/run/engine.sock")),
    "unix:/run/a:b": Target("http", "localhost", 80, unix=UnixPath("/run/a:b")),
}
BAD = [
    "engine:8000",
    "ftp://engine",
    "http://",
    "http://e:x",
    "http://e:99999",
    "http://e/?q=1",
    "http://u:p@e/",
    "//e",
    "http://e f/",
    "http://a..b/",
    f"http://{'e' * 64}/",
    "http://e/a b",
    "http://e/\u00e4",
]
BAD_UNIX = ["unix:", "unix:run/s", "unix:/run/", "unix:/s:/a?b", "unix:/s:/a b"]


@pytest.mark.parametrize("url", GOOD)
def test_a_url_names_a_server(url: str) -> None:
    assert parse_target(url) == GOOD[url]


@pytest.mark.parametrize("url", BAD)
def test_what_names_none_is_refused_with_what_would_be_right(url: str) -> None:
    with pytest.raises(ValueError, match="write http://HOST:PORT"):
        parse_target(url)


@pytest.mark.parametrize("url", BAD_UNIX)
def test_what_names_no_socket_is_refused_with_what_would_be_right(url: str) -> None:
    with pytest.raises(ValueError, match="write unix:/PATH"):
        parse_target(url)


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  its words are what matters
        parse_target("http://user:secret@engine")
    assert "secret" not in str(error.value)


def test_how_a_server_is_written() -> None:
    assert Target("http", "::1", 8000).authority == "[::1]:8000"
    assert Target("https", "engine", 443, "/base").url == "https://engine/base"
    for url in ("unix:/run/engine.sock", "unix:/run/engine.sock:/base"):
        assert parse_target(url).url == url
        assert parse_target(url).authority == "localhost"


@on_a_loop
async def test_a_connection_that_was_given_back_is_taken_again_the_latest_first() -> None:
    async with serving(raw(b"")) as behind:
        pool = Pool(Target("http", "127.0.0.1", behind.port))
        first, second = await pool.connect(), await pool.connect()
        assert pool.reached
        pool.give(first)
        pool.give(second)
        assert pool.take() is second
        assert second.reused
        assert pool.take() is first
        assert pool.take() is None
        pool.close()
        await until(lambda: pool.open_count == 0)


@on_a_loop
async def test_a_connection_that_rested_too_long_is_not_taken() -> None:
    async with serving(raw(b"")) as behind:
        pool = Pool(Target("http", "127.0.0.1", behind.port), idle_s=0.05)
        pool.give(await pool.connect())
        await asyncio.sleep(0.1)
        assert pool.take() is None
        pool.give(await pool.connect())
        await asyncio.sleep(0.1)
        pool.sweep()
        await until(lambda: pool.open_count == 0)


@on_a_loop
async def test_a_connection_that_the_server_closed_is_not_taken_though_nobody_saw_it_yet() -> None:
    accepted = list[asyncio.StreamWriter]()

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        await asyncio.sleep(1000)

    async with listening(accept) as port:
        pool = Pool(Target("http", "127.0.0.1", port))
        connection = await pool.connect()
        await until(lambda: bool(accepted))
        pool.give(connection)
        accepted[0].transport.abort()
        assert not connection.alive or connection.closed_by_server() or pool.take() is connection
        await until(lambda: pool.take() is None)


@on_a_loop
async def test_bytes_that_nobody_asked_for_end_a_connection() -> None:
    async def chatter(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        await asyncio.sleep(1000)

    async with listening(chatter) as port:
        pool = Pool(Target("http", "127.0.0.1", port))
        pool.give(await pool.connect())
        await until(lambda: pool.open_count == 0)
        assert pool.take() is None


@on_a_loop
async def test_a_connection_that_still_owes_the_server_bytes_is_not_kept() -> None:
    """Its server answered early and reads no more: the next request would stand behind what was not read."""

    async def deaf(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1000)

    async with listening(deaf) as port:
        pool = Pool(Target("http", "127.0.0.1", port))
        connection = await pool.connect()
        connection.write(b"x" * 50_000_000)
        pool.give(connection)
        assert pool.take() is None
        await until(lambda: pool.open_count == 0)


class Listener:
    """What a connection tells whoever uses it."""

    def __init__(self) -> None:
        self.data, self.lost = b"", list[Exception | None]()

    def upstream_data(self, data: bytes, at_ns: int) -> None:
        assert 0 < at_ns <= time.monotonic_ns()
        self.data += data

    def upstream_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def upstream_full(self) -> None:
        pass

    def upstream_drained(self) -> None:
        pass


@on_a_loop
async def test_what_a_server_said_before_it_broke_off_is_heard() -> None:
    """A server that refuses a long request answers and closes, and the next write fails before the answer is read."""
    answer, gate, user = b"HTTP/1.1 413 No\r\n\r\n", threading.Event(), Listener()

    def refuse(server: socket.socket) -> None:
        peer, _ = server.accept()
        with peer:
            gate.wait(30)
            peer.sendall(answer)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=refuse, args=(server,))
        thread.start()
        pool = Pool(Target("http", "127.0.0.1", server.getsockname()[1]))
        connection = await pool.connect()
        connection.use(user)
        connection.write(b"a")
        await asyncio.sleep(0.05)
        gate.set()
        thread.join()  # nothing is read meanwhile
        for _ in range(3):
            connection.write(b"b")
        await until(lambda: len(user.lost) == 1)
    assert user.data == answer
    assert isinstance(user.lost[0], ConnectionError)
    assert pool.open_count == 0


class Taker:
    """Takes reads of one letter."""

    def take(self, data: bytes, at_ns: int) -> bool:
        return at_ns > 0 and data == b"t"


def test_a_read_that_is_taken_is_not_told_and_nobody_takes_one_of_the_next_exchange() -> None:
    connection, first, second = Connection(), Listener(), Listener()
    connection.use(first)
    connection.taker = Taker()
    for read in (b"t", b"u", b"t"):
        connection.data_received(read)
    assert first.data == b"u"
    connection.use(second)
    connection.data_received(b"t")
    assert (first.data, second.data) == (b"u", b"t")


@pytest.mark.parametrize("end", [Connection.rest, Connection.abort])
def test_between_exchanges_nothing_is_taken(end: Callable[[Connection], object]) -> None:
    connection = Connection()
    connection.use(Listener())
    connection.taker = Taker()
    end(connection)
    assert connection.taker is None
    connection.data_received(b"t")
    assert connection.given_up


@on_a_loop
async def test_a_connection_that_is_left_is_seen_to_be_left_by_its_server() -> None:
    """The second hold on the socket must not keep it open."""
    left = asyncio.Event()

    async def watch(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()
        left.set()

    async with listening(watch) as port:
        connection = await Pool(Target("http", "127.0.0.1", port)).connect()
        connection.use(Listener())
        for _ in range(3):
            connection.write(b"x")
        connection.abort()
        await asyncio.wait_for(left.wait(), 5)


@on_a_loop
async def test_a_server_that_does_not_answer_the_connect_is_a_timeout() -> None:
    pool = Pool(Target("http", "127.0.0.1", 1))
    with pytest.raises(OSError):  # noqa: PT011  refused
        await pool.connect()
    assert not pool.reached


def test_a_connection_without_a_socket_takes_no_harm() -> None:
    connection = Connection()
    connection.write(b"x")
    connection.pause_reading()
    connection.resume_reading()
    connection.abort()
    assert not connection.alive
    assert connection.closed_by_server()


@on_a_loop
async def test_after_an_answer_in_chunks_a_connection_is_used_again_once_the_server_is_seen_to_keep_it() -> None:
    async with serving(raw(b"")) as behind:
        pool = Pool(Target("http", "127.0.0.1", behind.port))
        first = await pool.connect()
        pool.give(first, after_chunks=True)
        assert pool.take() is None
        await asyncio.sleep(2 * limits.POOL_PROBATION_S)
        assert pool.take() is first
        pool.give(first, after_chunks=True)
        assert pool.take() is first  # shown once, believed from then on
        pool.close()


@on_a_loop
async def test_after_an_answer_with_a_length_a_connection_is_used_at_once() -> None:
    async with serving(raw(b"")) as behind:
        pool = Pool(Target("http", "127.0.0.1", behind.port))
        first = await pool.connect()
        pool.give(first)
        assert pool.take() is first
        pool.close()


@on_a_loop
async def test_a_server_that_hangs_up_by_habit_is_not_trusted_with_another_connection() -> None:
    """llama.cpp says keep-alive and closes each connection a moment after its stream."""
    async with listening(hang_up) as port:
        pool = Pool(Target("http", "127.0.0.1", port))
        first = await pool.connect()
        pool.give(first, after_chunks=True)
        await until(lambda: pool.open_count == 0)
        second = await pool.connect()
        pool.give(second, after_chunks=True)
        assert not second.alive
        third = await pool.connect()
        pool.give(third)
        assert third.alive
        pool.close()


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0.01)
    writer.close()


@on_a_loop
async def test_a_connection_that_we_closed_says_nothing_of_the_server() -> None:
    async with serving(raw(b"")) as behind:
        pool = Pool(Target("http", "127.0.0.1", behind.port), idle_s=0.0)
        pool.give(await pool.connect(), after_chunks=True)
        pool.sweep()
        await until(lambda: pool.open_count == 0)
        another = await pool.connect()
        pool.give(another, after_chunks=True)
        assert another.alive
        pool.close()
