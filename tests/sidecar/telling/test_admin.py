import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from sidecar import limits
from sidecar.telling.admin import AdminDoor, Answer, Later
from tests.sidecar.rig import Received, on_a_loop, read_message, until


@contextlib.asynccontextmanager
async def admin(token: str | None = None) -> AsyncIterator[tuple[AdminDoor, int]]:
    pages: dict[bytes, Callable[[], Answer | Later]] = {
        b"/metrics": lambda: Later(lambda: Answer(200, b"up 1\n")),
        b"/both": lambda: Later(lambda: Answer(200, b"up 1\n"), lambda: Answer(200, b"up 1\n# EOF\n", "openmetrics")),
        b"/healthz": lambda: Answer(200, b"ok\n"),
        b"/broken": broken,
        b"/faulty": faulty,
        b"/faulty-later": lambda: Later(faulty),
        b"/long": lambda: Later(lambda: Answer(200, b"x" * 1_000_000)),
    }
    door = AdminDoor(pages, token=token)
    server = await asyncio.get_running_loop().create_server(door, "127.0.0.1", 0)
    try:
        yield door, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        door.close()
        await asyncio.sleep(0)


def broken() -> Answer:
    return Answer(503, b"draining\n")


def faulty() -> Answer:
    raise ZeroDivisionError


async def ask(port: int, line: str, fields: str = "") -> Received:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{line} HTTP/1.1\r\nHost: h\r\n{fields}Connection: close\r\n\r\n".encode())
    answer = await read_message(reader)
    writer.close()
    return answer


PAGES = {
    "GET /metrics": (200, b"up 1\n"),
    "GET /metrics?x=1": (200, b"up 1\n"),
    "GET /broken": (503, b"draining\n"),
    "GET /faulty": (500, b"this page cannot be made\n"),
    "GET /faulty-later": (500, b"this page cannot be made\n"),
    "GET /long": (200, b"x" * 1_000_000),
    "GET /nothing": (404, None),
    "POST /metrics": (405, None),
}


@pytest.mark.parametrize("line", PAGES)
@on_a_loop
async def test_pages(line: str) -> None:
    status, body = PAGES[line]
    async with admin() as (_, port):
        answer = await ask(port, line)
        assert answer.line.startswith(f"HTTP/1.1 {status} ")
        assert body is None or answer.body == body
        assert answer.field("content-type") == "text/plain; charset=utf-8"


FORMS = {
    "/both, which asks": (
        "/both",
        "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n",
        "openmetrics",
    ),
    "/both, which takes anything": ("/both", "Accept: */*\r\n", "text/plain; charset=utf-8"),
    "/both, which says nothing": ("/both", "", "text/plain; charset=utf-8"),
    "a page of one form": ("/metrics", "Accept: application/openmetrics-text\r\n", "text/plain; charset=utf-8"),
    "a page that is there at once": (
        "/healthz",
        "Accept: application/openmetrics-text\r\n",
        "text/plain; charset=utf-8",
    ),
}


@pytest.mark.parametrize("sentence", FORMS)
@on_a_loop
async def test_a_page_of_two_forms_comes_in_the_one_that_is_asked_for(sentence: str) -> None:
    path, fields, kind = FORMS[sentence]
    async with admin() as (_, port):
        answer = await ask(port, f"GET {path}", fields)
        assert answer.line.startswith("HTTP/1.1 200 ")
        assert answer.field("content-type") == kind
        assert answer.body.endswith(b"# EOF\n") is (kind == "openmetrics")


@on_a_loop
async def test_one_connection_asks_again_and_head_has_no_body() -> None:
    async with admin() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        assert b"Content-Length: 5" in await reader.readuntil(b"\r\n\r\n")
        assert (await read_message(reader)).body == b"ok\n"
        writer.close()


@on_a_loop
async def test_a_long_page_is_made_off_the_loop_and_what_was_asked_meanwhile_is_answered_after_it() -> None:
    gate, threads = threading.Event(), list[threading.Thread]()

    def make() -> Answer:
        threads.append(threading.current_thread())
        gate.wait(30)
        return Answer(200, b"late\n")

    async with admin() as (door, port):
        door.pages = {**door.pages, b"/late": lambda: Later(make)}
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /late HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
        await until(lambda: bool(threads))
        assert (await ask(port, "GET /healthz")).body == b"ok\n"  # of another client
        gate.set()
        assert (await read_message(reader)).body == b"late\n"
        assert (await read_message(reader)).body == b"ok\n"
        assert threads[0] is not threading.current_thread()
        writer.close()


