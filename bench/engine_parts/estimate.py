"""What one decode step moves and launches on a GPU, told from the sizes of its operands: an estimate, no measurement.

A launch is taken to read each of its operands once and to write its answer once. What a kernel reads again because its
tiles overlap, what a cache saves between two launches, and how long anything takes, is not known here.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table

from bench.engine_parts.fake_gpu import Launch, Recorder, fake_gpu, model_on_fake_gpu
from demo_server.model import ModelShape
from demo_server.operators import Operators
from demo_server.runner import ModelRunner
from demo_server.scheduler import Chunk, Step
from demo_server.sequence import Sampling, Sequence

HEAD = ("operation", "launches", "MB moved", "of the floor")


@dataclass(frozen=True, slots=True)
class Estimate:
    """Launches and bytes of a step, by operation; `floor` is what must be read once."""

    launches: Counter[str]
    moved: Counter[str]
    floor: float

    @property
    def floors(self) -> float:
        return self.moved.total() / self.floor

    def spare_us(self, promised: float, bandwidth: float) -> float:
        """What is left for each launch, the host's share in it, once all bytes moved at the full bandwidth."""
        return (promised - self.floors) * self.floor / bandwidth / self.launches.total() * 1e6

    def table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in HEAD:
            table.add_column(name, justify="left" if name == HEAD[0] else "right", no_wrap=True)
        rows = [(name, self.launches[name], moved) for name, moved in self.moved.most_common()]
        for name, launches, moved in [*rows, ("all", self.launches.total(), self.moved.total())]:
            table.add_row(name, str(launches), f"{moved / 1e6:,.1f}", f"{moved / self.floor:.3f}")
        return table


@dataclass(frozen=True, slots=True)
class Decode:
    """A step of `batch` sequences that hold `held` tokens each, in blocks of `block_size`."""

    batch: int
    held: int
    block_size: int


def estimate(shape: ModelShape, operators: Operators, decode: Decode, floor: float) -> Estimate:
    """One captured step in bfloat16, greedy, as the runner makes it."""
    cached = 2 * 2 * shape.kv_heads * shape.head_width * decode.batch * decode.held  # of one layer
    launches: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    for launch in captured(shape, operators, decode):
        launches[launch.name] += 1
        moved[launch.name] += moved_by(launch, cached)
    return Estimate(launches, moved, floor)


def captured(shape: ModelShape, operators: Operators, decode: Decode) -> list[Launch]:
    """The launches of such a step."""
    blocks = -(-decode.held // decode.block_size)
    recorder = Recorder()
    with fake_gpu():
        model = model_on_fake_gpu(shape, operators)
        runner = ModelRunner(model, kv_blocks=blocks, block_size=decode.block_size, capture=recorder.capture)
        sequences = {}
        for number in range(decode.batch):
            sequences[number] = sequence = Sequence(number, [0] * decode.held, Sampling(max_tokens=2))
            sequence.blocks = list(range(blocks))
        runner.begin(Step(tuple(Chunk(number, decode.held - 1, 1) for number in sequences)), sequences)
    return recorder.traces[0].launches


def moved_by(launch: Launch, cached: int) -> int:
    """Bytes that it reads and writes; `cached` is what attention over the pool itself reads."""
    reads, writes = [operand.size for operand in launch.reads], sum(operand.size for operand in launch.writes)
    match launch.name:
        case "embedding" | "index_select":  # of the table no more than goes out
            return reads[1] + 2 * writes
        case "copy_":  # what is written over is not read
            return sum(reads[1:]) + writes
        case "index_copy_":  # a pool, places and what goes there
            return sum(reads[1:]) + reads[-1]
        case "write":  # every head goes somewhere, turned or not
            return sum(reads[:3]) + reads[0]
        case "read":
            return _of_all_but_the_pool(reads) + cached + writes
    return sum(reads) + writes


def _of_all_but_the_pool(reads: Iterable[int]) -> int:
    heads, _pool, *others = reads
    return heads + sum(others)
