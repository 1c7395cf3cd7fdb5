"""The collector's HTTP behind OTLP (`post`): status, metrics and the page out (DESIGN 4.5). A thin border.

It turns requests into calls and values into bytes, and knows no number's meaning. FastAPI's own telemetry is off: a
collector that reported its own requests to itself would never be quiet.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from collector.answering import exposition
from collector.answering.desk import Desk
from collector.answering.questions import add_questions
from collector.doors import post
from collector.pages import filters, page

PING_S = 15
MAX_VIEWERS = 64
LEAST_PACKED_BYTES = 1_000
"""What is shorter is sent as it is."""
PACKING = 5
"""Level of gzip."""
_ABOUT = (
    "Percentiles, burn rates, budgets and alerts of LLM services. An unknown figure is null, never 0 or NaN. "
    "With `--token-file` every path but /healthz and /readyz asks for `Authorization: Bearer TOKEN`, and answers 401 "
    "without it."
)
_NOT_NOW = {"description": "Not now, and why", "content": {"text/plain": {"schema": {"type": "string"}}}}


def application(desk: Desk) -> FastAPI:
    """The ASGI application."""
    app = _Application(
        title="firsttoken collector",
        description=_ABOUT,
        version=desk.version,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    add_questions(app, desk)
    _add_looks(app, desk)
    _add_pages(app, desk)
    return app


class _Application(FastAPI):
    """Describes what stands before it too."""

    def openapi(self) -> dict[str, Any]:
        described = super().openapi()
        described["paths"] |= post.DESCRIBED
        return described


def _add_looks(app: FastAPI, desk: Desk) -> None:
    @app.get("/api/v1/ticks", summary="Server-sent events: one after each evaluation", **_text("text/event-stream"))
    async def ticks() -> Response:
        if desk.viewers >= MAX_VIEWERS:
            return Response("too many viewers\n", 503, media_type="text/plain")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_events(desk), media_type="text/event-stream", headers=headers)

    @app.get("/metrics", summary="Prometheus metrics", **_text("text/plain", "application/openmetrics-text"))
    async def metrics(request: Request) -> Response:
        # Beside the loop: with thousands of models the text takes its time.
        scene, accept = await _scene(desk), request.headers.get("accept", "")
        content, media_type = await asyncio.to_thread(exposition.rendered, scene, accept)
        return Response(content, headers={"content-type": media_type})

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", summary="Whether the process lives", **_text("text/plain"))
    async def healthy() -> Response:
        return Response("ok\n", media_type="text/plain")

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", summary="Whether it may be relied on, else why not", **_text("text/plain"))
    async def ready() -> Response:
        trouble = desk.trouble()
        return Response(f"{trouble or 'ready'}\n", 503 if trouble else 200, media_type="text/plain")


def _add_pages(app: FastAPI, desk: Desk) -> None:
    @app.get("/", include_in_schema=False)
    async def front(request: Request) -> Response:
        shown = await desk.page(filters.read(request.query_params))
        return _html(request, page.front(shown, trouble=desk.trouble()))

    @app.get("/objectives/{service}/{objective}", include_in_schema=False)
    async def one(request: Request, service: str, objective: str) -> Response:
        found = await desk.drill(service, objective, request.query_params)
        if found is None:
            return Response("no such objective\n", 404, page.HEADERS, media_type="text/plain")
        return _html(request, page.objective(*found, trouble=desk.trouble()))

    @app.get("/static/{name}", include_in_schema=False)
    async def static(request: Request, name: str) -> Response:
        if name not in page.STATIC:
            return Response("no such file\n", 404, page.HEADERS, media_type="text/plain")
        return _packed(request, page.static(name), page.STATIC[name])


def _text(*forms: str) -> dict[str, Any]:
    """How a route that answers no JSON is described."""
    found = {"description": "It is so", "content": {form: {"schema": {"type": "string"}} for form in forms}}
    return {"response_class": Response, "responses": {200: found, 503: _NOT_NOW}}


def _html(request: Request, text: str) -> Response:
    return _packed(request, text.encode(), "text/html")


def _packed(request: Request, content: bytes, media_type: str) -> Response:
    """The content, compressed for whoever takes it so: fifty objectives are much alike."""
    headers = page.HEADERS | {"vary": "accept-encoding"}
    taken = (one.partition(";")[0].strip() for one in request.headers.get("accept-encoding", "").split(","))
    if len(content) >= LEAST_PACKED_BYTES and "gzip" in taken:
        content, headers = gzip.compress(content, PACKING), headers | {"content-encoding": "gzip"}
    return Response(content, headers=headers, media_type=media_type)


async def _scene(desk: Desk) -> exposition.Scene:
    return exposition.Scene(
        evaluation=desk.ticks.latest,
        specs=desk.store.ledger.plan.specs,
        reload_ok=desk.reload_ok,
        own=await desk.own(),
    )


async def _events(desk: Desk) -> AsyncIterator[bytes]:
    """One event a tick; a comment while none comes, so that a lost viewer is noticed."""
    desk.viewers += 1
    try:
        yield b"retry: 2000\n\n"
        while not desk.stopping.is_set():
            ticked = await desk.ticks.next_tick(PING_S)
            yield b"event: tick\ndata: {}\n\n" if ticked else b": still here\n\n"
    finally:
        desk.viewers -= 1
