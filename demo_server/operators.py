"""What a layer does between its matrices: turn queries and keys, keep keys and values, read them back, gate.

One set of these, `PLAIN`, is torch's own operations and runs alike on every device. `fused` has another for GPUs. Which
one a model takes is decided once, when it is built; the tokens are the same.

Attention here is torch's scaled dot product over copies of blocks, which reads keys and values three times; torch's own
paged ways want blocks of 256 tokens (FlashAttention 2), a package of its own (3), or a compiler at start (flex
attention).

Shapes: R = B * Q rows of new tokens, T = N * S cached positions of a sequence (N blocks of S), H query heads in K
groups of G, D a head. Heads come as the matrix left them: H of queries, K of keys, K of values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

Read = Callable[[Tensor, Tensor], Tensor]
"""From heads (R, H + 2K, D), turned, and a pool to what they read of it: (R, H * D)."""


@dataclass(frozen=True, slots=True)
class Operators:
    """`write(heads, rope, slots, pool)` turns queries in place and puts turned keys, and values, into their slots.

    `reading(positions, blocks, pool, group)` gives what every layer of a pass reads with: each row all of its sequence
    up to its own position. `gate(x)` of (R, 2 * hidden) is silu of the first half times the second.
    """

    write: Callable[[Tensor, Tensor, Tensor, Tensor], None]
    reading: Callable[[Tensor, Tensor, Tensor, int], Read]
    gate: Callable[[Tensor], Tensor]


def write(heads: Tensor, rope: Tensor, slots: Tensor, pool: Tensor) -> None:
    """heads (R, H + 2K, D), rope (2, R, D), slots (R,), pool (blocks, S, 2, K, D)."""
    kv_heads = pool.shape[3]
    turned = heads[:, :-kv_heads]  # (R, H + K, D)
    turned.copy_(rotate(turned, rope.unsqueeze(2)))
    written = heads[:, -2 * kv_heads :].view(len(heads), 2, kv_heads, -1)  # (R, 2, K, D)
    pool.flatten(0, 1).index_copy_(0, slots, written)


def rotate(x: Tensor, rope: Tensor) -> Tensor:
    """Turn each head's (i, i + D/2) pairs by their position's angle; x (R, heads, D), the answer in float32."""
    cos, sin = rope
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, dims=-1), sin)


def reading(positions: Tensor, blocks: Tensor, pool: Tensor, group: int) -> Read:
    """positions (B, Q), blocks (B, N); the mask is made once for all layers, and so is the memory of the copies."""
    mask = causal_mask(positions, blocks.shape[1] * pool.shape[1], dtype=pool.dtype)  # (B, Q, T)
    mask = mask.repeat_interleave(group, dim=1).unsqueeze(1)  # (B, 1, Q*G, T)
    # Given back and taken anew by every layer, it would often be fetched from the system page by page.
    copies = pool.new_empty(blocks.numel(), *pool.shape[1:])  # (B*N, S, 2, K, D)
    return partial(read_gathered, blocks=blocks, mask=mask, copies=copies)


def causal_mask(positions: Tensor, cached: int, *, dtype: torch.dtype) -> Tensor:
    """0 where a query may look (its own position and before), -inf elsewhere: (B, Q, T)."""
    hidden = torch.arange(cached, device=positions.device) > positions.unsqueeze(-1)  # (B, Q, T)
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, float("-inf"))


def read_gathered(heads: Tensor, pool: Tensor, *, blocks: Tensor, mask: Tensor, copies: Tensor) -> Tensor:
    """Attention over a copy of each row's blocks, so keys and values move three times; mask (B, 1, Q*G, T)."""
    rows, (_, _, _, kv_heads, head_width) = len(blocks), pool.shape
    cached = torch.index_select(pool, 0, blocks.flatten(), out=copies)  # (B*N, S, 2, K, D)
    cached = cached.view(rows, -1, 2, kv_heads, head_width)  # (B, T, 2, K, D)
    keys, values = cached.permute(2, 0, 3, 1, 4).unbind(0)  # (B, K, T, D) each, views
    # The G heads of a group read the same keys, so they can stand as G further queries: no key is copied.
    new, group = len(heads) // rows, heads.shape[1] // kv_heads - 2
    q = heads[:, : -2 * kv_heads].view(rows, new, kv_heads, group, head_width)  # (B, Q, K, G, D)
    q = q.transpose(1, 2).flatten(2, 3)  # (B, K, Q*G, D)
    read = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
    # Kernels differ in the order in which their answer lies in memory, so this is no view on all of them.
    read = read.view(rows, kv_heads, new, group, head_width)
    return read.transpose(1, 2).reshape(rows * new, -1)  # (R, K*G*D)


def gate(x: Tensor) -> Tensor:
    """x (R, 2 * hidden) -> (R, hidden)."""
    opened, up = x.chunk(2, dim=-1)
    return F.silu(opened).mul_(up)


PLAIN = Operators(write, reading, gate)
