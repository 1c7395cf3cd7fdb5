"""Paged, batched, preempted and resumed: the tokens must be those of plain full attention all the same."""

import math

import pytest
import torch
from torch import Tensor

from demo_server import runner as runner_module
from demo_server.blocks import BlockPool
from demo_server.model import Batch, Decoder, build
from demo_server.runner import ModelRunner
from demo_server.scheduler import Chunk, Step
from demo_server.sequence import Sampling, Sequence
from demo_server.text import EOS, PRINTABLE
from tests.demo_server import reference
from tests.demo_server.storm import BLOCK, REQUESTS, SHAPE, alone, storm
from tests.demo_server.tape import Recorder

# In float32 the two ways differ by some 1e-5; where the best two logits are closer than this, either is right.
TIE = 1e-3


class Recorded(Decoder):
    """The same decoder, keeping the logits of its last pass."""

    last: torch.Tensor

    def forward(self, batch: Batch, pools: list[torch.Tensor]) -> torch.Tensor:  # type: ignore[override]
        self.last = super().forward(batch, pools)
        return self.last


@pytest.fixture(scope="module")
def model() -> Recorded:
    recorded = Recorded(SHAPE).eval()
    recorded.load_state_dict(build(SHAPE, seed=11).state_dict())
    return recorded


def check_tokens(model: Decoder, sequence: Sequence, seen: dict[int, Tensor]) -> None:
    """Every generated token is the greedy choice of a full forward over all tokens before it, and so are the logits
    that were seen after some of them."""
    allowed = torch.tensor([*PRINTABLE, EOS])
    full = reference.logits(model, sequence.tokens)
    for at, ours in seen.items():
        torch.testing.assert_close(ours.double(), full[at], atol=1e-4, rtol=1e-4)
    every = full[sequence.prompt_tokens - 1 : -1][:, allowed]
    chosen = torch.tensor([allowed.tolist().index(token) for token in sequence.tokens[sequence.prompt_tokens :]])
    best = every.max(dim=1).values
    assert (every[torch.arange(len(chosen)), chosen] >= best - TIE).all()


@pytest.mark.parametrize(
    ("seed", "blocks", "budget"),
    [(0, 12, 64), (1, 12, 8), (2, 14, 3), (3, 16, 64), (4, 30, 12), (5, 60, 24), (6, 13, 5), (7, 12, 16)],
)
def test_greedy_tokens_are_those_of_full_attention_under_any_storm(
    model: Recorded, seed: int, blocks: int, budget: int
) -> None:
    seen: dict[int, dict[int, Tensor]] = {}

    def watch(step: Step) -> None:
        if step.chunks and all(chunk.count == 1 for chunk in step.chunks):
            for row, chunk in zip(model.last, step.chunks, strict=True):
                seen.setdefault(chunk.sequence_id, {})[chunk.start] = row.clone()

    runner = ModelRunner(model, kv_blocks=blocks, block_size=BLOCK)
    came = storm(runner, seed, blocks=blocks, budget=budget, watch=watch)
    assert came.free == blocks
    assert len(came.done) == REQUESTS
    assert (came.preempted > 0) == (blocks < 30), "small pools must preempt, large ones need not"
    assert came.reused > 0, "some began alike"
    for sequence in came.done:
        check_tokens(model, sequence, seen.get(sequence.id, {}))
    assert sum(map(len, seen.values())) > 20, "many logits were compared"


@pytest.mark.parametrize(("seed", "blocks", "budget"), [(1, 12, 8), (5, 60, 24)])
def test_captured_steps_in_rounded_forms_give_the_same_tokens(
    model: Recorded, seed: int, blocks: int, budget: int
) -> None:
    recorder = Recorder()
    runner = ModelRunner(model, kv_blocks=blocks, block_size=BLOCK, capture=recorder.capture)
    came = storm(runner, seed, blocks=blocks, budget=budget)
    plain = storm(ModelRunner(model, kv_blocks=blocks, block_size=BLOCK), seed, blocks=blocks, budget=budget)
    assert [sequence.tokens for sequence in came.done] == [sequence.tokens for sequence in plain.done]
    for sequence in came.done:
        check_tokens(model, sequence, {})
    assert recorder.replays > 2 * len(recorder.tapes) > 6, "most steps were replayed, in several forms"


