"""What counters and gauges did lately: whose they are, what of them is kept, and for how long."""

from collections.abc import Mapping

import pytest

from collector.values.deltas import CounterRow
from collector.windowing import recent
from collector.windowing.recent import ENDED, KEPT_S, SWEEP_S, SYNTHETIC, Part, Place, Recent
from slo import signals
from slo.signals import LABELS, Metric
from slo.trouble import (
    GPU_ERROR_WINDOW_S,
    KV_WINDOW_S,
    QUEUE_WINDOW_S,
    SHARE_LONG_S,
    SYNTHETIC_LOOK_S,
    THROTTLE_WINDOW_S,
    TROUBLES,
)
from tests.collector import scene
from tests.collector.scene import NOW_S, TICK_S

CHAT = ("", "chat")
WHOLE, I1 = (CHAT, ""), (CHAT, "i1")
GPU = {signals.HW_ID: "GPU-1", signals.HW_NAME: "H200"}


def counted(
    metric: Metric, value: float, said: Mapping[str, str] | None = None, *, at_s: int = NOW_S, model: str = "m"
) -> CounterRow:
    own = tuple(sorted((LABELS[key], text) for key, text in (said or {}).items()))
    return CounterRow(*CHAT, model, "i1", "proxy", metric.sql, own, at_s - at_s % TICK_S, value)


def of(*rows: CounterRow) -> Recent:
    one = Recent(now_s=NOW_S)
    one.add(rows, ())
    return one


def sums(one: Recent, name: str, place: Place) -> dict[Part, float]:
    return {part: trail.sum(KEPT_S, at_s=NOW_S) for part, trail in one.trails(name, place).items()}


def test_requests_are_those_of_a_service_by_what_became_of_them_and_those_of_an_instance() -> None:
    one = of(
        counted(signals.REQUESTS, 5, {signals.OUTCOME: "ok"}),
        counted(signals.REQUESTS, 2, {signals.OUTCOME: "no_output", signals.CLASS: "batch"}),
        counted(signals.REQUESTS, 1, {signals.OUTCOME: "no_output"}, model="n"),
        counted(signals.REQUESTS, 70, {signals.OUTCOME: "ok", signals.CLASS: signals.SYNTHETIC_CLASS}),
        counted(signals.ABANDONED, 3),
        counted(signals.BROKEN_STREAMS, 4),
    )
    assert sums(one, signals.REQUESTS.sql, WHOLE) == {(): 8, ("no_output",): 3}
    assert sums(one, ENDED, I1) == {(): 78}
    assert sums(one, SYNTHETIC, I1) == {(): 70}
    assert sums(one, signals.ABANDONED.sql, WHOLE) == {(): 3}
    assert sums(one, signals.BROKEN_STREAMS.sql, WHOLE) == {(): 4}


def test_a_gpu_is_kept_by_what_counts_alone_and_known_by_its_name() -> None:
    one = of(
        counted(signals.GPU_THROTTLE, 5, GPU | {signals.REASON: "hw_thermal"}),
        counted(signals.GPU_THROTTLE, 9, GPU | {signals.REASON: "sw_power"}),
        counted(signals.GPU_ERRORS, 1, GPU | {signals.ERROR_TYPE: "xid"}),
        counted(signals.GPU_ERRORS, 1, GPU | {signals.ERROR_TYPE: "uncorrected"}),
        counted(signals.GPU_ERRORS, 7, GPU | {signals.ERROR_TYPE: "corrected"}),
    )
    assert sums(one, signals.GPU_THROTTLE.sql, I1) == {("GPU-1", "hw_thermal"): 5}
    assert sums(one, signals.GPU_ERRORS.sql, I1) == {("GPU-1",): 2}
    assert one.device_name(I1, "GPU-1") == "H200"
    assert one.device_name(I1, "GPU-2") == ""


def test_gauges_are_kept_by_model_and_rank() -> None:
    one = Recent(now_s=NOW_S)
    one.add(
        (),
        (
            scene.gauge(signals.KV_OCCUPANCY.sql, 0.9, at_s=NOW_S, attribute="0", model="m"),
            scene.gauge(signals.ENGINE_WAITING.sql, 0, at_s=NOW_S, model="m"),
            scene.gauge(signals.GPU_LOST.sql, 1, at_s=NOW_S, attribute="GPU-1"),
            scene.gauge(signals.IN_FLIGHT.sql, 9, at_s=NOW_S, model="m"),
            scene.gauge(signals.OLDEST_AGE.sql, 7, at_s=NOW_S, model="m"),
            scene.gauge(signals.TTFT_PREDICTED.sql, 2, at_s=NOW_S),
        ),
    )
    assert sums(one, signals.KV_OCCUPANCY.sql, I1) == {("m", "0"): 0.9}
    assert sums(one, signals.ENGINE_WAITING.sql, I1) == {("m", ""): 0}
    assert sums(one, signals.OLDEST_AGE.sql, I1) == {("m", ""): 7}
    assert sums(one, signals.TTFT_PREDICTED.sql, I1) == {("", ""): 2}
    assert sums(one, signals.GPU_LOST.sql, I1) == {("GPU-1",): 1}
    assert sums(one, signals.IN_FLIGHT.sql, I1) == {}


