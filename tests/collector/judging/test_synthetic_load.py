"""When an instance counts as filled by a synthetic load."""

from collections.abc import Iterable

import numpy as np

from collector.judging.synthetic_load import filled
from collector.values.deltas import CounterRow
from collector.values.histogram import Counts
from collector.windowing.recent import Recent
from slo import signals
from slo.signals import LABELS, SYNTHETIC_CLASS
from slo.trouble import SYNTHETIC_LOOK_S
from tests.collector.scene import NOW_S, TICK_S

WINDOW_S = 300
I1 = (("", "chat"), "i1")
NOW: Counts = np.array([NOW_S])


def ended(count: float, at_s: int, *, synthetic: bool = False, instance: str = "i1") -> CounterRow:
    said = ((LABELS[signals.CLASS], SYNTHETIC_CLASS),) if synthetic else ()
    return CounterRow("", "chat", "m", instance, "proxy", signals.REQUESTS.sql, said, at_s, count)


def users(instance: str = "i1", count: float = 1) -> list[CounterRow]:
    return [ended(count, at_s, instance=instance) for at_s in range(NOW_S - 900, NOW_S, TICK_S)]


def answers(*rows: Iterable[CounterRow], at_s: Counts = NOW) -> list[bool]:
    recent = Recent(now_s=NOW_S)
    recent.add([row for some in rows for row in some], ())
    found: list[bool] = filled(recent, I1, at_s, window_s=WINDOW_S, tick_s=TICK_S).tolist()
    return found


def run(at_s: int, count: float = 100, instance: str = "i1") -> list[CounterRow]:
    """A short run of a synthetic load."""
    return [ended(count, at_s, synthetic=True, instance=instance)]


def test_a_short_run_fills_the_window_that_holds_it_and_what_was_lately() -> None:
    started_s = NOW_S - 300
    at_s = np.arange(NOW_S - 600, NOW_S + 600, TICK_S)
    found = answers(users(), run(started_s), at_s=at_s)
    until_s = started_s + SYNTHETIC_LOOK_S + WINDOW_S
    assert found == [started_s <= one < until_s - TICK_S for one in at_s.tolist()]


def test_users_who_are_more_outweigh_it() -> None:
    assert answers(users(count=1), run(NOW_S - 60, SYNTHETIC_LOOK_S // TICK_S + 2)) == [True]
    assert answers(users(count=1), run(NOW_S - 60, SYNTHETIC_LOOK_S // TICK_S - 2)) == [False]


def test_it_is_the_instances_own_requests_that_count() -> None:
    assert answers(users(), run(NOW_S - 60, instance="i2")) == [False]


def test_an_instance_that_counts_none_goes_by_its_service() -> None:
    assert answers(users("i2"), run(NOW_S - 60, instance="i2")) == [True]
    assert answers(users("i2"), users("i3", 10), run(NOW_S - 60, instance="i2")) == [False]


def test_where_nothing_is_counted_nothing_was_synthetic() -> None:
    assert answers() == [False]
