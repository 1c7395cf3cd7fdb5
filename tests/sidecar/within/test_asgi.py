"""A page asked of an app from within."""

import asyncio

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, StreamingResponse

from sidecar import limits
from sidecar.polling.poller import PollError
from sidecar.within.asgi import ITSELF, App, InnerPages, Receive, Scope, Send
from tests.sidecar.hosting import head, on_asyncio, piece


@on_asyncio
async def test_a_page_of_a_real_app_and_what_its_state_knows() -> None:
    app = FastAPI()
    app.state.model = "m"

    @app.get("/metrics")
    async def metrics(request: Request) -> PlainTextResponse:
        request.state.mine = 1
        return PlainTextResponse(f"up{{model='{request.app.state.model}'}} {request.state.lived} {request.client}")

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        return StreamingResponse(iter(["a", "b"]))

    state = {"lived": 7}
    pages = InnerPages(app, {"type": "lifespan", "app": app, "state": state})  # type: ignore[arg-type]
    assert (await pages.get(ITSELF, "/metrics")).startswith(b"up{model='m'} 7 ")
    assert await pages.get(ITSELF, "/stream") == b"ab"
    assert state == {"lived": 7}
    with pytest.raises(PollError, match=r"^http_404$"):
        await pages.get(ITSELF, "/v1/models")


async def broken(_: Scope, __: Receive, ___: Send) -> None:
    raise ValueError("of the app")


async def silent(_: Scope, __: Receive, ___: Send) -> None:
    pass


async def headless(_: Scope, __: Receive, send: Send) -> None:
    await send(piece(b"x"))


async def endless(_: Scope, __: Receive, send: Send) -> None:
    await send(head("text/plain"))
    while True:
        await send(piece(b"x" * (1 << 20)))


async def listening(_: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await receive()
    await send(head("text/plain"))


FAILURES = {
    "app_error": broken,
    "cut_short": silent,
    "too_large": endless,
    "timeout": listening,
}


@pytest.mark.parametrize("reason", FAILURES)
def test_why_there_is_no_page(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCRAPE_TIMEOUT_S", 0.2 if reason == "timeout" else 30.0)
    app: App = FAILURES[reason]

    async def ask() -> None:
        with pytest.raises(PollError, match=f"^{reason}$"):
            await InnerPages(app, {}).get(ITSELF, "/metrics")

    asyncio.run(ask())


def test_a_body_without_a_head_is_no_page() -> None:
    async def ask() -> None:
        with pytest.raises(PollError, match=r"^cut_short$"):
            await InnerPages(headless, {}).get(ITSELF, "/metrics")

    asyncio.run(ask())
