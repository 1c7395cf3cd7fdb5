"""A driver library made of C callbacks, where the real binding looks for the real one.

`pynvml` opens `libnvidia-ml.so.1` and calls C functions by name, with pointers to write to. `Driver` is such a library:
each function is a ctypes callback over a described machine, so that everything of ours and of the binding runs as with
a GPU: handles, structs, versions, error numbers, functions that a driver lacks. Run as a module it is a sidecar on
that machine.
"""

import ctypes
import queue
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_char, c_int, c_uint, c_ulonglong, c_void_p
from dataclasses import dataclass, field
from typing import Any

from sidecar.gpus.gpu import LIBRARY

OK, INVALID, NOT_SUPPORTED, NOT_FOUND, NO_DRIVER, TIMEOUT, LOST, OTHER_VERSION = 0, 2, 3, 6, 9, 10, 15, 25
MEMORY_V2 = 0x02000028
TEMPERATURE_V1 = 0x0100000C
WHOLE = 0xFFFFFFFF
GIB = 1 << 30


@dataclass
class Mig:
    """A MIG device: its memory is its own, all else it refuses as invalid."""

    uuid: str
    instance: int
    compute: int = 0
    total: int = 10 * GIB
    used: int = GIB


@dataclass
class Gpu:
    """One GPU and what it says; `answers` overrides a function's status by its name."""

    uuid: str = "GPU-aaaa"
    name: str = "NVIDIA H200"
    utilization: int = 42
    total: int = 140 * GIB
    used: int = 35 * GIB
    power_mw: int = 350_500
    limit_mw: int = 700_000
    energy_mj: int = 1_234_567
    celsius: int = 61
    reasons: int = 0x1
    ecc: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})
    rows: tuple[int, int, int, int] = (0, 0, 0, 0)
    migs: list[Mig] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)


class _EventData(ctypes.Structure):
    _fields_ = [
        ("device", c_void_p),
        ("type", c_ulonglong),
        ("data", c_ulonglong),
        ("instance", c_uint),
        ("compute", c_uint),
    ]


