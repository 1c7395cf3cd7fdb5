import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from sidecar import limits
from sidecar.admin import AdminDoor, Answer
from tests.sidecar.rig import Received, on_a_loop, read_message, until


@contextlib.asynccontextmanager
async def admin(token: str | None = None) -> AsyncIterator[tuple[AdminDoor, int]]:
    pages = {b"/metrics": lambda: Answer(200, b"up 1\n"), b"/healthz": lambda: Answer(200, b"ok\n"), b"/broken": broken}
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


@on_a_loop
async def test_one_connection_asks_again_and_head_has_no_body() -> None:
    async with admin() as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
        assert b"Content-Length: 5" in await reader.readuntil(b"\r\n\r\n")
        assert (await read_message(reader)).body == b"ok\n"
        writer.close()


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
