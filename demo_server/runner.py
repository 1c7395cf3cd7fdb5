"""Runs one step's chunks through the model: builds the tensors, keeps the KV pools, returns the sampled tokens.

All chunks of one token (the decodes) share one forward pass; a longer chunk (a prompt) has its own. The pools hold
one block more than the scheduler knows of: scratch, the target of rows that pad a batch and the filler of short
block tables.
"""

from collections.abc import Mapping
from collections.abc import Sequence as Rows

import torch
from torch import Tensor

from demo_server.model import Batch, Decoder
from demo_server.sampler import allowed_bias, choose
from demo_server.scheduler import Chunk, Step
from demo_server.sequence import Sequence


class ModelRunner:
    """A model with its cache on one device. Not thread-safe: the engine thread alone calls it."""

    def __init__(self, model: Decoder, *, kv_blocks: int, block_size: int) -> None:
        weight = model.head.weight
        shape = model.shape
        self.model = model
        self.device = weight.device
        self.block_size = block_size
        self._scratch = kv_blocks
        self._bias = allowed_bias(weight.device)
        self._pools = [
            torch.zeros(
                (kv_blocks + 1, block_size, 2, shape.kv_heads, shape.head_width),
                dtype=weight.dtype,
                device=weight.device,
            )
            for _ in range(shape.layers)
        ]

    @torch.inference_mode()
    def run(self, step: Step, sequences: Mapping[int, Sequence]) -> dict[int, int]:
        """Compute the step's chunks and return each finished chunk's next token by sequence id.

        A chunk that leaves tokens of its sequence uncomputed yields none. Blocks must be there already.
        """
        decodes = [chunk for chunk in step.chunks if chunk.count == 1]
        passes = [[chunk] for chunk in step.chunks if chunk.count > 1]
        if decodes:
            passes.append(decodes)
        tokens: dict[int, int] = {}
        for chunks in passes:
            tokens.update(self._pass(chunks, [sequences[chunk.sequence_id] for chunk in chunks]))
        return tokens

    def warm_up(self) -> None:
        """Run a prompt and a decode against the scratch block, so that the first request pays for no set-up."""
        scratch = self._tensor([[self._scratch]])
        for new in (min(2, self.block_size), 1):
            zeros = self._tensor([[0] * new])
            slots = torch.full((new,), self._scratch * self.block_size, device=self.device)
            with torch.inference_mode():
                self.model(Batch(zeros, zeros, slots, scratch), self._pools)

    def _pass(self, chunks: Rows[Chunk], rows: Rows[Sequence]) -> dict[int, int]:
        logits = self.model(self._batch(chunks, rows), self._pools)  # (B, vocabulary)
        done = [
            row
            for row, (chunk, sequence) in enumerate(zip(chunks, rows, strict=True))
            if chunk.start + chunk.count == len(sequence)
        ]
        if len(done) < len(rows):
            logits = logits[done]
        finished = [rows[row] for row in done]
        chosen = choose(logits, self._bias, finished)
        return {sequence.id: token for sequence, token in zip(finished, chosen, strict=True)}

    def _batch(self, chunks: Rows[Chunk], rows: Rows[Sequence]) -> Batch:
        size = self.block_size
        spans = [range(chunk.start, chunk.start + chunk.count) for chunk in chunks]
        tables = [sequence.blocks[: -(-span.stop // size)] for sequence, span in zip(rows, spans, strict=True)]
        width = max(len(table) for table in tables)
        return Batch(
            tokens=self._tensor(
                [sequence.tokens[span.start : span.stop] for sequence, span in zip(rows, spans, strict=True)]
            ),
            positions=self._tensor([list(span) for span in spans]),
            slots=self._tensor(
                [table[at // size] * size + at % size for table, span in zip(tables, spans, strict=True) for at in span]
            ),
            blocks=self._tensor([table + [self._scratch] * (width - len(table)) for table in tables]),
        )

    def _tensor(self, values: list[int] | list[list[int]]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self.device)
