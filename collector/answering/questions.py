"""The routes of `/api/v1/...`: what is asked is checked (`asked`), read (`reads`) and answered (`answers`).

An answer is bytes made from rows; the models describe it and are not run over every row. Whatever goes wrong is one
line under `error`: 422 for a parameter, 400 for a contradiction among them, 503 with Retry-After when the database is
away or too much is asked.
"""

from collections.abc import Callable
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy.engine import Connection

from collector.answering import answers, reads
from collector.answering.asked import AlertsAsked, BudgetAsked, BurnAsked, PercentilesAsked, StatusAsked, WhatIfAsked
from collector.answering.desk import Desk
from collector.answering.reads import Found
from collector.answering.whatif_json import whatif_json
from collector.errors import CollectorError, RefusedError, UnavailableError

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": answers.Problem, "description": "Parameters that contradict each other"},
    422: {"model": answers.Problem, "description": "A parameter that is wrong, or that nobody knows"},
    503: {"model": answers.Problem, "description": "The database cannot be read now, or too much is asked"},
}


def add_questions(app: FastAPI, desk: Desk) -> None:
    """Let the application answer questions about figures and alerts."""
    app.add_exception_handler(RequestValidationError, _misspelt)
    app.add_exception_handler(CollectorError, _refused)
    router = APIRouter(prefix="/api/v1", tags=["figures"], responses=_PROBLEMS)
    _add_status(router, desk)
    _add_figures(router, desk)
    _add_alerts(router, desk)
    _add_whatif(router, desk)
    app.include_router(router)


def _add_status(router: APIRouter, desk: Desk) -> None:
    @router.get("/status", summary="Every objective as it stands", response_model=answers.Status)
    async def current(asked: Annotated[StatusAsked, Query()]) -> Response:
        """Objectives with their windows, budgets, percentiles and alerts, as the last evaluation found them."""
        return _json(await desk.status_body(asked))


def _add_figures(router: APIRouter, desk: Desk) -> None:
    async def found(ask: Callable[[Connection], Found]) -> Response:
        page = await desk.reader.read(ask)
        return _json(orjson.dumps({"rows": page.rows, "next": page.next}))

    @router.get("/percentiles", summary="Latency percentiles", response_model=answers.Percentiles)
    async def percentiles(asked: Annotated[PercentilesAsked, Query()]) -> Response:
        """The latest, or those of a stretch of time; with `instance` those of one sender as of now."""
        tick_s = desk.store.ledger.plan.tick_s
        return await found(lambda connection: reads.percentiles(connection, asked, now_s=_now_s(desk), tick_s=tick_s))

    @router.get("/burn", summary="Burn rates", response_model=answers.Burns)
    async def burn(asked: Annotated[BurnAsked, Query()]) -> Response:
        """Of each objective, model and window: the latest, or those of a stretch of time."""
        return await found(lambda connection: reads.burns(connection, asked, now_s=_now_s(desk)))

    @router.get("/budget", summary="Error budgets", response_model=answers.Budgets)
    async def budget(asked: Annotated[BudgetAsked, Query()]) -> Response:
        """Of each objective and model: the latest, or those of a stretch of time."""
        return await found(lambda connection: reads.budgets(connection, asked, now_s=_now_s(desk)))


def _add_alerts(router: APIRouter, desk: Desk) -> None:
    @router.get("/alerts", summary="Alerts now, and their history", response_model=answers.Alerts)
    async def alerts(asked: Annotated[AlertsAsked, Query()]) -> Response:
        """Those pending or firing now, and every transition of the last day or of a stretch of time."""

        def work(connection: Connection) -> tuple[list[reads.Row], Found]:
            return reads.present(connection, asked), reads.transitions(connection, asked, now_s=_now_s(desk))

        now, history = await desk.reader.read(work)
        return _json(orjson.dumps({"alerts": now, "history": history.rows, "next": history.next}))


def _add_whatif(router: APIRouter, desk: Desk) -> None:
    @router.get("/whatif", summary="What another promise would have cost", response_model=answers.WhatIf)
    async def other(asked: Annotated[WhatIfAsked, Query()]) -> Response:
        """An objective with another percentile or threshold, over the stored past: budget and alerts, with bounds."""
        found = await desk.hindsight.whatif(asked, now_s=desk.ticks.clock())
        return _json(orjson.dumps(whatif_json(found)))


def _now_s(desk: Desk) -> int:
    """The moment that figures without an end reach to: a tick may be a little ahead of the clock."""
    latest = desk.ticks.latest
    return max(int(desk.ticks.clock()), latest.at_s if latest else 0)


def _json(content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(content, status, headers, media_type="application/json")


def _problem(status: int, line: str, headers: dict[str, str] | None = None) -> Response:
    return _json(orjson.dumps({"error": line}), status, headers)


async def _misspelt(_request: Request, error: Exception) -> Response:
    """The first thing that is wrong with the parameters, in one line."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name = str(first["loc"][-1])
    if first["type"] == "extra_forbidden":
        return _problem(422, f"{name}: there is no such parameter: see /api/openapi.json")
    return _problem(422, f"{name}: {first['msg'].removeprefix('Value error, ')}")


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, CollectorError)
    if isinstance(error, RefusedError):
        return _problem(error.status, str(error))
    retry = {"retry-after": str(error.retry_after_s)} if isinstance(error, UnavailableError) else None
    return _problem(503 if retry else 500, str(error), retry)
