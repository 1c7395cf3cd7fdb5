"""What the event loop's TLS does at an end and in a pause, and what we make of it. Real sockets on both sides."""

import asyncio
import contextlib
import time
from collections.abc import Callable

import pytest

from sidecar.transport.tls_transport import hang_up, is_tls, pause_at_once
from tests.sidecar.certificates import connected, read_to_the_end, server_context
from tests.sidecar.rig import on_a_loop, until


class Server(asyncio.Protocol):
    """One connection that says something as soon as it is spoken to, and then does `act`."""

    def __init__(self, act: Callable[["Server"], None]) -> None:
        self.act = act
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        pause_at_once(transport)
        assert is_tls(transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"x" * 60_000)
        self.act(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


def with_goodbye(server: Server) -> None:
    server.transport.close()
    hang_up(server.transport)


def without_goodbye(server: Server) -> None:
    hang_up(server.transport)


@pytest.mark.parametrize(("act", "goodbye"), [(with_goodbye, True), (without_goodbye, False)])
@on_a_loop
async def test_a_connection_is_hung_up_on_at_once_and_loses_nothing(
    act: Callable[[Server], None], goodbye: bool
) -> None:
    made = Server(act)
    server = await asyncio.get_running_loop().create_server(lambda: made, "127.0.0.1", 0, ssl=server_context())

    def ask() -> tuple[bytes, bool, bool]:
        with connected(server.sockets[0].getsockname()[1]) as client:
            client.sendall(b"?")
            got = read_to_the_end(client)
            end_s = time.monotonic() + 10
            while not made.lost and time.monotonic() < end_s:
                time.sleep(0.01)
            return (*got, made.lost)  # while our own end is still open

    with contextlib.closing(server):
        assert await asyncio.to_thread(ask) == (b"x" * 60_000, goodbye, True)
        hang_up(made.transport)  # closed already: nothing happens


@on_a_loop
async def test_plain_connections_are_told_from_tls() -> None:
    seen = list[bool]()

    class Plain(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            seen.append(is_tls(transport))
            transport.close()

    server = await asyncio.get_running_loop().create_server(Plain, "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await until(lambda: seen == [False])
    writer.close()
    server.close()
