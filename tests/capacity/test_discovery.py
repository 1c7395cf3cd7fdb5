"""Asking a server what it serves."""

import asyncio
import socket

import pytest

from capacity.client import Target, target
from capacity.discovery import first_model
from capacity.errors import UnreachableError
from tests.capacity.sse_server import Step, refusal, serve


async def ask(status: int, body: bytes) -> str:
    def script(_body: dict[str, object], _index: int) -> list[Step]:
        return [refusal(status, body)]

    async with serve(script) as server:
        return await asyncio.to_thread(first_model, target(server.url))


@pytest.mark.anyio
async def test_the_first_model_listed_is_it() -> None:
    assert await ask(200, b'{"data": [{"id": "small"}, {"id": "large"}]}') == "small"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b"{}"),
        (200, b"no json"),
        (200, b'{"data": []}'),
        (200, b"[]"),
        (200, b'{"data": [{"id": 7}]}'),
        (200, b"[" * 100_000),
        (200, b'{"data": [{"id": "\\ud800"}]}'),
    ],
)
@pytest.mark.anyio
async def test_an_answer_without_a_model_says_what_to_do(status: int, body: bytes) -> None:
    with pytest.raises(UnreachableError, match=rf"/v1/models answers {status} .* --target right.* --model"):
        await ask(status, body)


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(UnreachableError, match="does not answer"):
            first_model(Target("127.0.0.1", taken.getsockname()[1]))
