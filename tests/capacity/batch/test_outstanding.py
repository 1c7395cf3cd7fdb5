"""Exactly so many outstanding, on a real socket."""

import asyncio

import pytest

from capacity.batch.outstanding import Outstanding
from capacity.errors import UnreachableError
from tests.capacity.batch.support import setting
from tests.capacity.sse_server import Step, answer, refusal, serve


@pytest.mark.anyio
async def test_as_many_are_outstanding_as_asked_and_never_more() -> None:
    open_now, most = 0, 0

    def script(body: dict[str, object], index: int) -> list[Step]:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        asyncio.get_running_loop().call_later(0.02, ended)
        return [0.02, *answer(body, index)]

    def ended() -> None:
        nonlocal open_now
        open_now -= 1

    async with serve(script) as server:
        run = Outstanding(setting(server.url), 5, "held 1")
        try:
            few, more = await run.until(20), await run.until(40)
        finally:
            await run.end()
    assert most == 5
    assert more[:20] == few
    assert all(record.outcome == "ok" for record in more)
    tokens = [body["max_tokens"] for body in server.requests]
    assert all(isinstance(each, int) and 1 <= each <= 3 for each in tokens[:5])
    assert set(tokens[5:]) == {3}


@pytest.mark.anyio
async def test_a_server_that_answers_nothing_well_is_said() -> None:
    async with serve(lambda _body, _index: [refusal(500, b"no")]) as server:
        run = Outstanding(setting(server.url), 8, "held 1")
        try:
            with pytest.raises(UnreachableError, match="8 at once, was answered well"):
                await run.until(400)
        finally:
            await run.end()
