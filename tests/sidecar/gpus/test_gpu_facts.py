import inspect

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar import limits
from sidecar.gpus import gpu_facts as facts
from sidecar.gpus.gpu_facts import Answer, Point, Question, ThrottleTime, identity, mig_identity, questions, visible
from slo.signals import (
    ERROR_TYPE,
    GPU_ENERGY,
    GPU_ERRORS,
    GPU_INSTANCE,
    GPU_LAST_XID,
    GPU_LOST,
    GPU_MEMORY_LIMIT,
    GPU_MEMORY_USAGE,
    GPU_MEMORY_UTILIZATION,
    GPU_METRICS,
    GPU_POWER,
    GPU_POWER_LIMIT,
    GPU_REMAP_FAILED,
    GPU_REMAP_PENDING,
    GPU_REMAPPED_ROWS,
    GPU_TEMPERATURE,
    GPU_THROTTLE,
    GPU_UTILIZATION,
    HARDWARE,
    HW_ID,
    HW_MODEL,
    HW_NAME,
    HW_PARENT,
    REASON,
)

SECOND = 10**9


def question(name: str) -> Question:
    (found,) = [q for q in questions(mig=False) if q.name == name]
    return found


def values(points: tuple[Point, ...]) -> dict[str, float]:
    return {point.metric.name: point.value for point in points}


def test_numbers_of_nvml_are_those_of_the_binding() -> None:
    assert pynvml.nvmlMemory_v2 == facts.MEMORY_V2
    assert pynvml.nvmlEventTypeXidCriticalError == facts.XID_EVENT
    assert facts.NO_INSTANCE == pynvml.NVML_GPU_INSTANCE_ID_ANY == pynvml.NVML_COMPUTE_INSTANCE_ID_ANY
    assert facts.CORE_SENSOR == pynvml.NVML_TEMPERATURE_GPU
    assert (facts.CORRECTED, facts.UNCORRECTED, facts.VOLATILE) == (
        pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
    )
    reasons = {
        pynvml.nvmlClocksEventReasonSwPowerCap: "sw_power_cap",
        pynvml.nvmlClocksEventReasonHwSlowdown: "hw_slowdown",
        pynvml.nvmlClocksEventReasonSyncBoost: "sync_boost",
        pynvml.nvmlClocksEventReasonSwThermalSlowdown: "sw_thermal",
        pynvml.nvmlClocksEventReasonHwThermalSlowdown: "hw_thermal",
        pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "hw_power_brake",
    }
    assert reasons == facts.THROTTLE_REASONS


@pytest.mark.parametrize("mig", [False, True])
def test_every_question_can_be_put_to_the_binding(mig: bool) -> None:
    for asked in questions(mig=mig):
        for ask in asked.asks:
            inspect.signature(getattr(pynvml, ask.function)).bind("handle", *ask.arguments)


def test_a_call_that_makes_its_caller_wait_is_not_among_them() -> None:
    asked = {ask.function for q in questions(mig=False) for ask in q.asks}
    assert "nvmlDeviceGetPcieThroughput" not in asked


REFUSALS = {
    "unsupported": ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "INVALID_ARGUMENT", "NO_PERMISSION", "DEPRECATED"),
    "lost": ("GPU_IS_LOST", "RESET_REQUIRED"),
    "ended": ("UNINITIALIZED", "DRIVER_NOT_LOADED", "LIBRARY_NOT_FOUND", "LIB_RM_VERSION_MISMATCH"),
    "timeout": ("TIMEOUT",),
    "passing": ("UNKNOWN", "IN_USE", "NOT_READY", "NO_DATA", "MEMORY", "IRQ_ISSUE", "NOT_FOUND"),
}


@pytest.mark.parametrize(("meaning", "name"), [(m, name) for m, names in REFUSALS.items() for name in names])
def test_a_refusal_is_read_for_what_it_means(meaning: str, name: str) -> None:
    assert facts.refusal(getattr(pynvml, f"NVML_ERROR_{name}")) == meaning


