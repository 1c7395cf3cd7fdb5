import asyncio
from collections.abc import Awaitable, Callable

import pytest

from demo_server.engine import Limits
from demo_server.errors import QueueFullError
from demo_server.faults import Faults
from demo_server.handover import Flow, Handover
from demo_server.sequence import GenerationRequest, Output, Sampling
from tests.demo_server.support import PATIENCE_S, Script, eventually, scripted_engine

REQUEST = GenerationRequest("demo", (1, 2, 3), Sampling(max_tokens=4))


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def in_time() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await scene()

    asyncio.run(in_time())


def test_a_flow_gives_all_that_came_since_the_last_look() -> None:
    async def scene() -> None:
        flow = Flow(1)
        one, two, three = Output(1, "a", 1), Output(1, "b", 2), Output(1, "c", 3, "length")
        flow.put(one)
        flow.put(two)
        assert await flow.take() == [one, two]
        assert not flow.has_ended
        asyncio.get_running_loop().call_later(0.01, flow.put, three)
        assert await flow.take() == [three]
        assert flow.has_ended

    run(scene)


def test_a_client_that_left_wakes_the_reader_with_nothing() -> None:
    async def scene() -> None:
        flow = Flow(1)
        asyncio.get_running_loop().call_later(0.01, flow.leave)
        assert await flow.take() == []

    run(scene)


def test_outputs_reach_the_flow_of_their_request() -> None:
    engine, pool, _ = scripted_engine(Script())

    async def scene() -> None:
        handover = Handover(engine)
        handover.start(asyncio.get_running_loop())
        flows = [handover.open(REQUEST) for _ in range(3)]
        for flow in flows:
            outputs: list[Output] = []
            while not outputs or outputs[-1].finish is None:
                outputs += await flow.take()
            assert {output.sequence_id for output in outputs} == {flow.sequence_id}
            assert "".join(output.text for output in outputs) == "abcd"
            handover.close(flow)

    run(scene)
    assert engine.stop(PATIENCE_S)
    assert pool.free == pool.total


def test_closing_early_cancels_and_closing_late_does_not() -> None:
    engine, pool, _ = scripted_engine(Script(), limits=Limits(step_floor_s=0.01))

    async def scene() -> None:
        handover = Handover(engine)
        handover.start(asyncio.get_running_loop())
        flow = handover.open(GenerationRequest("demo", (1,), Sampling(max_tokens=200)))
        await flow.take()
        assert pool.used > 0
        handover.close(flow)
        await asyncio.to_thread(eventually, lambda: pool.free == pool.total, "the blocks came back")

    run(scene)
    assert engine.stop(PATIENCE_S)


def test_breaking_off_ends_what_is_open_and_nothing_comes_after_it() -> None:
    engine, _, _ = scripted_engine(Script(), limits=Limits(step_floor_s=0.01))

    async def scene() -> None:
        handover = Handover(engine)
        handover.start(asyncio.get_running_loop())
        flow = handover.open(GenerationRequest("demo", (1,), Sampling(max_tokens=200)))
        await flow.take()
        handover.break_off()
        handover.break_off()
        await asyncio.sleep(0.05)
        outputs = await flow.take()
        assert [output.finish for output in outputs if output.finish] == ["error"]
        assert outputs[-1].finish == "error"
        handover.close(flow)
        handover.break_off()

    run(scene)
    assert engine.stop(PATIENCE_S)


def test_a_full_queue_is_the_callers_to_hear() -> None:
    engine, _, _ = scripted_engine(Script(), limits=Limits(max_queue=1))
    engine.set_faults(Faults(hang=True))

    async def scene() -> None:
        handover = Handover(engine)
        handover.start(asyncio.get_running_loop())
        handover.open(REQUEST)
        with pytest.raises(QueueFullError):
            handover.open(REQUEST)

    run(scene)
    assert engine.stop(PATIENCE_S)


def test_an_engine_outlives_its_loop_quietly() -> None:
    engine, _, _ = scripted_engine(Script(), limits=Limits(step_floor_s=0.01))

    async def scene() -> None:
        handover = Handover(engine)
        handover.start(asyncio.get_running_loop())
        handover.open(GenerationRequest("demo", (1,), Sampling(max_tokens=200)))

    run(scene)
    submitted = engine.submit(REQUEST)
    assert submitted == 2
    assert engine.stop(PATIENCE_S)
    assert engine.failure is None
