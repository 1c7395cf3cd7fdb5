"""The token: who knows it is let in, however it was sent."""

import asyncio
import base64

import httpx
import pytest
from fastapi import FastAPI

from collector.doors.gate import TokenGate, given

SENT = {
    "the bearer form": b"Bearer s3cret",
    "any case of it": b"bearer  s3cret ",
    "the password of basic": b"Basic " + base64.b64encode(b"me:s3cret"),
}
WRONG = {
    "none": b"",
    "another": b"Bearer other",
    "another scheme": b"Digest s3cret",
    "the name of basic": b"Basic " + base64.b64encode(b"s3cret:"),
    "rubbish": b"Basic !!!",
    "bytes beyond ascii": "Bearer é".encode(),
}


def status(authorization: bytes | None, path: str = "/") -> int:
    app = FastAPI()

    @app.get("/{rest:path}")
    async def anything(rest: str) -> str:
        return rest

    async def ask() -> int:
        transport = httpx.ASGITransport(TokenGate(app, "s3cret"))
        headers = [] if authorization is None else [(b"authorization", authorization)]
        async with httpx.AsyncClient(transport=transport, base_url="http://c") as client:
            answer = await client.get(path, headers=headers)
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"].startswith("Basic")
        return answer.status_code

    return asyncio.run(ask())


@pytest.mark.parametrize("case", SENT)
def test_who_knows_it_is_let_in(case: str) -> None:
    assert given(SENT[case]) == b"s3cret"
    assert status(SENT[case]) == 200


@pytest.mark.parametrize("case", WRONG)
def test_who_does_not_is_asked_for_it(case: str) -> None:
    assert status(WRONG[case]) == 401


def test_health_needs_none() -> None:
    assert status(None) == 401
    assert status(None, "/healthz") == status(None, "/readyz") == 200
    assert status(None, "/healthz/") == 401
