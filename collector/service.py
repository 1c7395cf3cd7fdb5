"""The collector's HTTP: OTLP in, status, metrics and the page out (DESIGN 4.5). A thin border.

It turns requests into calls and values into bytes, and knows no number's meaning. FastAPI's own telemetry is off: a
collector that reported its own requests to itself would never be quiet.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from sqlalchemy.engine import Connection

from collector import exposition, history, intake, page, view
from collector.errors import UnavailableError
from collector.evaluate import Evaluation
from collector.status import status
from collector.store import Store
from collector.ticks import Ticks

PING_S = 15
MAX_VIEWERS = 64
LATE_TICKS = 6

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Desk:
    """What the routes work with. `stopping` is set when the process is to end, so that streams of events end too."""

    store: Store
    ticks: Ticks
    version: str
    reload_ok: bool = True
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    viewers: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    room: intake.Room = field(default_factory=intake.Room)
    _recent: history.Recent = field(init=False)
    _past: history.History | None = None

    def __post_init__(self) -> None:
        self._follow_plan()
        self.ticks.listeners.append(self._keep)

    def _follow_plan(self) -> None:
        self._recent = history.Recent(history.chart_window_s(self.store.ledger.plan.windows_s))

    def _keep(self, evaluation: Evaluation) -> None:
        if history.chart_window_s(self.store.ledger.plan.windows_s) != self._recent.window_s:
            self._follow_plan()
        self._recent.add(evaluation)

    @property
    def status(self) -> dict[str, Any]:
        return status(self.store.ledger.plan.specs, self.ticks.latest, self.ticks.alerts)

    async def past(self) -> history.History:
        """What the page shows of the past, read once a tick; of before, while the database cannot be read."""
        at_s = self.ticks.latest.at_s if self.ticks.latest else 0
        if self._past is None or self._past.until_s != at_s:
            try:
                self._past = await self.store.read(self._read_past)
            except UnavailableError as error:
                log.warning("the page shows no history: %s", error)
                return self._past or history.empty(at_s, window_s=self._recent.window_s)
        return self._past

    def _read_past(self, connection: Connection) -> history.History:
        until_s = self.ticks.latest.at_s if self.ticks.latest else 0
        return history.history(connection, until_s=until_s, recent=self._recent)

    async def seen(self) -> view.Page:
        """The page as values."""
        past, plan = await self.past(), self.store.ledger.plan
        return view.page(view.Seen(plan.specs, self.status, past, self.ticks.alerts, plan.tick_s))

    def trouble(self) -> str | None:
        """Why the collector is not ready, in words; None when it is."""
        if self.ticks.latest is None:
            return "not evaluated yet"
        if self.store.failing is not None:
            return f"the database cannot commit: {self.store.failing}"
        late_s = self.ticks.clock() - self.ticks.latest.at_s
        if late_s > LATE_TICKS * self.store.ledger.plan.tick_s:
            return f"the last evaluation is {late_s:.0f} s old"
        return None


def application(desk: Desk) -> FastAPI:
    """The ASGI application."""
    app = FastAPI(
        title="firsttoken collector",
        version=desk.version,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    _add_intake(app, desk)
    _add_reads(app, desk)
    _add_pages(app, desk)
    return app


def _add_intake(app: FastAPI, desk: Desk) -> None:
    @app.post("/v1/traces", summary="OTLP traces")
    async def traces(request: Request) -> Response:
        return await intake.taken("traces", request, desk.store, refused=desk.refused, room=desk.room)

    @app.post("/v1/metrics", summary="OTLP metrics")
    async def metrics(request: Request) -> Response:
        return await intake.taken("metrics", request, desk.store, refused=desk.refused, room=desk.room)


def _add_reads(app: FastAPI, desk: Desk) -> None:
    @app.get("/api/v1/status", summary="Every objective as it stands")
    async def current() -> Response:
        return Response(orjson.dumps(desk.status), media_type="application/json")

    @app.get("/api/v1/ticks", summary="Server-sent events: one after each evaluation")
    async def ticks() -> Response:
        if desk.viewers >= MAX_VIEWERS:
            return Response("too many viewers\n", 503, media_type="text/plain")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(_events(desk), media_type="text/event-stream", headers=headers)

    @app.get("/metrics", summary="Prometheus metrics")
    async def metrics(request: Request) -> Response:
        content, media_type = exposition.rendered(_scene(desk), request.headers.get("accept", ""))
        return Response(content, headers={"content-type": media_type})

    @app.get("/healthz", summary="Whether the process lives")
    async def healthy() -> Response:
        return Response("ok\n", media_type="text/plain")

    @app.get("/readyz", summary="Whether it evaluates and can commit")
    async def ready() -> Response:
        trouble = desk.trouble()
        return Response(f"{trouble or 'ready'}\n", 503 if trouble else 200, media_type="text/plain")


def _add_pages(app: FastAPI, desk: Desk) -> None:
    @app.get("/", include_in_schema=False)
    async def front() -> Response:
        return _html(page.front(await desk.seen()))

    @app.get("/objectives/{service}/{objective}", include_in_schema=False)
    async def one(service: str, objective: str) -> Response:
        seen = await desk.seen()
        for card in seen.cards:
            if (card.service, card.name) == (service, objective):
                return _html(page.objective(seen, card))
        return Response("no such objective\n", 404, page.HEADERS, media_type="text/plain")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in page.STATIC:
            return Response("no such file\n", 404, page.HEADERS, media_type="text/plain")
        return Response(page.static(name), headers=page.HEADERS, media_type=page.STATIC[name])


def _html(text: str) -> Response:
    return Response(text, headers=page.HEADERS, media_type="text/html")


def _scene(desk: Desk) -> exposition.Scene:
    return exposition.Scene(
        evaluation=desk.ticks.latest,
        specs=desk.store.ledger.plan.specs,
        reload_ok=desk.reload_ok,
        store=desk.store.tallies,
        ticks=desk.ticks.tallies,
        deliveries=desk.ticks.notifier.deliveries,
        refused=desk.refused,
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
