"""A sitting against a real socket: what it keeps, and that the knob is turned back however it ends."""

import asyncio

import numpy as np
import pytest

from capacity.batch.fit import Mix
from capacity.batch.knob import Route
from capacity.batch.search import Plan
from capacity.batch.server import Server
from capacity.batch.sitting import Account, sit, turned_back
from capacity.batch.trial import Ask, AskHeld, AskOpen, Held, Opened
from capacity.certify.promises import Promises
from tests.capacity.batch.batch_server import Batching
from tests.capacity.batch.support import TPOT, TTFT, setting
from tests.capacity.sse_server import serve

GOOD = np.zeros(10, dtype=np.int8)


def test_an_account_keeps_of_each_run_the_longest_answer() -> None:
    account = Account()
    held = Held(Mix(1, 2), 0.01, (0.02,), (GOOD,), 5.0, 2.0)
    account.hear(AskHeld(2, "stated", 10), held)
    account.hear(AskHeld(2, "stated", 20), held)
    account.hear(AskHeld(2, "short answers", 20), held)
    account.hear(AskOpen(2, 3.0, 10), Opened((GOOD - 1,), 3.0, is_client_late=True))
    assert [run.ask.requests for run in account.runs] == [20, 20, 10]
    first, _, last = (run.as_json() for run in account.runs)
    assert first["kind"] == "held"
    assert (first["step_s"], first["tail_s"], first["ends_rps"]) == (0.01, (0.02,), 5.0)
    assert (last["kind"], last["rate_rps"], last["events"], last["is_client_late"]) == ("open", 3.0, [0], True)


@pytest.mark.anyio
async def test_a_cancelled_sitting_has_its_runs_and_the_knob_is_back() -> None:
    batching, account = Batching(0.002, max_batch=6), Account()
    began = asyncio.Event()

    def on_ask(ask: Ask, _account: Account) -> None:
        if ask.batch == 2:
            began.set()

    async with serve(batching) as at:
        held, opened = Promises((TPOT,), ()), Promises((TTFT,), ())
        server = Server(setting(at.url), held, opened, Route(f"{at.url}/admin/batch"))
        plan = Plan(held.goals, (0.06,), opened.goals, 0.3, 4, least_requests=20)
        going = asyncio.create_task(sit(server, plan, account, on_ask=on_ask, on_kept=lambda: None))
        ended = asyncio.create_task(turned_back(server, going))
        await began.wait()
        going.cancel()
        assert await ended is None
    assert [run.ask.batch for run in account.runs] == [1]
    assert batching.turned[-1] == 6
