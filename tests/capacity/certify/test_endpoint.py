"""A real server on a socket, asked what the search asks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from capacity.certify.endpoint import Endpoint, Setting
from capacity.certify.lengths import lengths
from capacity.certify.promises import Promises
from capacity.certify.trial import Ask, AskAlone, AskFlood, AskRun, Ceiling, Seen
from capacity.certify.workload import Tokens, Workload
from capacity.client import target
from capacity.errors import UnreachableError
from capacity.sending import Limits
from slo.objective import Objective
from tests.capacity.certify.queue_server import queue
from tests.capacity.sse_server import Script, Server, Step, refusal, serve

TTFT = Objective.model_validate({"name": "ttft", "signal": "ttft", "percentile": 80, "threshold": "300ms"})
ANSWERED = Objective.model_validate({"name": "answered", "signal": "availability", "target": 99})

CHAT_SPACES = str([{"role": "user", "content": ""}]).count(" ")


@asynccontextmanager
async def endpoint(script: Script, *, most: int = 16) -> AsyncIterator[tuple[Endpoint, Server, list[Ask]]]:
    """An endpoint on a server of that script, and everything it says of its progress."""
    told: list[Ask] = []
    async with serve(script) as server:
        workload = Workload("m", lengths("20-40:2"))
        setting = Setting(
            target(server.url), workload, Promises((TTFT, ANSWERED), ()), Limits(most, 5.0), "synthetic", 7
        )
        made = Endpoint(setting, lambda ask, _judged, _seconds: told.append(ask))
        try:
            yield made, server, told
        finally:
            await made.end_run()


@pytest.mark.anyio
async def test_words_are_measured_and_prompts_made_by_them() -> None:
    async with endpoint(queue(4, 0.002)) as (made, server, _):
        assert (await made.measure_words()).tokens == Tokens(fixed=5, each=2)
        await made.answer(AskAlone(5))
    prompts = [str(body["messages"]).count(" ") - CHAT_SPACES + 1 for body in server.requests[2:]]
    assert all(8 <= words <= 18 for words in prompts)  # of 20 to 40 tokens, two a word and five around them


@pytest.mark.anyio
async def test_requests_alone_never_meet_and_more_of_them_hold_the_first() -> None:
    async with endpoint(queue(4, 0.002)) as (made, server, told):
        few, more = await made.answer(AskAlone(5)), await made.answer(AskAlone(12))
    assert isinstance(few, Seen)
    assert isinstance(more, Seen)
    assert (few.requests, more.requests, len(server.requests)) == (5, 12, 12)
    assert (more.bad[0][:5] == few.bad[0]).all()
    assert more.at_once == 1
    assert made.calm_s > 0
    assert {type(ask) for ask in told} == {AskAlone}


@pytest.mark.anyio
async def test_a_flood_finds_how_many_are_worked_on_and_at_which_rate() -> None:
    async with endpoint(queue(4, 0.04), most=32) as (made, _, _):
        ceiling = await made.answer(AskFlood())
    assert isinstance(ceiling, Ceiling)
    assert 1 <= ceiling.at_once < 16  # of 32 that ask at once
    assert 0 < ceiling.rate_rps < 130


@pytest.mark.anyio
async def test_a_run_goes_on_until_as_many_are_judged_and_a_new_one_ends_it() -> None:
    async with endpoint(queue(4, 0.01)) as (made, server, _):
        await made.answer(AskAlone(5))
        made.remember(Ceiling(400.0, 1.0, 4.0), 1.0)
        first = await made.answer(AskRun(1, 60.0, "empty", 20))
        longer = await made.answer(AskRun(1, 60.0, "empty", 40))
        facts = await made.end_run()
        before = len(server.requests)
        other = await made.answer(AskRun(2, 60.0, "overload", 10))
    assert isinstance(first, Seen)
    assert isinstance(longer, Seen)
    assert isinstance(other, Seen)
    assert (first.requests, longer.requests, other.requests) == (20, 40, 10)
    assert (longer.bad[0][:20] == first.bad[0]).all()
    assert longer.bad[1].sum() == 0
    assert facts is not None
    assert facts.crowd.mean > 0
    assert len(server.requests) - before >= 10 + 6  # those of the overload are not judged


@pytest.mark.anyio
async def test_another_workload_is_that_of_its_run_alone() -> None:
    words: list[list[int]] = []
    async with endpoint(queue(4, 0.002)) as (made, server, _):
        await made.answer(AskAlone(5))
        for run in (AskRun(1, 100.0, "empty", 20, "longer prompts"), AskRun(2, 100.0, "empty", 20)):
            before = len(server.requests)
            await made.answer(run)
            await made.end_run()
            prompts = [str(body["messages"]) for body in server.requests[before:][-20:]]
            words.append([text.count(" ") - CHAT_SPACES + 1 for text in prompts])
    longer, stated = words
    assert all(20 <= count <= 40 for count in stated)
    assert all(24 <= count <= 48 for count in longer)
    assert max(longer) > 40


@pytest.mark.anyio
async def test_what_is_refused_is_bad_for_every_objective() -> None:
    def full(body: dict[str, object], index: int) -> list[Step]:
        return [refusal(503, b"full")] if index > 8 else queue(4, 0.002)(body, index)

    async with endpoint(full) as (made, _, _):
        await made.answer(AskAlone(5))
        made.remember(Ceiling(400.0, 1.0, 4.0), 1.0)
        seen = await made.answer(AskRun(1, 100.0, "empty", 30))
    assert isinstance(seen, Seen)
    assert seen.bad[0][-20:].tolist() == seen.bad[1][-20:].tolist() == [1] * 20


@pytest.mark.anyio
async def test_a_server_that_refuses_everything_is_an_error_of_one_line() -> None:
    def refuse(_body: dict[str, object], _index: int) -> list[Step]:
        return [refusal(400, b"prompt too long")]

    async with endpoint(refuse) as (made, _, _):
        with pytest.raises(UnreachableError, match=r"answers 400 .*prompt too long"):
            await made.measure_words()
        with pytest.raises(UnreachableError, match="none of 20 single requests"):
            await made.answer(AskAlone(50))
        with pytest.raises(UnreachableError, match="ceiling cannot be measured"):
            await made.answer(AskFlood())
