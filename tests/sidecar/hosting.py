"""Apps with the middleware inside a real server on this loop, and what its eye saw."""

import asyncio
import contextlib
import functools
import http.client
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

from sidecar.counting.histogram import LogBuckets
from sidecar.judging.eye import Eye
from sidecar.middleware import FirstTokenMiddleware
from sidecar.serving.telemetry import Telemetry
from sidecar.within.asgi import App, Message, Receive, Scope, Send
from slo.signals import REQUESTS, SLO_EVENTS
from tests.sidecar.rig import CHAT, connected

PATIENT_S = 60.0


def on_asyncio(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on the standard library's loop; a hang is a failure."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), PATIENT_S))

    return run


def alone(monkeypatch: pytest.MonkeyPatch, **environ: str) -> None:
    """Nothing of this process's environment configures the middleware but `environ`; no page unless asked for."""
    import os

    for name in [name for name in os.environ if name.startswith(("FIRSTTOKEN_", "OTEL_"))]:
        monkeypatch.delenv(name)
    for name, value in {"FIRSTTOKEN_ADMIN": "off", "FIRSTTOKEN_SCRAPE": "off", **environ}.items():
        monkeypatch.setenv(name, value)


def event(text: str, model: str = "m") -> str:
    """A chat event as servers write it, with everything that does not change around the text."""
    choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}
    chunk = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"


STOP = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


@dataclass
class Seen:
    """What the app saw of its requests."""

    headers: list[dict[str, str]] = field(default_factory=list)
    cancelled: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)


def chat_app(seen: Seen | None = None) -> FastAPI:
    """A chat server: `how`, in the request, says what becomes of it."""
    seen = seen or Seen()
    app = FastAPI()
    app.state.seen = seen

    async def tokens(asked: dict[str, Any]) -> AsyncIterator[str]:
        try:
            for number in range(asked.get("tokens", 3)):
                if asked.get("how") == "hang after one" and number == 1:
                    await seen.gate.wait()
                if asked.get("how") == "break after one" and number == 1:
                    raise ValueError(asked["secret"])
                yield event(f" t{number}\n", asked["model"])
                await asyncio.sleep(asked.get("pause_s", 0))
            yield STOP
        except asyncio.CancelledError:
            seen.cancelled += 1
            raise
        finally:
            seen.closed.set()

    @app.post(CHAT, response_model=None)
    async def chat(request: Request) -> StreamingResponse | JSONResponse:
        seen.headers.append(dict(request.headers))
        asked = await request.json()
        match asked.get("how"):
            case "hang":
                await seen.gate.wait()
            case "break":
                raise ValueError(asked["secret"])
            case "busy":
                return JSONResponse({"error": {"type": "overloaded"}}, 503)
        if asked.get("stream"):
            return StreamingResponse(tokens(asked), media_type="text/event-stream")
        message = {"message": {"content": "hi"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 5}
        return JSONResponse({"model": asked["model"], "choices": [message], "usage": usage})

    @app.post("/echo")
    async def echo(request: Request) -> PlainTextResponse:
        return PlainTextResponse(await request.body())

    return app


@dataclass
class Hosted:
    """A served app, and the middleware within."""

    port: int
    middleware: FirstTokenMiddleware

    @property
    def telemetry(self) -> Telemetry[Eye]:
        assert self.middleware._attachment is not None
        return self.middleware._attachment.telemetry

    def client(self) -> contextlib.AbstractAsyncContextManager[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection of its own."""
        return connected(self.port)

    async def raw(self, request: bytes) -> bytes:
        """Everything that is answered to a request that ends its connection."""
        async with self.client() as (reader, writer):
            writer.write(request)
            return await reader.read()

    async def ask(self, *fields: str, path: str = CHAT, **asked: Any) -> bytes:
        return await self.raw(request(*fields, "Connection: close", path=path, **asked))

    def counts(self) -> dict[tuple[str, str], int]:
        """Requests by model and outcome, without zeros."""
        found: dict[tuple[str, str], int] = {}
        for point in self.telemetry.tally.totals():
            if point.metric is REQUESTS and point.value:
                values = [value for _, value in point.attributes]
                found[values[0], values[1]] = found.get((values[0], values[1]), 0) + int(point.value)
        return found

    def events(self) -> dict[tuple[str, str, str], int]:
        """SLO events by model, objective and result, without zeros."""
        found: dict[tuple[str, str, str], int] = {}
        for point in self.telemetry.tally.totals():
            if point.metric is SLO_EVENTS and point.value:
                values = [value for _, value in point.attributes]
                found[values[0], values[1], values[3]] = int(point.value)
        return found

    def latencies(self) -> dict[tuple[str, str], LogBuckets]:
        """Histograms that hold a value, by metric name and model."""
        _, distributions = self.telemetry.tally.take(delta=False)
        return {(point.metric.name, point.attributes[0][1]): point.buckets for point in distributions}


def request(*fields: str, path: str = CHAT, **asked: Any) -> bytes:
    """A request with a JSON body."""
    body = json.dumps({"model": "m", "messages": [], **asked}).encode()
    head = [f"POST {path} HTTP/1.1", "Host: api.test", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join([*head, "", ""]).encode() + body


@contextlib.asynccontextmanager
async def served(app: App, *, http: str = "h11", lifespan: str = "on") -> AsyncIterator[int]:
    """Any app under uvicorn on a free port; shut down as a signal would."""
    config = uvicorn.Config(
        app,
        http=http,  # type: ignore[arg-type]
        lifespan=lifespan,  # type: ignore[arg-type]
        log_config=None,
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.005)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


@contextlib.asynccontextmanager
async def hosted(app: FastAPI | App, *, http: str = "h11", lifespan: str = "on") -> AsyncIterator[Hosted]:
    """An app with the middleware in it: added as FastAPI adds it, or around a plain one."""
    if isinstance(app, FastAPI):
        app.add_middleware(FirstTokenMiddleware)
        middleware, whole = within(app), app
    else:
        middleware = whole = FirstTokenMiddleware(app)  # type: ignore[assignment]
    async with served(whole, http=http, lifespan=lifespan) as port:  # type: ignore[arg-type]
        yield Hosted(port, middleware)


def within(app: FastAPI) -> FirstTokenMiddleware:
    """The middleware among those of an app; from then on no other can be added."""
    app.middleware_stack = layer = app.build_middleware_stack()
    while not isinstance(layer, FirstTokenMiddleware):
        layer = layer.app  # type: ignore[attr-defined]
    return layer


def plain(handle: Callable[[Scope, Receive, Send], Awaitable[None]]) -> App:
    """A bare ASGI app with a life."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await handle(scope, receive, send)
            return
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    return app


def head(kind: str = "text/event-stream", status: int = 200) -> Message:
    return {"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]}


def piece(data: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


def get(port: int, path: str) -> tuple[int, str]:
    """A page, fetched from another thread than the loop's."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
