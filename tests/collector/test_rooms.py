"""The rooms of the collector are those that its docstring draws, and what it calls pure is."""

import pytest

import collector
from tests import rooms

DRAWN = rooms.drawn(collector)


def test_every_room_stands_in_the_drawing_once() -> None:
    assert sorted(room.rstrip("*") for room in DRAWN) == rooms.standing(collector)


@pytest.mark.parametrize("room", DRAWN)
def test_shells_alone_hold_what_is_not_a_value(room: str) -> None:
    held = rooms.held(rooms.folder(collector) / f"{room.rstrip('*')}.py")
    assert bool(held) is room.endswith("*"), held
