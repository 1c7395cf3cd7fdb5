"""Decisions as tables, and a storm over all of them."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from demo_server.blocks import BlockPool
from demo_server.scheduler import Chunk, Policy, Preemption, Scheduler, Step
from demo_server.sequence import Sampling, Sequence

SAMPLING = Sampling(max_tokens=64)


def scheduler_with(*lengths: int, blocks: int, policy: Policy) -> tuple[Scheduler, list[Sequence]]:
    """A scheduler of blocks of 4 tokens, with prompts of these lengths, none like another, waiting as 1, 2, ..."""
    scheduler = Scheduler(BlockPool(blocks, block_size=4), policy)
    sequences = [Sequence(number, [number] * length, SAMPLING) for number, length in enumerate(lengths, 1)]
    for sequence in sequences:
        scheduler.add(sequence)
    return scheduler, sequences


def settle(step: Step, sequences: list[Sequence]) -> None:
    """Do to the sequences what the engine does after a step."""
    for chunk in step.chunks:
        sequence = sequences[chunk.sequence_id - 1]
        sequence.advance(chunk.count)
        if not sequence.uncomputed:
            sequence.append(0)


def test_prompts_enter_whole_and_then_decode_one_token_a_step() -> None:
    scheduler, sequences = scheduler_with(5, 3, blocks=10, policy=Policy(max_batch=4, watermark=0.0))
    first = scheduler.plan()
    assert first == Step(chunks=(Chunk(1, 0, 5), Chunk(2, 0, 3)), admitted=(1, 2), reused=(0, 0))
    settle(first, sequences)
    assert scheduler.plan() == Step(chunks=(Chunk(1, 5, 1), Chunk(2, 3, 1)))
    assert [len(sequence.blocks) for sequence in sequences] == [2, 1]


def test_the_batch_is_full_at_max_batch() -> None:
    scheduler, _ = scheduler_with(1, 1, 1, blocks=10, policy=Policy(max_batch=2))
    assert scheduler.plan().admitted == (1, 2)
    assert (scheduler.running, scheduler.waiting) == (2, 1)


def test_a_smaller_batch_lets_running_ones_finish_and_admits_nobody() -> None:
    scheduler, sequences = scheduler_with(1, 1, 1, blocks=10, policy=Policy(max_batch=2))
    settle(scheduler.plan(), sequences)
    scheduler.policy = scheduler.policy.changed(max_batch=1)
    step = scheduler.plan()
    assert (step.admitted, len(step.chunks)) == ((), 2)
    settle(step, sequences)
    scheduler.finish(sequences[0])
    assert scheduler.plan().admitted == ()
    scheduler.finish(sequences[1])
    assert scheduler.plan().admitted == (3,)


def test_the_queue_fault_lets_one_run() -> None:
    scheduler, _ = scheduler_with(1, 1, blocks=10, policy=Policy(max_batch=8))
    assert scheduler.plan(admit_limit=1).admitted == (1,)
    assert scheduler.plan(admit_limit=None).admitted == (2,)


def test_the_token_budget_cuts_prompts_into_chunks_beside_decodes() -> None:
    policy = Policy(max_batch=8, token_budget=10)
    scheduler, sequences = scheduler_with(6, 25, 2, blocks=40, policy=policy)
    steps = []
    for _ in range(4):
        steps.append(scheduler.plan())
        settle(steps[-1], sequences)
    assert [step.chunks for step in steps] == [
        (Chunk(1, 0, 6), Chunk(2, 0, 4)),
        (Chunk(1, 6, 1), Chunk(2, 4, 9)),
        (Chunk(1, 7, 1), Chunk(2, 13, 9)),
        (Chunk(1, 8, 1), Chunk(2, 22, 3), Chunk(3, 0, 2)),
    ]
    assert [step.admitted for step in steps] == [(1, 2), (), (), (3,)]


def test_prompts_get_a_blocks_worth_however_many_decode() -> None:
    scheduler, sequences = scheduler_with(1, 1, 1, 30, blocks=40, policy=Policy(max_batch=8, token_budget=3))
    for _ in range(3):
        settle(scheduler.plan(), sequences)
    assert [chunk.count for chunk in scheduler.plan().chunks] == [1, 1, 1, 4]


def test_the_budget_can_be_changed_in_the_middle_of_a_prompt() -> None:
    scheduler, sequences = scheduler_with(30, blocks=40, policy=Policy(max_batch=8, token_budget=10))
    settle(scheduler.plan(), sequences)
    scheduler.policy = scheduler.policy.changed(token_budget=15)
    assert scheduler.plan().chunks == (Chunk(1, 10, 15),)


def alike(*prompts: list[int], blocks: int = 40, reuse: bool = True) -> tuple[Scheduler, list[Sequence]]:
    """A scheduler with these prompts waiting."""
    scheduler = Scheduler(BlockPool(blocks, block_size=4), Policy(max_batch=8, watermark=0.0, reuse=reuse))
    sequences = [Sequence(number, prompt, SAMPLING) for number, prompt in enumerate(prompts, 1)]
    scheduler.add(sequences[0])
    return scheduler, sequences


def test_what_begins_alike_is_computed_once() -> None:
    scheduler, sequences = alike([1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4, 0, 6, 7, 8, 9])
    settle(scheduler.plan(), sequences)
    for later in sequences[1:]:
        scheduler.add(later)
    step = scheduler.plan()
    # The second is found whole, and its last token is computed all the same: it is what the next one is sampled from.
    assert step.reused == (4, 4)
    assert step.chunks == (Chunk(1, 9, 1), Chunk(2, 4, 4), Chunk(3, 4, 5))
    assert sequences[0].blocks[0] == sequences[1].blocks[0] == sequences[2].blocks[0]
    assert len({sequence.blocks[1] for sequence in sequences}) == 3


def test_what_ended_is_kept_until_the_room_is_needed() -> None:
    scheduler, sequences = alike([1, 2, 3, 4, 5], [1, 2, 3, 4, 9], [7] * 12, [1, 2, 3, 4, 8], blocks=3)
    for sequence in sequences:
        if sequence is not sequences[0]:
            scheduler.add(sequence)
        step = scheduler.plan()
        assert step.reused == ((4,) if sequence is sequences[1] else (0,))
        settle(step, sequences)
        scheduler.finish(sequence)
    assert scheduler.pool.free == 3


def test_without_reuse_nothing_is_shared() -> None:
    scheduler, sequences = alike([1] * 9, [1] * 9, reuse=False)
    settle(scheduler.plan(), sequences)
    scheduler.add(sequences[1])
    assert scheduler.plan().reused == (0,)
    assert not set(sequences[0].blocks) & set(sequences[1].blocks)


def test_newcomers_leave_the_watermark_free_unless_nothing_runs() -> None:
    # 20 blocks, 10 % of them reserved: the first may take 19, the second only what leaves 2.
    policy = Policy(max_batch=8, watermark=0.1)
    scheduler, _ = scheduler_with(76, 4, blocks=20, policy=policy)
    assert scheduler.plan().admitted == (1,)
    assert scheduler.pool.free == 1
    scheduler, _ = scheduler_with(60, 12, 8, blocks=20, policy=policy)
    assert scheduler.plan().admitted == (1, 2)
    assert (scheduler.pool.free, scheduler.waiting) == (2, 1)


def test_nobody_overtakes_the_head_of_the_queue() -> None:
    scheduler, _ = scheduler_with(8, 40, 1, blocks=10, policy=Policy(max_batch=8, watermark=0.0))
    assert scheduler.plan().admitted == (1,)
    assert scheduler.waiting == 2


def test_the_youngest_is_preempted_when_the_oldest_needs_a_block() -> None:
    scheduler, sequences = scheduler_with(4, 4, blocks=3, policy=Policy(max_batch=8, watermark=0.0))
    settle(scheduler.plan(), sequences)
    step = scheduler.plan()  # each wants a second block, one is left
    assert step == Step(chunks=(Chunk(1, 4, 1),), preempted=(Preemption(2, computed=4),))
    assert (sequences[1].computed, sequences[1].blocks) == (0, [])
    settle(step, sequences)
    scheduler.finish(sequences[0])
    # Its first block was kept: nothing of it is computed anew but the token that it was about to compute.
    assert scheduler.plan() == Step(chunks=(Chunk(2, 4, 1),), admitted=(2,), reused=(4,))


def test_nobody_enters_in_a_step_that_preempted() -> None:
    scheduler, sequences = scheduler_with(4, 4, blocks=3, policy=Policy(max_batch=8, watermark=0.0))
    settle(scheduler.plan(), sequences)
    scheduler.add(Sequence(3, [0], SAMPLING))
    step = scheduler.plan()
    assert step.preempted
    assert not step.admitted


def test_preempted_ones_return_in_their_order_before_newcomers() -> None:
    scheduler, sequences = scheduler_with(4, 4, 4, 1, blocks=3, policy=Policy(max_batch=8, watermark=0.0))
    settle(scheduler.plan(), sequences)
    step = scheduler.plan()
    assert [lost.sequence_id for lost in step.preempted] == [3, 2]
    settle(step, sequences)
    scheduler.finish(sequences[0])
    assert scheduler.plan().admitted == (2,)
    scheduler.finish(sequences[1])
    assert scheduler.plan().admitted == (3, 4)


def test_one_alone_that_cannot_grow_waits_until_it_can() -> None:
    scheduler, sequences = scheduler_with(4, blocks=2, policy=Policy(max_batch=8))
    settle(scheduler.plan(), sequences)
    scheduler.pool.withhold(1)
    assert scheduler.plan() == Step(preempted=(Preemption(1, computed=4),))
    assert scheduler.plan() == Step()
    scheduler.pool.withhold(0)
    assert scheduler.plan() == Step(chunks=(Chunk(1, 4, 1),), admitted=(1,), reused=(4,))


def test_a_waiting_one_can_be_forgotten() -> None:
    scheduler, sequences = scheduler_with(4, 4, blocks=8, policy=Policy(max_batch=1))
    scheduler.plan()
    scheduler.finish(sequences[1])
    scheduler.finish(sequences[0])
    assert (scheduler.running, scheduler.waiting, scheduler.pool.free) == (0, 0, 8)


class Storm(RuleBasedStateMachine):
    """Requests of any length come, leave and finish at any time; batch size and pool shrink and grow."""

    BLOCKS = 12

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(self.BLOCKS, block_size=4)
        self.scheduler = Scheduler(self.pool, Policy(max_batch=4, token_budget=24))
        self.alive: dict[int, Sequence] = {}
        self.running: set[int] = set()
        self.count = 0
        self.limit = self.BLOCKS * 4
        self.content: dict[tuple[int, int], list[int]] = {}

    @rule(length=st.integers(1, 24), first=st.integers(0, 1))
    def arrive(self, length: int, first: int) -> None:
        self.count += 1
        sequence = Sequence(self.count, [first] + [0] * (length - 1), SAMPLING)
        self.alive[sequence.id] = sequence
        self.scheduler.add(sequence)

    @rule(limit=st.sampled_from([None, 1, 8]))
    def make_a_step(self, limit: int | None) -> None:
        step = self.scheduler.plan(admit_limit=limit)
        self.running -= {lost.sequence_id for lost in step.preempted}
        assert not step.admitted or not step.preempted
        assert not step.admitted or len(self.running) + len(step.admitted) <= self.scheduler.policy.max_batch
        self.running |= set(step.admitted)
        # Whoever decodes does so in every step; prompts get what is left of the budget, in order, and never nothing.
        counts = {chunk.sequence_id: chunk.count for chunk in step.chunks}
        decoding = {each for each in self.running if self.alive[each].uncomputed == 1}
        assert decoding <= counts.keys() <= self.running
        assert bool(counts) == bool(self.running)
        prompts = sum(count for each, count in counts.items() if each not in decoding)
        # One that enters with a single token to compute is no decode yet, but has its token all the same.
        at_once = len(decoding - set(step.admitted))
        budget = max(self.scheduler.policy.token_budget - at_once, self.pool.block_size)
        assert prompts + len(decoding & set(step.admitted)) <= budget
        assert prompts > 0 or decoding == self.running
        for chunk in step.chunks:
            sequence = self.alive[chunk.sequence_id]
            assert chunk.start == sequence.computed
            assert len(sequence.blocks) == self.pool.blocks_for(len(sequence))
            self.write(sequence, chunk)
            sequence.advance(chunk.count)
            if sequence.uncomputed:
                continue
            sequence.append(0)
            if len(sequence) >= self.limit:
                self.leave(sequence)

    def write(self, sequence: Sequence, chunk: Chunk) -> None:
        """Compute a chunk as a model would: read all before it, and write what depends on it, never where others read.

        The content of a block stands for its keys and values: the tokens up to each place.
        """
        for at in range(chunk.start + chunk.count):
            block, place = sequence.blocks[at // 4], at % 4
            if at < chunk.start:
                assert self.content[block, place] == sequence.tokens[: at + 1]
            else:
                assert all(block not in other.blocks for other in self.alive.values() if other is not sequence)
                self.content[block, place] = sequence.tokens[: at + 1]

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def someone_leaves(self, data: st.DataObject) -> None:
        self.leave(self.alive[data.draw(st.sampled_from(sorted(self.alive)))])

    @rule(max_batch=st.integers(1, 6))
    def change_batch(self, max_batch: int) -> None:
        self.scheduler.policy = self.scheduler.policy.changed(max_batch=max_batch)

    @rule(count=st.integers(0, BLOCKS))
    def press(self, count: int) -> None:
        self.pool.withhold(count)

    def leave(self, sequence: Sequence) -> None:
        self.scheduler.finish(sequence)
        del self.alive[sequence.id]
        self.running.discard(sequence.id)

    @rule(token_budget=st.integers(1, 30))
    def change_budget(self, token_budget: int) -> None:
        self.scheduler.policy = self.scheduler.policy.changed(token_budget=token_budget)

    @invariant()
    def every_block_is_accounted_for(self) -> None:
        for sequence in self.alive.values():
            assert len(sequence.blocks) == len(set(sequence.blocks))
        owned = {block for sequence in self.alive.values() for block in sequence.blocks}
        assert self.pool.free + self.pool.withheld + len(owned) == self.BLOCKS

    @invariant()
    def only_the_running_hold_blocks(self) -> None:
        assert (self.scheduler.running, self.scheduler.waiting) == (
            len(self.running),
            len(self.alive) - len(self.running),
        )
        assert {sequence.id for sequence in self.alive.values() if sequence.blocks} == self.running

    def teardown(self) -> None:
        """Left alone with the whole pool, everything that waits is served."""
        self.pool.withhold(0)
        self.limit = 0
        for _ in range(40 * len(self.alive) + 1):
            self.make_a_step(None)
        assert not self.alive
        assert self.pool.free == self.BLOCKS


Storm.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestStorm = Storm.TestCase
