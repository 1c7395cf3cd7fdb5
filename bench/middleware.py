"""What the middleware costs per streamed chunk and per request, over the same app without it.

Two measurements, their arms interleaved so that a busy machine disturbs all alike; read ratios, and the least.

1. Inside one process, no socket: an app sends chat chunks to a sink. Slope and offset of CPU time over the number of
   chunks give the cost per chunk and per request.
2. Real uvicorn processes on loopback, many streams each: CPU of the server per chunk.

Arms: bare; the middleware; `parsing`, a wrapper that only parses each chunk once (the unit that carries over to other
machines); `awaiting`, one that only awaits; and, where Starlette is installed, `BaseHTTPMiddleware`, which is why ours
is none.

The promise: at most 0.6 us per chunk over bare ASGI with every event looked at, on a machine where `parsing` takes
0.67 us (0.57 us the parser, 0.1 us the wrapper); on a slower one in proportion. `--check` makes the exit code say it.
"""

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script's own folder is on the path, the project's is not

from sidecar.middleware import FirstTokenMiddleware
from sidecar.within.asgi import App, Message, Receive, Scope, Send

PROMISE_US, OF_PARSING_US = 0.6, 0.67
WORDS = (" the", " quick", " brown", "\n", " fox", ' "jumps"', " over", " l\u00e4zy", " dogs", ".")
FEW, MANY = 64, 2112  # chunks of a request; the difference is a multiple of a run
TURN = 8  # chunks between two turns of the loop
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
SCOPE: Scope = {
    "type": "http",
    "method": "POST",
    "path": "/v1/chat/completions",
    "headers": [(b"host", b"api.test"), (b"content-type", b"application/json")],
    "client": ("127.0.0.1", 1),
}


def chunk(number: int) -> bytes:
    choice = {"index": 0, "delta": {"content": WORDS[number % 10]}, "logprobs": None, "finish_reason": None}
    event = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + orjson.dumps(event) + b"\n\n"


CHUNKS = [chunk(number) for number in range(64)]  # few enough to stay as near to the CPU as a fresh one is


def app_of(chunks: int, turn: int = TURN) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        kind = (b"content-type", b"text/event-stream")
        await send({"type": "http.response.start", "status": 200, "headers": [kind]})
        for number in range(chunks):
            await send({"type": "http.response.body", "body": CHUNKS[number % 64], "more_body": True})
            if number % turn == 0:
                await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": False})

    return app


# 1. Inside one process.


class Awaiting:
    """The least that a wrapper with a coroutine of its own can cost."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def forward(message: Message) -> None:
            await send(message)

        await self._app(scope, receive, forward)


class Parsing:
    """The least that a wrapper which parses every chunk can cost."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        def forward(message: Message) -> Awaitable[None]:
            if message.get("more_body"):
                orjson.loads(message["body"][6:])
            return send(message)

        await self._app(scope, receive, forward)


def base_http(app: App) -> App:
    from starlette.middleware.base import BaseHTTPMiddleware

    async def dispatch(request: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        return await call_next(request)

    return BaseHTTPMiddleware(app, dispatch)  # type: ignore[arg-type,return-value]


def arms() -> dict[str, Callable[[App], App]]:
    found: dict[str, Callable[[App], App]] = {
        "bare": lambda app: app,
        "middleware": FirstTokenMiddleware,
        "parsing": Parsing,
        "awaiting": Awaiting,
    }
    try:
        import starlette  # noqa: F401
    except ImportError:
        return found
    return {**found, "BaseHTTPMiddleware": base_http}


async def once(app: App) -> int:
    """CPU time of one request, in nanoseconds."""
    messages = iter([{"type": "http.request", "body": BODY, "more_body": False}])

    async def receive() -> Message:
        for message in messages:
            return message
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def sink(_: Message) -> None:
        pass

    began_ns = time.thread_time_ns()
    await app(dict(SCOPE), receive, sink)
    return time.thread_time_ns() - began_ns


async def inside(rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """By arm: microseconds per chunk and per request, one of each a round."""
    made = {name: (wrap(app_of(FEW)), wrap(app_of(MANY))) for name, wrap in arms().items()}
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in made}
    for number in range(rounds + 1):
        for name, (few, many) in made.items():
            few_ns = min([await once(few) for _ in range(4)])
            slope_ns = (await once(many) - few_ns) / (MANY - FEW)
            if number:  # the first round warms up
                found[name][0].append(slope_ns / 1e3)
                found[name][1].append((few_ns - slope_ns * FEW) / 1e3)
    return found


# 2. Real servers.

SERVER = """
import sys, uvicorn
sys.path[:0] = [{bench!r}, {root!r}]
from middleware import app_of, arms
app = arms()[{arm!r}](app_of({chunks}, 1))
uvicorn.run(app, fd={fd}, log_level="error", lifespan="off", access_log=False)
"""


def serve(listening: socket.socket, *, arm: str, chunks: int) -> "subprocess.Popen[bytes]":
    here = Path(__file__).parent
    fd = listening.fileno()
    script = SERVER.format(bench=str(here), root=str(here.parent), chunks=chunks, arm=arm, fd=fd)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "FIRSTTOKEN_"))}
    quiet = {"FIRSTTOKEN_ADMIN": "off", "FIRSTTOKEN_SCRAPE": "off"}
    return subprocess.Popen([sys.executable, "-c", script], env=kept | quiet, pass_fds=(fd,))


