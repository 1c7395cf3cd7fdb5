"""Who computes what in the next step: continuous batching over a paged cache, decided without torch or a clock.

A step is a set of chunks: "run tokens [start, start + count) of that sequence". A decode is a chunk of one, a
prompt a chunk of all its tokens; cutting prompts into smaller chunks, or starting them behind a cached prefix,
needs no other shape.

The rules, in order:
1. Every running sequence, oldest first, gets the blocks its uncomputed tokens need. Where there are none, the
   youngest running sequence is preempted: its blocks go back, it waits at the head of the queue and is computed
   anew later.
2. Waiting sequences enter, first come, first served, while the batch has room, the step's token budget has room
   (one prompt may exceed it alone), and the whole prompt fits the free blocks with the watermark to spare. The
   watermark keeps newcomers from taking the very blocks that running ones need next, which would preempt them at
   once; with nothing running it is waived, so that any sequence that fits the pool is served.
"""

import math
from collections import deque
from dataclasses import dataclass, replace

from demo_server.blocks import BlockPool
from demo_server.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one step. `watermark` is the share of the pool that admission leaves free."""

    max_batch: int
    token_budget: int = 512
    watermark: float = 0.05

    def with_max_batch(self, max_batch: int) -> "Policy":
        """The same limits with another batch size."""
        return replace(self, max_batch=max_batch)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens [start, start + count) of one sequence, to be run through the model in this step."""

    sequence_id: int
    start: int
    count: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """A running sequence that lost its blocks, and with them `computed` tokens that will be computed again."""

    sequence_id: int
    computed: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step's decision. Holds numbers only, so it can be printed and logged without anyone's text."""

    chunks: tuple[Chunk, ...] = ()
    admitted: tuple[int, ...] = ()
    preempted: tuple[Preemption, ...] = ()


class Scheduler:
    """Queue, running set and their blocks. `plan` decides and takes blocks; the engine settles what was computed."""

    def __init__(self, pool: BlockPool, policy: Policy) -> None:
        self.pool = pool
        self.policy = policy
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []

    @property
    def running(self) -> int:
        """Sequences that hold blocks."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Sequences that hold none: new ones and preempted ones."""
        return len(self._waiting)

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence behind all others."""
        assert self.pool.blocks_for(len(sequence)) <= self.pool.total, "could never be admitted"
        self._waiting.append(sequence)

    def plan(self, *, admit_limit: int | None = None) -> Step:
        """Decide the next step. `admit_limit` lowers max_batch for newcomers only; running ones always stay."""
        chunks, preempted = self._continue_running()
        room = self.policy.max_batch if admit_limit is None else min(admit_limit, self.policy.max_batch)
        # After a preemption this admits nobody: the victim is at the head, and needs more than it just gave.
        admitted = self._admit(room, budget=self.policy.token_budget - len(chunks))
        return Step(
            chunks=(*chunks, *(_chunk(sequence) for sequence in admitted)),
            admitted=tuple(sequence.id for sequence in admitted),
            preempted=tuple(preempted),
        )

    def finish(self, sequence: Sequence) -> None:
        """Forget a sequence, wherever it is, and return its blocks."""
        if sequence in self._running:
            self._running.remove(sequence)
        else:
            self._waiting.remove(sequence)
        self._return_blocks(sequence)

    def _continue_running(self) -> tuple[list[Chunk], list[Preemption]]:
        chunks: list[Chunk] = []
        preempted: list[Preemption] = []
        position = 0
        while position < len(self._running):
            sequence = self._running[position]
            if self._grow(sequence):
                chunks.append(_chunk(sequence))
                position += 1
            else:
                # The youngest pays; it may be the very sequence that asks, and then the loop ends with it.
                preempted.append(self._preempt(self._running[-1]))
        return chunks, preempted

    def _admit(self, room: int, *, budget: int) -> list[Sequence]:
        admitted: list[Sequence] = []
        while self._waiting and len(self._running) < room:
            sequence = self._waiting[0]
            if (admitted and len(sequence) > budget) or not self._fits(sequence):
                break
            self._waiting.popleft()
            self._grow(sequence)
            self._running.append(sequence)
            admitted.append(sequence)
            budget -= len(sequence)
        return admitted

    def _fits(self, sequence: Sequence) -> bool:
        reserve = math.ceil(self.policy.watermark * self.pool.total) if self._running else 0
        return self.pool.can_take(self.pool.blocks_for(len(sequence)) + reserve)

    def _grow(self, sequence: Sequence) -> bool:
        missing = self.pool.blocks_for(len(sequence)) - len(sequence.blocks)
        if not self.pool.can_take(missing):
            return False
        sequence.blocks.extend(self.pool.take(missing))
        return True

    def _preempt(self, sequence: Sequence) -> Preemption:
        self._running.remove(sequence)
        preemption = Preemption(sequence.id, sequence.computed)
        self._return_blocks(sequence)
        self._waiting.appendleft(sequence)
        return preemption

    def _return_blocks(self, sequence: Sequence) -> None:
        self.pool.give_back(sequence.blocks)
        sequence.blocks.clear()
        sequence.computed = 0


def _chunk(sequence: Sequence) -> Chunk:
    return Chunk(sequence.id, sequence.computed, sequence.uncomputed)
