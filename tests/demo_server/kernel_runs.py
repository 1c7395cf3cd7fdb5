"""Triton's kernels without a GPU, in the two ways there are; each is a process, for Triton chooses when it is imported.

`interpreted`: every kernel computes on the CPU, and must agree with torch's own operators, tokens included.
`compiled`: every kernel is compiled for a GPU by the way a launch takes, up to the launch itself, which is noted.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget

from demo_server import fused, kernels, operators
from demo_server.fused import FUSED
from demo_server.model import build
from demo_server.operators import PLAIN
from demo_server.runner import ModelRunner
from tests.demo_server.storm import BLOCK, SHAPE, storm
from tests.demo_server.tape import Recorder


@dataclass(frozen=True, slots=True)
class Case:
    """Sizes of a decode: B rows of N blocks of S, H heads in K groups, D a head."""

    rows: int
    heads: int
    kv_heads: int
    head_width: int
    block_size: int
    blocks: int


CASES = (
    Case(3, 4, 2, 16, 4, 5),
    Case(2, 8, 2, 32, 16, 9),
    Case(2, 32, 8, 64, 16, 6),
    Case(2, 4, 4, 64, 3, 50),  # blocks that no tile is a multiple of, and a head of its own for each query
    Case(1, 20, 1, 128, 16, 1),  # a group larger than the matrix unit's least
)
LARGE = Case(64, 32, 8, 64, 16, 16)


@dataclass(frozen=True, slots=True)
class Given:
    """What a layer of such a decode is given."""

    heads: Tensor
    rope: Tensor
    slots: Tensor
    positions: Tensor
    blocks: Tensor
    pool: Tensor

    @classmethod
    def of(cls, case: Case, dtype: torch.dtype) -> "Given":
        chance = torch.Generator().manual_seed(case.blocks)
        rows, size = case.rows, case.block_size
        positions = torch.randint(0, case.blocks * size, (rows, 1), generator=chance)
        positions[0] = case.blocks * size - 1
        blocks = torch.randperm(rows * case.blocks, generator=chance).view(rows, -1)
        heads = torch.randn(rows, case.heads + 2 * case.kv_heads, case.head_width, generator=chance)
        pool = torch.randn(rows * case.blocks, size, 2, case.kv_heads, case.head_width, generator=chance)
        slots = blocks.gather(1, positions // size) * size + positions % size
        rope = torch.randn(2, rows, case.head_width, generator=chance)
        return cls(heads.to(dtype), rope, slots.flatten(), positions, blocks, pool.to(dtype))

    def to(self, device: str) -> "Given":
        """The same, there."""
        return Given(*(getattr(self, each.name).to(device) for each in fields(self)))

    def layer(self, ways: operators.Operators) -> tuple[Tensor, Tensor, Tensor]:
        """The queries, the pool and what was read, after one layer."""
        heads, pool = self.heads.clone(), self.pool.clone()
        ways.write(heads, self.rope, self.slots, pool)
        group = heads.shape[1] // pool.shape[3] - 2
        read = ways.reading(self.positions, self.blocks, pool, group)(heads, pool)
        return heads[:, : -2 * pool.shape[3]], pool, read


def interpreted() -> None:
    """Raises where anything differs."""
    for dtype, near in ((torch.float32, 1e-5), (torch.float16, 4e-3)):
        for case in CASES:
            given = Given.of(case, dtype)
            for ours, theirs in zip(given.layer(FUSED), given.layer(PLAIN), strict=True):
                torch.testing.assert_close(ours, theirs, atol=near, rtol=near)
        x = torch.randn(3, 3000, generator=torch.Generator().manual_seed(1)).to(dtype)
        torch.testing.assert_close(fused.gate(x), operators.gate(x), atol=near, rtol=near)
    as_declared()
    tokens()


def as_declared() -> None:
    """What each operator says that it changes and gives, which a graph relies on, by torch's own check."""
    given = Given.of(CASES[0], torch.float32)
    test = ("test_schema", "test_faketensor")
    torch.library.opcheck(fused.write, (given.heads, given.rope, given.slots, given.pool), test_utils=test)
    torch.library.opcheck(
        fused.read, (given.heads, given.pool, given.positions.flatten(), given.blocks), test_utils=test
    )
    torch.library.opcheck(fused.gate, (torch.ones(2, 6),), test_utils=test)


