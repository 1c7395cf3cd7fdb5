"""What can be asked of a GPU through NVML, and what the answers mean: functions, units, bit masks and errors as data.

Takes the plain integers of an answer and gives points under the names of `slo.signals`; knows no library, no thread
and no clock (`gpu` has them). NVML's own numbers stand here as numbers, so that reading them needs no binding; a test
compares each with the binding's constant. Not every GPU answers every question: each is asked, and given up, alone.

PCIe throughput is left out on purpose: NVML measures it while the caller waits, 20 ms a counter.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from sidecar import limits
from sidecar.counting.tally import Attributes
from slo.signals import (
    ERROR_TYPE,
    GPU_ENERGY,
    GPU_ERRORS,
    GPU_INSTANCE,
    GPU_MEMORY_LIMIT,
    GPU_MEMORY_USAGE,
    GPU_MEMORY_UTILIZATION,
    GPU_POWER,
    GPU_POWER_LIMIT,
    GPU_REMAP_FAILED,
    GPU_REMAP_PENDING,
    GPU_REMAPPED_ROWS,
    GPU_TEMPERATURE,
    GPU_THROTTLE,
    GPU_UTILIZATION,
    HW_ID,
    HW_MODEL,
    HW_NAME,
    HW_PARENT,
    REASON,
    Metric,
)
from slo.trouble import APPLICATION_XIDS

Answer = tuple[int, ...]

MEMORY_V2 = 0x02000028  # version 2 of the struct, 40 bytes
CORRECTED, UNCORRECTED, VOLATILE = 0, 1, 0  # kinds of ECC errors; counted since the driver was loaded
CORE_SENSOR = 0
XID_EVENT = 0x8
NO_INSTANCE = 0xFFFFFFFF  # an event of the whole GPU, not of one MIG instance
NOT_AVAILABLE = frozenset((0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF))

# Why clocks are held back. Idle, application clocks and display clocks are nobody's trouble, and are left out.
THROTTLE_REASONS = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
}

ECC_CORRECTED, ECC_UNCORRECTED = "corrected", "uncorrected"
XID, XID_OF_APPLICATION = "xid", "xid_application"
XID_TYPES = (XID, XID_OF_APPLICATION)

Refusal = Literal["unsupported", "lost", "ended", "timeout", "passing"]
TIMEOUT, FUNCTION_NOT_FOUND = 10, 13
_REFUSALS: dict[int, Refusal] = {
    1: "ended",  # uninitialized
    2: "unsupported",  # invalid argument: what some drivers say of a MIG handle
    3: "unsupported",
    4: "unsupported",  # no permission
    9: "ended",  # the driver is not loaded
    TIMEOUT: "timeout",
    12: "ended",  # no library
    FUNCTION_NOT_FOUND: "unsupported",
    15: "lost",  # fell off the bus
    16: "lost",  # a reset is required
    18: "ended",  # the driver was exchanged under the library
    25: "unsupported",  # another version of the struct
    26: "unsupported",  # deprecated and gone
}


def refusal(code: int) -> Refusal:
    """What an error number of NVML means for what was asked; one that may be gone at the next poll is `passing`."""
    return _REFUSALS.get(code, "passing")


def xid_type(code: int) -> str:
    """Whose error an XID is, the hardware's and driver's or a program's own."""
    return XID_OF_APPLICATION if code in APPLICATION_XIDS else XID


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a device; a counter's is the total since whenever its source began."""

    metric: Metric
    value: float
    more: Attributes = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """One function of NVML with what it takes after the device; `fields` of its struct, none if it gives numbers."""

    function: str
    arguments: tuple[int, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Something to know of a device: the ways to ask for it, the best first, and what an answer at a time (ns) says."""

    name: str
    asks: tuple[Ask, ...]
    read: Callable[[Answer, int], tuple[Point, ...]]

    def points(self, answer: Answer, at_ns: int) -> tuple[Point, ...]:
        """What the answer says; nothing when NVML says that it has no value."""
        return () if NOT_AVAILABLE.intersection(answer) else self.read(answer, at_ns)


class ThrottleTime:
    """Whole seconds in which each reason has held one GPU's clocks back, from what polls saw.

    The time since the poll before goes to the reasons that stand at this one; a poll that comes late claims no more
    than the limit, for nobody looked.
    """

    def __init__(self) -> None:
        self._last_ns: int | None = None
        self._held_ns = dict.fromkeys(THROTTLE_REASONS, 0)

    def read(self, answer: Answer, at_ns: int) -> tuple[Point, ...]:
        (reasons,) = answer
        since_ns = 0 if self._last_ns is None else at_ns - self._last_ns
        self._last_ns = at_ns
        for bit in THROTTLE_REASONS:
            if reasons & bit:
                self._held_ns[bit] += min(since_ns, limits.GPU_LATE_NS)
        return tuple(
            Point(GPU_THROTTLE, self._held_ns[bit] // 10**9, ((REASON, reason),))
            for bit, reason in THROTTLE_REASONS.items()
        )


def questions(*, mig: bool) -> tuple[Question, ...]:
    """What to ask of one device, each its own: throttling is counted over time. A MIG device tells its memory only."""
    memory = Question(
        "memory",
        (
            Ask("nvmlDeviceGetMemoryInfo", (MEMORY_V2,), ("total", "used")),
            Ask("nvmlDeviceGetMemoryInfo", (), ("total", "used")),
        ),
        _memory,
    )
    if mig:
        return (memory,)
    throttling = (Ask("nvmlDeviceGetCurrentClocksEventReasons"), Ask("nvmlDeviceGetCurrentClocksThrottleReasons"))
    return (
        Question("utilization", (Ask("nvmlDeviceGetUtilizationRates", (), ("gpu",)),), _scaled(GPU_UTILIZATION, 100)),
        memory,
        Question("power", (Ask("nvmlDeviceGetPowerUsage"),), _scaled(GPU_POWER, 1000)),
        Question("power limit", (Ask("nvmlDeviceGetEnforcedPowerLimit"),), _scaled(GPU_POWER_LIMIT, 1000)),
        Question("energy", (Ask("nvmlDeviceGetTotalEnergyConsumption"),), _energy),
        Question(
            "temperature",
            (Ask("nvmlDeviceGetTemperatureV", (CORE_SENSOR,)), Ask("nvmlDeviceGetTemperature", (CORE_SENSOR,))),
            _scaled(GPU_TEMPERATURE, 1),
        ),
        Question("throttling", throttling, ThrottleTime().read),
        _ecc(ECC_CORRECTED, CORRECTED),
        _ecc(ECC_UNCORRECTED, UNCORRECTED),
        Question("remapped rows", (Ask("nvmlDeviceGetRemappedRows"),), _remapped),
    )


def _scaled(metric: Metric, per_unit: int) -> Callable[[Answer, int], tuple[Point, ...]]:
    """Reads one number that counts `per_unit` to the metric's own unit: percent to a share, mW to W."""
    return lambda answer, _: (Point(metric, answer[0] / per_unit),)


def _memory(answer: Answer, _at_ns: int) -> tuple[Point, ...]:
    total, used = answer
    share = (Point(GPU_MEMORY_UTILIZATION, used / total),) if total else ()
    return (Point(GPU_MEMORY_LIMIT, total), Point(GPU_MEMORY_USAGE, used), *share)


def _energy(answer: Answer, _at_ns: int) -> tuple[Point, ...]:
    (millijoules,) = answer
    return (Point(GPU_ENERGY, millijoules // 1000),)


def _ecc(error_type: str, kind: int) -> Question:
    def read(answer: Answer, _at_ns: int) -> tuple[Point, ...]:
        return (Point(GPU_ERRORS, answer[0], ((ERROR_TYPE, error_type),)),)

    return Question(f"ECC errors {error_type}", (Ask("nvmlDeviceGetTotalEccErrors", (kind, VOLATILE)),), read)


def _remapped(answer: Answer, _at_ns: int) -> tuple[Point, ...]:
    corrected, uncorrected, pending, failed = answer
    return (
        Point(GPU_REMAPPED_ROWS, corrected + uncorrected),
        Point(GPU_REMAP_PENDING, int(pending != 0)),
        Point(GPU_REMAP_FAILED, int(failed != 0)),
    )


def identity(uuid: str, model: str, index: int) -> Attributes:
    """The attributes of a GPU; one that is lost before it told its id goes by its place."""
    name = f"gpu{index}"
    return ((HW_ID, uuid or name), (HW_NAME, name), *(((HW_MODEL, model),) if model else ()))


def mig_identity(gpu: Attributes, uuid: str, place: tuple[int, int]) -> Attributes:
    """The attributes of a MIG device of `gpu`, by its index and its GPU instance."""
    of, (index, instance) = dict(gpu), place
    name = f"{of[HW_NAME]}:mig{index}"
    model = ((HW_MODEL, of[HW_MODEL]),) if HW_MODEL in of else ()
    return ((HW_ID, uuid), (HW_NAME, name), *model, (HW_PARENT, of[HW_ID]), (GPU_INSTANCE, str(instance)))


def visible(wanted: str | None, devices: Iterable[Attributes]) -> frozenset[str]:
    """The ids of the devices that `wanted`, a CUDA_VISIBLE_DEVICES, leaves; None leaves all.

    Its entries are ids or their beginnings, or indexes in NVML's order (CUDA's own under CUDA_DEVICE_ORDER=PCI_BUS_ID).
    A MIG device brings its GPU along, whose power and temperature are its own, and a GPU its MIG devices.
    """
    listed = [dict(attributes) for attributes in devices]
    if wanted is None:
        return frozenset(device[HW_ID] for device in listed)
    entries = [entry.strip() for entry in wanted.split(",")]
    named = {
        device[HW_ID]
        for device in listed
        if any(
            device[HW_NAME] == f"gpu{entry}" or (len(entry) > 4 and device[HW_ID].startswith(entry))
            for entry in entries
        )
    }
    parents = {device[HW_PARENT] for device in listed if device[HW_ID] in named and HW_PARENT in device}
    children = {device[HW_ID] for device in listed if device.get(HW_PARENT) in named}
    return frozenset(named | parents | children)
