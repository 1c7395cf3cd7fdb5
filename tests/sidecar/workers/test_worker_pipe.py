"""What processes say to each other, over a real socket pair."""

import asyncio
import pickle
import struct

import pytest

from sidecar import limits
from sidecar.counting.tally import Increment, Number, Tally
from sidecar.workers.worker_pipe import Ask, Message, Pipe, Ready, Reload, Report, State, pair, pipe_over
from slo.signals import EXPORT_DROPPED, REQUESTS, TTFT
from tests.sidecar.rig import on_a_loop, spec


async def ends() -> tuple[Pipe, Pipe]:
    """Both ends."""
    ours, theirs = pair()
    return await pipe_over(ours), await pipe_over(theirs)


def a_report() -> Report:
    counts = Tally(lambda _: (0.5, 1.0))
    counts.add(REQUESTS, (("m", "a"),), 3)
    counts.record(TTFT, (("m", "a"),), 0.7)
    gauges = (Number(REQUESTS, (), 2.0),)
    return Report(
        counts.increment(), ((EXPORT_DROPPED, "traces", "queue_full", 2),), ("a",), gauges, gauges, 2, 1, 5, 7, True, 1
    )


@on_a_loop
async def test_what_is_sent_arrives_whole_and_in_order() -> None:
    one, other = await ends()
    judged = spec("{name: first, signal: ttft, percentile: 95, threshold: 300ms}")
    said: list[Message] = [Ready(), Ask(3), State(0.5, True, "vllm", 1, ("a",), ("a", "b")), Reload(judged)]
    for message in said:
        one.send(message)
    heard = [await other.receive() for _ in said]
    assert heard == said
    assert isinstance(heard[-1], Reload)
    assert heard[-1].spec is not None
    assert heard[-1].spec.hash == judged.hash
    other.send(a_report())
    found = await one.receive()
    assert isinstance(found, Report)
    whole = Tally(lambda _: (0.5, 1.0))
    for report in (found, a_report()):
        whole.grow(report.increment)
    assert whole.total(REQUESTS, (("m", "a"),)) == 6
    ((_, _, latency),) = whole.classics()
    assert latency.cumulative()[1] == (1.0, 2)
    assert found.exports == ((EXPORT_DROPPED, "traces", "queue_full", 2),)
    for end in (one, other):
        await end.close()


@on_a_loop
async def test_what_was_sent_before_an_end_still_arrives_and_then_there_is_nothing() -> None:
    one, other = await ends()
    one.send(Ask(1))
    await one.close()
    assert await other.receive() == Ask(1)
    assert await other.receive() is None
    assert await other.receive() is None
    one.send(Ask(2))  # to nobody: nothing happens
    await other.close()


@on_a_loop
async def test_what_was_sent_before_an_end_arrives_though_that_end_was_still_being_asked() -> None:
    ours, theirs = pair()
    pipe, whole = await pipe_over(ours), len(ask := pickle.dumps(Ask(7)))
    theirs[1].sendall(2 * (struct.pack("!I", whole) + ask))
    pipe.send(Ready())  # which nobody reads: so this end of the other one is a reset
    await asyncio.sleep(0.05)
    for end in theirs:
        end.close()
    await asyncio.sleep(0.05)  # both have come before anybody listens
    assert [await pipe.receive() for _ in range(3)] == [Ask(7), Ask(7), None]
    await pipe.close()


@on_a_loop
async def test_what_was_sent_before_an_end_arrives_though_one_writes_to_it_before_one_reads() -> None:
    ours, theirs = pair()
    pipe, whole = await pipe_over(ours), len(ask := pickle.dumps(Ask(7)))
    theirs[1].sendall(struct.pack("!I", whole) + ask)
    for end in theirs:
        end.close()
    for number in range(3):  # the first of which finds out that the other end is gone
        pipe.send(Ask(number))
    await asyncio.sleep(0.05)
    assert [await pipe.receive() for _ in range(2)] == [Ask(7), None]
    await pipe.close()


@on_a_loop
async def test_a_message_that_is_cut_short_is_none() -> None:
    ours, theirs = pair()
    pipe = await pipe_over(ours)
    theirs[1].sendall(struct.pack("!I", 100) + b"cut")
    for end in theirs:
        end.close()
    assert await pipe.receive() is None
    await pipe.close()


@on_a_loop
async def test_an_end_that_does_not_listen_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WORKER_UNREAD_BYTES", 1000)
    ours, theirs = pair()
    pipe = await pipe_over(ours)
    names = tuple("x" * 100 for _ in range(100))
    assert not pipe.is_backed_up
    sent = 0
    while not pipe.is_backed_up:
        pipe.send(State(None, False, None, 0, tuple(f"{name}{sent}" for name in names), ()))
        sent += 1
    assert sent > 1
    for end in theirs:
        end.close()
    await pipe.close()


def test_an_empty_increment_is_small() -> None:
    assert Increment() == Tally(lambda _: ()).increment()
