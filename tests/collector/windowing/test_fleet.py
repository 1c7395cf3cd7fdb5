"""Who is alive: first and last words, losses against births, and gauges that are fresh."""

import pytest

from collector.values.deltas import GaugeRow, InstanceRow
from collector.windowing.fleet import FRESH_S, KEEP_S, Fleet, Reading

NOW_S = 1_800_000_000
CHAT = ("", "chat")


def instance(name: str, first_s: int, last_s: int, *, periodic: bool = True) -> InstanceRow:
    return InstanceRow(*CHAT, name, "proxy", NOW_S + first_s, NOW_S + last_s, periodic)


def gauge(value: float, at_s: int, *, name: str = "i", attribute: str = "ttft") -> GaugeRow:
    at_ns = (NOW_S + at_s) * 10**9
    return GaugeRow(*CHAT, "m", name, "overdue", attribute, NOW_S + at_s, value, value, value, 1, value, at_ns)


def fleet(*rows: InstanceRow) -> Fleet:
    one = Fleet()
    one.add(rows, ())
    return one


def test_a_service_lives_from_its_first_to_its_last_word() -> None:
    life = fleet(instance("a", -900, -600), instance("b", -500, -10), instance("a", -1000, -800)).life(CHAT)
    assert life is not None
    assert (life.first_s - NOW_S, life.last_s - NOW_S) == (-1000, -10)
    assert {(row.instance, row.first_s - NOW_S, row.last_s - NOW_S) for row in life.instances} == {
        ("a", -1000, -600),
        ("b", -500, -10),
    }


def test_senders_of_spans_alone_have_no_life_to_miss() -> None:
    assert fleet(instance("a", -900, -600, periodic=False)).life(CHAT) is None
    assert fleet().life(CHAT) is None


LOSSES = {
    "all speak": ([("a", -900, -5), ("b", -900, -5)], 0),
    "one fell silent": ([("a", -900, -5), ("b", -900, -400)], 1),
    "and was replaced": ([("a", -900, -5), ("b", -900, -400), ("c", -390, -5)], 0),
    "one of two silent ones was replaced": ([("a", -900, -400), ("b", -900, -390), ("c", -380, -5)], 1),
    "a rolling start leaves none missing": (
        [("a", -3000, -1000), ("b", -3000, -950), ("c", -1010, -5), ("d", -960, -5)],
        0,
    ),
    "its replacement fell silent too": ([("a", -3000, -1000), ("b", -990, -400), ("c", -3000, -5)], 1),
    "an old hand replaces nobody": ([("a", -3500, -5), ("b", -3500, -400)], 1),
    "silence is not yet five minutes": ([("a", -900, -5), ("b", -900, -299)], 0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_counted_against_births(name: str) -> None:
    rows, lost = LOSSES[name]
    life = fleet(*(instance(*row) for row in rows)).life(CHAT)
    assert life is not None
    assert life.lost(now_s=NOW_S, silent_s=300) == lost


def test_the_latest_value_of_a_gauge_counts_whatever_order_it_came_in() -> None:
    one = Fleet()
    one.add((), [gauge(3, -5), gauge(9, -15), gauge(1, -5, attribute="e2e"), gauge(4, -1, name="j")])
    assert set(one.readings(CHAT, "overdue", now_s=NOW_S)) == {
        Reading("i", "m", "ttft", 3),
        Reading("i", "m", "e2e", 1),
        Reading("j", "m", "ttft", 4),
    }
    assert one.readings(CHAT, "other", now_s=NOW_S) == one.readings(("", "x"), "overdue", now_s=NOW_S) == ()


def test_a_gauge_that_is_no_longer_sent_says_nothing_of_now() -> None:
    one = Fleet()
    one.add((), [gauge(3, 0)])
    assert len(one.readings(CHAT, "overdue", now_s=NOW_S + FRESH_S)) == 1
    assert one.readings(CHAT, "overdue", now_s=NOW_S + FRESH_S + 1) == ()


def test_what_is_long_gone_is_forgotten_but_for_the_service_itself() -> None:
    one = fleet(instance("a", -900, 0))
    one.add((), [gauge(3, 0)])
    one.forget(NOW_S + KEEP_S + 1)
    life = one.life(CHAT)
    assert life is not None
    assert (life.last_s, life.instances) == (NOW_S, ())
    assert all(not values for values in one._gauges.values())


def test_the_limit_of_instances_keeps_those_heard_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.windowing.fleet.MAX_INSTANCES", 2)
    one = fleet(instance("a", -900, -30), instance("b", -900, -10), instance("c", -900, -20))
    one.forget(NOW_S)
    life = one.life(CHAT)
    assert life is not None
    assert {row.instance for row in life.instances} == {"b", "c"}