@pytest.mark.parametrize(("seed", "is_captured"), [(3, False), (8, True)])
def test_a_seed_gives_its_tokens_whoever_shares_the_batch(model: Recorded, seed: int, is_captured: bool) -> None:
    capture = Recorder().capture if is_captured else None
    runner = ModelRunner(model, kv_blocks=12, block_size=BLOCK, capture=capture)
    came = storm(runner, seed, blocks=12, budget=8, is_sampled=True)
    assert came.preempted > 0
    assert {sequence.sampling.temperature > 0 for sequence in came.done} == {True, False}
    by_itself = ModelRunner(model, kv_blocks=12, block_size=BLOCK)
    assert [sequence.tokens for sequence in came.done] == [alone(by_itself, sequence) for sequence in came.done]


def test_more_forms_than_are_kept_are_computed_as_they_come(model: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "MAX_CAPTURED", 2)
    recorder = Recorder()
    runner = ModelRunner(model, kv_blocks=60, block_size=BLOCK, capture=recorder.capture)
    for sequence in storm(runner, 5, blocks=60, budget=24).done:
        check_tokens(model, sequence, {})
    assert len(recorder.tapes) == 2


def test_half_precision_stays_close_to_full_attention() -> None:
    model = build(SHAPE, seed=11, dtype=torch.bfloat16)
    recorded = Recorded(SHAPE).eval().to(torch.bfloat16)
    recorded.load_state_dict(model.state_dict())
    runner = ModelRunner(recorded, kv_blocks=30, block_size=BLOCK, capture=Recorder().capture)
    prompt = [(7 * at) % 256 for at in range(40)]
    sequence = Sequence(1, prompt, Sampling(max_tokens=9))
    sequence.blocks = list(range(20))
    for _ in range(9):
        chunk = Chunk(1, sequence.computed, sequence.uncomputed)
        tokens = runner.begin(Step((chunk,)), {1: sequence})()
        full = reference.logits(model, sequence.tokens)[-1]
        # bfloat16 keeps 8 bits, and every product of a layer is rounded to them.
        assert (recorded.last[0].double() - full).abs().max() < 0.05 * full.std() * math.sqrt(SHAPE.layers)
        sequence.advance(chunk.count)
        sequence.append(tokens[1])


def test_logits_of_a_mixed_decode_batch_are_close(model: Recorded) -> None:
    runner = ModelRunner(model, kv_blocks=30, block_size=BLOCK)
    pool = BlockPool(30, BLOCK)
    sequences = {
        n: Sequence(n, range(n, n + length), Sampling(max_tokens=9)) for n, length in enumerate((1, 7, 16, 30))
    }
    for sequence in sequences.values():
        sequence.blocks = pool.take(pool.blocks_for(len(sequence) + 1))
    chunks = tuple(Chunk(n, 0, len(sequence)) for n, sequence in sequences.items())
    for n, token in runner.begin(Step(chunks), sequences)().items():
        sequences[n].advance(len(sequences[n]))
        sequences[n].append(token)
    runner.begin(Step(tuple(Chunk(n, len(sequence) - 1, 1) for n, sequence in sequences.items())), sequences)()
    assert model.last.shape == (4, SHAPE.vocabulary), "all decodes share one pass"
    for ours, sequence in zip(model.last, sequences.values(), strict=True):
        full = reference.logits(model, sequence.tokens)[-1]
        torch.testing.assert_close(ours.double(), full, atol=1e-4, rtol=1e-4)


def test_a_chunk_that_does_not_reach_the_end_gives_no_token(model: Recorded) -> None:
    runner = ModelRunner(model, kv_blocks=8, block_size=BLOCK)
    whole = Sequence(1, range(40, 50), Sampling(max_tokens=4))
    whole.blocks = [0, 1, 2]
    (token,) = runner.begin(Step((Chunk(1, 0, 10),)), {1: whole})().values()
    cut = Sequence(2, range(40, 50), Sampling(max_tokens=4))
    cut.blocks = [7, 3, 5]
    assert runner.begin(Step((Chunk(2, 0, 6),)), {2: cut})() == {}
    assert runner.begin(Step((Chunk(2, 6, 3),)), {2: cut})() == {}
    assert runner.begin(Step((Chunk(2, 9, 1),)), {2: cut})() == {2: token}


def test_warming_up_touches_no_block_of_the_pool(model: Recorded) -> None:
    runner = ModelRunner(model, kv_blocks=3, block_size=BLOCK)
    runner.warm_up()
    assert all((pool[:3] == 0).all() for pool in runner._pools)
