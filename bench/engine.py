"""How fast is the demo engine? Decode steps by batch, from the engine's own loop and without HTTP.

Every arm fills a batch with prompts, decodes to the end of the context, and counts tokens and steps between the first
token of the last prompt and the first end, while exactly so many run. `of a CPU second` is what a quiet core would give
where the engine is bound by one: other work on the machine takes from the clock on the wall and not from it. The floor
is what must be read once a step, weights and keys and values, at the bandwidth that this machine was measured to have.
On a GPU every arm is played once before it is measured, for its steps are captured when they are first made.
`--preset 1b` is a model of the size of Llama 3.2 1B's layers, whose step is held against the floor where a GPU is.
`--check` makes the exit code say whether what is promised of the preset was shown.
`--estimate` needs no GPU and measures nothing: it counts what a decode step launches and moves on one.
"""

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script's own folder is on the path, the project's is not
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from rich.console import Console
from rich.table import Table

from bench.engine_parts.estimate import Decode, estimate
from demo_server.blocks import BlockPool
from demo_server.engine import Engine, Limits
from demo_server.fused import FUSED
from demo_server.graphs import capture_on
from demo_server.metrics import Metrics
from demo_server.model import Decoder, ModelShape, build
from demo_server.operators import PLAIN
from demo_server.runner import ModelRunner
from demo_server.scheduler import Policy, Scheduler
from demo_server.sequence import GenerationRequest, Output, Sampling

BATCHES = (1, 2, 4, 8, 16, 32, 64)
PROMISED_BATCH, PROMISED_RATE, LEAST_PARAMETERS = 32, 1500.0, 2_000_000
FLOOR_BATCH, PROMISED_FLOORS = 64, 2.5
PROMPT, CONTEXT, BLOCK = 32, 256, 16
HELD = (PROMPT + CONTEXT) // 2  # tokens of a sequence, on the average of its steps
ASSUMED_BANDWIDTH = 4e12  # bytes a second that an H200 reads, for an estimate
COPIES = 5
COPIED_BYTES = {"cpu": 256 << 20, "cuda": 4 << 30}  # what hides the time that a launch takes
SHAPES = {
    "demo": ModelShape(max_positions=CONTEXT),
    "1b": ModelShape(layers=16, width=2048, heads=32, kv_heads=8, hidden=8192, max_positions=CONTEXT),
}
HEAD = ("batch", "tokens/s", "of a CPU second", "step ms", "step CPU ms", "floor ms", "times the floor")
WIDTH = 120
PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Arm:
    """One batch size, measured: tokens and steps of the full batch, on the wall and in CPU seconds of the process."""

    batch: int
    tokens: int
    wall_s: float
    cpu_s: float
    floor_s: float
    is_on_cpu: bool = True

    @property
    def steps(self) -> float:
        return self.tokens / self.batch

    @property
    def floors(self) -> float:
        """How many times the floor a step takes; a step on the CPU is given the CPU's own account of it."""
        step_s = min(self.wall_s, self.cpu_s) if self.is_on_cpu else self.wall_s
        return step_s / self.steps / self.floor_s

    def row(self) -> tuple[str, ...]:
        step_s, step_cpu_s = self.wall_s / self.steps, self.cpu_s / self.steps
        return (
            str(self.batch),
            f"{self.tokens / self.wall_s:,.0f}",
            f"{self.tokens / self.cpu_s:,.0f}",
            f"{1000 * step_s:.2f}",
            f"{1000 * step_cpu_s:.2f}",
            f"{1000 * self.floor_s:.2f}",
            f"{self.floors:.1f}",
        )


class Watch:
    """Counts what the engine delivers, from when all of a batch have begun until the first has ended."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.tokens = 0
        self.began: tuple[float, float] | None = None
        self.ended: tuple[float, float] | None = None
        self.is_over = threading.Event()
        self._begun: set[int] = set()
        self._left = batch

    def take(self, outputs: list[Output]) -> None:
        """On the engine's thread, once a step."""
        now = time.perf_counter(), time.process_time()
        self._begun.update(output.sequence_id for output in outputs)
        finished = sum(output.finish is not None for output in outputs)
        if self.began is not None and self.ended is None:
            self.tokens += len(outputs)
            if finished:
                self.ended = now
        elif self.began is None and len(self._begun) == self.batch:
            self.began = now
        self._left -= finished
        if not self._left:
            self.is_over.set()


