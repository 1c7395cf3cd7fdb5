"""The engine with a scripted runner: every way a request can go. Waits have a lower bound, never an upper."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise

import pytest

from demo_server.engine import Engine, Limits
from demo_server.errors import EngineFailedError, QueueFullError
from demo_server.faults import HEALTHY, Faults
from demo_server.metrics import Metrics
from demo_server.scheduler import Step
from demo_server.sequence import GenerationRequest, Output, Sampling, Sequence
from demo_server.text import TextStream
from tests.demo_server.support import Script, eventually, samples, scripted_engine


class Told:
    """What the engine delivered, by sequence."""

    def __init__(self) -> None:
        self.outputs: dict[int, list[Output]] = {}
        self.times_s: list[float] = []
        self._lock = threading.Lock()

    def take(self, outputs: list[Output]) -> None:
        with self._lock:
            self.times_s.append(time.monotonic())
            for output in outputs:
                self.outputs.setdefault(output.sequence_id, []).append(output)

    def has_ended(self, sequence_id: int) -> bool:
        return bool(self.outputs.get(sequence_id)) and self.outputs[sequence_id][-1].finish is not None

    def text(self, sequence_id: int) -> str:
        return "".join(output.text for output in self.outputs[sequence_id])


@contextmanager
def running(engine: Engine) -> Iterator[Told]:
    told = Told()
    engine.start(told.take)
    try:
        yield told
    finally:
        assert engine.stop(timeout_s=60)


def ask(**sampling: object) -> GenerationRequest:
    return GenerationRequest("demo", (1, 1, 1), Sampling(**{"max_tokens": 5, **sampling}))  # type: ignore[arg-type]


def finish(engine: Engine, told: Told, request: GenerationRequest) -> tuple[str, Output]:
    sequence_id = engine.submit(request)
    eventually(lambda: told.has_ended(sequence_id), "the request ended")
    return told.text(sequence_id), told.outputs[sequence_id][-1]


@pytest.mark.parametrize(
    ("script", "sampling", "text", "end"),
    [
        (Script(), {"max_tokens": 3}, "abc", ("length", None, 3)),
        (Script(end_after=2), {}, "ab", ("stop", None, 3)),
        (Script(end_after=2), {"ignore_eos": True}, "ab", ("length", None, 5)),
        (Script(), {"stop": ("cd",), "max_tokens": 8}, "ab", ("stop", "cd", 4)),
        (Script(), {"stop": ("cx",), "max_tokens": 3}, "abc", ("length", None, 3)),
        (Script("a€b".encode()), {"max_tokens": 3}, "a\ufffd", ("length", None, 3)),
        (Script("a€b".encode()), {"max_tokens": 4}, "a€", ("length", None, 4)),
    ],
    ids=["length", "end of text", "end ignored", "stop string", "held text is released", "half a character", "whole"],
)
def test_how_a_request_ends(script: Script, sampling: dict[str, object], text: str, end: tuple[object, ...]) -> None:
    engine, pool, _ = scripted_engine(script)
    with running(engine) as told:
        shown, last = finish(engine, told, ask(**sampling))
    assert shown == text
    assert (last.finish, last.stop_reason, last.completion_tokens) == end
    assert pool.free == pool.total


def test_a_steps_outputs_come_in_one_call_and_all_run_together() -> None:
    script = Script()
    engine, _, _ = scripted_engine(script, limits=Limits(step_floor_s=0.02))
    engine.set_faults(Faults(hang=True))
    with running(engine) as told:
        ids = [engine.submit(ask()) for _ in range(4)]
        engine.set_faults(HEALTHY)
        eventually(lambda: all(told.has_ended(each) for each in ids), "all ended")
    assert [len(step.chunks) for step in script.steps] == [4] * 5
    assert len(told.times_s) == 5


@pytest.mark.parametrize("stop", [(), ("zz",)], ids=["any text", "text that may stop"])
def test_what_a_step_gave_is_told_while_the_next_one_is_computed(
    stop: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    push = TextStream.push
    monkeypatch.setattr(TextStream, "push", lambda self, token: order.append("text") or push(self, token))

    class Watched(Script):
        def begin(self, step: Step, sequences: Mapping[int, Sequence]) -> Callable[[], dict[int, int]]:
            collect = super().begin(step, sequences)
            order.append("begin")
            return lambda: order.append("collect") or collect()  # type: ignore[func-returns-value]

    engine, _, _ = scripted_engine(Watched())
    told = Told()
    engine.start(lambda outputs: (order.append("tell"), told.take(outputs)))  # type: ignore[arg-type]
    finish(engine, told, ask(max_tokens=3, stop=stop))
    assert engine.stop(timeout_s=60)
    # Only text that may hold a stop string is made before the next step begins.
    turn = ["text", "begin", "tell", "collect"] if stop else ["begin", "text", "tell", "collect"]
    assert order == ["begin", "collect", *turn, *turn, "text", "tell"]


def test_a_client_that_leaves_frees_its_blocks_and_nobody_is_told() -> None:
    engine, pool, metrics = scripted_engine(Script(), limits=Limits(step_floor_s=0.01))
    with running(engine) as told:
        gone = engine.submit(ask(max_tokens=100))
        eventually(lambda: gone in told.outputs, "the first token came")
        assert pool.used > 0
        engine.cancel(gone)
        eventually(lambda: pool.free == pool.total, "the blocks came back")
        engine.cancel(gone)  # twice does no harm
        finish(engine, told, ask())
    assert not told.has_ended(gone)
    values = samples(metrics.page().decode())
    labels = frozenset({"model_name": "demo", "engine": "0"}.items())
    assert values["vllm:num_requests_running", labels] == values["vllm:num_requests_waiting", labels] == 0
    assert values["vllm:time_to_first_token_seconds_count", labels] == 2
    assert values["vllm:e2e_request_latency_seconds_count", labels] == 1


def gauges(metrics: Metrics) -> tuple[float, float]:
    values = samples(metrics.page().decode())
    labels = frozenset({"model_name": "demo", "engine": "0"}.items())
    return values["vllm:num_requests_running", labels], values["vllm:num_requests_waiting", labels]


def test_while_it_hangs_requests_wait_and_may_leave() -> None:
    engine, pool, metrics = scripted_engine(Script())
    engine.set_faults(Faults(hang=True))
    with running(engine) as told:
        first, second = engine.submit(ask()), engine.submit(ask())
        eventually(lambda: gauges(metrics) == (0, 2), "both waited")
        engine.cancel(second)
        eventually(lambda: gauges(metrics) == (0, 1), "one left")
        assert (told.outputs, pool.used) == ({}, 0)
        engine.set_faults(HEALTHY)
        eventually(lambda: told.has_ended(first), "the other was served")
    assert gauges(metrics) == (0, 0)


def test_a_floor_and_a_slowdown_stretch_each_step() -> None:
    engine, _, _ = scripted_engine(Script(), limits=Limits(step_floor_s=0.01))
    with running(engine) as told:
        finish(engine, told, ask())
        assert min(later - earlier for earlier, later in pairwise(told.times_s)) >= 0.009
        told.times_s.clear()
        engine.set_faults(Faults(slow=4.0))
        finish(engine, told, ask())
        assert min(later - earlier for earlier, later in pairwise(told.times_s)) >= 0.039


def test_a_slowdown_is_lifted_in_the_middle_of_a_step() -> None:
    engine, _, _ = scripted_engine(Script(), limits=Limits(step_floor_s=1.0))
    engine.set_faults(Faults(slow=1000.0))
    with running(engine) as told:
        sequence_id = engine.submit(ask(max_tokens=1))
        time.sleep(0.1)
        assert not told.outputs
        engine.set_faults(HEALTHY)
        eventually(lambda: told.has_ended(sequence_id), "the step of a thousand seconds was cut short")


def test_pressure_makes_requests_wait_and_running_ones_lose_their_blocks() -> None:
    engine, pool, metrics = scripted_engine(Script(), blocks=16, limits=Limits(step_floor_s=0.005))
    with running(engine) as told:
        ids = [engine.submit(ask(max_tokens=30)) for _ in range(2)]
        eventually(lambda: all(each in told.outputs for each in ids), "both ran")
        engine.set_faults(Faults(kv_pressure=1.0))
        eventually(lambda: gauges(metrics) == (0, 2), "both lost their blocks")
        assert pool.usage == 1.0
        engine.set_faults(HEALTHY)
        eventually(lambda: all(told.has_ended(each) for each in ids), "both were computed anew")
    assert {told.text(each) for each in ids} == {("abcdefgh" * 4)[:30]}
    values = samples(metrics.page().decode())
    labels = frozenset({"model_name": "demo", "engine": "0"}.items())
    assert values["vllm:num_preemptions_total", labels] >= 2
    assert values["demo_server:preempted_tokens_total", labels] >= 6
    assert pool.free == pool.total


def test_the_queue_fault_serves_one_after_another() -> None:
    script = Script()
    engine, _, _ = scripted_engine(script)
    engine.set_faults(Faults(queue=True))
    with running(engine) as told:
        ids = [engine.submit(ask()) for _ in range(3)]
        eventually(lambda: all(told.has_ended(each) for each in ids), "all were served")
    assert {len(step.chunks) for step in script.steps} == {1}


def test_the_batch_can_be_changed_while_it_runs() -> None:
    script = Script()
    engine, _, _ = scripted_engine(script, max_batch=1)
    engine.set_faults(Faults(hang=True))
    with running(engine) as told:
        ids = [engine.submit(ask()) for _ in range(3)]
        engine.set_policy(engine.policy.changed(max_batch=3, token_budget=9))
        assert (engine.policy.max_batch, engine.policy.token_budget) == (3, 9)
        engine.set_faults(HEALTHY)
        eventually(lambda: all(told.has_ended(each) for each in ids), "all were served")
    assert {len(step.chunks) for step in script.steps} == {3}


def test_the_queue_has_an_end_and_room_again_once_someone_left_it() -> None:
    engine, _, metrics = scripted_engine(Script(), limits=Limits(max_queue=2))
    engine.set_faults(Faults(hang=True))
    with running(engine) as told:
        ids = [engine.submit(ask()) for _ in range(2)]
        with pytest.raises(QueueFullError, match="2 requests are waiting already"):
            engine.submit(ask())
        engine.cancel(ids[0])
        eventually(lambda: gauges(metrics) == (0, 1), "one left")
        ids.append(engine.submit(ask()))
        engine.set_faults(HEALTHY)
        eventually(lambda: told.has_ended(ids[1]) and told.has_ended(ids[2]), "the others were served")
        for _ in range(3):
            finish(engine, told, ask())


@pytest.mark.parametrize(("break_after", "max_tokens", "shown"), [(2, 5, 2), (8, 3, 3)])
def test_a_doomed_request_breaks_in_time(break_after: int, max_tokens: int, shown: int) -> None:
    engine, pool, _ = scripted_engine(Script())
    with running(engine) as told:
        _, last = finish(engine, told, ask(max_tokens=max_tokens).breaking_after(break_after))
    assert (last.finish, last.completion_tokens) == ("error", shown)
    assert pool.free == pool.total


def test_when_a_step_fails_everyone_is_told_and_nobody_is_taken_any_more(caplog: pytest.LogCaptureFixture) -> None:
    engine, _, metrics = scripted_engine(Script(fail_at_step=4), max_batch=2)
    with running(engine) as told, caplog.at_level(logging.ERROR):
        finish(engine, told, ask(max_tokens=1))
        engine.set_faults(Faults(hang=True))
        ids = [engine.submit(ask()) for _ in range(3)]  # the third waits
        engine.set_faults(HEALTHY)
        eventually(lambda: all(told.has_ended(each) for each in ids), "all were told")
        assert [told.outputs[each][-1].finish for each in ids] == ["error"] * 3
        assert [len(told.outputs[each]) for each in ids] == [3, 3, 1]
        assert [output.finish for output in told.outputs[1]] == ["length"], "what had ended stays ended"
        assert isinstance(engine.failure, ZeroDivisionError)
        with pytest.raises(EngineFailedError, match="the device is gone"):
            engine.submit(ask())
    assert gauges(metrics) == (0, 0)
    assert "the engine has failed" in caplog.text


def test_it_stops_in_the_middle_of_a_hang_or_a_long_step() -> None:
    for faults in (Faults(hang=True), Faults(slow=1000.0)):
        engine, pool, _ = scripted_engine(Script(), limits=Limits(step_floor_s=1.0))
        engine.set_faults(faults)
        with running(engine):
            engine.submit(ask())
            if not faults.hang:
                eventually(lambda pool=pool: pool.used > 0, "the step began")  # type: ignore[misc]


def test_blocks_of_the_pool_are_shown_as_they_are() -> None:
    _, pool, metrics = scripted_engine(Script())
    pool.take(16)
    usage = samples(metrics.page().decode())[
        "vllm:kv_cache_usage_perc", frozenset({"model_name": "demo", "engine": "0"}.items())
    ]
    assert usage == 16 / 64
