"""The paged KV pool's accounts: which blocks are free, owned by sequences, or withheld by a fault.

A block holds the keys and values of `block_size` tokens in every layer. This room counts blocks and hands out their
numbers; the tensors behind them are the runner's. Always: free + owned + withheld == total, and no block has two
owners.
"""

from collections.abc import Iterable


class BlockPool:
    """Hands out blocks 0 .. total-1. Lowest-numbered-first is not promised; last returned, first reused is."""

    def __init__(self, total: int, block_size: int) -> None:
        assert total > 0
        assert block_size > 0
        self.total = total
        self.block_size = block_size
        self._free = list(range(total - 1, -1, -1))
        self._owned: set[int] = set()
        self._withheld: list[int] = []
        self._withhold_target = 0

    @property
    def free(self) -> int:
        """Blocks that can be taken now."""
        return len(self._free)

    @property
    def used(self) -> int:
        """Blocks that cannot: owned by sequences or withheld."""
        return self.total - len(self._free)

    @property
    def withheld(self) -> int:
        """Blocks kept from everyone by `withhold`."""
        return len(self._withheld)

    @property
    def usage(self) -> float:
        """Share of the pool in use, 0..1."""
        return self.used / self.total

    def blocks_for(self, tokens: int) -> int:
        """How many blocks hold `tokens` tokens."""
        return -(-tokens // self.block_size)

    def can_take(self, count: int) -> bool:
        """Whether `take(count)` would succeed."""
        return count <= len(self._free)

    def take(self, count: int) -> list[int]:
        """Give `count` blocks to a sequence; ask `can_take` first."""
        assert self.can_take(count), f"{count} blocks asked, {self.free} free"
        taken = [self._free.pop() for _ in range(count)]
        self._owned.update(taken)
        return taken

    def give_back(self, blocks: Iterable[int]) -> None:
        """Take back blocks from their owner. What `withhold` still lacks is served before the free list."""
        for block in blocks:
            assert block in self._owned, f"block {block} is not owned"
            self._owned.remove(block)
            self._free.append(block)
        self._settle_withheld()

    def withhold(self, count: int) -> None:
        """Keep `count` blocks from everyone: those free now at once, the rest as they come back. 0 returns all."""
        assert 0 <= count <= self.total
        self._withhold_target = count
        self._settle_withheld()

    def _settle_withheld(self) -> None:
        while len(self._withheld) > self._withhold_target:
            self._free.append(self._withheld.pop())
        while len(self._withheld) < self._withhold_target and self._free:
            self._withheld.append(self._free.pop())