class _MemoryV1(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class _MemoryV2(ctypes.Structure):
    _fields_ = [("version", c_uint), *((name, c_ulonglong) for name in ("total", "reserved", "free", "used"))]


class _Temperature(ctypes.Structure):
    _fields_ = [("version", c_uint), ("sensor", c_uint), ("celsius", c_int)]


class Driver:
    """The library. `missing` are functions that this driver does not have; `status` is what opening it gives."""

    def __init__(self, *gpus: Gpu, missing: tuple[str, ...] = (), status: int = OK) -> None:
        self.gpus, self.missing, self.status = list(gpus), set(missing), status
        self.open = self.inits = self.sets = 0
        self.calls: list[str] = []
        self.registered: list[int] = []
        self.hangs: Callable[[], None] | None = None
        self._xids: queue.Queue[tuple[int, int, int, int]] = queue.Queue()
        self._functions = self._library()

    def __getattr__(self, name: str) -> Any:
        functions = self.__dict__.get("_functions", {})
        if name in self.__dict__.get("missing", ()) or name not in functions:
            raise AttributeError(name)
        return functions[name]

    def xid(self, code: int, *, gpu: int = 0, instance: int = WHOLE, compute: int = WHOLE) -> None:
        """An XID error happens."""
        self._xids.put((self.handle(gpu), code, instance, compute))

    # A handle is an address that nobody follows: the GPU's number in thousands, and a MIG device's place on top.

    @staticmethod
    def handle(gpu: int, mig: int = -1) -> int:
        return (gpu + 1) * 0x1000 + mig + 1

    def _at(self, handle: int) -> tuple[Gpu, Mig | None]:
        gpu = self.gpus[handle // 0x1000 - 1]
        return gpu, gpu.migs[handle % 0x1000 - 1] if handle % 0x1000 else None

    def _ask(self, name: str, handle: int, write: Callable[[Gpu], int | None], *, mig: bool = False) -> int:
        """A question to a GPU: its status, and what it writes when it answers."""
        self.calls.append(name)
        if self.hangs is not None:
            self.hangs()
        gpu, of_mig = self._at(handle)
        status = gpu.answers.get(name, OK)
        if status == OK and of_mig is not None and not mig:
            status = INVALID
        if status != OK:
            return status
        return write(gpu) or OK

    def _library(self) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def c(*types: Any) -> Callable[[Callable[..., int]], Callable[..., int]]:
            def add(function: Callable[..., int]) -> Callable[..., int]:
                callback = ctypes.CFUNCTYPE(c_int, *types)(function)
                # C takes a pointer to whatever; only the callback's own side knows to what.
                callback.argtypes = [kind if kind in (c_uint, c_ulonglong) else c_void_p for kind in types]
                found[function.__name__] = callback
                return function

            return add

        self._life(c)
        self._devices(c)
        self._numbers(c)
        self._structs(c)
        self._events(c)
        return found

    def _life(self, c: Any) -> None:
        @c(c_uint)
        def nvmlInitWithFlags(_flags: int) -> int:  # noqa: N802
            if self.status == OK:
                self.open += 1
                self.inits += 1
            return self.status

        @c()
        def nvmlShutdown() -> int:  # noqa: N802
            self.open -= 1
            return OK

        @c(POINTER(c_char), c_uint)
        def nvmlSystemGetDriverVersion(out: Any, size: int) -> int:  # noqa: N802
            return _text(out, size, "570.86.15")

    def _devices(self, c: Any) -> None:
        @c(POINTER(c_uint))
        def nvmlDeviceGetCount_v2(out: Any) -> int:  # noqa: N802
            out[0] = len(self.gpus)
            return OK

        @c(c_uint, POINTER(c_void_p))
        def nvmlDeviceGetHandleByIndex_v2(index: int, out: Any) -> int:  # noqa: N802
            out[0] = self.handle(index)
            return self.gpus[index].answers.get("nvmlDeviceGetHandleByIndex_v2", OK)

        @c(c_void_p, POINTER(c_char), c_uint)
        def nvmlDeviceGetUUID(handle: int, out: Any, size: int) -> int:  # noqa: N802
            gpu, mig = self._at(handle)
            return gpu.answers.get("nvmlDeviceGetUUID", OK) or _text(out, size, mig.uuid if mig else gpu.uuid)

        @c(c_void_p, POINTER(c_char), c_uint)
        def nvmlDeviceGetName(handle: int, out: Any, size: int) -> int:  # noqa: N802
            return _text(out, size, self._at(handle)[0].name)

        @c(c_void_p, POINTER(c_uint))
        def nvmlDeviceGetMaxMigDeviceCount(handle: int, out: Any) -> int:  # noqa: N802
            out[0] = 7 if self._at(handle)[0].migs else 0
            return OK

        @c(c_void_p, c_uint, POINTER(c_void_p))
        def nvmlDeviceGetMigDeviceHandleByIndex(handle: int, index: int, out: Any) -> int:  # noqa: N802
            if index >= len(self._at(handle)[0].migs):
                return NOT_FOUND
            out[0] = handle + index + 1
            return OK

        @c(c_void_p, POINTER(c_uint))
        def nvmlDeviceGetGpuInstanceId(handle: int, out: Any) -> int:  # noqa: N802
            mig = self._at(handle)[1]
            assert mig is not None
            out[0] = mig.instance
            return OK

        @c(c_void_p, POINTER(c_uint))
        def nvmlDeviceGetComputeInstanceId(handle: int, out: Any) -> int:  # noqa: N802
            mig = self._at(handle)[1]
            assert mig is not None
            out[0] = mig.compute
            return OK

    def _numbers(self, c: Any) -> None:
        """Questions whose answer is one number, by the field of `Gpu` that it is."""
        for name, of, kind in (
            ("nvmlDeviceGetPowerUsage", "power_mw", c_uint),
            ("nvmlDeviceGetEnforcedPowerLimit", "limit_mw", c_uint),
            ("nvmlDeviceGetTotalEnergyConsumption", "energy_mj", c_ulonglong),
            ("nvmlDeviceGetCurrentClocksEventReasons", "reasons", c_ulonglong),
            ("nvmlDeviceGetCurrentClocksThrottleReasons", "reasons", c_ulonglong),
        ):

            def number(handle: int, out: Any, name: str = name, of: str = of) -> int:
                return self._ask(name, handle, lambda gpu: out.__setitem__(0, getattr(gpu, of)))

            number.__name__ = name
            c(c_void_p, POINTER(kind))(number)

        @c(c_void_p, c_uint, POINTER(c_uint))
        def nvmlDeviceGetTemperature(handle: int, _sensor: int, out: Any) -> int:  # noqa: N802
            return self._ask("nvmlDeviceGetTemperature", handle, lambda gpu: out.__setitem__(0, gpu.celsius))

        @c(c_void_p, c_uint, c_uint, POINTER(c_ulonglong))
        def nvmlDeviceGetTotalEccErrors(handle: int, kind: int, counter: int, out: Any) -> int:  # noqa: N802
            assert counter == 0
            return self._ask("nvmlDeviceGetTotalEccErrors", handle, lambda gpu: out.__setitem__(0, gpu.ecc[kind]))

        @c(c_void_p, *[POINTER(c_uint)] * 4)
        def nvmlDeviceGetRemappedRows(handle: int, *outs: Any) -> int:  # noqa: N802
            def write(gpu: Gpu) -> None:
                for out, value in zip(outs, gpu.rows, strict=True):
                    out[0] = value

            return self._ask("nvmlDeviceGetRemappedRows", handle, write)

    def _structs(self, c: Any) -> None:
        @c(c_void_p, POINTER(c_uint))
        def nvmlDeviceGetUtilizationRates(handle: int, out: Any) -> int:  # noqa: N802
            def write(gpu: Gpu) -> None:
                out[0], out[1] = gpu.utilization, 7

            return self._ask("nvmlDeviceGetUtilizationRates", handle, write)

        @c(c_void_p, POINTER(_Temperature))
        def nvmlDeviceGetTemperatureV(handle: int, out: Any) -> int:  # noqa: N802
            def write(gpu: Gpu) -> int | None:
                if out[0].version != TEMPERATURE_V1 or out[0].sensor != 0:
                    return OTHER_VERSION
                out[0].celsius = gpu.celsius
                return OK

            return self._ask("nvmlDeviceGetTemperatureV", handle, write)

        def memory(name: str, handle: int, out: Any) -> int:
            def write(gpu: Gpu) -> None:
                of = self._at(handle)[1] or gpu
                out[0].total, out[0].used, out[0].free = of.total, of.used, of.total - of.used

            return self._ask(name, handle, write, mig=True)

        @c(c_void_p, POINTER(_MemoryV1))
        def nvmlDeviceGetMemoryInfo(handle: int, out: Any) -> int:  # noqa: N802
            return memory("nvmlDeviceGetMemoryInfo", handle, out)

        @c(c_void_p, POINTER(_MemoryV2))
        def nvmlDeviceGetMemoryInfo_v2(handle: int, out: Any) -> int:  # noqa: N802
            if out[0].version != MEMORY_V2:
                return OTHER_VERSION
            return memory("nvmlDeviceGetMemoryInfo_v2", handle, out)

    def _events(self, c: Any) -> None:
        @c(POINTER(c_void_p))
        def nvmlEventSetCreate(out: Any) -> int:  # noqa: N802
            self.sets += 1
            out[0] = 0x5E7
            return OK

        @c(c_void_p, c_ulonglong, c_void_p)
        def nvmlDeviceRegisterEvents(handle: int, types: int, events: int) -> int:  # noqa: N802
            assert (types, events) == (0x8, 0x5E7)
            status = self._at(handle)[0].answers.get("nvmlDeviceRegisterEvents", OK)
            if status == OK:
                self.registered.append(handle)
            return status

        @c(c_void_p, POINTER(_EventData), c_uint)
        def nvmlEventSetWait_v2(events: int, out: Any, wait_ms: int) -> int:  # noqa: N802
            assert events == 0x5E7
            try:
                handle, code, instance, compute = self._xids.get(timeout=wait_ms / 1000)
            except queue.Empty:
                return TIMEOUT
            out[0] = _EventData(handle, 0x8, code, instance, compute)
            return OK

        @c(c_void_p)
        def nvmlEventSetFree(_events: int) -> int:  # noqa: N802
            self.sets -= 1
            return OK


def _text(out: Any, size: int, text: str) -> int:
    data = text.encode() + b"\0"
    assert len(data) <= size
    ctypes.memmove(out, data, len(data))
    return OK


@contextmanager
def installed(driver: Driver | None) -> Iterator[None]:
    """This machine's driver is `driver`, None: it has none. The binding starts afresh."""
    real = ctypes.CDLL

    def library(name: str, *arguments: Any, **more: Any) -> Any:
        if name != LIBRARY:
            return real(name, *arguments, **more)
        if driver is None:
            return real("libnvidia-ml-of-no-machine.so.1")
        return driver

    import pynvml

    def install(cdll: Any) -> None:
        ctypes.CDLL = pynvml.CDLL = cdll
        pynvml.nvmlLib = None
        pynvml._nvmlLib_refcount = 0
        pynvml._nvmlGetFunctionPointer_cache.clear()

    install(library)
    try:
        yield
    finally:
        install(real)


def main() -> int:
    """A sidecar on a machine with one GPU that has had an XID error."""
    from sidecar import cli

    driver = Driver(Gpu(reasons=0x40, rows=(1, 2, 1, 0)))
    driver.xid(79)
    with installed(driver):
        return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
