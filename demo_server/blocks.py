"""The paged KV pool's accounts: which blocks are blank, kept for their content, owned, or withheld by a fault.

A block holds the keys and values of `block_size` tokens in every layer. This room counts blocks and hands out their
numbers; the tensors behind them are the runner's. An owned block that is full may be given a name (`prefix`); then
others that begin alike share it, and once nobody owns it, it is kept as long as no one needs the room: the one left
longest ago goes first. Always: free + owned + withheld == total, where free ones are blank or kept; a block counts its
owners; a name is of one block.
"""

from collections.abc import Sequence


class BlockPool:
    """Hands out blocks 0 .. total-1, blank ones before kept ones. Lowest-numbered-first is not promised."""

    def __init__(self, total: int, block_size: int) -> None:
        assert total > 0
        assert block_size > 0
        self.total = total
        self.block_size = block_size
        self._blank = list(range(total - 1, -1, -1))
        self._kept: dict[int, None] = {}  # in the order in which they were left
        self._owners: dict[int, int] = {}
        self._named: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}
        self._withheld: list[int] = []
        self._withhold_target = 0

    @property
    def free(self) -> int:
        """Blocks that can be taken now."""
        return len(self._blank) + len(self._kept)

    @property
    def kept(self) -> int:
        """Free blocks that still hold something named."""
        return len(self._kept)

    @property
    def used(self) -> int:
        """Blocks that cannot be taken: owned by sequences or withheld."""
        return self.total - self.free

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

    def can_take(self, count: int, *, sharing: Sequence[int] = ()) -> bool:
        """Whether `take(count)` would succeed, after `share(sharing)` where some are to be shared."""
        return count + sum(block in self._kept for block in sharing) <= self.free

    def take(self, count: int) -> list[int]:
        """Give `count` blocks to a sequence; ask `can_take` first."""
        assert self.can_take(count), f"{count} blocks asked, {self.free} free"
        taken = [self._emptied() for _ in range(count)]
        self._owners.update(dict.fromkeys(taken, 1))
        return taken

    def find(self, names: Sequence[bytes]) -> list[int]:
        """The blocks that hold what the first names say, as far as all of them are there."""
        found: list[int] = []
        for name in names:
            block = self._named.get(name)
            if block is None:
                break
            found.append(block)
        return found

    def share(self, blocks: Sequence[int]) -> None:
        """Make a sequence one more owner of blocks that were just found."""
        for block in blocks:
            self._kept.pop(block, None)
            self._owners[block] = self._owners.get(block, 0) + 1

    def name(self, block: int, name: bytes) -> None:
        """Let an owned block be found by what it holds from now on; of two that hold the same, the first is."""
        assert block in self._owners, f"block {block} is not owned"
        if name not in self._named and block not in self._names:
            self._named[name] = block
            self._names[block] = name

    def give_back(self, blocks: Sequence[int]) -> None:
        """Take back blocks from one owner, the last first: what comes late in a text is the least likely to be asked
        for again. What `withhold` still lacks is served before anyone else."""
        for block in reversed(blocks):
            assert block in self._owners, f"block {block} is not owned"
            self._owners[block] -= 1
            if self._owners[block] == 0:
                del self._owners[block]
                if block in self._names:
                    self._kept[block] = None
                else:
                    self._blank.append(block)
        self._settle_withheld()

    def withhold(self, count: int) -> None:
        """Keep `count` blocks from everyone: those free now at once, the rest as they come back. 0 returns all."""
        assert 0 <= count <= self.total
        self._withhold_target = count
        self._settle_withheld()

    def _settle_withheld(self) -> None:
        while len(self._withheld) > self._withhold_target:
            self._blank.append(self._withheld.pop())
        while len(self._withheld) < self._withhold_target and self.free:
            self._withheld.append(self._emptied())

    def _emptied(self) -> int:
        """A free block, which holds nothing any more."""
        if self._blank:
            return self._blank.pop()
        block = next(iter(self._kept))
        del self._kept[block]
        del self._named[self._names.pop(block)]
        return block