def test_what_is_quiet_does_not_move() -> None:
    one = of(counted(signals.ENGINE_PREEMPTIONS, 0), counted(signals.REQUESTS, 0, {signals.OUTCOME: "ok"}))
    one.add(
        (), (scene.gauge(signals.ENGINE_WAITING.sql, 0, at_s=NOW_S), scene.gauge(signals.GPU_LOST.sql, 0, at_s=NOW_S))
    )
    names = (signals.ENGINE_PREEMPTIONS.sql, signals.REQUESTS.sql, signals.ENGINE_WAITING.sql, signals.GPU_LOST.sql)
    assert {name: list(one.moving(name)) for name in names} == {name: [] for name in names}
    one.add((counted(signals.ENGINE_PREEMPTIONS, 1),), ())
    assert list(one.moving(signals.ENGINE_PREEMPTIONS.sql)) == [I1]


def test_a_gauge_that_was_lost_is_found_again() -> None:
    one = Recent(now_s=NOW_S)
    for at_s, value in ((NOW_S - 10, 1), (NOW_S, 0)):
        one.add((), (scene.gauge(signals.GPU_LOST.sql, value, at_s=at_s, attribute="GPU-1"),))
    (trail,) = one.trails(signals.GPU_LOST.sql, I1).values()
    assert trail.steps(60, at_s=NOW_S)[1].tolist() == [1, 0]


def test_the_past_beyond_what_is_asked_for_is_not_taken() -> None:
    one = of(counted(signals.ENGINE_PREEMPTIONS, 1, at_s=NOW_S - KEPT_S))
    one.add((), (scene.gauge(signals.KV_OCCUPANCY.sql, 1, at_s=NOW_S - KEPT_S),))
    assert not one.moving(signals.ENGINE_PREEMPTIONS.sql)
    assert not one.trails(signals.KV_OCCUPANCY.sql, I1)


def test_what_is_silent_is_swept_away() -> None:
    one = of(counted(signals.ENGINE_PREEMPTIONS, 1), counted(signals.REQUESTS, 0, {signals.OUTCOME: "ok"}))
    one.advance(NOW_S + KEPT_S - 1)
    assert one.moving(signals.ENGINE_PREEMPTIONS.sql)
    one.advance(NOW_S + KEPT_S + SWEEP_S)
    assert not one.moving(signals.ENGINE_PREEMPTIONS.sql)
    assert not one.trails(ENDED, I1)


def test_what_goes_on_is_kept_no_longer_than_it_is_asked_for() -> None:
    one = Recent(now_s=NOW_S)
    for at_s in range(NOW_S, NOW_S + 3 * KEPT_S, TICK_S):
        one.add((counted(signals.ENGINE_PREEMPTIONS, 1, at_s=at_s),), ())
        one.advance(at_s)
    (trail,) = one.trails(signals.ENGINE_PREEMPTIONS.sql, I1).values()
    held = trail.sum(3 * KEPT_S, at_s=NOW_S + 3 * KEPT_S)
    assert KEPT_S // TICK_S <= held <= (KEPT_S + SWEEP_S) // TICK_S


def test_a_limit_on_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MAX_TRAILS", 2)
    one = of(counted(signals.ABANDONED, 1), counted(signals.BROKEN_STREAMS, 1), counted(signals.ENGINE_PREEMPTIONS, 1))
    one.add((counted(signals.ABANDONED, 1), counted(signals.ENGINE_PREEMPTIONS, 1)), ())
    assert sums(one, signals.ABANDONED.sql, WHOLE) == {(): 2}
    assert sums(one, signals.ENGINE_PREEMPTIONS.sql, I1) == {}
    one.advance(NOW_S + KEPT_S + SWEEP_S)
    one.add((counted(signals.ENGINE_PREEMPTIONS, 1, at_s=NOW_S + KEPT_S + SWEEP_S),), ())
    assert one.trails(signals.ENGINE_PREEMPTIONS.sql, I1)


def test_names_of_gpus_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MAX_TRAILS", 2)
    one = of(*(counted(signals.GPU_ERRORS, 0, {signals.HW_ID: f"GPU-{n}", signals.HW_NAME: "H"}) for n in range(3)))
    one.advance(NOW_S + SWEEP_S)
    assert one.device_name(I1, "GPU-1") == ""


def test_every_window_and_what_its_alert_looks_back_on_is_kept() -> None:
    back_s = max(max(trouble.for_s, trouble.keep_s) for trouble in TROUBLES.values()) + 60
    saturation_s = max(KV_WINDOW_S, QUEUE_WINDOW_S) + SYNTHETIC_LOOK_S
    longest_s = max(SHARE_LONG_S + 60, saturation_s + back_s, THROTTLE_WINDOW_S + back_s)
    assert max(longest_s, GPU_ERROR_WINDOW_S) <= KEPT_S
