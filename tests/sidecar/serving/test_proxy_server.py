"""The door's life: it opens, lets requests end, and says which it broke off."""

import asyncio
import logging

import pytest

from sidecar.address import HostPort
from sidecar.configuration.options import Options
from sidecar.otlp_settings import ExportSettings
from sidecar.serving.proxy_server import ProxyServer
from sidecar.serving.telemetry import emitter_of, eye_of
from sidecar.transport.listener import ListenError
from sidecar.transport.upstream import Target
from tests.sidecar.rig import Received, chat, completion, listening, on_a_loop, raw, read_message, serving, until


def proxy_server(port: int, *, drain_s: float = 30.0, listen: int = 0) -> ProxyServer:
    options = Options(
        upstream=Target("http", "127.0.0.1", port),
        listen=HostPort("127.0.0.1", listen),
        admin=HostPort("127.0.0.1", 0),
        service="chat",
        version="1",
        export=ExportSettings(traces=None, metrics=None),
        drain_s=drain_s,
    )
    plan = options.plan()
    return ProxyServer(options, eye_of(plan, asyncio.get_running_loop(), emitter_of(plan)))


async def ask(port: int) -> Received:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(chat())
        return await read_message(reader)
    finally:
        writer.close()


@on_a_loop
async def test_it_serves_until_it_drains(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(raw(completion("a"))) as behind:
        made = proxy_server(behind.port)
        port = (await made.open()).address.port
        assert (await ask(port)).body.endswith(b"data: [DONE]\n\n")
        await made.drain()
        with pytest.raises(OSError, match="refused"):
            await asyncio.open_connection("127.0.0.1", port)
    assert caplog.messages == []


@on_a_loop
async def test_what_is_broken_off_is_said(caplog: pytest.LogCaptureFixture) -> None:
    asked = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await read_message(reader)
        asked.set()
        await asyncio.sleep(100)

    async with listening(hang) as behind:
        made = proxy_server(behind, drain_s=0.05)
        port = (await made.open()).address.port
        asking = asyncio.ensure_future(ask(port))
        await asked.wait()
        with caplog.at_level(logging.WARNING):
            await made.drain()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asking
        await until(lambda: not made.door.connections)
    (line,) = caplog.messages
    assert line.startswith("1 requests were still in flight after 0.")


@on_a_loop
async def test_ready_means_reached_and_not_draining() -> None:
    async with serving(raw(completion("a"))) as behind:
        made = proxy_server(behind.port)
        port = (await made.open()).address.port
        assert (made.ready().status, made.ready().body) == (503, b"the server behind has not been reached yet\n")
        await ask(port)
        assert made.ready().status == 200
        await made.drain()
        assert (made.ready().status, made.ready().body) == (503, b"draining\n")


@on_a_loop
async def test_an_address_that_is_taken_names_the_flag() -> None:
    held = proxy_server(1)
    port = (await held.open()).address.port
    with pytest.raises(ListenError, match=r"\(--listen\): address already in use"):
        await proxy_server(1, listen=port).open()
    held.close()
