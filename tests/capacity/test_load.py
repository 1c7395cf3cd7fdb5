"""The open loop against a real server that stalls, refuses, breaks off and dies.

Waits are long and bounds are wide: what is asserted holds on a machine that is busy with something else.
"""

import asyncio
import math

import pytest

from capacity.client import target
from capacity.errors import WorkloadError
from capacity.load import Plan, Progress, run
from capacity.schedule import Arrival, fixed
from capacity.sending import Limits
from capacity.summary import summarise
from tests.capacity.sse_server import HEAD, Server, Step, answer, event, refusal, serve


def plan(server: Server, rate: float, seconds: float, limits: Limits | None = None) -> Plan:
    drawn = tuple(Arrival(at_s, "m", 3, 2) for at_s in fixed(rate, seconds))
    return Plan(target(server.url), drawn, seconds, limits or Limits())


@pytest.mark.anyio
async def test_every_request_of_the_schedule_is_sent_and_recorded() -> None:
    async with serve(answer) as server:
        load = await run(plan(server, 100, 0.5))
    assert load.planned == len(load.records) == len(server.requests) == 50
    assert {record.outcome for record in load.records} == {"ok"}
    assert [record.intended_s for record in load.records] == list(fixed(100, 0.5))
    first = load.records[0]
    assert first.sent_s is not None
    assert first.written_s is not None
    assert first.first_token_s is not None
    assert first.intended_s <= first.sent_s <= first.written_s <= first.first_token_s <= first.end_s
    assert (first.status, first.input_tokens, first.output_tokens) == (200, 9, 2)
    assert all("x-firsttoken-class: synthetic" in head for head in server.heads)


