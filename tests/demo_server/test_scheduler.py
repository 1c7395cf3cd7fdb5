"""Decisions as tables, and a storm over all of them."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from demo_server.blocks import BlockPool
from demo_server.scheduler import Chunk, Policy, Preemption, Scheduler, Step
from demo_server.sequence import Sampling, Sequence

SAMPLING = Sampling(max_tokens=64)


def scheduler_with(*lengths: int, blocks: int, policy: Policy) -> tuple[Scheduler, list[Sequence]]:
    """A scheduler of blocks of 4 tokens, with prompts of these lengths waiting as sequences 1, 2, ..."""
    scheduler = Scheduler(BlockPool(blocks, block_size=4), policy)
    sequences = [Sequence(number, [0] * length, SAMPLING) for number, length in enumerate(lengths, 1)]
    for sequence in sequences:
        scheduler.add(sequence)
    return scheduler, sequences


def settle(step: Step, sequences: list[Sequence]) -> None:
    """Do to the sequences what the engine does after a step."""
    for chunk in step.chunks:
        sequence = sequences[chunk.sequence_id - 1]
        sequence.advance(chunk.count)
        sequence.append(0)


def test_prompts_enter_whole_and_then_decode_one_token_a_step() -> None:
    scheduler, sequences = scheduler_with(5, 3, blocks=10, policy=Policy(max_batch=4, watermark=0.0))
    first = scheduler.plan()
    assert first == Step(chunks=(Chunk(1, 0, 5), Chunk(2, 0, 3)), admitted=(1, 2))
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
    scheduler.policy = scheduler.policy.with_max_batch(1)
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


def test_the_token_budget_bounds_a_step_but_never_bars_a_long_prompt() -> None:
    policy = Policy(max_batch=8, token_budget=10)
    scheduler, sequences = scheduler_with(6, 5, 30, 2, blocks=40, policy=policy)
    admitted = []
    for _ in range(3):
        step = scheduler.plan()
        admitted.append(step.admitted)
        settle(step, sequences)
    assert admitted == [(1,), (2,), (3,)]
    assert scheduler.plan().admitted == (4,)


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
    assert scheduler.plan() == Step(chunks=(Chunk(2, 0, 5),), admitted=(2,))


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
    assert scheduler.plan() == Step(chunks=(Chunk(1, 0, 5),), admitted=(1,))


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

    @rule(length=st.integers(1, 24))
    def arrive(self, length: int) -> None:
        self.count += 1
        sequence = Sequence(self.count, [0] * length, SAMPLING)
        self.alive[sequence.id] = sequence
        self.scheduler.add(sequence)

    @rule(limit=st.sampled_from([None, 1, 8]))
    def make_a_step(self, limit: int | None) -> None:
        step = self.scheduler.plan(admit_limit=limit)
        self.running -= {lost.sequence_id for lost in step.preempted}
        assert not step.admitted or not step.preempted
        assert not step.admitted or len(self.running) + len(step.admitted) <= self.scheduler.policy.max_batch
        self.running |= set(step.admitted)
        # Whoever runs is computed in every step, to its last token, with room for all of them.
        assert {chunk.sequence_id for chunk in step.chunks} == self.running
        for chunk in step.chunks:
            sequence = self.alive[chunk.sequence_id]
            assert (chunk.start, chunk.start + chunk.count) == (sequence.computed, len(sequence))
            assert len(sequence.blocks) == self.pool.blocks_for(len(sequence))
            sequence.advance(chunk.count)
            sequence.append(0)
            if len(sequence) >= self.limit:
                self.leave(sequence)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def someone_leaves(self, data: st.DataObject) -> None:
        self.leave(self.alive[data.draw(st.sampled_from(sorted(self.alive)))])

    @rule(max_batch=st.integers(1, 6))
    def change_batch(self, max_batch: int) -> None:
        self.scheduler.policy = self.scheduler.policy.with_max_batch(max_batch)

    @rule(count=st.integers(0, BLOCKS))
    def press(self, count: int) -> None:
        self.pool.withhold(count)

    def leave(self, sequence: Sequence) -> None:
        self.scheduler.finish(sequence)
        del self.alive[sequence.id]
        self.running.discard(sequence.id)

    @invariant()
    def every_block_has_one_owner(self) -> None:
        owned = [block for sequence in self.alive.values() for block in sequence.blocks]
        assert len(owned) == len(set(owned))
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
        for _ in range(4 * len(self.alive) + 1):
            self.make_a_step(None)
        assert not self.alive
        assert self.pool.free == self.BLOCKS


Storm.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestStorm = Storm.TestCase
