import asyncio
import time
from dataclasses import dataclass, field

from sidecar.judging.deadline_timer import NEVER_NS, DeadlineTimer
from tests.sidecar.rig import on_a_loop, until

MS = 1_000_000


@dataclass(eq=False)
class Sleeper:
    """Wants to be woken at each of its deadlines, once each."""

    deadlines_ns: list[int]
    armed_ns: int = NEVER_NS
    woken_ns: list[int] = field(default_factory=list)

    def next_deadline_ns(self) -> int | None:
        return self.deadlines_ns[0] if self.deadlines_ns else None

    def wake(self, now_ns: int) -> None:
        self.woken_ns.append(now_ns)
        self.deadlines_ns = [at_ns for at_ns in self.deadlines_ns if at_ns > now_ns]


@on_a_loop
async def test_each_deadline_wakes_once_and_never_early() -> None:
    timer, now_ns = DeadlineTimer(asyncio.get_running_loop()), time.monotonic_ns()
    sleepers = [Sleeper([now_ns + number * MS, now_ns + (number + 40) * MS]) for number in range(0, 60, 7)]
    wanted = [list(sleeper.deadlines_ns) for sleeper in sleepers]
    for sleeper in sleepers:
        timer.set(sleeper)
    await until(lambda: not any(sleeper.deadlines_ns for sleeper in sleepers))
    for sleeper, deadlines_ns in zip(sleepers, wanted, strict=True):
        assert 1 <= len(sleeper.woken_ns) <= 2
        assert sleeper.woken_ns[0] >= deadlines_ns[0]
        assert sleeper.woken_ns[-1] >= deadlines_ns[1]
    assert len(timer) == 0


@on_a_loop
async def test_a_deadline_that_comes_nearer_is_kept() -> None:
    timer, now_ns = DeadlineTimer(asyncio.get_running_loop()), time.monotonic_ns()
    sleeper = Sleeper([now_ns + 10_000_000 * MS])
    timer.set(sleeper)
    sleeper.deadlines_ns.insert(0, now_ns + 5 * MS)
    timer.set(sleeper)
    await until(lambda: bool(sleeper.woken_ns))
    assert sleeper.armed_ns == now_ns + 10_000_000 * MS


@on_a_loop
async def test_one_that_cannot_be_woken_takes_no_others_deadline_with_it() -> None:
    loop, said = asyncio.get_running_loop(), list[object]()
    loop.set_exception_handler(lambda _, context: said.append(context["exception"]))
    timer, now_ns = DeadlineTimer(loop), time.monotonic_ns()
    broken, due, later = (Sleeper([now_ns + after_ms * MS]) for after_ms in (5, 6, 40))
    broken.woken_ns = None  # type: ignore[assignment]
    for sleeper in (broken, due, later):
        timer.set(sleeper)
    time.sleep(0.01)  # noqa: ASYNC251  both of the first two are due when the loop comes to it
    await until(lambda: bool(due.woken_ns and later.woken_ns))
    assert [type(error) for error in said] == [AttributeError]


@on_a_loop
async def test_a_deadline_that_moves_away_costs_no_entry() -> None:
    timer, now_ns = DeadlineTimer(asyncio.get_running_loop()), time.monotonic_ns()
    sleeper = Sleeper([now_ns + 20 * MS])
    timer.set(sleeper)
    for step in range(1000):
        sleeper.deadlines_ns = [now_ns + (30 + step) * MS]
        timer.set(sleeper)
    assert len(timer) == 1


@on_a_loop
async def test_who_is_gone_is_not_woken_and_leaves_no_memory() -> None:
    timer, now_ns = DeadlineTimer(asyncio.get_running_loop()), time.monotonic_ns()
    staying = Sleeper([now_ns + 30 * MS])
    timer.set(staying)
    gone = [Sleeper([now_ns + 10 * MS]) for _ in range(5000)]
    for sleeper in gone:
        timer.set(sleeper)
        timer.cancel(sleeper)
    assert len(timer) < 1000
    await until(lambda: bool(staying.woken_ns))
    assert not any(sleeper.woken_ns for sleeper in gone)
    timer.set(gone[0])
    assert len(timer) == 0
