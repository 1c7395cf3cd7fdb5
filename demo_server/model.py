"""The decoder: Llama's shape (RMSNorm, RoPE, grouped-query attention, SwiGLU) over a paged KV cache, random weights.

One forward pass serves prompts and decodes alike: every row of a `Batch` brings Q new tokens, writes their keys and
values into its blocks, and attends over all positions up to its own by reading the blocks back in order. A decode
has Q = 1.

Shapes: B rows, Q new tokens a row, T = N * S cached positions a row (N blocks of S), H heads in K groups of G, D a
head.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from demo_server.text import VOCABULARY


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a decoder; the defaults make 2.6 million parameters."""

    layers: int = 4
    width: int = 256
    heads: int = 8
    kv_heads: int = 2
    hidden: int = 576
    vocabulary: int = VOCABULARY
    max_positions: int = 2048
    rope_base: float = 10_000.0

    @property
    def head_width(self) -> int:
        """D."""
        return self.width // self.heads

    @property
    def group(self) -> int:
        """G: query heads that share one key and value head."""
        return self.heads // self.kv_heads


@dataclass(frozen=True, slots=True)
class Batch:
    """One forward pass. `slots` says where in the pool each new token's keys and values go: block * S + offset."""

    tokens: Tensor  # (B, Q) int64
    positions: Tensor  # (B, Q) int64
    slots: Tensor  # (B * Q,) int64
    blocks: Tensor  # (B, N) int64; rows shorter than N are filled with any valid block, and masked


class Attention(nn.Module):
    """Grouped-query attention whose keys and values live in a block pool."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.qkv = nn.Linear(shape.width, (shape.heads + 2 * shape.kv_heads) * shape.head_width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: Tensor, rope: Tensor, mask: Tensor, batch: Batch, pool: Tensor) -> Tensor:
        """x (B, Q, width), rope (2, B, Q, 1, D), mask (B, 1, Q*G, T), pool (blocks, S, 2, K, D) -> (B*Q, width).

        What the heads read, before `out`: the layer adds that to its stream.
        """
        shape, (rows, new, _) = self.shape, x.shape
        heads = self.qkv(x).unflatten(-1, (-1, shape.head_width))  # (B, Q, H + 2K, D)
        turned = heads[:, :, : shape.heads + shape.kv_heads]  # queries and keys
        turned.copy_(rotate(turned, rope))
        written = heads[:, :, shape.heads :].flatten(0, 1).unflatten(1, (2, shape.kv_heads))  # (B*Q, 2, K, D)
        pool.flatten(0, 1).index_copy_(0, batch.slots, written)

        cached = pool.index_select(0, batch.blocks.flatten())  # (B*N, S, 2, K, D)
        cached = cached.view(rows, -1, 2, shape.kv_heads, shape.head_width)  # (B, T, 2, K, D)
        keys, values = cached.permute(2, 0, 3, 1, 4).unbind(0)  # (B, K, T, D) each, views
        # The G heads of a group read the same keys, so they can stand as G further queries: no key is copied.
        q = heads[:, :, : shape.heads].unflatten(2, (shape.kv_heads, -1))  # (B, Q, K, G, D)
        q = q.transpose(1, 2).flatten(2, 3)  # (B, K, Q*G, D)
        read = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        # Kernels differ in the order in which their answer lies in memory, so this is no view on all of them.
        read = read.view(rows, shape.kv_heads, new, shape.group, shape.head_width)
        return read.transpose(1, 2).reshape(rows * new, -1)  # (B*Q, K*G*D)


class Block(nn.Module):
    """One layer: attention, then the gated feed-forward, each on a normed residual stream."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.attention = Attention(shape)
        self.feed_norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.gate_up = nn.Linear(shape.width, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Tensor, rope: Tensor, mask: Tensor, batch: Batch, pool: Tensor) -> None:
        """Add to the stream x (B, Q, width), in place: a decode is as fast as its launches are few."""
        stream = x.flatten(0, 1)  # (B*Q, width), a view
        read = self.attention(self.attention_norm(x), rope, mask, batch, pool)
        stream.addmm_(read, self.attention.out.weight.T)
        gate, up = self.gate_up(self.feed_norm(stream)).chunk(2, dim=-1)
        stream.addmm_(F.silu(gate).mul_(up), self.down.weight.T)


class Decoder(nn.Module):
    """The whole model: token ids and a cache in, logits of each row's last new token out."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.rope = rope_table(shape)

    def forward(self, batch: Batch, pools: Sequence[Tensor]) -> Tensor:
        """Write the new tokens' keys and values into `pools` (one a layer) and return logits (B, vocabulary)."""
        block_size = pools[0].shape[1]
        x = self.embedding(batch.tokens)  # (B, Q, width)
        rope = self.rope[:, batch.positions].unsqueeze(3)  # (2, B, Q, 1, D)
        mask = causal_mask(batch, block_size, group=self.shape.group, dtype=x.dtype)
        for layer, pool in zip(self.layers, pools, strict=True):
            layer(x, rope, mask, batch, pool)
        logits: Tensor = self.head(self.norm(x[:, -1]))
        return logits


def rope_table(shape: ModelShape) -> Tensor:
    """What `rotate` multiplies by at every position: (2, positions, D). RoPE: Su et al. 2021, halves form."""
    half = shape.head_width // 2
    frequency = shape.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(shape.max_positions, dtype=torch.float64)[:, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((torch.cat((cos, cos), dim=1), torch.cat((-sin, sin), dim=1))).float()


def rotate(x: Tensor, rope: Tensor) -> Tensor:
    """Turn each head's (i, i + D/2) pairs by their position's angle; x (B, Q, heads, D), the answer in float32."""
    cos, sin = rope
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, dims=-1), sin)


def causal_mask(batch: Batch, block_size: int, *, group: int, dtype: torch.dtype) -> Tensor:
    """0 where a query may look (its own position and before), -inf elsewhere: (B, 1, Q*G, T)."""
    cached = torch.arange(batch.blocks.shape[1] * block_size, device=batch.positions.device)  # (T,)
    hidden = cached > batch.positions.unsqueeze(-1)  # (B, Q, T)
    mask = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, float("-inf"))
    return mask.repeat_interleave(group, dim=1).unsqueeze(1)


def build(
    shape: ModelShape, seed: int, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> Decoder:
    """A decoder in evaluation mode whose weights, before rounding to `dtype`, depend on `shape` and `seed` alone.

    Every matrix keeps the variance of what it is given, the two that end a layer are damped by the depth (as in GPT-2),
    and the head is scaled so that the next token is neither certain nor uniform.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.device(device):
        model = Decoder(shape).eval().to(dtype)
    # The rotation table stays in float32: rounded to bfloat16, far positions could not be told apart.
    model.rope = rope_table(shape).to(device)
    damped = (2 * shape.layers) ** -0.5
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                continue  # norms start at 1
            scale = 1.0 if name.startswith("embedding") else weight.shape[1] ** -0.5
            if name.endswith(("out.weight", "down.weight")):
                scale *= damped
            if name.startswith("head"):
                scale *= 2.0
            weight.copy_(torch.randn(weight.shape, generator=generator) * scale)
    return model.requires_grad_(False)
