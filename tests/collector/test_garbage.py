"""What a start has made is not looked through again, and cycles that come later are still found."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from collector import garbage


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


class Knot:
    """One that holds itself."""

    def __init__(self) -> None:
        self.itself = self


def test_what_is_there_is_left_alone_and_later_cycles_are_found() -> None:
    garbage.settle()
    assert gc.get_freeze_count() > 1_000
    assert gc.get_threshold()[0] == garbage.YOUNGEST
    knot = weakref.ref(Knot())
    kept = [[] for _ in range(garbage.YOUNGEST + 1_000)]
    assert knot() is None
    assert kept
