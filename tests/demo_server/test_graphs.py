"""Graphs on a GPU, where there is one; that a step can be captured is held on every machine by `test_runner`."""

import pytest
import torch

from demo_server.blocks import BlockPool
from demo_server.engine import Engine, Limits
from demo_server.graphs import capture_on
from demo_server.metrics import Metrics
from demo_server.model import build
from demo_server.runner import ModelRunner
from demo_server.scheduler import Policy, Scheduler
from demo_server.sequence import GenerationRequest, Output, Sampling
from tests.demo_server.storm import BLOCK, SHAPE, storm
from tests.demo_server.support import eventually


def test_a_cpu_runs_a_step_as_it_is_written() -> None:
    assert capture_on(torch.device("cpu")) is None


def gpu_runner(blocks: int, dtype: torch.dtype) -> ModelRunner:
    device = torch.device("cuda")
    model = build(SHAPE, seed=11, device=device, dtype=dtype)
    return ModelRunner(model, kv_blocks=blocks, block_size=BLOCK, capture=capture_on(device))


@pytest.mark.gpu
def test_a_replay_sees_what_its_tensors_hold_now() -> None:
    capture = capture_on(torch.device("cuda"))
    assert capture is not None
    x, y = torch.zeros(4, device="cuda"), torch.zeros(4, device="cuda")

    def compute() -> None:
        y.copy_(x * 2 + 1)

    replay = capture(compute)
    x.fill_(3.0)
    replay()
    assert y.tolist() == [7.0] * 4


@pytest.mark.gpu
@pytest.mark.parametrize("is_sampled", [False, True])
@pytest.mark.parametrize(("seed", "blocks", "budget"), [(1, 12, 8), (5, 60, 24)])
def test_tokens_of_a_gpu_in_float32_are_those_of_a_cpu(seed: int, blocks: int, budget: int, is_sampled: bool) -> None:
    runner = gpu_runner(blocks, torch.float32)
    came = storm(runner, seed, blocks=blocks, budget=budget, is_sampled=is_sampled)
    on_cpu = ModelRunner(build(SHAPE, seed=11), kv_blocks=blocks, block_size=BLOCK)
    wanted = storm(on_cpu, seed, blocks=blocks, budget=budget, is_sampled=is_sampled)
    assert [sequence.tokens for sequence in came.done] == [sequence.tokens for sequence in wanted.done]


@pytest.mark.gpu
def test_the_engine_runs_on_a_gpu_in_half_precision() -> None:
    runner = gpu_runner(60, torch.bfloat16)
    engine = Engine(Scheduler(BlockPool(60, BLOCK), Policy(6)), runner, metrics=Metrics(("demo",)), limits=Limits())
    outputs: list[Output] = []
    engine.start(outputs.extend)
    for number in range(8):
        engine.submit(GenerationRequest("demo", (65 + number, 66, 67), Sampling(max_tokens=20, ignore_eos=True)))
    eventually(lambda: sum(output.finish is not None for output in outputs) == 8, "all ended")
    assert engine.stop(60)
    assert len(outputs) == 8 * 20
