"""A step on a GPU, where there is one: `pytest -m gpu tests/demo_server`. What can be held without is in
`test_step_on_gpu`, `test_runner` and `test_kernels`."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from demo_server.blocks import BlockPool
from demo_server.engine import Engine, Limits
from demo_server.fused import FUSED
from demo_server.graphs import capture_on
from demo_server.metrics import Metrics
from demo_server.model import build
from demo_server.operators import PLAIN, Operators
from demo_server.runner import ModelRunner
from demo_server.scheduler import Chunk, Policy, Scheduler, Step
from demo_server.sequence import GenerationRequest, Output, Sampling, Sequence
from tests.demo_server.storm import BLOCK, SHAPE, storm
from tests.demo_server.support import eventually

ROOT = Path(__file__).parents[2]


def test_a_cpu_runs_a_step_as_it_is_written() -> None:
    assert capture_on(torch.device("cpu")) is None


def gpu_runner(blocks: int, dtype: torch.dtype, operators: Operators = FUSED) -> ModelRunner:
    device = torch.device("cuda")
    model = build(SHAPE, seed=11, device=device, dtype=dtype)
    assert model.operators is FUSED, "Triton cannot be used here; the log says why"
    model.operators = operators
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
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fused_operators_compute_what_the_plain_ones_do(dtype: torch.dtype) -> None:
    from tests.demo_server.kernel_runs import CASES, LARGE, Given

    near = 1e-4 if dtype == torch.float32 else 3e-2
    for case in (*CASES, LARGE):
        given = Given.of(case, dtype).to("cuda")
        for ours, theirs in zip(given.layer(FUSED), given.layer(PLAIN), strict=True):
            torch.testing.assert_close(ours, theirs, atol=near, rtol=near)
    x = torch.randn(3, 3000, device="cuda").to(dtype)
    torch.testing.assert_close(FUSED.gate(x), PLAIN.gate(x), atol=near, rtol=near)


@pytest.mark.gpu
@pytest.mark.parametrize("operators", [FUSED, PLAIN], ids=["fused", "plain"])
@pytest.mark.parametrize("is_sampled", [False, True])
@pytest.mark.parametrize(("seed", "blocks", "budget"), [(1, 12, 8), (5, 60, 24)])
def test_tokens_of_a_gpu_in_float32_are_those_of_a_cpu(
    seed: int, blocks: int, budget: int, is_sampled: bool, operators: Operators
) -> None:
    runner = gpu_runner(blocks, torch.float32, operators)
    came = storm(runner, seed, blocks=blocks, budget=budget, is_sampled=is_sampled)
    on_cpu = ModelRunner(build(SHAPE, seed=11), kv_blocks=blocks, block_size=BLOCK)
    wanted = storm(on_cpu, seed, blocks=blocks, budget=budget, is_sampled=is_sampled)
    assert [sequence.tokens for sequence in came.done] == [sequence.tokens for sequence in wanted.done]


@pytest.mark.gpu
@pytest.mark.parametrize(("new", "temperature"), [(1, 0.0), (1, 1.0), (5, 1.0)])
def test_queueing_a_step_waits_for_nothing(new: int, temperature: float) -> None:
    runner = gpu_runner(9, torch.bfloat16)
    sequence = Sequence(1, range(40, 40 + new), Sampling(max_tokens=9, temperature=temperature))
    sequence.blocks = [3, 4]
    step = Step((Chunk(1, 0, new),))
    runner.begin(step, {1: sequence})()  # compiles and captures
    torch.cuda.set_sync_debug_mode("error")
    try:
        collect = runner.begin(step, {1: sequence})
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(collect()) == 1


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


@pytest.mark.gpu
@pytest.mark.timeout(600)
def test_the_promise_of_a_gpu_is_kept() -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "bench/engine.py", "--preset", "1b", "--device", "cuda", "--batch", "64", "--check"],
        capture_output=True,
        text=True,
        timeout=570,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
