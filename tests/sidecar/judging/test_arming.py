"""When timers are set of requests that begin: each is set in time, and those that are soon over set none."""

import asyncio
import time

import pytest

from sidecar.judging.arming import ARM_AHEAD, ARM_S, Arming
from sidecar.judging.deadline_timer import NEVER_NS, DeadlineTimer, Sleeper
from tests.sidecar.rig import on_a_loop

FAR_NS, NEAR_NS = ARM_AHEAD * ARM_S * 1e9, ARM_AHEAD * ARM_S * 1e9 - 1


class Waiting:
    """A request whose deadline is far away."""

    def __init__(self) -> None:
        self.armed_ns = NEVER_NS

    def next_deadline_ns(self) -> int:
        return time.monotonic_ns() + 10**12

    def wake(self, now_ns: int) -> None:
        raise AssertionError(f"woken at {now_ns}")


class Desk:
    """Requests in flight, and what sets their timers."""

    def __init__(self, soonest_ns: float) -> None:
        self.timer = DeadlineTimer(asyncio.get_running_loop())
        self.in_flight: set[Sleeper] = set()
        self.arming = Arming(self.timer, in_flight=self.in_flight, look=lambda act, about: act(about))
        self.arming.expect(soonest_ns)

    def begin(self, *, more_follow: bool = False) -> Waiting:
        one = Waiting()
        self.in_flight.add(one)
        self.arming.add(one, more_follow=more_follow)
        return one


@on_a_loop
async def test_where_every_deadline_is_far_whoever_is_soon_over_sets_no_timer() -> None:
    desk = Desk(FAR_NS)
    over, stays = desk.begin(), desk.begin(more_follow=True)
    desk.arming.settled()
    desk.in_flight.discard(over)
    assert len(desk.timer) == 0
    await asyncio.sleep(1.5 * ARM_S)
    assert (over.armed_ns, stays.armed_ns != NEVER_NS, len(desk.timer)) == (NEVER_NS, True, 1)
    desk.begin()
    await asyncio.sleep(1.5 * ARM_S)
    assert len(desk.timer) == 2


@on_a_loop
async def test_where_a_deadline_may_be_near_timers_are_set_at_once() -> None:
    desk = Desk(NEAR_NS)
    desk.begin()
    assert len(desk.timer) == 1
    over, _ = desk.begin(more_follow=True), desk.begin(more_follow=True)
    desk.in_flight.discard(over)
    assert len(desk.timer) == 1
    desk.arming.settled()
    assert len(desk.timer) == 2


@on_a_loop
@pytest.mark.parametrize("then_ns", [FAR_NS, NEAR_NS])
async def test_another_spec_leaves_nobody_without_a_timer(then_ns: float) -> None:
    desk = Desk(FAR_NS)
    desk.begin()
    desk.arming.expect(then_ns)
    assert len(desk.timer) == 1
