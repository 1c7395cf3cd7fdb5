"""Who computes what in the next step: continuous batching over a paged cache, decided without torch or a clock.

A step is a set of chunks: "run tokens [start, start + count) of that sequence". A decode is a chunk of one; a prompt is
cut into chunks, so that no step takes longer than its tokens allow, and begins behind the part of it that the cache
holds already.

The rules, in order:
1. Every running sequence, oldest first, gets the blocks its tokens need. Where there are none, the youngest running
   sequence is preempted: its blocks go back, it waits at the head of the queue and is computed anew later, but for
   what is still kept of it.
2. Of the step's token budget every decode has its one token; what is left goes to prompts under way, oldest first. It
   is never less than a block, so that prompts get on however many decode.
3. Waiting sequences enter, first come, first served, while the batch and the budget have room, and the whole prompt
   fits the free blocks with the watermark to spare. The watermark keeps newcomers from taking the very blocks that
   running ones need next, which would preempt them at once; with nothing running it is waived, so that any sequence
   that fits the pool is served. All of its blocks are taken at once: a prompt half done that waits for room would hold
   what others wait for.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from demo_server.blocks import BlockPool
from demo_server.prefix import extend
from demo_server.sequence import Sequence


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one step. `watermark` is the share of the pool that admission leaves free; with `reuse`, blocks of
    sequences that begin alike are shared."""

    max_batch: int
    token_budget: int = 512
    watermark: float = 0.05
    reuse: bool = True

    def changed(self, *, max_batch: int | None = None, token_budget: int | None = None) -> "Policy":
        """The same limits but for those given."""
        return replace(self, max_batch=max_batch or self.max_batch, token_budget=token_budget or self.token_budget)


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
    """One step's decision. Holds numbers only, so it can be printed and logged without anyone's text.

    `reused`: for each admitted sequence, how many of its tokens the cache held already.
    """

    chunks: tuple[Chunk, ...] = ()
    admitted: tuple[int, ...] = ()
    reused: tuple[int, ...] = ()
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
        for sequence in self._running:
            self._name_blocks(sequence)
        preempted = self._keep_running()
        budget = max(self.policy.token_budget - _decodes(self._running), self.pool.block_size)
        chunks, left = _cut(self._running, budget)
        room = self.policy.max_batch if admit_limit is None else min(admit_limit, self.policy.max_batch)
        # The victim of a preemption is at the head of the queue, and what it gave is not for it to take back at once.
        admitted = [] if preempted else self._admit(room, budget=left)
        first_chunks, _ = _cut(admitted, left - _decodes(admitted))
        return Step(
            chunks=(*chunks, *first_chunks),
            admitted=tuple(sequence.id for sequence in admitted),
            reused=tuple(sequence.computed for sequence in admitted),
            preempted=tuple(preempted),
        )

    def finish(self, sequence: Sequence) -> None:
        """Forget a sequence, wherever it is, and return its blocks."""
        if sequence in self._running:
            self._running.remove(sequence)
        else:
            self._waiting.remove(sequence)
        self._return_blocks(sequence)

    def _keep_running(self) -> list[Preemption]:
        """Give running sequences the blocks they need, at the cost of the youngest."""
        preempted: list[Preemption] = []
        position = 0
        while position < len(self._running):
            if self._grow(self._running[position]):
                position += 1
            else:
                # The youngest pays; it may be the very sequence that asks, and then the loop ends with it.
                preempted.append(self._preempt(self._running[-1]))
        return preempted

    def _admit(self, room: int, *, budget: int) -> list[Sequence]:
        admitted: list[Sequence] = []
        while self._waiting and len(self._running) < room and budget > 0:
            sequence = self._waiting[0]
            found = self._found(sequence)
            if not self._fits(sequence, found):
                break
            self._waiting.popleft()
            self.pool.share(found)
            sequence.blocks.extend(found)
            sequence.computed = len(found) * self.pool.block_size
            self._grow(sequence)
            self._running.append(sequence)
            admitted.append(sequence)
            budget -= sequence.uncomputed
        return admitted

    def _found(self, sequence: Sequence) -> list[int]:
        """Blocks that already hold the beginning of a sequence; its last token is always left to compute."""
        if not self.policy.reuse:
            return []
        count = (len(sequence) - 1) // self.pool.block_size
        extend(sequence.keys, sequence.tokens, self.pool.block_size, count=count)
        return self.pool.find(sequence.keys[:count])

    def _fits(self, sequence: Sequence, found: list[int]) -> bool:
        reserve = math.ceil(self.policy.watermark * self.pool.total) if self._running else 0
        return self.pool.can_take(self.pool.blocks_for(len(sequence)) - len(found) + reserve, sharing=found)

    def _name_blocks(self, sequence: Sequence) -> None:
        """Let the blocks of a sequence that are full and computed be found by others."""
        full = sequence.computed // self.pool.block_size
        if self.policy.reuse and full > sequence.named:
            extend(sequence.keys, sequence.tokens, self.pool.block_size, count=full)
            for number in range(sequence.named, full):
                self.pool.name(sequence.blocks[number], sequence.keys[number])
            sequence.named = full

    def _grow(self, sequence: Sequence) -> bool:
        missing = self.pool.blocks_for(len(sequence)) - len(sequence.blocks)
        if not missing:
            return True  # a decode fills a block only now and then
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
        self._name_blocks(sequence)
        self.pool.give_back(sequence.blocks)
        sequence.blocks.clear()
        sequence.computed = sequence.named = 0


def _decodes(sequences: Iterable[Sequence]) -> int:
    """How many have one token to compute; the budget of prompts is what these leave."""
    return sum(sequence.uncomputed == 1 for sequence in sequences)


def _cut(sequences: Iterable[Sequence], budget: int) -> tuple[list[Chunk], int]:
    """A chunk of each sequence, as far as the budget of prompt tokens goes, and what is left of it."""
    chunks: list[Chunk] = []
    for sequence in sequences:
        uncomputed = sequence.uncomputed
        if uncomputed == 1:
            chunks.append(Chunk(sequence.id, sequence.computed, 1))
            continue
        count = min(uncomputed, budget)
        if count > 0:
            chunks.append(Chunk(sequence.id, sequence.computed, count))
        budget -= count
    return chunks, budget
