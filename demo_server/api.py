"""The HTTP face: OpenAI's generation routes, vLLM's service routes, and an admin route for faults, on FastAPI.

Routes only read, ask and translate: bodies are judged in `intake`, replies are written in `answers`, work is done
by the engine. Errors leave in OpenAI's form from one place.
"""

import asyncio
import ipaddress
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from demo_server.answers import BROKEN, Answer
from demo_server.engine import Engine
from demo_server.errors import (
    BadRequestError,
    EngineFailedError,
    ForbiddenError,
    QueueFullError,
    RequestError,
    TooLargeError,
)
from demo_server.faults import HEALTHY, ErrorDice, changed
from demo_server.handover import Handover
from demo_server.intake import MAX_BODY_BYTES, Asked, Served, read_chat, read_completion
from demo_server.metrics import PAGE_TYPE, Metrics
from demo_server.replies import Stamp, error_body

STOP_TIMEOUT_S = 1.0
RETRY_AFTER_S = 1
MAX_BATCH, MAX_TOKEN_BUDGET = 1024, 65_536
MOST = {"max_batch": MAX_BATCH, "token_budget": MAX_TOKEN_BUDGET}
PROXY_FIELDS = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
MAX_REQUEST_ID_CHARS = 128
"""Longer ones are cut: the id is repeated in every event."""


@dataclass(frozen=True, slots=True)
class Service:
    """What the routes speak for."""

    engine: Engine
    metrics: Metrics
    served: Served
    version: str
    seed: int = 0


def build_app(service: Service, handover: Handover) -> FastAPI:
    """The application; its lifespan is the engine's."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        handover.start(asyncio.get_running_loop())
        yield
        await asyncio.to_thread(service.engine.stop, STOP_TIMEOUT_S)

    app = FastAPI(
        title="demo_server",
        lifespan=lifespan,
        openapi_url=None,
        # Newer FastAPI reports to OpenTelemetry by itself; an engine's own signals are for its scraper alone.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    _add_generation(app, service, handover)
    _add_service(app, service)
    _add_admin(app, service.engine)
    app.add_exception_handler(RequestError, _answer_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(ClientDisconnect, _answer_nobody)
    return app


def _add_generation(app: FastAPI, service: Service, handover: Handover) -> None:
    dice = ErrorDice(service.seed)

    async def answer(request: Request, read: Callable[[bytes, Served], Asked], prefix: str) -> Response:
        asked = read(await _body(request), service.served)
        generation = asked.generation
        mishap = dice.throw(service.engine.faults.errors)
        if mishap is not None:
            if mishap.after_tokens is None:
                raise EngineFailedError(BROKEN)
            generation = generation.breaking_after(mishap.after_tokens)
        given = request.headers.get("x-request-id", "")[:MAX_REQUEST_ID_CHARS]
        stamp = Stamp(f"{prefix}-{given or uuid.uuid4().hex}", int(time.time()), generation.model)
        return Answer(handover, handover.open(generation), asked=asked, stamp=stamp)

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        return await answer(request, read_chat, "chatcmpl")

    @app.post("/v1/completions")
    async def completions(request: Request) -> Response:
        return await answer(request, read_completion, "cmpl")


def _add_service(app: FastAPI, service: Service) -> None:
    started_s = int(time.time())

    @app.get("/v1/models")
    async def models() -> JSONResponse:
        card = {"object": "model", "created": started_s, "owned_by": "demo_server"}
        served = service.served
        cards = [{"id": name, **card, "max_model_len": served.max_model_len} for name in served.models]
        return JSONResponse({"object": "list", "data": cards})

    @app.get("/health")
    async def health() -> Response:
        return Response(status_code=200 if service.engine.failure is None else 503)

    @app.get("/version")
    async def version() -> JSONResponse:
        return JSONResponse({"version": service.version})

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.page(), media_type=PAGE_TYPE)


def _add_admin(app: FastAPI, engine: Engine) -> None:
    def faults_now() -> JSONResponse:
        return JSONResponse(engine.faults.as_json())

    @app.get("/admin/faults")
    async def show_faults(request: Request) -> JSONResponse:
        _require_loopback(request)
        return faults_now()

    @app.post("/admin/faults")
    async def change_faults(request: Request) -> JSONResponse:
        _require_loopback(request)
        engine.set_faults(changed(engine.faults, await _json_object(request)))
        return faults_now()

    @app.delete("/admin/faults")
    async def clear_faults(request: Request) -> JSONResponse:
        _require_loopback(request)
        engine.set_faults(HEALTHY)
        return faults_now()

    def batch_now() -> JSONResponse:
        policy = engine.policy
        return JSONResponse({"max_batch": policy.max_batch, "token_budget": policy.token_budget})

    @app.get("/admin/batch")
    async def show_batch(request: Request) -> JSONResponse:
        _require_loopback(request)
        return batch_now()

    @app.post("/admin/batch")
    async def change_batch(request: Request) -> JSONResponse:
        _require_loopback(request)
        limits = _limits(await _json_object(request))
        engine.set_policy(engine.policy.changed(**limits))  # of the policy as it is by now: bodies take their time
        return batch_now()


def _limits(asked: dict[str, object]) -> dict[str, int]:
    """The limits that a body changes. Raises BadRequestError."""
    wanted: dict[str, int] = {}
    for name, value in asked.items():
        if type(value) is not int or not 1 <= value <= MOST.get(name, 0):
            raise BadRequestError(
                f'send {{"max_batch": N, "token_budget": T}} or one of them, N from 1 to {MAX_BATCH}, '
                f"T from 1 to {MAX_TOKEN_BUDGET}",
                param=name,
            )
        wanted[name] = value
    if not wanted:
        raise BadRequestError('send {"max_batch": N}, {"token_budget": T} or both', param="max_batch")
    return wanted


def _require_loopback(request: Request) -> None:
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = ipaddress.ip_address("::")
    if not _is_loopback(address) or not _is_asked_here(request):
        raise ForbiddenError("admin routes answer to this machine only")


def _is_loopback(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _is_asked_here(request: Request) -> bool:
    """Whether the client took this for its own machine: a proxy on it, or a page in its browser, brings others' wishes.

    No wall against a client that lies: only the address is, where no proxy stands before it.
    """
    if any(name in request.headers for name in PROXY_FIELDS):
        return False
    host = request.headers.get("host", "localhost")
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    try:
        return _is_loopback(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        return name.lower() == "localhost"


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise TooLargeError(f"the body is longer than {MAX_BODY_BYTES} bytes")
    return bytes(body)


async def _json_object(request: Request) -> dict[str, object]:
    try:
        value = json.loads(await _body(request))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BadRequestError("the body is not a JSON object")
    return value


async def _answer_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    headers = {"retry-after": str(RETRY_AFTER_S)} if isinstance(error, QueueFullError) else None
    return Response(error_body(error), status_code=error.status, headers=headers, media_type="application/json")


async def _answer_nobody(_request: Request, _error: Exception) -> Response:
    """The client left while it was sending: no fault of ours, and nobody reads this."""
    return Response(status_code=400)


async def _answer_http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    translated = RequestError(str(error.detail))
    translated.status = error.status_code
    translated.kind = "NotFoundError" if error.status_code == 404 else "BadRequestError"
    return Response(
        error_body(translated), status_code=error.status_code, headers=error.headers, media_type="application/json"
    )
