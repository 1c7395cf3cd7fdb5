import pytest
import torch

from demo_server.model import Batch, Decoder, ModelShape, build
from tests.demo_server import reference

SMALL = ModelShape(layers=2, width=64, heads=4, kv_heads=2, hidden=96, max_positions=128)
BLOCK = 4


def pools(model: Decoder, blocks: int) -> list[torch.Tensor]:
    """Pools full of rubbish, so that reading what was never written shows."""
    shape = model.shape
    generator = torch.Generator().manual_seed(1)
    size = (blocks, BLOCK, 2, shape.kv_heads, shape.head_width)
    return [torch.randn(size, generator=generator) * 100 for _ in range(shape.layers)]


def row(tokens: list[int], start: int, blocks: list[int]) -> Batch:
    """One row with `tokens` at positions from `start`, stored through a block table."""
    positions = range(start, start + len(tokens))
    return Batch(
        tokens=torch.tensor([tokens]),
        positions=torch.tensor([list(positions)]),
        slots=torch.tensor([blocks[at // BLOCK] * BLOCK + at % BLOCK for at in positions]),
        blocks=torch.tensor([blocks]),
    )


@torch.inference_mode()
@pytest.mark.parametrize(
    "shape",
    [SMALL, ModelShape(layers=1, width=32, heads=4, kv_heads=4, hidden=48), ModelShape(max_positions=64)],
    ids=["grouped", "one key head a query head", "default"],
)
def test_a_prompt_agrees_with_full_attention(shape: ModelShape) -> None:
    model = build(shape, seed=3)
    tokens = [(7 * at) % 256 for at in range(19)]
    ours = model(row(tokens, 0, [5, 2, 7, 0, 3]), pools(model, 8))
    torch.testing.assert_close(ours[0].double(), reference.logits(model, tokens)[-1], atol=1e-4, rtol=1e-4)


@torch.inference_mode()
@pytest.mark.parametrize("cut", [1, 3, 4, 5, 18])
def test_a_prompt_cut_in_two_gives_the_same(cut: int) -> None:
    model = build(SMALL, seed=3)
    tokens = [(11 * at) % 256 for at in range(19)]
    cache = pools(model, 8)
    table = [6, 1, 4, 2, 0]
    model(row(tokens[:cut], 0, table), cache)
    ours = model(row(tokens[cut:], cut, table), cache)
    torch.testing.assert_close(ours[0].double(), reference.logits(model, tokens)[-1], atol=1e-4, rtol=1e-4)


def test_weights_depend_on_shape_and_seed_alone() -> None:
    one, same, other = build(SMALL, seed=1), build(SMALL, seed=1), build(SMALL, seed=2)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not torch.equal(one.head.weight, other.head.weight)


def test_the_default_model_is_big_enough_to_measure_and_small_enough_for_two_cores() -> None:
    weights = sum(weight.numel() for weight in build(ModelShape(), seed=0).parameters())
    assert 2_000_000 < weights < 3_000_000


@torch.inference_mode()
def test_the_stream_stays_in_range_and_the_next_token_is_neither_certain_nor_uniform() -> None:
    model = build(ModelShape(max_positions=512), seed=0)
    tokens = [(13 * at) % 256 for at in range(400)]
    share = model(row(tokens, 0, list(range(100))), pools(model, 100))[0].softmax(dim=-1)
    assert share.isfinite().all()
    assert 1 / 264 * 3 < share.max() < 0.9


def test_half_precision_keeps_exact_positions() -> None:
    model = build(SMALL, seed=1, dtype=torch.bfloat16)
    assert (model.head.weight.dtype, model.rope.dtype) == (torch.bfloat16, torch.float32)
    logits = model(row([1, 2, 3], 0, [0]), [pool.bfloat16() for pool in pools(model, 2)])
    assert logits.dtype == torch.bfloat16
