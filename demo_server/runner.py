"""Runs one step's chunks through the model: keeps the KV pools, returns the sampled tokens.

All chunks of one token (the decodes) share one forward pass; a longer chunk (a prompt) has its own. The pools hold
one block more than the scheduler knows of: scratch, the target of rows that pad a batch and the filler of short
block tables.

Where steps can be captured (`graphs`), decodes run in a few rounded forms, each captured when it is first wanted, and
replayed from then on. Elsewhere a pass is as large as its rows need. All else is the same: the same tensors, the same
code. A step reads from the device once, its tokens, and everything the next one needs is known on the host by then;
feeding it tokens from the device would save 8 bytes a row of a copy that is made anyway.

What reads the pools is the model's own choice (`operators`, `fused`).
"""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Rows
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from demo_server.graphs import Capture, Compute
from demo_server.inputs import Form, Inputs, Row, form_of, rounded
from demo_server.model import Decoder
from demo_server.sampler import allowed_bias, choose
from demo_server.scheduler import Chunk, Step
from demo_server.sequence import Sequence

# Each holds a graph of some megabytes; there are not so many forms unless batches and contexts are huge.
MAX_CAPTURED = 256

Collect = Callable[[], dict[int, int]]


@dataclass(frozen=True, slots=True)
class Launched:
    """A pass that was queued: whose each of its tokens is (None: nobody's), and the tensor that will hold them."""

    owners: Rows[int | None]
    tokens: Tensor  # (B,)


class Pass:
    """One forward pass and its sampling on tensors that stay where they are."""

    def __init__(self, model: Decoder, pools: Rows[Tensor], bias: Tensor, *, inputs: Inputs) -> None:
        self.inputs = inputs
        self.tokens = torch.zeros(inputs.form.rows, dtype=torch.int64, device=bias.device)  # (B,)
        self._model = model
        self._pools = pools
        self._bias = bias

    def compute(self) -> None:
        """From what `inputs` were filled with to `tokens`."""
        logits = self._model(self.inputs.batch, self._pools)  # (B, vocabulary)
        self.tokens.copy_(choose(logits, self._bias, self.inputs.rules))


class ModelRunner:
    """A model with its cache on one device. Not thread-safe: the engine thread alone calls it."""

    def __init__(self, model: Decoder, *, kv_blocks: int, block_size: int, capture: Capture | None = None) -> None:
        weight = model.head.weight
        shape = model.shape
        self.model = model
        self.device = weight.device
        self.block_size = block_size
        self._scratch = kv_blocks
        self._bias = allowed_bias(weight.device)
        self._capture = capture
        self._captured: dict[Form, tuple[Pass, Compute]] = {}
        self._pools = [
            torch.zeros(
                (kv_blocks + 1, block_size, 2, shape.kv_heads, shape.head_width),
                dtype=weight.dtype,
                device=weight.device,
            )
            for _ in range(shape.layers)
        ]

    def begin(self, step: Step, sequences: Mapping[int, Sequence]) -> Collect:
        """Begin to compute the step's chunks; the answer, called once, returns the next tokens by sequence id.

        A chunk that leaves tokens of its sequence uncomputed yields none. Blocks must be there already. A GPU works
        while the caller does something else; a CPU would keep it waiting, so there the work is put off until asked for.
        """
        if self.device.type == "cpu":
            return lambda: _collect(self._launch(step, sequences))
        return partial(_collect, self._launch(step, sequences))

    def warm_up(self) -> None:
        """Run a prompt and a decode against the scratch block, so that the first request pays for no set-up."""
        for new in (min(2, self.block_size), 1):
            self._run([Row([0] * new, 0, [self._scratch])])

    def _launch(self, step: Step, sequences: Mapping[int, Sequence]) -> list[Launched]:
        """Queue the step's passes: one for each prompt, and one for all decodes."""
        decodes = [chunk for chunk in step.chunks if chunk.count == 1]
        passes = [[chunk] for chunk in step.chunks if chunk.count > 1]
        if decodes:
            passes.append(decodes)
        return [self._pass(chunks, [sequences[chunk.sequence_id] for chunk in chunks]) for chunks in passes]

    def _pass(self, chunks: Rows[Chunk], sequences: Rows[Sequence]) -> Launched:
        rows: list[Row] = []
        owners: list[int | None] = []
        for chunk, sequence in zip(chunks, sequences, strict=True):
            end = chunk.start + chunk.count
            is_end = end == len(sequence.tokens)
            rows.append(self._row(sequence, chunk.start, end, is_end=is_end))
            owners.append(sequence.id if is_end else None)
        return Launched(owners, self._run(rows))

    def _row(self, sequence: Sequence, start: int, end: int, *, is_end: bool) -> Row:
        sampling = sequence.sampling
        tokens, blocks = sequence.tokens[start:end], sequence.blocks[: -(-end // self.block_size)]
        if not is_end or sampling.temperature == 0:
            return Row(tokens, start, blocks, sampling.ignore_eos)
        # One number a token that is kept, so that a sequence draws alike however its prompt was cut.
        drawn = sampling.temperature, sampling.top_p, sequence.uniform()
        return Row(tokens, start, blocks, sampling.ignore_eos, *drawn)

    @torch.inference_mode()
    def _run(self, rows: Rows[Row]) -> Tensor:
        """Queue one pass; the answer (B,) holds its tokens until the next pass."""
        form = form_of(rows)
        if self._capture is None or form.new > 1:
            return self._run_once(form, rows)
        form = rounded(form)
        held = self._captured.get(form)
        if held is None:
            if len(self._captured) >= MAX_CAPTURED:
                return self._run_once(form, rows)
            held = self._captured[form] = self._captured_with(form, rows)
        made, replay = held
        made.inputs.fill(rows)
        replay()
        return made.tokens[: len(rows)]

    def _run_once(self, form: Form, rows: Rows[Row]) -> Tensor:
        made = self._make(form)
        made.inputs.fill(rows)
        made.compute()
        return made.tokens[: len(rows)]

    def _captured_with(self, form: Form, rows: Rows[Row]) -> tuple[Pass, Compute]:
        assert self._capture is not None
        made = self._make(form)
        made.inputs.fill(rows)  # a capture runs it, and these rows write what they will write again
        return made, self._capture(made.compute)

    def _make(self, form: Form) -> Pass:
        inputs = Inputs(form, block_size=self.block_size, scratch=self._scratch, device=self.device)
        return Pass(self.model, self._pools, self._bias, inputs=inputs)


def _collect(work: Rows[Launched]) -> dict[int, int]:
    """The tokens of a step, in the one read from the device that it makes."""
    if not work:
        return {}
    owners = [owner for one in work for owner in one.owners]
    tokens = [one.tokens for one in work]
    values: list[int] = (tokens[0] if len(tokens) == 1 else torch.cat(tokens)).tolist()
    return {owner: token for owner, token in zip(owners, values, strict=True) if owner is not None}
