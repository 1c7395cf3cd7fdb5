"""The worst requests that are remembered: of each hour some, the same ones in whatever order they come, never more."""

import random

import pytest

from collector.keeping import worst as room
from collector.keeping.worst import KEPT_S, MAX_OF_HOUR, Worst
from collector.values.measurement import FAILED, NS, Request, Resource
from slo.quantity import HOUR_S

NOW_S = 1_800_000_000


def request(number: int, ttft_s: float, *, at_s: int = NOW_S, failed: bool = False, model: str = "m") -> Request:
    return Request(
        Resource("", "chat", "i1", "proxy"), f"{number:032x}", f"{number:016x}", model, "", "ok", failed, at_s * NS,
        ttft_s + 1, {"ttft": ttft_s}, 10, 20,
    )  # fmt: skip


def test_of_an_hour_the_worst_are_kept_in_whatever_order_they_come() -> None:
    some = [request(number, number / 100) for number in range(100)]
    random.Random(3).shuffle(some)
    kept = Worst(NOW_S)
    for one in some:
        kept.take([one], now_s=NOW_S)
    assert [one.latencies["ttft"] for one in kept.of("", "chat", "ttft")] == [n / 100 for n in range(99, 89, -1)]
    assert len(kept.of("", "chat", "ttft")) == MAX_OF_HOUR


def test_one_that_is_sent_again_is_kept_once() -> None:
    kept = Worst(NOW_S)
    kept.take([request(1, 0.5), request(1, 0.5)], now_s=NOW_S)
    kept.take([request(1, 0.5)], now_s=NOW_S)
    assert len(kept.of("", "chat", "ttft")) == 1


def test_each_is_asked_for_by_service_environment_and_what_it_ranks_by() -> None:
    kept = Worst(NOW_S)
    kept.take([request(1, 0.5, failed=True), request(2, 0.7, model="n")], now_s=NOW_S)
    assert [one.model for one in kept.of("", "chat", "ttft")] == ["n", "m"]
    assert [one.trace_id[-1] for one in kept.of("", "chat", FAILED)] == ["1"]
    assert kept.of("eu", "chat", "ttft") == kept.of("", "search", "ttft") == kept.of("", "chat", "tpot") == []


def test_hours_go_and_what_is_too_old_or_of_the_future_is_not_taken() -> None:
    kept = Worst(NOW_S)
    kept.take(
        [request(1, 0.5), request(2, 0.5, at_s=NOW_S - KEPT_S), request(3, 0.5, at_s=NOW_S + HOUR_S)], now_s=NOW_S
    )
    assert [one.trace_id[-1] for one in kept.of("", "chat", "ttft")] == ["1"]
    kept.take([], now_s=NOW_S + KEPT_S + HOUR_S)
    assert kept.of("", "chat", "ttft") == []


def test_beyond_the_limit_the_oldest_hour_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_LISTS", 3)
    kept = Worst(NOW_S)
    kept.take([request(n, 0.5, at_s=NOW_S - (5 - n) * HOUR_S) for n in range(5)], now_s=NOW_S)
    assert sorted(one.trace_id[-1] for one in kept.of("", "chat", "ttft")) == ["2", "3", "4"]
