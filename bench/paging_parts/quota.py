"""A gateway before a server that passes requests on, or answers 429 because a customer has used up its quota."""

import asyncio

from injected.stack import pump

MAX_HEAD_BYTES = 64 * 1024
_WHY = b'{"error": {"message": "quota exceeded for this key", "type": "insufficient_quota", "code": 429}}'
_REFUSAL = b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(_WHY)


class Quota:
    """One request a connection. While `is_used_up`, whatever is asked by POST is refused."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self.is_used_up = False
        self.refused = 0
        self.port = 0

    async def open(self) -> None:
        """Let requests in."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Let nobody in any more."""
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if self.is_used_up and head.startswith(b"POST "):
                self.refused += 1
                writer.write(_REFUSAL + b"Connection: close\r\n\r\n" + _WHY)
                await writer.drain()
            else:
                await self._pass(_last(head), reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    async def _pass(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other = await asyncio.open_connection("127.0.0.1", self._upstream)
        other.write(head)
        asking = asyncio.create_task(pump(reader, other))
        try:
            await pump(other_reader, writer)
        finally:
            asking.cancel()
            other.close()


def _last(head: bytes) -> bytes:
    """The head of a request that says it is the last of its connection."""
    lines = [line for line in head[:-4].split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*lines, b"Connection: close", b"", b""])
