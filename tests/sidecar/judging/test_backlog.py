"""Notes are looked at in their order, soon, in turns, and never more of them wait than may."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sidecar.judging.backlog import Backlog
from sidecar.limits import BACKLOG_BYTES, BACKLOG_LATE, BACKLOG_NOTES, BACKLOG_S, BACKLOG_TURN


@dataclass
class Desk:
    """A backlog, the loop that wakes it, and what was done."""

    seen: list[object] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    settled: int = 0
    wakes: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.backlog = Backlog(self.call_later, fault=self.faults.append, settled=self.count)

    def call_later(self, delay_s: float, act: Callable[[], None]) -> None:
        self.wakes.append((delay_s, act))

    def count(self) -> None:
        self.settled += 1

    def wake(self) -> float:
        delay_s, act = self.wakes.pop(0)
        act()
        return delay_s


def test_notes_wait_for_the_loop_and_are_looked_at_in_their_order() -> None:
    desk = Desk()
    for number in range(3):
        desk.backlog.note(desk.seen.append, number)
    desk.backlog.note_bytes(desk.seen.append, b"3")
    assert desk.seen == []
    assert desk.wake() == BACKLOG_S
    assert desk.seen == [0, 1, 2, b"3"]
    assert (desk.wakes, desk.settled) == ([], 1)


def test_what_nobody_waits_for_is_looked_at_with_what_comes_or_when_enough_of_it_waits() -> None:
    desk = Desk()
    for number in range(BACKLOG_LATE - 1):
        desk.backlog.note_late(desk.seen.append, number)
    assert desk.wakes == []
    desk.backlog.note_late(desk.seen.append, "enough")
    desk.backlog.note_late(desk.seen.append, "more")
    assert [delay_s for delay_s, _ in desk.wakes] == [BACKLOG_S]
    desk.backlog.settle()
    assert desk.seen == [*range(BACKLOG_LATE - 1), "enough", "more"]
    desk.wake()
    desk.backlog.note_late(desk.seen.append, "late")
    assert desk.wakes == []
    desk.backlog.note(desk.seen.append, "soon")
    assert desk.wake() == BACKLOG_S
    assert desk.seen[-2:] == ["late", "soon"]


def test_many_are_looked_at_in_turns_between_which_the_loop_goes_on() -> None:
    desk = Desk()
    for number in range(2 * BACKLOG_TURN + 1):
        desk.backlog.note(desk.seen.append, number)
    assert desk.wake() == BACKLOG_S
    assert len(desk.seen) == BACKLOG_TURN
    assert desk.wake() == 0
    assert desk.wake() == 0
    assert desk.seen == list(range(2 * BACKLOG_TURN + 1))
    assert desk.wakes == []


def test_who_asks_has_all_of_them_looked_at_and_their_wake_finds_nothing() -> None:
    desk = Desk()
    for number in range(3 * BACKLOG_TURN):
        desk.backlog.note(desk.seen.append, number)
    desk.backlog.settle()
    assert desk.seen == list(range(3 * BACKLOG_TURN))
    desk.wake()
    assert len(desk.seen) == 3 * BACKLOG_TURN
    desk.backlog.settle()
    assert desk.wakes == []


def test_a_fault_ends_with_its_own_note() -> None:
    desk = Desk()
    desk.backlog.note(divmod, 1, 0)
    desk.backlog.note(desk.seen.append, "next")
    desk.backlog.settle()
    assert desk.seen == ["next"]
    assert [type(fault) for fault in desk.faults] == [ZeroDivisionError]
    assert not desk.backlog.is_settling


def test_what_is_noted_meanwhile_comes_after_and_asking_within_a_note_changes_nothing() -> None:
    desk = Desk()

    def act() -> None:
        assert desk.backlog.is_settling
        desk.backlog.note(desk.seen.append, "noted meanwhile")
        desk.backlog.settle()
        assert desk.seen == []

    desk.backlog.note(act)
    desk.backlog.note(desk.seen.append, "noted before")
    desk.backlog.settle()
    assert desk.seen == ["noted before", "noted meanwhile"]
    assert desk.faults == []


@pytest.mark.parametrize(("size", "most"), [(1, BACKLOG_NOTES), (BACKLOG_BYTES // 4, 4), (BACKLOG_BYTES, 1)])
def test_more_than_may_wait_are_looked_at_at_once(size: int, most: int) -> None:
    desk, data = Desk(), b"x" * size
    for _ in range(most):
        desk.backlog.note_bytes(desk.seen.append, data)
    assert desk.seen == []
    desk.backlog.note_bytes(desk.seen.append, data)
    assert len(desk.seen) == most + 1
