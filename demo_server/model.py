"""The decoder: Llama's shape (RMSNorm, RoPE, grouped-query attention, SwiGLU) over a paged KV cache, random weights.

One forward pass serves prompts and decodes alike: every row of a `Batch` brings Q new tokens, writes their keys and
values into its blocks, and attends over all positions up to its own by reading the blocks back in order. A decode
has Q = 1.

Shapes: B rows, Q new tokens a row, R = B * Q, N blocks of S positions a row, H heads in K groups of G, D a head.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from demo_server.fused import operators_on
from demo_server.operators import PLAIN, Operators, Read
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


@dataclass(frozen=True, slots=True)
class Shared:
    """What all layers of one forward pass share."""

    rope: Tensor  # (2, R, D) float32, what `operators.rotate` multiplies by
    slots: Tensor  # (R,)
    read: Read
    operators: Operators


class Attention(nn.Module):
    """Grouped-query attention whose keys and values live in a block pool."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.head_width = shape.head_width
        self.qkv = nn.Linear(shape.width, (shape.heads + 2 * shape.kv_heads) * shape.head_width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: Tensor, now: Shared, pool: Tensor) -> Tensor:
        """x (R, width), pool (blocks, S, 2, K, D) -> (R, width).

        What the heads read, before `out`: the layer adds that to its stream.
        """
        heads = self.qkv(x).unflatten(-1, (-1, self.head_width))  # (R, H + 2K, D)
        now.operators.write(heads, now.rope, now.slots, pool)
        return now.read(heads, pool)


class Block(nn.Module):
    """One layer: attention, then the gated feed-forward, each on a normed residual stream."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.attention = Attention(shape)
        self.feed_norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.gate_up = nn.Linear(shape.width, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Tensor, now: Shared, pool: Tensor) -> None:
        """Add to the stream x (R, width), in place: a decode is as fast as its launches are few."""
        read = self.attention(self.attention_norm(x), now, pool)
        x.addmm_(read, self.attention.out.weight.T)
        gated = now.operators.gate(self.gate_up(self.feed_norm(x)))  # (R, hidden)
        x.addmm_(gated, self.down.weight.T)


class Decoder(nn.Module):
    """The whole model: token ids and a cache in, logits of each row's last new token out."""

    def __init__(self, shape: ModelShape, operators: Operators = PLAIN) -> None:
        super().__init__()
        self.shape = shape
        self.operators = operators
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.rope = rope_table(shape)

    def forward(self, batch: Batch, pools: Sequence[Tensor]) -> Tensor:
        """Write the new tokens' keys and values into `pools` (one a layer) and return logits (B, vocabulary)."""
        x = self.embedding(batch.tokens.flatten())  # (R, width)
        now = Shared(
            rope=self.rope.index_select(1, batch.positions.flatten()),  # (2, R, D)
            slots=batch.slots,
            read=self.operators.reading(batch.positions, batch.blocks, pools[0], self.shape.group),
            operators=self.operators,
        )
        for layer, pool in zip(self.layers, pools, strict=True):
            layer(x, now, pool)
        last = x.unflatten(0, batch.tokens.shape)[:, -1]  # (B, width)
        logits: Tensor = self.head(self.norm(last))
        return logits


def rope_table(shape: ModelShape) -> Tensor:
    """What `operators.rotate` multiplies by at every position: (2, positions, D). RoPE: Su et al. 2021, halves form."""
    half = shape.head_width // 2
    frequency = shape.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(shape.max_positions, dtype=torch.float64)[:, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((torch.cat((cos, cos), dim=1), torch.cat((-sin, sin), dim=1))).float()


def build(
    shape: ModelShape, seed: int, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> Decoder:
    """A decoder in evaluation mode whose weights, before rounding to `dtype`, depend on `shape` and `seed` alone.

    Every matrix keeps the variance of what it is given, the two that end a layer are damped by the depth (as in GPT-2),
    and the head is scaled so that the next token is neither certain nor uniform.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.device(device):
        model = Decoder(shape, operators_on(torch.device(device), shape.head_width)).eval().to(dtype)
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
