"""A group is read together, and each of its bodies says what it says alone."""

import asyncio
from collections.abc import Sequence

import pytest

from collector.decoding import points
from collector.decoding.otlp import decode_metrics, read_metrics
from collector.decoding.points import Points
from collector.keeping import group
from collector.keeping.group import Body, Counted
from collector.values.deltas import Deltas, KnownRow
from collector.values.measurement import Batch, Tally
from slo import signals
from tests.collector import messages
from tests.collector.stores import store, totals


def bodies(count: int) -> list[bytes]:
    """Bodies of one to three points, of which the second is at fault and the last shall be read alone."""
    found = []
    for number in range(count):
        several = [messages.exponential_point([0.1 * (number + 1)] * (place + 1)) for place in range(number % 3 + 1)]
        if number % 3 == 1:
            several[0].count += 1
        if number % 3 == 2:
            several[-1].ClearField("sum")
        message = messages.metrics(messages.exponential(signals.TTFT.name, *several))
        found.append(message.SerializeToString())
    return found


async def waiting(sent: Sequence[bytes]) -> list[Body]:
    loop = asyncio.get_running_loop()
    return [Body(one, read_metrics(one, json=False), loop.create_future()) for one in sent]


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_what_is_read_together_says_what_each_says_alone(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(group, "POINTS_AT_ONCE", at_once)
    rounds = []

    def counted(several: Sequence[Points]) -> list[Batch]:
        rounds.append(len(several))
        return points.batches(several)

    monkeypatch.setattr(group, "batches", counted)

    async def story() -> None:
        sent = bodies(6)
        some = await waiting(sent)
        read = Body(b"read", Batch(), asyncio.get_running_loop().create_future())
        await group.read([*some, read])
        assert [one.batch for one in some] == [decode_metrics(one, json=False) for one in sent]
        assert [len(one.batch.rejected) for one in some] == [0, 1, 0] * 2
        assert read.batch == Batch()

    asyncio.run(story())
    assert (sum(rounds), max(rounds) == 6) == (6, at_once == 100)


def test_what_adds_nothing_may_come_again() -> None:
    assert not group.adds(Deltas(rejected=(Tally("why", 2),)))
    assert group.adds(Deltas(known=(KnownRow("", "chat", 10),)))


def test_a_body_is_told_what_was_refused_or_that_it_came_before() -> None:
    assert group.answer(None) == Counted(again=True)
    assert group.answer(Deltas(rejected=(Tally("why", 2), Tally("why not", 1)))) == Counted(3, "2: why; 1: why not")


def test_what_a_refused_point_holds_troubles_nobody(database: str) -> None:
    """Its counts lie beside those of the others, and are longer."""
    refused, good = messages.exponential_point([0.1] * 12), messages.exponential_point([0.1])
    refused.time_unix_nano = 1
    message = messages.metrics(messages.exponential(signals.TTFT.name, refused, good))

    async def story() -> tuple[Counted, dict[str, object]]:
        async with store(database) as one:
            answer = await one.count(b"1", read_metrics(message.SerializeToString(), json=False))
            return answer, await one.read(totals)

    answer, found = asyncio.run(story())
    assert (answer.rejected, found["values"]) == (1, 1)
