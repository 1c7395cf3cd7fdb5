"""A tiny OpenAI-like server on loopback for tests of the load: it answers each request with a script.

Not a mock of a client library: real sockets, real chunked HTTP/1.1. A script is told the request's body and how many
requests came before, and yields what to send and how long to wait.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Step = bytes | float
Script = Callable[[dict[str, object], int], list[Step]]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(body: bytes) -> bytes:
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


def event(**delta: object) -> bytes:
    return chunk(b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n")


def usage(prompt: int, completion: int) -> bytes:
    body = {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}
    return chunk(b"data: " + json.dumps(body).encode() + b"\n\n")


DONE = chunk(b"data: [DONE]\n\n")


def refusal(status: int, body: bytes) -> bytes:
    """A whole plain answer."""
    return (
        f"HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )


def answer(_body: dict[str, object], _index: int) -> list[Step]:
    """A role, two tokens, usage, done."""
    return [HEAD + event(role="assistant", content=""), event(content="a"), event(content="b"), usage(9, 2), DONE + END]


@dataclass
class Server:
    url: str = ""
    requests: list[dict[str, object]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    open_connections: int = 0
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, holds: Callable[["Server"], bool]) -> None:
        """Wait until something holds; raises TimeoutError when it does not in half a minute."""
        async with asyncio.timeout(30):
            while not holds(self):
                self.moved.clear()
                await self.moved.wait()


@asynccontextmanager
async def serve(script: Script, *, keep_alive: bool = True) -> AsyncIterator[Server]:
    """Run the server on a free port for the block's length."""
    state = Server()
    tasks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        state.connections += 1
        state.open_connections += 1
        try:
            while await _answer_one(state, script, reader, writer) and keep_alive:
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            state.open_connections -= 1
            state.moved.set()
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(talk(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    state.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield state
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answer_one(
    state: Server, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Answer the next request; whether there was one."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return False
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
    body = json.loads(await reader.readexactly(int(fields.get("content-length", "0"))) or b"{}")
    state.heads.append(head)
    state.requests.append(body)
    state.moved.set()
    for step in script(body, len(state.requests) - 1):
        if isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
        else:
            await _wait(reader, step)
    return True


async def _wait(reader: asyncio.StreamReader, seconds: float) -> None:
    """Sleep, but notice a client that leaves."""
    try:
        async with asyncio.timeout(seconds):
            await reader.read(1)
    except TimeoutError:
        return
    raise ConnectionResetError("the client left, or spoke out of turn")
