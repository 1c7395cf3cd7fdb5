"""Triton's source of what `fused` launches: one kernel where `operators.PLAIN` needs several launches and copies.

Each does what its namesake there does, in float32 between loads and stores. Tensors come as pointers to memory without
gaps, whose strides follow from `Sizes`, which Triton compiles in. Integers that change from pass to
pass are not compiled in, nor whether a view begins at a multiple of 16 bytes: a server must not compile as it serves.
"""

from typing import NamedTuple

import triton
import triton.language as tl


class Sizes(NamedTuple):
    """What a kernel is compiled for; D, `members` and `tile` are powers of two."""

    heads: int  # H
    kv_heads: int  # K
    head_width: int  # D
    block_size: int  # S
    members: int  # G, or the next of 16, 32, ... above it, as the matrix unit takes no fewer rows
    tile: int  # cached positions that are read at once


@triton.jit(do_not_specialize_on_alignment=("slots",))
def write(heads, rope, slots, pool, sizes: tl.constexpr):
    """A program turns one head of one row: a query stays where it is, a key or a value goes to its slot."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    half: tl.constexpr = sizes.head_width // 2
    lane = tl.arange(0, half)
    here = heads + (row * (sizes.heads + 2 * sizes.kv_heads) + head) * sizes.head_width + lane
    low, high = tl.load(here).to(tl.float32), tl.load(here + half).to(tl.float32)
    if head < sizes.heads + sizes.kv_heads:
        cos = rope + row * sizes.head_width + lane
        sin = cos + tl.num_programs(0).to(tl.int64) * sizes.head_width
        turned = low * tl.load(cos) + high * tl.load(sin)
        high = high * tl.load(cos + half) + low * tl.load(sin + half)
        low = turned
    if head < sizes.heads:
        there = here
    else:
        slot = tl.load(slots + row) * 2 * sizes.kv_heads + head - sizes.heads
        there = pool + slot * sizes.head_width + lane
    tl.store(there, low.to(pool.dtype.element_ty))
    tl.store(there + half, high.to(pool.dtype.element_ty))


@triton.jit(do_not_specialize=("width",), do_not_specialize_on_alignment=("positions", "blocks"))
def read(heads, pool, positions, blocks, out, width, scale, sizes: tl.constexpr):
    """A program is one row's query heads of one group, over its cached positions tile by tile: softmax as it goes
    (Milakov and Gimelshein 2018), so each key and value is read once and no score is stored."""
    row, shared = tl.program_id(0).to(tl.int64), tl.program_id(1)
    group: tl.constexpr = sizes.heads // sizes.kv_heads
    members: tl.constexpr = sizes.members
    head_width: tl.constexpr = sizes.head_width
    slot_width: tl.constexpr = 2 * sizes.kv_heads * head_width
    member, lane = tl.arange(0, members), tl.arange(0, head_width)
    is_member = (member < group)[:, None]  # the others are zeros that nobody stores
    place = (shared * group + member)[:, None] * head_width + lane[None, :]
    q = tl.load(heads + row * (sizes.heads + 2 * sizes.kv_heads) * head_width + place, is_member, other=0.0)
    best = tl.full((members,), float("-inf"), tl.float32)
    total = tl.zeros((members,), tl.float32)
    answer = tl.zeros((members, head_width), tl.float32)
    length = tl.load(positions + row).to(tl.int32) + 1
    for begin in range(0, length, sizes.tile):
        at = begin + tl.arange(0, sizes.tile)
        is_there = at < length
        block = tl.load(blocks + row * width + at // sizes.block_size, is_there, other=0)
        slot = (block * sizes.block_size + at % sizes.block_size)[:, None] * slot_width
        key = pool + slot + shared * head_width + lane[None, :]
        keys = tl.load(key, is_there[:, None], other=0.0)
        values = tl.load(key + sizes.kv_heads * head_width, is_there[:, None], other=0.0)
        # What float32 has is kept where that is the type: the matrix unit's own 10 bits would choose other tokens.
        scores = tl.dot(q, tl.trans(keys), input_precision="ieee") * scale
        scores = tl.where(is_there[None, :], scores, float("-inf"))
        higher = tl.maximum(best, tl.max(scores, 1))
        share = tl.exp(scores - higher[:, None])
        fading = tl.exp(best - higher)
        total = total * fading + tl.sum(share, 1)
        answer = answer * fading[:, None] + tl.dot(share.to(values.dtype), values, input_precision="ieee")
        best = higher
    answer = (answer / total[:, None]).to(out.dtype.element_ty)
    tl.store(out + row * sizes.heads * head_width + place, answer, is_member)


@triton.jit
def gate(x, out, hidden: tl.constexpr, tile: tl.constexpr):
    """A program is a tile of one row."""
    row, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * tile + tl.arange(0, tile)
    is_there = at < hidden
    opened = tl.load(x + row * 2 * hidden + at, is_there, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * hidden + hidden + at, is_there, other=0.0).to(tl.float32)
    gated = opened * tl.sigmoid(opened) * up
    tl.store(out + row * hidden + at, gated.to(out.dtype.element_ty), is_there)