ANSWERS: dict[str, tuple[str, Answer, dict[str, float]]] = {
    "percent is a share": ("utilization", (42,), {GPU_UTILIZATION.name: 0.42}),
    "bytes stay bytes, and have a share": (
        "memory",
        (80, 20),
        {GPU_MEMORY_LIMIT.name: 80, GPU_MEMORY_USAGE.name: 20, GPU_MEMORY_UTILIZATION.name: 0.25},
    ),
    "no memory has no share": ("memory", (0, 0), {GPU_MEMORY_LIMIT.name: 0, GPU_MEMORY_USAGE.name: 0}),
    "milliwatts are watts": ("power", (350_500,), {GPU_POWER.name: 350.5}),
    "and so is the limit": ("power limit", (700_000,), {GPU_POWER_LIMIT.name: 700.0}),
    "millijoules are whole joules": ("energy", (1_999,), {GPU_ENERGY.name: 1}),
    "degrees are degrees": ("temperature", (61,), {GPU_TEMPERATURE.name: 61}),
    "rows of both kinds are rows": (
        "remapped rows",
        (3, 2, 1, 0),
        {GPU_REMAPPED_ROWS.name: 5, GPU_REMAP_PENDING.name: 1, GPU_REMAP_FAILED.name: 0},
    ),
    "a failure is told": (
        "remapped rows",
        (0, 0, 0, 1),
        {GPU_REMAPPED_ROWS.name: 0, GPU_REMAP_PENDING.name: 0, GPU_REMAP_FAILED.name: 1},
    ),
    "no value is no value": ("power", (0xFFFFFFFF,), {}),
    "nor in 64 bits": ("energy", (0xFFFFFFFFFFFFFFFF,), {}),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_is_points_in_units_of_the_table(case: str) -> None:
    name, answer, points = ANSWERS[case]
    assert values(question(name).points(answer, 0)) == points


def test_errors_of_both_kinds_have_a_series_each() -> None:
    corrected, uncorrected = question("ECC errors corrected"), question("ECC errors uncorrected")
    assert corrected.points((7,), 0) == (Point(GPU_ERRORS, 7, ((ERROR_TYPE, "corrected"),)),)
    assert uncorrected.points((1,), 0) == (Point(GPU_ERRORS, 1, ((ERROR_TYPE, "uncorrected"),)),)
    assert corrected.asks[0].arguments != uncorrected.asks[0].arguments


def test_xids_of_programs_are_told_from_those_of_the_hardware() -> None:
    assert [facts.xid_type(code) for code in (79, 48, 94, 13, 31, 109)] == ["xid"] * 3 + ["xid_application"] * 3
    assert {facts.xid_type(code) for code in range(200)} == set(facts.XID_TYPES)


def held(throttle: ThrottleTime, reasons: int, at_s: float) -> dict[str, float]:
    """Seconds by reason, without zeros."""
    points = throttle.read((reasons,), int(at_s * SECOND))
    assert all(point.metric is GPU_THROTTLE for point in points)
    assert len(points) == len(facts.THROTTLE_REASONS)
    return {dict(point.more)[REASON]: point.value for point in points if point.value}


def test_throttling_is_counted_in_whole_seconds_by_reason() -> None:
    throttle = ThrottleTime()
    assert held(throttle, 0x40, 100) == {}
    assert held(throttle, 0x40, 101.5) == {"hw_thermal": 1}
    assert held(throttle, 0x40 | 0x08, 102.5) == {"hw_thermal": 2, "hw_slowdown": 1}
    assert held(throttle, 0x01 | 0x02 | 0x100, 103.5) == {"hw_thermal": 2, "hw_slowdown": 1}
    assert held(throttle, 0x40, 104) == {"hw_thermal": 3, "hw_slowdown": 1}


def test_a_poll_that_comes_late_claims_no_time_that_nobody_saw() -> None:
    throttle = ThrottleTime()
    held(throttle, 0x04, 0)
    assert held(throttle, 0x04, 3600) == {"sw_power_cap": limits.GPU_LATE_NS / SECOND}


@given(st.lists(st.tuples(st.integers(0, 0x1FF), st.integers(0, 5 * SECOND)), max_size=30))
def test_throttled_time_never_falls_and_never_exceeds_the_time(polls: list[tuple[int, int]]) -> None:
    throttle, at_ns, before = ThrottleTime(), 0, [0.0] * len(facts.THROTTLE_REASONS)
    for reasons, later_ns in polls:
        at_ns += later_ns
        now = [point.value for point in throttle.read((reasons,), at_ns)]
        assert all(b <= n <= at_ns / SECOND for b, n in zip(before, now, strict=True))
        before = now


def test_two_gpus_share_no_throttled_time() -> None:
    first, second = question("throttling"), question("throttling")
    first.points((0x40,), 0)
    first.points((0x40,), SECOND)
    assert all(point.value == 0 for point in second.points((0x40,), SECOND))


def test_every_gpu_metric_of_the_table_comes_from_somewhere() -> None:
    sizes = {"memory": (2, 1), "remapped rows": (0, 0, 0, 0)}
    points = [p for q in questions(mig=False) for p in q.points(sizes.get(q.name, (0,)), 0)]
    assert {p.metric.name for p in points} | {GPU_LOST.name, GPU_LAST_XID.name} == {m.name for m in GPU_METRICS}
    for point in points:
        assert (*HARDWARE, *dict(point.more)) == point.metric.attributes


GPU0, GPU1 = identity("GPU-aaaa-0", "H200", 0), identity("GPU-bbbb-1", "H200", 1)
MIG = mig_identity(GPU1, "MIG-cccc", (0, 5))
OTHER_MIG = mig_identity(GPU1, "MIG-dddd", (1, 6))


def test_a_device_is_known_by_its_id_and_a_mig_device_by_its_gpu_too() -> None:
    assert dict(GPU0) == {HW_ID: "GPU-aaaa-0", HW_NAME: "gpu0", HW_MODEL: "H200"}
    assert dict(MIG) == {
        HW_ID: "MIG-cccc",
        HW_NAME: "gpu1:mig0",
        HW_MODEL: "H200",
        HW_PARENT: "GPU-bbbb-1",
        GPU_INSTANCE: "5",
    }


def test_a_gpu_that_cannot_say_who_it_is_goes_by_its_place() -> None:
    assert dict(identity("", "", 3)) == {HW_ID: "gpu3", HW_NAME: "gpu3"}
    assert HW_MODEL not in dict(mig_identity(identity("GPU-x", "", 0), "MIG-y", (0, 1)))


VISIBLE = {
    "unset leaves all": (None, "0 1 m o"),
    "an index": ("1", "1 m o"),
    "indexes, with spaces": ("0, 1", "0 1 m o"),
    "an id": ("GPU-aaaa-0", "0"),
    "the beginning of an id": ("GPU-bb", "1 m o"),
    "a MIG device brings its GPU": ("MIG-cccc", "1 m"),
    "empty leaves none": ("", ""),
    "minus one leaves none": ("-1", ""),
    "an unknown id leaves none": ("GPU-zzzz", ""),
    "a mere prefix of all ids is no id": ("GPU-", ""),
}


@pytest.mark.parametrize("case", VISIBLE)
def test_devices_are_chosen_as_cuda_chooses_them(case: str) -> None:
    wanted, names = VISIBLE[case]
    by_name = {"0": GPU0, "1": GPU1, "m": MIG, "o": OTHER_MIG}
    assert visible(wanted, by_name.values()) == {dict(by_name[name])[HW_ID] for name in names.split()}
