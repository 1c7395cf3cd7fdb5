"""torch's own operators, each against the plainest way to say the same."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from demo_server import operators

HEADS, KV_HEADS, WIDTH, BLOCK = 6, 2, 8, 4
ROWS, NEW, BLOCKS = 2, 3, 3


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_queries_are_turned_where_they_are_and_keys_and_values_go_to_their_slots() -> None:
    heads, rope, pool = numbers(2, HEADS + 2 * KV_HEADS, WIDTH), numbers(2, 2, WIDTH), torch.zeros(5, BLOCK, 2, 2, 8)
    before = heads.clone()
    operators.write(heads, rope, torch.tensor([17, 2]), pool)
    for row, (block, offset) in enumerate([(4, 1), (0, 2)]):
        cos, sin = rope[:, row]
        for head in range(HEADS + KV_HEADS):
            x = before[row, head]
            turned = x * cos + torch.cat((x[4:], x[:4])) * sin
            found = heads[row, head] if head < HEADS else pool[block, offset, 0, head - HEADS]
            torch.testing.assert_close(found, turned)
        assert torch.equal(pool[block, offset, 1], before[row, -KV_HEADS:])
    assert pool.count_nonzero() == 2 * 2 * KV_HEADS * WIDTH, "nothing else was written"


def test_each_row_reads_its_own_blocks_up_to_its_position() -> None:
    heads = numbers(ROWS * NEW, HEADS + 2 * KV_HEADS, WIDTH)
    pool = numbers(9, BLOCK, 2, KV_HEADS, WIDTH, seed=1)
    blocks, positions = torch.tensor([[7, 2, 5], [0, 8, 0]]), torch.tensor([[8, 9, 10], [2, 3, 4]])
    read = operators.reading(positions, blocks, pool, HEADS // KV_HEADS)(heads, pool)
    cached = pool[blocks].flatten(1, 2)  # (B, T, 2, K, D)
    for row in range(ROWS):
        for new in range(NEW):
            for head in range(HEADS):
                seen = cached[row, : positions[row, new] + 1, :, head // (HEADS // KV_HEADS)]  # (t, 2, D)
                share = (seen[:, 0] @ heads[row * NEW + new, head] / WIDTH**0.5).softmax(0)
                ours = read[row * NEW + new, head * WIDTH : (head + 1) * WIDTH]
                torch.testing.assert_close(ours, share @ seen[:, 1])


def efficient(q: Tensor, keys: Tensor, values: Tensor, *, attn_mask: Tensor) -> Tensor:
    """The attention that a GPU takes with a mask; its answer lies in memory as no kernel of the CPU leaves it."""
    mask = attn_mask.expand(*q.shape[:2], -1, -1)
    answer: Tensor = torch.ops.aten._scaled_dot_product_efficient_attention(q, keys, values, mask, False)[0]
    return answer


@pytest.mark.parametrize("new", [1, NEW])
def test_what_is_read_may_lie_in_any_order(monkeypatch: pytest.MonkeyPatch, new: int) -> None:
    monkeypatch.setattr(F, "scaled_dot_product_attention", efficient)
    with torch.device("meta"):
        heads, pool = torch.empty(ROWS * new, HEADS + 2 * KV_HEADS, WIDTH), torch.empty(9, BLOCK, 2, KV_HEADS, WIDTH)
        blocks, positions = torch.empty(ROWS, BLOCKS, dtype=torch.int64), torch.empty(ROWS, new, dtype=torch.int64)
        read = operators.reading(positions, blocks, pool, HEADS // KV_HEADS)(heads, pool)
    assert read.shape == (ROWS * new, HEADS * WIDTH)


def test_the_first_half_gates_the_second() -> None:
    x = numbers(3, 10)
    torch.testing.assert_close(operators.gate(x.clone()), x[:, :5] * x[:, :5].sigmoid() * x[:, 5:])
