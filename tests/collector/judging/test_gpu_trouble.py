"""GPUs that are throttled, faulty or lost: found at one, told of the service."""

from collections.abc import Iterable, Mapping

import pytest

from collector.judging import gpu_trouble
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.values.deltas import CounterRow, Deltas, GaugeRow
from slo import signals
from slo.signals import LABELS, Metric
from slo.trouble import GPU_FAULTY, GPU_THROTTLED, LOST_GPU
from tests.collector import scene
from tests.collector.scene import NOW_S, TICK_S


def counted(
    metric: Metric, value: float, said: Mapping[str, str], *, for_s: int, device: str = "GPU-1"
) -> list[CounterRow]:
    """So much in each tick of the last seconds."""
    of = {signals.HW_ID: device, signals.HW_NAME: "H200", **said}
    own = tuple(sorted((LABELS[key], text) for key, text in of.items()))
    moments = range(NOW_S - for_s, NOW_S, TICK_S)
    return [CounterRow("", "chat", "", "i1", "proxy", metric.sql, own, at_s, value) for at_s in moments]


def held(seconds: float, reason: str, *, for_s: int, device: str = "GPU-1") -> list[CounterRow]:
    return counted(signals.GPU_THROTTLE, seconds, {signals.REASON: reason}, for_s=for_s, device=device)


def flag(metric: Metric, *values: float, device: str = "GPU-1") -> list[GaugeRow]:
    """The values of the last ticks."""
    moments = range(NOW_S - TICK_S * (len(values) - 1), NOW_S + 1, TICK_S)
    return [
        scene.gauge(metric.sql, value, at_s=at_s, attribute=device) for at_s, value in zip(moments, values, strict=True)
    ]


def told(*rows: Iterable[GaugeRow | CounterRow], alerts: Mapping[AlertKey, Alert] | None = None) -> list[Wanted]:
    windows, flat = scene.windows(), [row for some in rows for row in some]
    windows.add(
        Deltas(
            gauges=tuple(row for row in flat if isinstance(row, GaugeRow)),
            counters=tuple(row for row in flat if isinstance(row, CounterRow)),
        )
    )
    return list(gpu_trouble.wanted(windows, alerts=alerts or {}, now_s=NOW_S))


def states(found: Iterable[Wanted]) -> set[tuple[str, str]]:
    return {(one.key.name, one.state) for one in found}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([held(2, "hw_thermal", for_s=900)], {(GPU_THROTTLED, "firing")}),
        ([held(2, "hw_thermal", for_s=500)], {(GPU_THROTTLED, "pending")}),
        ([held(1, "hw_thermal", for_s=900)], set()),
        ([held(9, "sw_power", for_s=900)], set()),
        ([held(0.9, "hw_thermal", for_s=900), held(0.9, "sw_thermal", for_s=900)], set()),
        ([held(0.9, "hw_thermal", for_s=900), held(0.9, "hw_thermal", for_s=900, device="GPU-2")], set()),
    ],
)
def test_throttling_is_told_by_one_reason_of_one_gpu_once_it_has_lasted(
    rows: list[list[CounterRow]], expected: set[tuple[str, str]]
) -> None:
    assert states(told(*rows)) == expected


@pytest.mark.parametrize(("kind", "rings"), [("xid", True), ("uncorrected", True), ("corrected", False), ("x", False)])
def test_one_error_that_counts_is_a_fault(kind: str, rings: bool) -> None:
    found = told(counted(signals.GPU_ERRORS, 1, {signals.ERROR_TYPE: kind}, for_s=TICK_S))
    assert states(found) == ({(GPU_FAULTY, "firing")} if rings else set())


@pytest.mark.parametrize("metric", [signals.GPU_REMAP_FAILED, signals.GPU_REMAP_PENDING])
def test_so_is_memory_that_needs_a_hand(metric: Metric) -> None:
    assert states(told(flag(metric, 0, 1, 1))) == {(GPU_FAULTY, "firing")}
    assert told(flag(metric, 1, 1, 0)) == []


def test_a_lost_gpu_is_a_page_after_a_minute() -> None:
    (one,) = told(flag(signals.GPU_LOST, *[1] * 7))
    assert (one.key, one.state) == (AlertKey(LOST_GPU, "", "chat"), "firing")
    assert dict(one.labels)["notify"] == "page"
    assert states(told(flag(signals.GPU_LOST, *[1] * 6))) == {(LOST_GPU, "pending")}
    assert told(flag(signals.GPU_LOST, *[1] * 7, 0)) == []


def test_the_gpus_are_named_in_words() -> None:
    errors = [
        counted(signals.GPU_ERRORS, 2, {signals.ERROR_TYPE: "xid"}, for_s=TICK_S, device=device)
        for device in ("GPU-2", "GPU-1")
    ]
    (one,) = told(*errors, flag(signals.GPU_REMAP_PENDING, 1, device="GPU-3"))
    description = dict(one.annotations)["description"]
    assert "H200 GPU-1 at instance i1 (errors: 2), H200 GPU-2 at instance i1 (errors: 2)" in description
    assert "GPU GPU-3 at instance i1 (a row of memory waits for a reset)" in description
    assert {"hw_id", "instance"}.isdisjoint(dict(one.labels))


def test_one_that_nobody_hears_of_any_more_is_not_known_to_be_lost() -> None:
    windows = scene.windows()
    windows.add(Deltas(gauges=tuple(flag(signals.GPU_LOST, *[1] * 7))))
    windows.advance(NOW_S + 70)
    assert list(gpu_trouble.wanted(windows, alerts={}, now_s=windows.now_s)) == []
