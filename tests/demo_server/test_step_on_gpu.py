"""A GPU's step on every machine: run on fake tensors, it stays on its device, asks it for nothing and moves nothing.

What fake tensors cannot show is what a kernel computes (`test_kernels` runs them) and how long it takes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from torch import Tensor

from bench.engine_parts.fake_gpu import DEVICE, Launch, Operand, Recorder, Trace, fake_gpu, model_on_fake_gpu
from demo_server import operators as plain
from demo_server.fused import FUSED
from demo_server.inputs import Form, Inputs
from demo_server.operators import PLAIN, Operators
from demo_server.runner import ModelRunner
from demo_server.scheduler import Chunk, Step
from demo_server.sequence import Sampling, Sequence
from tests.demo_server.storm import BLOCK, SHAPE

ROWS = 3


@dataclass(frozen=True, slots=True)
class Ran:
    """A step that ran: all its launches, those of what was captured, and the memory that outlives it by what it is."""

    launches: list[Launch]
    captured: list[Launch]
    lasting: dict[int, str]
    runner: ModelRunner
    collect: Callable[[], dict[int, int]]


def ran(operators: Operators, *, new: int = 1, temperature: float = 0.0, times: int = 1) -> Ran:
    """Steps of three sequences with so many new tokens each, in bfloat16; within `fake_gpu`."""
    recorder = Recorder()
    model = model_on_fake_gpu(SHAPE, operators)
    runner = ModelRunner(model, kv_blocks=9, block_size=BLOCK, capture=recorder.capture)
    sequences = {}
    for number in range(ROWS):
        sequence = Sequence(number, range(40, 40 + new), Sampling(max_tokens=9, temperature=temperature))
        sequence.blocks = [number, 8 - number]
        sequences[number] = sequence
    with Trace() as trace:
        for _ in range(times):
            collect = runner.begin(Step(tuple(Chunk(number, 0, new) for number in sequences)), sequences)
    captured = recorder.traces[0].launches if recorder.traces else []
    return Ran(trace.launches, captured, lasting(runner), runner, collect)


def lasting(runner: ModelRunner) -> dict[int, str]:
    """What a captured step may read without having written it."""
    named: dict[str, Tensor] = dict(runner.model.named_parameters())
    named |= {"rope": runner.model.rope, "bias": runner._bias}
    named |= {f"pool {number}": pool for number, pool in enumerate(runner._pools)}
    for made, _ in runner._captured.values():
        named |= {"numbers": made.inputs._numbers, "tokens": made.tokens}
        if made.inputs.rules.draws is not None:
            named["draws"] = made.inputs.rules.draws
    return {Operand.of(tensor).storage: name for name, tensor in named.items()}


def check_device(launches: list[Launch]) -> None:
    """Nothing lies elsewhere but what is copied to the inputs, and that at the start."""
    for launch in launches:
        elsewhere = [operand for operand in launch.reads if operand.device != DEVICE]
        assert not elsewhere or launch.name == "copy_", f"{launch.name} reads {elsewhere}"
        assert all(operand.device == DEVICE for operand in launch.writes), f"{launch.name} writes elsewhere"


def check_memory(captured: list[Launch], lasting: dict[int, str]) -> None:
    """What is captured reads what lasts or is its own, and writes the pools, the tokens and its own."""
    made: set[int] = set()
    for launch in captured:
        assert all(operand.device == DEVICE for operand in (*launch.reads, *launch.writes)), f"{launch.name}: a copy"
        for operand in launch.reads:
            assert operand.storage in lasting or operand.storage in made, f"{launch.name} reads what does not last"
        for operand in launch.writes:
            written = lasting.get(operand.storage, "its own")
            assert written in ("its own", "tokens") or written.startswith("pool"), f"{launch.name} writes {written}"
            made.add(operand.storage)


def check_types(launches: list[Launch]) -> None:
    """Weights, keys and values stay in bfloat16 wherever they go; logits and angles are float32."""
    for launch in launches:
        floats = [operand for operand in launch.reads if operand.dtype.is_floating_point]
        kinds = {operand.dtype for operand in floats}
        if launch.name in ("linear", "addmm_", "rms_norm", "scaled_dot_product_attention", "read", "gate"):
            assert kinds == {torch.bfloat16}, f"{launch.name} reads {kinds}"
        is_cast = any(operand.dtype == torch.float32 for operand in launch.writes) and torch.bfloat16 in kinds
        for operand in floats:
            assert not (is_cast and len(operand.shape) > 3), f"{launch.name} makes float32 of {operand.shape}"


def check(step: Ran) -> None:
    check_device(step.launches)
    check_memory(step.captured, step.lasting)
    check_types(step.launches)


@pytest.mark.parametrize("operators", [FUSED, PLAIN], ids=["fused", "plain"])
@pytest.mark.parametrize(("new", "temperature"), [(1, 0.0), (1, 1.0), (5, 0.0), (5, 1.0)])
def test_a_step_stays_on_its_device_and_is_read_once(operators: Operators, new: int, temperature: float) -> None:
    with fake_gpu():
        step = ran(operators, new=new, temperature=temperature)
        check(step)
        assert bool(step.captured) == (new == 1), "decodes are captured, prompts are not"
        brought = [launch for launch in step.launches if any(each.device != DEVICE for each in launch.reads)]
        fills = 2 if new == 1 else ROWS  # the rows of a form's first step are put in for its capture too
        assert len(brought) == fills * (2 if temperature else 1), "one copy of whole numbers, one of draws"
        with pytest.raises(torch._subclasses.fake_tensor.DataDependentOutputException, match="_local_scalar_dense"):
            step.collect()


@pytest.mark.parametrize("operators", [FUSED, PLAIN], ids=["fused", "plain"])
def test_later_steps_of_a_form_only_fill_its_inputs(operators: Operators) -> None:
    with fake_gpu():
        once, thrice = ran(operators), ran(operators, times=3)
    more = thrice.launches[len(once.launches) :]
    assert [launch.name for launch in more] == ["copy_"] * 2
    filled = {thrice.lasting.get(operand.storage) for launch in more for operand in launch.writes}
    assert filled == {"numbers"}


def test_logits_are_chosen_from_in_float32() -> None:
    with fake_gpu():
        launches = ran(FUSED, temperature=1.0).captured
    for name in ("argmax", "softmax", "sort", "searchsorted"):
        (found,) = (launch for launch in launches if launch.name == name)
        assert found.reads[0].dtype == torch.float32
    turned = next(launch for launch in launches if launch.name == "write")
    assert [operand.dtype for operand in turned.reads[:2]] == [torch.bfloat16, torch.float32], "angles are exact"


@pytest.mark.parametrize(("operators", "few"), [(FUSED, 9), (PLAIN, 15)], ids=["fused", "plain"])
def test_a_layer_of_a_decode_is_few_launches(operators: Operators, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[int] = []
    for layers in (2, 3):
        monkeypatch.setattr("tests.demo_server.test_step_on_gpu.SHAPE", replace(SHAPE, layers=layers))
        with fake_gpu():
            launched.append(len(ran(operators).captured))
    # Twice: norm, a matrix, a matrix that adds to the stream. Fused: writing, reading, gating. Plain: turning (4),
    # writing, gathering, attending, putting its answer in order, gating (2).
    assert launched[1] - launched[0] == few


def asking(x: Tensor) -> Tensor:
    assert x.sum().item() > 0
    return plain.gate(x)


def shaped_by_a_value(x: Tensor) -> Tensor:
    return plain.gate(x.masked_select(x > 0).unsqueeze(0))


def read_in_float32(heads: Tensor, pool: Tensor, *, blocks: Tensor) -> Tensor:
    cached = pool.index_select(0, blocks.flatten()).float()
    return heads[:, : SHAPE.heads].flatten(1) + cached.sum().bfloat16()


def masked_from_the_host(positions: Tensor, blocks: Tensor, pool: Tensor, group: int) -> plain.Read:
    mask = torch.zeros((len(blocks), 1, group * positions.shape[1], blocks.shape[1] * BLOCK), dtype=pool.dtype)
    copies = pool.new_empty(blocks.numel(), *pool.shape[1:])
    return partial(plain.read_gathered, blocks=blocks, mask=mask, copies=copies)


def adding_from_the_host(x: Tensor) -> Tensor:
    return plain.gate(x) + torch.zeros(())  # of no dimension, so even a GPU takes it


def with_what_does_not_last(made: list[Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: plain.gate(x) + made[0]


FAULTS = {
    "a value asked for": (replace(PLAIN, gate=asking), "_local_scalar_dense"),
    "a shape from a value": (replace(PLAIN, gate=shaped_by_a_value), "masked_select"),
    "a mask of the host": (replace(PLAIN, reading=masked_from_the_host), "found at least two devices"),
    "a number of the host": (replace(PLAIN, gate=adding_from_the_host), "zeros writes elsewhere"),
    "keys and values in float32": (
        replace(PLAIN, reading=lambda _at, blocks, _pool, _group: partial(read_in_float32, blocks=blocks)),
        "makes float32 of",
    ),
    "a product in float32": (replace(PLAIN, gate=lambda x: plain.gate(x.float())), "addmm_ reads"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_planted_is_found(fault: str) -> None:
    operators, said = FAULTS[fault]
    with fake_gpu(), pytest.raises((AssertionError, RuntimeError), match=said):  # torch's refusals are RuntimeErrors
        check(ran(operators))


def test_memory_that_does_not_last_is_found() -> None:
    with fake_gpu():
        passing = torch.zeros(1, dtype=torch.bfloat16, device=DEVICE)
        with pytest.raises(AssertionError, match="what does not last"):
            check(ran(replace(PLAIN, gate=with_what_does_not_last([passing]))))


def test_numbers_that_are_not_pinned_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "is_cuda", False)
    with fake_gpu(), pytest.raises(AssertionError, match="FakeTensor"):
        Inputs(Form(1, 1, 1, is_drawn=False), block_size=BLOCK, scratch=9, device=DEVICE).fill([])
