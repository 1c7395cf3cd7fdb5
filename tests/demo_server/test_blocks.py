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

    @rule(target=owners, count=st.integers(0, TOTAL + 2))
    def take(self, count: int) -> list[int]:
        if not self.pool.can_take(count):
            assert count > self.pool.free
            with pytest.raises(AssertionError):
                self.pool.take(count)
            return []
        blocks = self.pool.take(count)
        assert len(blocks) == count
        self.owned.append(blocks)
        return blocks

    @rule(blocks=consumes(owners))
    def give_back(self, blocks: list[int]) -> None:
        self.pool.give_back(blocks)
        if blocks:
            self.owned.remove(blocks)
            with pytest.raises(AssertionError):
                self.pool.give_back(blocks)

    @rule(count=st.integers(0, TOTAL))
    def withhold(self, count: int) -> None:
        self.pool.withhold(count)
        self.target = count

    @invariant()
    def every_block_is_accounted_for(self) -> None:
        owned = [block for blocks in self.owned for block in blocks]
        assert len(owned) == len(set(owned))
        assert set(owned) <= set(range(TOTAL))
        assert self.pool.free + len(owned) + self.pool.withheld == TOTAL
        assert self.pool.free + self.pool.used == self.pool.total == TOTAL
        assert self.pool.usage == self.pool.used / TOTAL

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