def cpu_ns(pid: int) -> int:
    """Time on a CPU so far, user and system, of the process's main thread."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


async def stream(port: int, patience_s: float = 60.0) -> int:
    """One request; the bytes of its answer."""
    head = f"POST {SCOPE['path']} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {len(BODY)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + BODY)
    size = 0
    while data := await asyncio.wait_for(reader.read(1 << 18), patience_s):
        size += len(data)
    writer.close()
    return size


async def outside(rounds: int, *, streams: int, chunks: int) -> dict[str, list[float]]:
    """By arm: microseconds of the server's CPU per chunk, one a round."""
    found: dict[str, list[float]] = {"bare": [], "middleware": [], "parsing": []}
    sockets = {name: socket.create_server(("127.0.0.1", 0), backlog=1024) for name in found}
    servers = {name: serve(sockets[name], arm=name, chunks=chunks) for name in found}
    try:
        for number in range(rounds + 1):
            for name, server in servers.items():
                began_ns = cpu_ns(server.pid) if number else 0
                sizes = await asyncio.gather(*(stream(sockets[name].getsockname()[1]) for _ in range(streams)))
                assert server.poll() is None
                assert min(sizes) > chunks * len(CHUNKS[0]) / 2
                if number:
                    found[name].append((cpu_ns(server.pid) - began_ns) / 1e3 / (streams * chunks))
    finally:
        for server in servers.values():
            server.kill()
            server.wait()
        for listening in sockets.values():
            listening.close()
    return found


# What is printed.


def over(bare: list[float], other: list[float]) -> tuple[float, float]:
    """The least and the typical difference of an arm to the bare one: in the latter each value to its neighbour."""
    return min(other) - min(bare), statistics.median(b - a for a, b in zip(bare, other, strict=True))


def main() -> int:
    flags = argparse.ArgumentParser(description="What the middleware costs.")
    flags.add_argument("--rounds", type=int, default=60, help="of the measurement inside one process")
    flags.add_argument("--server-rounds", type=int, default=12, help="of the measurement of servers; 0 for none")
    flags.add_argument("--streams", type=int, default=16, help="at a time, for each server")
    flags.add_argument("--check", action="store_true", help="exit 1 if the promise is not kept")
    given = flags.parse_args()
    os.environ |= {"FIRSTTOKEN_ADMIN": "off", "FIRSTTOKEN_SCRAPE": "off"}

    found = asyncio.run(inside(given.rounds))
    bare, per_request = found["bare"]
    unit_us, _ = over(bare, found["parsing"][0])
    print("us of CPU over bare ASGI, least (typical):")
    for name, (chunk_us, request_us) in found.items():
        if name != "bare":
            least_us, typical_us = over(bare, chunk_us)
            _, request_more_us = over(per_request, request_us)
            times = f"x {least_us / unit_us:.2f} of parsing"
            print(f"  {name:18} {least_us:6.2f} ({typical_us:.2f}) a chunk, {times}; {request_more_us:.0f} a request")
    least_us, _ = over(bare, found["middleware"][0])
    if given.server_rounds:
        served = asyncio.run(outside(given.server_rounds, streams=given.streams, chunks=2000))
        print(f"uvicorn, {given.streams} streams, {min(served['bare']):.1f} us a chunk bare:")
        for name in ("middleware", "parsing"):
            ratio = statistics.median(b / a for a, b in zip(served["bare"], served[name], strict=True))
            print("  {:18} {:6.2f} ({:.2f}) a chunk, x {:.3f}".format(name, *over(served["bare"], served[name]), ratio))
    most_us = PROMISE_US * max(1.0, unit_us / OF_PARSING_US)
    kept = least_us <= most_us
    print(f"promise: {least_us:.2f} us a chunk, at most {most_us:.2f} here: {'kept' if kept else 'not kept'}")
    return 0 if kept or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
