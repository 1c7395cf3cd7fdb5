"""The least that a proxy in Python can do: bytes from one socket to another, nothing read, nothing counted.

Arguments: the source's port, a listening descriptor. Each client's connection has one of its own to the source.
"""

import asyncio
import socket
import sys

import uvloop


class End(asyncio.Protocol):
    """One side of a pair; what comes in goes out of the other."""

    def __init__(self, other: "End | None" = None) -> None:
        self._other = other
        self._early = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        if self._other is None:
            asyncio.get_running_loop().create_task(self._join())
        else:
            self._other.joined(self)

    async def _join(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: End(self), "127.0.0.1", SOURCE)

    def joined(self, other: "End") -> None:
        self._other = other
        other.write(self._early)

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._early += data
        else:
            self._other.write(data)

    def connection_lost(self, _: Exception | None) -> None:
        if self._other is not None:
            self._other.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def serve(listening: socket.socket) -> None:
    server = await asyncio.get_running_loop().create_server(End, sock=listening, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    SOURCE = int(sys.argv[1])
    uvloop.run(serve(socket.socket(fileno=int(sys.argv[2]))))
