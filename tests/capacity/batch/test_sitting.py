"""A sitting against a real socket: what it keeps, and that the knob is turned back however it ends."""

import asyncio

import numpy as np
import pytest

from capacity.batch.fit import Mix
from capacity.batch.knob import Route
from capacity.batch.search import Outcome, Plan
from capacity.batch.server import Server
from capacity.batch.sitting import Account, Ended, sit, turned_back
from capacity.batch.trial import Ask, AskHeld, AskOpen, Held, Opened
from capacity.certify.promises import Promises
from capacity.errors import TargetError, UnreachableError, WorkloadError
from tests.capacity.batch.batch_server import Batching
from tests.capacity.batch.support import TPOT, TTFT, searched, setting
from tests.capacity.batch.test_search import exact, plan
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
        ended = asyncio.create_task(turned_back(server, going, lambda _: None))
        await began.wait()
        going.cancel()
        assert await ended == Ended(None)
    assert [run.ask.batch for run in account.runs] == [1]
    assert batching.turned[-1] == 6


@pytest.mark.anyio
async def test_an_outcome_is_kept_before_a_knob_that_fails_on_the_way_back() -> None:
    outcome, _ = searched(plan(), exact(lambda n: 0.01 + 0.001 * n, limit_s=0.0505, carries_rps=lambda _: 9.0))
    kept: list[Outcome] = []

    async def found() -> Outcome:
        return outcome

    async def unreachable() -> Outcome:
        raise UnreachableError("nobody answers")

    async def broken() -> Outcome:
        raise ZeroDivisionError

    def full(_: Outcome) -> None:
        raise WorkloadError("no space")

    # It says that it was set to 70, and takes no more than 64.
    batching = Batching(0.002, max_batch=70)
    async with serve(batching) as at:
        server = Server(
            setting(at.url), Promises((TPOT,), ()), Promises((TTFT,), ()), Route(f"{at.url}/admin/batch"), None
        )
        await server.begin()
        await server.answer(AskHeld(2, "stated", 20))
        ended = await turned_back(server, asyncio.create_task(found()), kept.append)
        assert kept == [outcome]
        assert ended.outcome == outcome
        assert isinstance(ended.not_back, TargetError)
        with pytest.raises(UnreachableError, match="nobody answers; and the server's batch is not put back: --batch-u"):
            await turned_back(server, asyncio.create_task(unreachable()), kept.append)
        batching.max_batch = server.batch_before = 6
        with pytest.raises(WorkloadError, match=r"^no space$"):
            await turned_back(server, asyncio.create_task(found()), full)
        assert batching.turned[-1] == 6
        await server.answer(AskHeld(2, "stated", 20))
        with pytest.raises(ZeroDivisionError):
            await turned_back(server, asyncio.create_task(broken()), kept.append)
        assert batching.turned[-2:] == [2, 6]