@on_a_loop
async def test_a_client_that_asks_and_asks_and_takes_nothing_gets_one_page_made() -> None:
    """Made at once, a thousand pages would hold up every stream for minutes, and fill the memory."""
    made = list[int]()

    def long() -> Answer:
        made.append(1)
        return Answer(200, b"x" * 10_000_000)

    async with admin() as (door, port):
        door.pages = {b"/long": lambda: Later(long)}
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /long HTTP/1.1\r\n\r\n" * 100_000)
        await until(lambda: bool(made))
        await asyncio.sleep(0.2)
        (connection,) = door.open
        assert len(made) == 1
        assert connection._paused
        assert len(connection._unread) < 1_000_000
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(3):
            assert len((await read_message(reader)).body) == 10_000_000
        writer.transport.abort()
        await until(lambda: not door.open)


def test_a_client_that_takes_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting to be rid of the page first, it would keep its place for ever, and there are few."""
    monkeypatch.setattr(limits, "ADMIN_IDLE_S", 0.2)

    @on_a_loop
    async def run() -> None:
        async with admin() as (door, port):
            door.pages = {b"/long": lambda: Answer(200, b"x" * 10_000_000)}
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"GET /long HTTP/1.1\r\n\r\n")
            await until(lambda: bool(door.open))
            await until(lambda: not door.open)
            writer.transport.abort()

    run()


@on_a_loop
async def test_a_token_guards_everything_but_the_probes() -> None:
    async with admin(token="s3cret") as (_, port):
        assert (await ask(port, "GET /metrics")).line.startswith("HTTP/1.1 401 ")
        assert (await ask(port, "GET /metrics", "Authorization: Bearer wrong\r\n")).line.startswith("HTTP/1.1 401 ")
        assert (await ask(port, "GET /metrics", "Authorization: Bearer s3cret\r\n")).body == b"up 1\n"
        assert (await ask(port, "GET /healthz")).body == b"ok\n"


@on_a_loop
async def test_nonsense_is_refused_and_ends_the_connection() -> None:
    async with admin() as (door, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"nonsense\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.close()
        await until(lambda: not door.open)


NONSENSE = {
    "a head that is too long": (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 1000, b"431"),
    "and one that ends": (b"GET / HTTP/1.1\r\nX: " + b"x" * 1000 + b"\r\n\r\n", b"431"),
    "no version": (b"GET /metrics\r\n\r\n", b"400"),
    "no origin": (b"GET http://h/metrics HTTP/1.1\r\n\r\n", b"400"),
    "a field without a colon": (b"GET /metrics HTTP/1.1\r\nnonsense\r\n\r\n", b"400"),
    "another version": (b"GET /metrics HTTP/2.0\r\n\r\n", b"400"),
}


@pytest.mark.parametrize("sentence", NONSENSE)
def test_what_is_no_plain_request_ends_the_connection(sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, status = NONSENSE[sentence]
    monkeypatch.setattr(limits, "MAX_HEAD_BYTES", 1000)

    @on_a_loop
    async def run() -> None:
        async with admin() as (door, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(raw)
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 " + status)
            assert answer.count(b"Content-Length") == 1
            writer.close()
            await until(lambda: not door.open)

    run()


@pytest.mark.parametrize("fields", ["Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n"])
@on_a_loop
async def test_a_request_after_which_no_other_can_be_told_is_the_last(fields: str) -> None:
    async with admin() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /healthz HTTP/1.1\r\n{fields}\r\nGET /healthz HTTP/1.1\r\n\r\n".encode())
        assert (await reader.read()).count(b"ok\n") == 1
        writer.close()


@on_a_loop
async def test_a_request_in_pieces() -> None:
    async with admin() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in b"GET /healthz HTTP/1.0\r\nHost: h\r\n\r\n":
            writer.write(bytes((byte,)))
            await asyncio.sleep(0)
        assert (await reader.read()).endswith(b"ok\n")
        writer.close()


@on_a_loop
async def test_connections_are_limited() -> None:
    async with admin() as (door, port):
        pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(limits.ADMIN_CONNECTIONS + 3)]
        await until(lambda: len(door.open) == limits.ADMIN_CONNECTIONS)
        closed = sum([await reader.read() == b"" for reader, _ in pairs[-3:]])
        assert closed == 3
        for _, writer in pairs:
            writer.close()


def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADMIN_IDLE_S", 0.05)

    @on_a_loop
    async def run() -> None:
        async with admin() as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()

    run()


def test_a_client_that_drips_its_request_keeps_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are few: a handful of such clients would keep every scraper and every probe out."""
    monkeypatch.setattr(limits, "ADMIN_IDLE_S", 0.2)

    @on_a_loop
    async def run() -> None:
        async with admin() as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /healthz HTTP/1.1\r\nX: ")
            while not (reader.at_eof() or writer.is_closing()):
                writer.write(b"x")
                await asyncio.sleep(0.01)
            writer.close()

    run()


def test_a_client_that_asks_now_and_then_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ADMIN_IDLE_S", 1.0)

    @on_a_loop
    async def run() -> None:
        async with admin() as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(6):
                await asyncio.sleep(0.25)
                writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
                assert (await read_message(reader)).body == b"ok\n"
            writer.close()

    run()
