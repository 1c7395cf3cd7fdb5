"""The server as the search sees it: its knob is turned, it is held full or loaded, and turned back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from capacity.batch.fit import Mix
from capacity.batch.knob import Route
from capacity.batch.server import Server, mixed
from capacity.batch.trial import AskHeld, AskOpen, Held, Opened
from capacity.certify.lengths import Lengths, lengths
from capacity.certify.promises import Promises
from capacity.record import Record
from tests.capacity.batch.batch_server import Batching
from tests.capacity.batch.support import TPOT, TTFT, setting
from tests.capacity.sse_server import serve


@asynccontextmanager
async def served(batching: Batching, *, batch_now: int | None = None) -> AsyncIterator[Server]:
    async with serve(batching) as at:
        held, opened = Promises((TPOT,), ()), Promises((TTFT,), ())
        server = Server(setting(at.url), held, opened, Route(f"{at.url}/admin/batch"), batch_now)
        await server.begin()
        try:
            yield server
        finally:
            await server.turn_back(None)


@pytest.mark.anyio
async def test_a_full_server_shows_its_step_and_the_knob_is_turned_back() -> None:
    batching = Batching(0.004, max_batch=6)
    async with served(batching) as server:
        assert server.batch_before == 6
        three = await server.answer(AskHeld(3, "stated", 20))
        more = await server.answer(AskHeld(3, "stated", 30))
        assert batching.turned == [3]
        short = await server.answer(AskHeld(2, "short prompts", 20))
        assert batching.turned == [3, 2]
    assert batching.turned == [3, 2, 6]
    assert isinstance(three, Held)
    assert isinstance(more, Held)
    assert isinstance(short, Held)
    assert (more.bad[0][:20] == three.bad[0]).all()
    assert three.step_s >= 0.004
    assert three.tails[0] >= three.step_s / 2
    assert (three.mix, short.mix) == (Mix(30, 3), Mix(7.5, 3))
    assert three.rate_rps > 0


@pytest.mark.anyio
async def test_open_loop_load_is_judged_by_the_promises_of_a_wait_alone() -> None:
    async with served(Batching(0.002)) as server:
        seen = await server.answer(AskOpen(4, 40.0, 20))
        more = await server.answer(AskOpen(4, 40.0, 30))
    assert isinstance(seen, Opened)
    assert isinstance(more, Opened)
    assert (len(seen.bad), seen.bad[0].size, more.bad[0].size) == (1, 20, 30)


@pytest.mark.anyio
async def test_what_it_had_before_may_be_stated_and_else_the_chosen_one_stays() -> None:
    class Mute(Route):
        async def now(self) -> int | None:
            return None

    for stated, left in ((5, 5), (None, 3)):
        batching = Batching(0.001)
        async with serve(batching) as at:
            held, opened = Promises((TPOT,), ()), Promises((TTFT,), ())
            server = Server(setting(at.url), held, opened, Mute(f"{at.url}/b"), stated)
            await server.begin()
            await server.answer(AskHeld(2, "stated", 20))
            await server.turn_back(3)
        assert batching.max_batch == left


def test_other_mixes_are_shorter_in_one_way_alone() -> None:
    spans = lengths("100-200:40-80")
    assert mixed(spans, "stated") == spans
    assert mixed(spans, "short prompts").mean == (37.5, 60)
    assert mixed(spans, "short answers").mean == (150, 15)
    traced = replace(Lengths("trace"), pairs=((100, 40), (1, 1)))
    assert mixed(traced, "stated") == traced
    assert mixed(traced, "short prompts").pairs == ((25, 40), (1, 2))


@pytest.mark.anyio
async def test_a_request_that_fails_is_no_work_that_was_done() -> None:
    async with served(Batching(0.001)) as server:
        ends = [(n, "ok" if n % 4 == 0 else "rejected") for n in range(21)]
        records = [
            Record("m", n - 0.5, n, outcome, first_token_s=n - 0.4, last_token_s=n - 0.2, output_tokens=3)
            for n, outcome in ends
        ]
        seen = server._seen(AskHeld(2, "stated", 21), records)
    assert (seen.rate_rps, seen.seconds) == (5 / 20, 20)
    assert int(seen.bad[0].sum()) == 21, "steps of 100 ms are too slow, and what failed is bad"
