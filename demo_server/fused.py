"""The operators of a GPU: `kernels` behind torch's own door, so that a pass can be traced, counted and captured.

Attention of a decode reads the paged pool where it lies; a prompt's, which reads little for much work, is gathered as
everywhere. Triton comes with torch's CUDA wheels and is no dependency: it is imported when a kernel is first launched,
and where it is missing or finds no C compiler, `operators_on` says so and chooses `operators.PLAIN`.
"""

import logging
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from demo_server import operators
from demo_server.operators import PLAIN, Operators, Read

if TYPE_CHECKING:
    from demo_server.kernels import Sizes

_logger = logging.getLogger(__name__)

READ_TILE, GATE_TILE = 64, 1024
# A head is a row of the matrix unit's operands, which are that wide at least and lie in registers.
HEAD_WIDTHS = (16, 32, 64, 128, 256)


def operators_on(device: torch.device, head_width: int) -> Operators:
    """The fastest operators that work on this device for heads so wide; tries them where there is a doubt."""
    if device.type != "cuda" or head_width not in HEAD_WIDTHS:
        return PLAIN
    try:
        gate(torch.zeros((1, 2), device=device))
    except Exception as error:  # noqa: BLE001  # whatever a compiler's set-up lacks, there is another way
        _logger.warning("Triton cannot be used here, so attention copies what it reads: %s", error)
        return PLAIN
    return FUSED


@torch.library.custom_op("demo_server::write", mutates_args=("heads", "pool"))
def write(heads: Tensor, rope: Tensor, slots: Tensor, pool: Tensor) -> None:
    """`operators.write` in one launch."""
    from demo_server import kernels

    kernels.write[heads.shape[:2]](heads, rope, slots, pool, sizes=_sizes(heads, pool), num_warps=1)


@torch.library.custom_op("demo_server::read", mutates_args=())
def read(heads: Tensor, pool: Tensor, positions: Tensor, blocks: Tensor) -> Tensor:
    """What each row of heads (B, H + 2K, D) reads in blocks (B, N) up to positions (B,): (B, H * D)."""
    from demo_server import kernels

    out, sizes = _read_into(heads, pool), _sizes(heads, pool)
    scale = sizes.head_width**-0.5
    kernels.read[len(heads), sizes.kv_heads](heads, pool, positions, blocks, out, blocks.shape[1], scale, sizes=sizes)
    return out


@torch.library.custom_op("demo_server::gate", mutates_args=())
def gate(x: Tensor) -> Tensor:
    """`operators.gate` in one launch."""
    from demo_server import kernels

    out = _gate_into(x)
    rows, hidden = out.shape
    kernels.gate[rows, -(-hidden // GATE_TILE)](x, out, hidden=hidden, tile=GATE_TILE)
    return out


def reading(positions: Tensor, blocks: Tensor, pool: Tensor, group: int) -> Read:
    """One new token a row: the pool is read where it lies. More: as everywhere."""
    if positions.shape[1] > 1:
        return operators.reading(positions, blocks, pool, group)
    return partial(read, positions=positions.flatten(), blocks=blocks)


FUSED = Operators(write, reading, gate)


def _sizes(heads: Tensor, pool: Tensor) -> "Sizes":
    from demo_server.kernels import Sizes

    assert heads.is_contiguous()
    assert pool.is_contiguous()
    (_, block_size, _, kv_heads, head_width), queries = pool.shape, heads.shape[1] - 2 * pool.shape[3]
    members = max(16, 1 << (queries // kv_heads - 1).bit_length())
    return Sizes(queries, kv_heads, head_width, block_size, members, READ_TILE)


def _read_into(heads: Tensor, pool: Tensor) -> Tensor:
    queries = heads.shape[1] - 2 * pool.shape[3]
    return heads.new_empty(len(heads), queries * heads.shape[2])


def _gate_into(x: Tensor) -> Tensor:
    return x.new_empty(len(x), x.shape[1] // 2)


# What a trace without a device needs to know of each: the shape of its answer.
gate.register_fake(_gate_into)


@read.register_fake
def _(heads: Tensor, pool: Tensor, positions: Tensor, blocks: Tensor) -> Tensor:
    assert len(heads) == len(positions) == len(blocks)
    return _read_into(heads, pool)