def tokens() -> None:
    """A storm of requests gets the same tokens by both, the fused ones replayed as graphs are."""
    done = []
    for ways in (FUSED, PLAIN):
        model = build(SHAPE, seed=11)
        model.operators = ways
        capture = Recorder().capture if ways is FUSED else None
        runner = ModelRunner(model, kv_blocks=12, block_size=BLOCK, capture=capture)
        done.append([each.tokens for each in storm(runner, 1, blocks=12, budget=8).done])
    assert done[0] == done[1]


@dataclass(frozen=True, slots=True)
class Noted:
    """A launch that was asked for."""

    name: str
    grid: tuple[int, ...]
    metadata: Any


class Driver:
    """A GPU of a capability, for Triton: all that it asks of one up to a launch, which is noted."""

    def __init__(self, capability: int) -> None:
        self.capability = capability
        self.launches: list[Noted] = []

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        return lambda *args, **_: self.launches.append(Noted(src.name, args[:3], metadata))

    @property
    def utils(self) -> "Driver":
        return self

    def load_binary(self, *_: object) -> tuple[int, ...]:
        return 0, 0, 0, 0, 1024

    def get_device_properties(self, _device: int) -> dict[str, int]:
        return {"max_shared_mem": 99 << 10}  # of the GPUs that have the least

    def get_current_device(self) -> int:
        return self.capability  # kernels are kept by device

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.capability, 32)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")


def compiled() -> None:
    """Raises where a kernel does not compile, does not fit, or is compiled again for another form of the same model."""
    for capability in (80, 90, 100):
        driver = Driver(capability)
        triton.runtime.driver.set_active(driver)
        for dtype in (torch.bfloat16, torch.float32):
            for case in (*CASES, LARGE):
                Given.of(case, dtype).layer(FUSED)
            fused.gate(torch.zeros(64, 2 * 8192, dtype=dtype))
        grids = [(launch.name, launch.grid) for launch in driver.launches[-3:]]
        assert grids == [("write", (64, 48, 1)), ("read", (64, 8, 1)), ("gate", (64, 8, 1))], grids
        check_no_other_is_compiled()
        for name, dtype_name, source in sources(capability):
            check_source(name, dtype_name, source)


def check_source(name: str, dtype_name: str, source: str) -> None:
    """What the assembly must show of a kernel; float32 is for comparing, and need not be fast."""
    if dtype_name == "fp32":
        assert "tf32" not in source, f"{name}: 10 bits of a product where float32 was asked for"
        return
    used = resources(source)
    assert " 0 bytes spill stores" in used, f"{name}: {used}"
    if name == "read":
        assert "mma.sync" in source, "the matrix unit is not used"
        assert "cp.async.cg.shared.global" in source, "keys and values do not come 16 bytes at a time"


def check_no_other_is_compiled() -> None:
    """A form with other rows, wider tables and views that begin elsewhere runs what is there."""
    device = triton.runtime.driver.active.get_current_device()
    kept = [kernel.device_caches[device][0] for kernel in (kernels.write, kernels.read, kernels.gate)]
    before = [len(each) for each in kept]
    given = Given.of(LARGE, torch.bfloat16)
    for rows, blocks in ((1, 1), (3, 7), (16, 16), (24, 12)):
        numbers = torch.zeros(1 + 2 * rows + rows * blocks, dtype=torch.int64)
        _, slots, positions, table = torch.split(numbers, [1, rows, rows, rows * blocks])
        form = Given(
            given.heads[:rows],
            given.rope[:, :rows].contiguous(),
            slots,
            positions[:, None],
            table.view(rows, blocks),
            given.pool,
        )
        form.layer(FUSED)
        fused.gate(torch.zeros(rows, 2 * 8192, dtype=torch.bfloat16))
    assert [len(each) for each in kept] == before, "a server would compile as it serves"


def sources(capability: int) -> Iterator[tuple[str, str, str]]:
    """Each kernel that was compiled: its name, the type of its first operand, its assembly."""
    for kernel in (kernels.write, kernels.read, kernels.gate):
        for each in kernel.device_caches[capability][0].values():
            first = next(iter(each.src.signature.values()))
            yield kernel.fn.__name__, first.removeprefix("*"), each.asm["ptx"]


def resources(source: str) -> str:
    """What the assembler says of registers and spills."""
    target = re.search(r"\.target (sm_(\d+)\w?)", source)
    assert target is not None
    assembler = (
        Path(triton.__file__).parent / "backends/nvidia/bin" / ("ptxas" if int(target[2]) < 100 else "ptxas-blackwell")
    )
    ran = subprocess.run(
        [assembler, "-v", f"-arch={target[1]}", "-o", "/dev/null", "-"], input=source, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


if __name__ == "__main__":
    {"interpreted": interpreted, "compiled": compiled}[sys.argv[1]]()
