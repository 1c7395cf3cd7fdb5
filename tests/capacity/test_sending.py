"""One request sent and written down; the rest of it stands in test_load.py."""

import asyncio
from random import Random

import pytest

from capacity.client import target
from capacity.errors import WorkloadError
from capacity.prompt import chat_body
from capacity.record import Record
from capacity.schedule import Arrival
from capacity.sending import Limits, Sender
from tests.capacity.sse_server import HEAD, Step, answer, event, serve

ARRIVAL = Arrival(0.0, "m", 4, 2)


@pytest.mark.anyio
async def test_a_record_says_when_and_what_came() -> None:
    records: list[Record] = []
    async with serve(answer) as server:
        sender = Sender(target(server.url), Limits(), None)
        sender.begin()
        await sender.send(ARRIVAL, chat_body(ARRIVAL, Random(0)), records.append)
        sender.close()
    (one,) = records
    assert (one.outcome, one.output_tokens, one.input_tokens, one.status) == ("ok", 2, 9, 200)
    assert one.sent_s is not None
    assert one.first_token_s is not None
    assert 0 <= one.sent_s <= one.first_token_s <= one.end_s


@pytest.mark.anyio
async def test_one_that_is_dropped_is_written_down_as_cancelled() -> None:
    def script(_body: dict[str, object], _index: int) -> list[Step]:
        return [HEAD + event(content="a"), 60.0]

    records: list[Record] = []
    async with serve(script) as server:
        sender = Sender(target(server.url), Limits(), None)
        sending = asyncio.create_task(sender.send(ARRIVAL, chat_body(ARRIVAL, Random(0)), records.append))
        await server.until(lambda server: bool(server.requests))
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        sender.close()
    assert [record.outcome for record in records] == ["cancelled"]


def test_limits_that_let_nothing_through_are_refused() -> None:
    with pytest.raises(WorkloadError):
        Limits(max_in_flight=0)
    with pytest.raises(WorkloadError):
        Limits(timeout_s=0)