def blocks_of(batch: int) -> int:
    return batch * (CONTEXT // BLOCK + 1)


def runner_of(model: Decoder, batch: int) -> ModelRunner:
    """A runner with room for the whole batch."""
    capture = capture_on(model.head.weight.device)
    runner = ModelRunner(model, kv_blocks=blocks_of(batch), block_size=BLOCK, capture=capture)
    runner.warm_up()
    return runner


@contextmanager
def engine_of(runner: ModelRunner, batch: int, watch: Watch) -> Iterator[Engine]:
    """A running engine that admits the whole batch at once."""
    blocks = blocks_of(batch)
    scheduler = Scheduler(BlockPool(blocks, BLOCK), Policy(batch, token_budget=PROMPT * batch + batch, reuse=False))
    engine = Engine(scheduler, runner, metrics=Metrics(("demo",)), limits=Limits())
    engine.start(watch.take)
    try:
        yield engine
    finally:
        engine.stop(PATIENCE_S)


def measured(model: Decoder, batch: int, bandwidth: float) -> Arm:
    """One arm."""
    runner = runner_of(model, batch)
    is_on_cpu = runner.device.type == "cpu"
    if not is_on_cpu:
        played(runner, batch)
    watch = played(runner, batch)
    assert watch.began is not None
    assert watch.ended is not None
    wall_s, cpu_s = (end - begin for begin, end in zip(watch.began, watch.ended, strict=True))
    return Arm(batch, watch.tokens, wall_s, cpu_s, read_once(model, batch) / bandwidth, is_on_cpu)


def played(runner: ModelRunner, batch: int) -> Watch:
    """A batch from its prompts to the end of the context."""
    watch = Watch(batch)
    sampling = Sampling(max_tokens=CONTEXT - PROMPT, ignore_eos=True)
    with engine_of(runner, batch, watch) as engine:
        for number in range(batch):
            prompt = tuple((7 * at + number) % 256 for at in range(PROMPT))
            engine.submit(GenerationRequest("demo", prompt, sampling))
        if not watch.is_over.wait(PATIENCE_S):
            raise SystemExit(f"batch {batch} did not end within {PATIENCE_S:g} s")
    return watch


def read_once(model: Decoder, batch: int) -> float:
    """Bytes that a decode step must read: every weight but the embedding's, and the keys and values of the batch."""
    weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    weights -= model.embedding.weight.numel() * model.embedding.weight.element_size()
    shape, element = model.shape, model.head.weight.element_size()
    return weights + batch * HELD * shape.layers * 2 * shape.kv_heads * shape.head_width * element


def bandwidth_of(device: torch.device) -> float:
    """Bytes a second that this device reads: the best of a few sums over more than a cache holds."""
    read = COPIED_BYTES[device.type]
    held = torch.ones(read // 4, device=device)
    best_s = float("inf")
    for _ in range(COPIES):
        synchronise(device)
        began_s = time.perf_counter()
        held.sum()
        synchronise(device)
        best_s = min(best_s, time.perf_counter() - began_s)
    return read / best_s


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def floor_verdict(arms: list[Arm]) -> tuple[bool, str]:
    """Whether a GPU's step was near what must be read for it, and the line that says so."""
    arm = next((arm for arm in arms if arm.batch == FLOOR_BATCH and not arm.is_on_cpu), None)
    if arm is None:
        return False, f"not judged: batch {FLOOR_BATCH} was not measured on a GPU"
    is_kept = arm.floors <= PROMISED_FLOORS
    said = f"a step of batch {FLOOR_BATCH} takes {arm.floors:.2f} times the floor, context up to {CONTEXT}"
    return is_kept, f"{'kept' if is_kept else 'broken'}: {said}; at most {PROMISED_FLOORS:g} are promised"


def rate_verdict(arms: list[Arm], parameters: int) -> tuple[bool, str]:
    """Whether the promise was shown, and the line that says so; by the clock on the wall or by CPU, the larger."""
    arm = next((arm for arm in arms if arm.batch == PROMISED_BATCH), None)
    if arm is None:
        return False, f"not judged: batch {PROMISED_BATCH} was not measured"
    wall, cpu = arm.tokens / arm.wall_s, arm.tokens / arm.cpu_s
    is_kept = max(wall, cpu) >= PROMISED_RATE and parameters >= LEAST_PARAMETERS
    said = f"{wall:,.0f} tokens/s, {cpu:,.0f} of a CPU second, at batch {PROMISED_BATCH}, context up to {CONTEXT}"
    return is_kept, f"{'kept' if is_kept else 'broken'}: {said}; at least {PROMISED_RATE:,.0f} are promised"


def show_estimate(shape: ModelShape, batch: int) -> None:
    """What a decode step launches and moves on a GPU, with Triton and without."""
    with torch.device("meta"):
        floor = read_once(Decoder(shape).bfloat16(), batch)
    ways = [estimate(shape, operators, Decode(batch, HELD, BLOCK), floor) for operators in (FUSED, PLAIN)]
    print(f"Estimated from the sizes of operands, not measured: one step, batch {batch}, {HELD} tokens held by each.")
    Console(width=WIDTH, highlight=False).print(ways[0].table())
    for name, way in zip(("with Triton", "without"), ways, strict=True):
        spare_us = way.spare_us(PROMISED_FLOORS, ASSUMED_BANDWIDTH)
        print(
            f"{name}: {way.launches.total()} launches, {way.floors:.2f} times the floor of {floor / 1e6:,.0f} MB; "
            f"{PROMISED_FLOORS:g} floors at {ASSUMED_BANDWIDTH / 1e12:g} TB/s leave {spare_us:.1f} us to a launch"
        )


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Decode steps of the demo engine, by batch.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where the model runs (%(default)s)")
    parser.add_argument("--preset", choices=tuple(SHAPES), default="demo", help="size of the model (%(default)s)")
    parser.add_argument("--batch", type=int, action="append", metavar="N", help=f"repeatable (default {BATCHES})")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of torch on the CPU (%(default)s)")
    parser.add_argument("--markdown", action="store_true", help="print the table that README.md keeps")
    parser.add_argument("--estimate", action="store_true", help="count a GPU's step without one, and measure nothing")
    parser.add_argument("--check", action="store_true", help="exit 1 if the promise is not shown")
    return parser


def main() -> int:
    parser = flags()
    given = parser.parse_args()
    batches = tuple(given.batch or BATCHES)
    if not all(1 <= batch <= 1024 for batch in batches):
        parser.error("--batch: from 1 to 1024")
    if given.estimate:
        for batch in given.batch or (FLOOR_BATCH,):
            show_estimate(SHAPES[given.preset], batch)
        return 0
    if given.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch finds no CUDA device here")
    torch.set_num_threads(max(given.threads, 1))
    device = torch.device(given.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = build(SHAPES[given.preset], 0, device=device, dtype=dtype)
    parameters = sum(weight.numel() for weight in model.parameters())
    bandwidth = bandwidth_of(device)
    arms = [measured(model, batch, bandwidth) for batch in batches]
    print(f"{parameters / 1e6:.1f} million parameters on {device}, {bandwidth / 1e9:.1f} GB/s read")
    show(arms, is_markdown=given.markdown)
    is_kept, line = rate_verdict(arms, parameters) if given.preset == "demo" else floor_verdict(arms)
    print(line)
    return 1 if given.check and not is_kept else 0


def show(arms: list[Arm], *, is_markdown: bool) -> None:
    if is_markdown:
        print(f"| {' | '.join(HEAD)} |\n|{'---:|' * len(HEAD)}")
        for arm in arms:
            print(f"| {' | '.join(arm.row())} |")
        return
    table = Table(box=None, pad_edge=False)
    for name in HEAD:
        table.add_column(name, justify="right", no_wrap=True)
    for arm in arms:
        table.add_row(*arm.row())
    Console(width=WIDTH, highlight=False).print(table)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
