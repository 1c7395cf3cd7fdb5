"""Connections that do not ask are let go; those that do are served however slowly their requests follow."""

import asyncio

import pytest
import uvicorn

from collector.doors import connection
from collector.doors.connection import Connection

WHOLE = b"GET / HTTP/1.1\r\nhost: c\r\n\r\n"


async def _served(reading: asyncio.StreamReader) -> bytes:
    return await reading.readuntil(b"\r\n\r\nok")


async def _app(_scope: object, _receive: object, send: object) -> None:
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b"ok"})  # type: ignore[operator]


def _config() -> uvicorn.Config:
    return uvicorn.Config(_app, http=Connection, log_config=None, lifespan="off", ws="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n", WHOLE + b"GET / HT"])
def test_whoever_does_not_finish_a_head_is_let_go(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.2)

    async def story() -> None:
        async with _serving() as port:
            reading, writing = await asyncio.open_connection("127.0.0.1", port)
            writing.write(sent)
            async with asyncio.timeout(30):
                said = await reading.read()
            assert said.count(b"200 OK") == sent.count(WHOLE)
            writing.close()

    asyncio.run(story())


def test_one_connection_too_many_is_let_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_OPEN", 2)

    async def story() -> None:
        async with _serving() as port:
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for _, writing in held:
                writing.write(WHOLE)
            for reading, _ in held:
                assert b"200 OK" in await _served(reading)
            assert await _said(port) == b""
            held[0][1].close()
            await asyncio.sleep(0.1)
            assert b"200 OK" in await _said(port)
            held[1][1].close()

    async def _said(port: int) -> bytes:
        reading, writing = await asyncio.open_connection("127.0.0.1", port)
        try:
            writing.write(WHOLE)
            return await _served(reading)
        except (ConnectionError, asyncio.IncompleteReadError):
            return b""
        finally:
            writing.close()

    asyncio.run(story())


def test_a_connection_that_asked_may_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.5)

    async def story() -> None:
        async with _serving() as port:
            reading, writing = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(2):
                writing.write(WHOLE)
                assert b"200 OK" in await _served(reading)
                await asyncio.sleep(1.0)
            writing.close()

    asyncio.run(story())


class _serving:  # noqa: N801  reads like a call
    """A server of its own on a free port, for the length of a block."""

    async def __aenter__(self) -> int:
        config = _config()
        config.load()
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(
            lambda: Connection(config=config, server_state=self._server.server_state, app_state={}), "127.0.0.1", 0
        )
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    async def __aexit__(self, *_: object) -> None:
        self._listening.close()
