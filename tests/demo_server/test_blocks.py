import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from demo_server.blocks import BlockPool

TOTAL = 24


class Storm(RuleBasedStateMachine):
    """Owners come and go while a fault takes blocks away and returns them."""

    owners: Bundle[list[int]] = Bundle("owners")

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(TOTAL, block_size=16)
        self.owned: list[list[int]] = []
        self.target = 0
        self.names: dict[int, bytes] = {}

    @rule(blocks=owners, name=st.binary(min_size=1, max_size=1))
    def name(self, blocks: list[int], name: bytes) -> None:
        if not blocks or blocks not in self.owned:
            return
        block = blocks[0]
        was_free = name not in self.names.values() and block not in self.names
        self.pool.name(block, name)
        if was_free:
            self.names[block] = name

    @rule(target=owners, name=st.binary(min_size=1, max_size=1))
    def share(self, name: bytes) -> list[int]:
        blocks = self.pool.find([name, b"nobody has this"])
        assert blocks == [block for block, its in self.names.items() if its == name]
        self.pool.share(blocks)
        if blocks:
            self.owned.append(blocks)
        return blocks

    @rule(target=owners, count=st.integers(0, TOTAL + 2))
    def take(self, count: int) -> list[int]:
        if not self.pool.can_take(count):
            assert count > self.pool.free
            with pytest.raises(AssertionError):
                self.pool.take(count)
            return []
        kept = self.pool.kept
        blocks = self.pool.take(count)
        assert len(blocks) == count
        evicted = [block for block in blocks if self.names.pop(block, None)]
        assert len(evicted) == kept - self.pool.kept, "what is kept goes only when there is nothing blank"
        assert not evicted or len(evicted) == count or self.pool.kept == self.pool.free
        self.owned.append(blocks)
        return blocks

    @rule(blocks=consumes(owners))
    def give_back(self, blocks: list[int]) -> None:
        self.pool.give_back(blocks)
        if blocks:
            self.owned.remove(blocks)
            self.forget_evicted()
            if not any(blocks[-1] in others for others in self.owned):
                with pytest.raises(AssertionError):
                    self.pool.give_back(blocks[-1:])

    @rule(count=st.integers(0, TOTAL))
    def withhold(self, count: int) -> None:
        self.pool.withhold(count)
        self.target = count
        self.forget_evicted()

    def forget_evicted(self) -> None:
        """Blocks that were withheld hold nothing any more."""
        self.names = {block: name for block, name in self.names.items() if self.pool.find([name])}

    @invariant()
    def every_block_is_accounted_for(self) -> None:
        owned = {block for blocks in self.owned for block in blocks}
        assert owned <= set(range(TOTAL))
        assert self.pool.free + len(owned) + self.pool.withheld == TOTAL
        assert self.pool.free + self.pool.used == self.pool.total == TOTAL
        assert self.pool.usage == self.pool.used / TOTAL

    @invariant()
    def what_is_named_is_found_and_kept_while_nobody_owns_it(self) -> None:
        owned = {block for blocks in self.owned for block in blocks}
        for block, name in self.names.items():
            assert self.pool.find([name]) == [block]
        assert self.pool.kept == len(self.names.keys() - owned)

    @invariant()
    def what_is_to_be_withheld_is_taken_before_anyone_gets_more(self) -> None:
        assert self.pool.withheld <= self.target
        assert self.pool.withheld == self.target or self.pool.free == 0


Storm.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestStorm = Storm.TestCase


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 0), (1, 1), (16, 1), (17, 2), (32, 2), (33, 3)])
def test_tokens_round_up_to_blocks(tokens: int, blocks: int) -> None:
    assert BlockPool(4, block_size=16).blocks_for(tokens) == blocks


def test_a_block_is_never_handed_out_twice() -> None:
    pool = BlockPool(5, block_size=1)
    assert sorted(pool.take(2) + pool.take(3)) == [0, 1, 2, 3, 4]
    assert not pool.can_take(1)
    assert pool.can_take(0)


def test_blocks_of_a_text_are_found_as_far_as_all_are_there() -> None:
    pool = BlockPool(4, block_size=1)
    first, second, third = pool.take(3)
    pool.name(first, b"a")
    pool.name(third, b"c")
    assert pool.find([b"a", b"b", b"c"]) == [first]
    pool.name(second, b"a")
    assert pool.find([b"a"]) == [first], "of two that hold the same, the first is found"
    with pytest.raises(AssertionError):
        pool.name(3, b"d")


def test_sharing_what_is_kept_takes_room_and_what_is_owned_does_not() -> None:
    pool = BlockPool(3, block_size=1)
    kept, owned = pool.take(2)
    pool.name(kept, b"k")
    pool.name(owned, b"o")
    pool.give_back([kept])
    assert pool.free == 2
    assert pool.can_take(2, sharing=[owned])
    assert pool.can_take(1, sharing=[kept])
    assert not pool.can_take(2, sharing=[kept])


def test_the_end_of_a_text_is_given_up_before_its_beginning() -> None:
    pool = BlockPool(3, block_size=1)
    blocks = pool.take(3)
    for block, name in zip(blocks, (b"a", b"b", b"c"), strict=True):
        pool.name(block, name)
    pool.give_back(blocks)
    assert pool.take(1) == [blocks[2]]
    assert pool.find([b"a", b"b", b"c"]) == blocks[:2]