@pytest.mark.anyio
async def test_a_stalled_server_is_asked_on_and_every_wait_counts_from_when_it_was_due() -> None:
    """The proof against coordinated omission: the server stands still for a second after its first request. A closed
    loop would see one slow answer; the open loop sees that all who came meanwhile waited, each by its own share."""

    def script(body: dict[str, object], index: int) -> list[Step]:
        return [1.0, *answer(body, index)] if index == 0 else answer(body, index)

    async with serve(script) as server:
        load = await run(plan(server, 20, 1.0, Limits(max_in_flight=1)))
    waits = [record.ttft_s for record in load.records if record.ttft_s is not None]
    assert len(waits) == 20
    for record, wait_s in zip(load.records, waits, strict=True):
        assert wait_s >= 0.95 - record.intended_s
    # Measured from sending, only the first would have been slow: the lie that is refused here.
    hops = [record.hop_ttft_s for record in load.records if record.hop_ttft_s is not None]
    assert hops[0] >= 0.9
    assert sorted(hops)[len(hops) // 2] < 0.5
    assert sorted(waits)[len(waits) // 2] >= 0.45
    assert summarise(load).is_client_late


@pytest.mark.anyio
async def test_a_slow_server_does_not_slow_the_schedule_down() -> None:
    def script(body: dict[str, object], index: int) -> list[Step]:
        return [0.8, *answer(body, index)]

    async with serve(script) as server:
        load = await run(plan(server, 50, 0.5))
        assert server.connections == 25  # all at once, where a closed loop would have used one
    late = [record.late_s for record in load.records if record.late_s is not None]
    assert sorted(late)[len(late) // 2] < 0.2
    assert all(record.ttft_s is not None and record.ttft_s >= 0.79 for record in load.records)


@pytest.mark.anyio
async def test_what_is_in_flight_is_bounded() -> None:
    most = 0

    def script(body: dict[str, object], index: int) -> list[Step]:
        nonlocal most
        most = max(most, server.open_connections)
        return [0.1, *answer(body, index)]

    async with serve(script) as server:
        load = await run(plan(server, 100, 0.2, Limits(max_in_flight=3)))
    assert most == 3
    assert len(load.records) == 20


@pytest.mark.anyio
async def test_a_request_is_given_up_after_its_patience() -> None:
    def script(_body: dict[str, object], _index: int) -> list[Step]:
        return [HEAD + event(content="a"), 60.0]

    async with serve(script) as server:
        load = await run(plan(server, 10, 0.2, Limits(timeout_s=0.3)))
    assert [record.outcome for record in load.records] == ["timeout", "timeout"]
    assert all(record.first_token_s is not None for record in load.records)
    assert load.records[0].error == "gave up after 0.3 s"


BAD_ANSWERS = {"rejected": refusal(503, b'{"error": "full"}'), "error": HEAD + event(content="a")}


@pytest.mark.parametrize(("outcome", "sent"), BAD_ANSWERS.items(), ids=BAD_ANSWERS.keys())
@pytest.mark.anyio
async def test_bad_answers_are_outcomes(outcome: str, sent: bytes) -> None:
    def script(_body: dict[str, object], _index: int) -> list[Step]:
        return [sent]

    async with serve(script, keep_alive=False) as server:
        load = await run(plan(server, 10, 0.2))
    assert [record.outcome for record in load.records] == [outcome, outcome]


@pytest.mark.anyio
async def test_a_server_that_is_gone_is_an_error_of_each_request() -> None:
    async with serve(answer) as server:
        gone = plan(server, 10, 0.2)
    load = await run(gone)
    assert [record.outcome for record in load.records] == ["error", "error"]
    assert load.records[0].error.startswith("no connection")


@pytest.mark.anyio
async def test_a_load_that_is_stopped_leaves_at_once_with_what_it_has() -> None:
    def script(_body: dict[str, object], _index: int) -> list[Step]:
        return [HEAD + event(content="a"), 60.0]

    stop = asyncio.Event()

    def stop_when_five_are_out(progress: Progress) -> None:
        if progress.sent == 5:
            asyncio.get_running_loop().call_later(0.2, stop.set)

    async with serve(script) as server:
        async with asyncio.timeout(30):
            load = await run(plan(server, 50, 0.1), stop=stop, on_progress=stop_when_five_are_out)
        await server.until(lambda server: server.open_connections == 0)  # it sees its clients leave
    assert [record.outcome for record in load.records] == ["cancelled"] * 5


@pytest.mark.anyio
async def test_a_load_that_is_stopped_sends_nothing_more() -> None:
    stop = asyncio.Event()
    async with serve(answer) as server:
        asyncio.get_running_loop().call_later(0.3, stop.set)
        async with asyncio.timeout(30):
            load = await run(plan(server, 10, 600), stop=stop)
    assert 0 < len(load.records) < 600
    assert load.planned == 6000


@pytest.mark.anyio
async def test_progress_is_told_from_the_first_request_to_the_last() -> None:
    told: list[Progress] = []
    async with serve(answer) as server:
        await run(plan(server, 50, 0.2), on_progress=told.append)
    assert (told[0].sent, told[0].done) == (1, 0)
    assert (told[-1].sent, told[-1].done, told[-1].failed) == (10, 10, 0)
    assert [progress.elapsed_s for progress in told] == sorted(progress.elapsed_s for progress in told)


@pytest.mark.anyio
async def test_the_class_can_be_left_out() -> None:
    async with serve(answer) as server:
        whole = plan(server, 10, 0.1)
        await run(Plan(whole.target, whole.arrivals, whole.seconds, request_class=None))
    assert "x-firsttoken-class" not in server.heads[0]


@pytest.mark.parametrize(
    ("at_once", "timeout_s", "said"),
    [
        (0, 1.0, "--max-in-flight 0: must be at least 1"),
        (1, 0.0, "--timeout 0: must be above 0"),
        (1, math.nan, "--timeout nan: must be above 0"),
    ],
)
def test_limits_that_let_nothing_through_are_refused(at_once: int, timeout_s: float, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        Limits(at_once, timeout_s)
