"""Names of blocks: alike where all before is alike."""

import pytest

from demo_server.prefix import KEY_BYTES, extend


def names(tokens: list[int], count: int) -> list[bytes]:
    keys: list[bytes] = []
    extend(keys, tokens, 4, count=count)
    return keys


def test_a_name_says_its_block_and_all_before_it() -> None:
    one, other = names([1, 2, 3, 4, 5, 6, 7, 8], 2), names([1, 2, 3, 4, 5, 6, 7, 9], 2)
    assert one[0] == other[0]
    assert one[1] != other[1]
    assert names([0, 2, 3, 4, 5, 6, 7, 8], 2)[1] != one[1], "the same block behind another beginning"
    assert names([1, 1, 1, 1] * 2, 2)[0] != names([1, 1, 1, 1] * 2, 2)[1]
    assert {len(name) for name in one} == {KEY_BYTES}


def test_names_go_on_from_those_that_are_there() -> None:
    tokens = list(range(16))
    keys = names(tokens, 1)
    extend(keys, tokens, 4, count=4)
    assert keys == names(tokens, 4)
    extend(keys, tokens, 4, count=2)
    assert len(keys) == 4


def test_a_block_that_is_not_full_has_no_name() -> None:
    with pytest.raises(AssertionError):
        names([1, 2, 3, 4, 5], 2)
