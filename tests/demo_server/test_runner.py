"""Paged, batched, preempted and resumed: the tokens must be those of plain full attention all the same."""

import random

import pytest
import torch

from demo_server.blocks import BlockPool
from demo_server.model import Batch, Decoder, ModelShape, build
from demo_server.runner import ModelRunner
from demo_server.scheduler import Chunk, Policy, Scheduler, Step
from demo_server.sequence import Sampling, Sequence
from demo_server.text import EOS, PRINTABLE
from tests.demo_server import reference

SHAPE = ModelShape(layers=2, width=64, heads=4, kv_heads=2, hidden=96, max_positions=128)
BLOCK = 4
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


def check_tokens(model: Decoder, sequence: Sequence, seen: dict[int, torch.Tensor]) -> None:
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
    chance = random.Random(seed)
    pool = BlockPool(blocks, BLOCK)
    scheduler = Scheduler(pool, Policy(max_batch=6, token_budget=budget))
    beginnings = [[chance.randrange(256) for _ in range(length)] for length in (0, 4, 9, 13)]
    runner = ModelRunner(model, kv_blocks=pool.total, block_size=BLOCK)
    alive: dict[int, Sequence] = {}
    done: list[Sequence] = []
    seen: dict[int, dict[int, torch.Tensor]] = {}
    preempted = reused = 0
    to_come = 12
    while to_come or alive:
        for _ in range(min(to_come, chance.choice([0, 0, 1, 3]))):
            to_come -= 1
            own = [chance.randrange(256) for _ in range(chance.randint(1, 8))]
            prompt = chance.choice(beginnings) + own
            sequence = Sequence(to_come, prompt, Sampling(max_tokens=chance.randint(2, 24)))
            alive[sequence.id] = sequence
            scheduler.add(sequence)
        step = scheduler.plan()
        preempted += len(step.preempted)
        reused += sum(step.reused)
        tokens = runner.run(step, alive)
        if step.chunks and all(chunk.count == 1 for chunk in step.chunks):
            for row, chunk in zip(model.last, step.chunks, strict=True):
                seen.setdefault(chunk.sequence_id, {})[chunk.start] = row.clone()
        assert set(tokens) == {
            chunk.sequence_id for chunk in step.chunks if chunk.count == alive[chunk.sequence_id].uncomputed
        }
        for chunk in step.chunks:
            alive[chunk.sequence_id].advance(chunk.count)
        for sequence_id, token in tokens.items():
            sequence = alive[sequence_id]
            sequence.append(token)
            left_early = chance.random() < 0.01
            if sequence.output_tokens == sequence.sampling.max_tokens or left_early:
                scheduler.finish(sequence)
                done.append(alive.pop(sequence_id))
    assert pool.free == pool.total
    assert len(done) == 12
    assert (preempted > 0) == (blocks < 30), "small pools must preempt, large ones need not"
    assert reused > 0, "some began alike"
    for sequence in done:
        check_tokens(model, sequence, seen.get(sequence.id, {}))
    assert sum(map(len, seen.values())) > 20, "many logits were compared"


def test_logits_of_a_mixed_decode_batch_are_close(model: Recorded) -> None:
    runner = ModelRunner(model, kv_blocks=30, block_size=BLOCK)
    pool = BlockPool(30, BLOCK)
    sequences = {
        n: Sequence(n, range(n, n + length), Sampling(max_tokens=9)) for n, length in enumerate((1, 7, 16, 30))
    }
    for sequence in sequences.values():
        sequence.blocks = pool.take(pool.blocks_for(len(sequence) + 1))
    chunks = tuple(Chunk(n, 0, len(sequence)) for n, sequence in sequences.items())
    for n, token in runner.run(Step(chunks), sequences).items():
        sequences[n].advance(len(sequences[n]))
        sequences[n].append(token)
    runner.run(Step(tuple(Chunk(n, len(sequence) - 1, 1) for n, sequence in sequences.items())), sequences)
    assert model.last.shape == (4, SHAPE.vocabulary), "all decodes share one pass"
    for ours, sequence in zip(model.last, sequences.values(), strict=True):
        full = reference.logits(model, sequence.tokens)[-1]
        torch.testing.assert_close(ours.double(), full, atol=1e-4, rtol=1e-4)


def test_a_chunk_that_does_not_reach_the_end_gives_no_token(model: Recorded) -> None:
    runner = ModelRunner(model, kv_blocks=8, block_size=BLOCK)
    whole = Sequence(1, range(40, 50), Sampling(max_tokens=4))
    whole.blocks = [0, 1, 2]
    (token,) = runner.run(Step((Chunk(1, 0, 10),)), {1: whole}).values()
    cut = Sequence(2, range(40, 50), Sampling(max_tokens=4))
    cut.blocks = [7, 3, 5]
    assert runner.run(Step((Chunk(2, 0, 6),)), {2: cut}) == {}
    assert runner.run(Step((Chunk(2, 6, 3),)), {2: cut}) == {}
    assert runner.run(Step((Chunk(2, 9, 1),)), {2: cut}) == {2: token}


def test_warming_up_touches_no_block_of_the_pool(model: Recorded) -> None:
    runner = ModelRunner(model, kv_blocks=3, block_size=BLOCK)
    runner.warm_up()
    assert all((pool[:3] == 0).all() for pool in runner._pools)
