"""Names for what a block holds: a chain of hashes, each of a block's tokens and of all blocks before it.

Two sequences that begin with the same tokens name their full blocks alike, whatever comes after, and a block can be
found by its name. The hash is long enough that two different beginnings never share one.
"""

import hashlib
from array import array
from collections.abc import Sequence

KEY_BYTES = 16


def extend(keys: list[bytes], tokens: Sequence[int], block_size: int, *, count: int) -> None:
    """Let `keys` name the first `count` blocks of `tokens`, all of which are full; it may name some already."""
    assert count * block_size <= len(tokens)
    for number in range(len(keys), count):
        held = array("I", tokens[number * block_size : (number + 1) * block_size]).tobytes()
        before = keys[-1] if keys else b""
        keys.append(hashlib.blake2b(before + held, digest_size=KEY_BYTES).digest())
