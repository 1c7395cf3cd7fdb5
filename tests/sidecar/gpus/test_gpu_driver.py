import threading
import time
from collections.abc import Callable, Iterator

import pynvml
import pytest

from sidecar import limits
from sidecar.counting.tally import Attributes
from sidecar.gpus.gpu_driver import Device, Nvml, NvmlError, XidThread, devices
from sidecar.gpus.gpu_facts import Ask
from slo.signals import (
    GPU_ENERGY,
    GPU_LOST,
    GPU_MEMORY_USAGE,
    GPU_METRICS,
    GPU_POWER,
    GPU_TEMPERATURE,
    GPU_THROTTLE,
    GPU_UTILIZATION,
    HW_ID,
    HW_NAME,
)
from tests.sidecar import nvml
from tests.sidecar.nvml import GIB, Driver, Gpu, Mig, installed

SECOND = 10**9
Opening = Callable[[Driver], Nvml]


@pytest.fixture
def opened() -> Iterator[Opening]:
    """Opens NVML on a driver, for as long as the test runs."""
    with_driver = []

    def open_(driver: Driver) -> Nvml:
        context = installed(driver)
        context.__enter__()
        with_driver.append(context)
        found = Nvml(pynvml)
        found.call("nvmlInit")
        return found

    yield open_
    for context in with_driver:
        context.__exit__(None, None, None)


class Refusals(list[str]):
    """What was given up, in order."""

    def __call__(self, device: Attributes, what: str, error: NvmlError) -> None:
        self.append(f"{dict(device).get(HW_NAME)}: {what} ({error})")


def read(device: Device, found: Nvml, refused: Refusals | None = None, at_s: int = 1) -> dict[str, float]:
    """What a device says, by metric."""
    said = list(device.read(found, at_s * SECOND, Refusals() if refused is None else refused))
    assert all(number.attributes[: len(device.attributes)] == device.attributes for number in said)
    return {number.metric.name: number.value for number in said}


def ids(found: list[Device]) -> list[str]:
    return [dict(device.attributes)[HW_ID] for device in found]


def test_a_gpu_tells_all_that_the_table_has(opened: Opening) -> None:
    found = opened(Driver(Gpu()))
    (device,) = devices(found, None, {})
    said = read(device, found)
    assert set(said) == {m.name for m in GPU_METRICS} - {"hw.gpu.last_xid"}
    assert said[GPU_UTILIZATION.name] == 0.42
    assert said[GPU_MEMORY_USAGE.name] == 35 * GIB
    assert said[GPU_POWER.name] == 350.5
    assert said[GPU_ENERGY.name] == 1234
    assert said[GPU_TEMPERATURE.name] == 61
    assert said[GPU_LOST.name] == 0


def test_what_a_gpu_lacks_is_given_up_alone_and_not_asked_for_again(opened: Opening) -> None:
    driver = Driver(Gpu(answers={"nvmlDeviceGetUtilizationRates": nvml.NOT_SUPPORTED}))
    found, refused = opened(driver), Refusals()
    (device,) = devices(found, None, {})
    first, second = read(device, found, refused), read(device, found, refused)
    assert set(first) == set(second) == {m.name for m in GPU_METRICS} - {"hw.gpu.last_xid", GPU_UTILIZATION.name}
    assert refused == ["gpu0: utilization (not supported, NVML error 3)"]
    assert driver.calls.count("nvmlDeviceGetUtilizationRates") == 1
    assert driver.calls.count("nvmlDeviceGetPowerUsage") == 2


OLDER = {
    "memory with the reserved part": (("nvmlDeviceGetMemoryInfo_v2",), GPU_MEMORY_USAGE.name, 35 * GIB),
    "the old name of the reasons": (("nvmlDeviceGetCurrentClocksEventReasons",), GPU_THROTTLE.name, 0),
    "temperature without versions": (("nvmlDeviceGetTemperatureV",), GPU_TEMPERATURE.name, 61),
}


@pytest.mark.parametrize("case", OLDER)
def test_an_older_driver_is_asked_the_older_way(case: str, opened: Opening) -> None:
    missing, metric, value = OLDER[case]
    found, refused = opened(Driver(Gpu(), missing=missing)), Refusals()
    (device,) = devices(found, None, {})
    assert read(device, found, refused)[metric] == value
    assert read(device, found, refused)[metric] == value
    assert refused == []


def test_an_older_binding_is_asked_the_older_way(opened: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pynvml, "nvmlDeviceGetTemperatureV")
    monkeypatch.delattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetEnforcedPowerLimit", lambda: 1)  # takes other arguments
    monkeypatch.setattr(pynvml, "nvmlDeviceGetName", lambda handle: b"Tesla \xffT4")
    found, refused = opened(Driver(Gpu())), Refusals()
    (device,) = devices(found, None, {})
    assert dict(device.attributes)["hw.model"] == "Tesla \ufffdT4"
    said = read(device, found, refused)
    assert said[GPU_TEMPERATURE.name] == 61
    assert GPU_THROTTLE.name in said
    assert refused == ["gpu0: power limit (another function in pynvml, NVML error 13)"]


def test_a_refusal_that_may_pass_is_asked_again(opened: Opening) -> None:
    gpu = Gpu(answers={"nvmlDeviceGetPowerUsage": 999})
    found, refused = opened(Driver(gpu)), Refusals()
    (device,) = devices(found, None, {})
    assert GPU_POWER.name not in read(device, found, refused)
    gpu.answers.clear()
    assert read(device, found, refused)[GPU_POWER.name] == 350.5
    assert refused == []


def test_a_gpu_that_is_lost_says_so_and_is_let_alone(opened: Opening) -> None:
    gpu = Gpu()
    driver = Driver(gpu)
    found = opened(driver)
    (device,) = devices(found, None, {})
    gpu.answers["nvmlDeviceGetPowerUsage"] = nvml.LOST
    said = read(device, found)
    assert said[GPU_LOST.name] == 1
    assert GPU_TEMPERATURE.name not in said
    asked = len(driver.calls)
    assert read(device, found) == {GPU_LOST.name: 1}
    assert len(driver.calls) == asked


def test_an_nvml_that_has_ended_ends_the_reading(opened: Opening) -> None:
    gpu = Gpu(answers={"nvmlDeviceGetPowerUsage": nvml.NO_DRIVER})
    found = opened(Driver(gpu))
    (device,) = devices(found, None, {})
    with pytest.raises(NvmlError) as error:
        read(device, found)
    assert (error.value.code, error.value.refusal) == (nvml.NO_DRIVER, "ended")


def test_an_nvml_that_has_ended_ends_the_listing(opened: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(answers={"nvmlDeviceGetUUID": nvml.NO_DRIVER})
    found = opened(Driver(gpu))
    with pytest.raises(NvmlError, match="driver not loaded"):
        devices(found, None, {})
    gpu.answers.clear()

    def ended(_handle: object) -> int:
        raise pynvml.NVMLError(nvml.NO_DRIVER)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMaxMigDeviceCount", ended)
    with pytest.raises(NvmlError, match="driver not loaded"):
        devices(found, None, {})


def test_throttled_seconds_are_counted_between_polls(opened: Opening) -> None:
    found = opened(Driver(Gpu(reasons=0x40 | 0x01)))
    (device,) = devices(found, None, {})
    for at_s in (1, 2, 3):
        said = {
            number.attributes[-1][1]: number.value
            for number in device.read(found, at_s * SECOND, Refusals())
            if number.metric is GPU_THROTTLE
        }
    assert said == dict.fromkeys(said, 0) | {"hw_thermal": 2}


def test_mig_devices_follow_their_gpu_and_tell_their_memory(opened: Opening) -> None:
    driver = Driver(Gpu(), Gpu(uuid="GPU-b", migs=[Mig("MIG-x", 3), Mig("MIG-y", 4, total=20 * GIB)]))
    found, refused = opened(driver), Refusals()
    listed = devices(found, None, {})
    assert ids(listed) == ["GPU-aaaa", "GPU-b", "MIG-x", "MIG-y"]
    assert read(listed[3], found, refused) == {
        "hw.gpu.memory.limit": 20 * GIB,
        "hw.gpu.memory.usage": GIB,
        "hw.gpu.memory.utilization": 0.05,
    }
    assert refused == []
    assert ids(devices(found, "MIG-y", {})) == ["GPU-b", "MIG-y"]


def test_a_gpu_of_someone_else_is_not_listed(opened: Opening) -> None:
    found = opened(Driver(Gpu(answers={"nvmlDeviceGetUUID": 4}), Gpu(uuid="GPU-b")))
    assert ids(devices(found, None, {})) == ["GPU-b"]


def test_a_gpu_lost_before_it_is_listed_keeps_the_id_it_had(opened: Opening) -> None:
    gpu, known = Gpu(), dict[int, Attributes]()
    found = opened(Driver(gpu))
    assert ids(devices(found, None, known)) == ["GPU-aaaa"]
    gpu.answers["nvmlDeviceGetHandleByIndex_v2"] = nvml.LOST
    (device,) = devices(found, None, known)
    assert ids([device]) == ["GPU-aaaa"]
    assert read(device, found) == {GPU_LOST.name: 1}
    (unknown,) = devices(found, None, {})
    assert ids([unknown]) == ["gpu0"]


def test_the_number_of_devices_is_bounded(opened: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GPU_DEVICES", 3)
    found = opened(Driver(*(Gpu(uuid=f"GPU-{n}", migs=[Mig(f"MIG-{n}", 1)]) for n in range(5))))
    assert ids(devices(found, None, {})) == ["GPU-0", "MIG-0", "GPU-1"]


def test_an_answer_of_many_numbers_or_one_is_integers(opened: Opening) -> None:
    found = opened(Driver(Gpu(rows=(1, 2, 0, 1))))
    (device,) = devices(found, None, {})
    assert found.ask(device.handle, Ask("nvmlDeviceGetRemappedRows")) == (1, 2, 0, 1)
    assert found.ask(device.handle, Ask("nvmlDeviceGetPowerUsage")) == (350_500,)
    assert found.known("nvmlDeviceGetNoSuchThing", device.handle) is None


# XID errors.


class Told(list[tuple[str, int]]):
    """The XIDs that were told, by the id of the device."""

    def __call__(self, device: Attributes, code: int) -> None:
        self.append((dict(device)[HW_ID], code))

    def wait(self, count: int) -> None:
        end_s = time.monotonic() + 30
        while len(self) < count:
            assert time.monotonic() < end_s, self
            time.sleep(0.005)


def test_an_xid_is_told_of_the_device_that_had_it(opened: Opening) -> None:
    driver = Driver(Gpu(), Gpu(uuid="GPU-b", migs=[Mig("MIG-x", 3), Mig("MIG-y", 3, compute=1)]))
    found, told = opened(driver), Told()
    thread = XidThread(found, devices(found, None, {}), told)
    heard = thread.begin(Refusals())
    assert [dict(device)[HW_ID] for device in heard] == ["GPU-aaaa", "GPU-b", "MIG-x", "MIG-y"]
    driver.xid(79)
    driver.xid(94, gpu=1, instance=3, compute=1)
    driver.xid(95, gpu=1)
    driver.xid(31, gpu=1, instance=9, compute=9)
    told.wait(4)
    assert told == [("GPU-aaaa", 79), ("MIG-y", 94), ("GPU-b", 95), ("GPU-b", 31)]
    assert thread.end()
    assert not thread.is_alive()
    assert driver.sets == 0


def test_where_no_gpu_gives_events_there_is_no_thread(opened: Opening) -> None:
    driver = Driver(Gpu(answers={"nvmlDeviceRegisterEvents": nvml.NOT_SUPPORTED}))
    found, refused = opened(driver), Refusals()
    thread = XidThread(found, devices(found, None, {}), Told())
    assert thread.begin(refused) == []
    assert not thread.is_alive()
    assert refused == ["gpu0: XID errors (not supported, NVML error 3)"]
    assert thread.end()
    assert driver.sets == 0


def test_a_driver_without_events_is_told_once(opened: Opening) -> None:
    found, refused = opened(Driver(Gpu(), Gpu(uuid="GPU-b"), missing=("nvmlEventSetCreate",))), Refusals()
    thread = XidThread(found, devices(found, None, {}), Told())
    assert thread.begin(refused) == []
    assert refused == ["None: XID errors (function not found, NVML error 13)"]
    assert thread.end()


def test_a_wait_that_fails_is_waited_for_again(opened: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(Gpu())
    found, told = opened(driver), Told()
    monkeypatch.setattr(limits, "GPU_INTERVAL_S", 0.01)
    waits = [0]
    real = pynvml.nvmlEventSetWait_v2

    def failing(events: object, wait_ms: int) -> object:
        waits[0] += 1
        if waits[0] <= 3:
            raise pynvml.NVMLError(nvml.LOST)
        return real(events, wait_ms)

    monkeypatch.setattr(pynvml, "nvmlEventSetWait_v2", failing)
    thread = XidThread(found, devices(found, None, {}), told)
    thread.begin(Refusals())
    driver.xid(79)
    told.wait(1)
    assert waits[0] >= 4
    assert thread.end()


def test_a_driver_that_never_comes_back_is_left_with_its_events(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, back, entered = Driver(Gpu()), threading.Event(), threading.Event()
    found = opened(driver)

    def hang(_events: object, _wait_ms: int) -> object:
        entered.set()
        back.wait(60)
        raise pynvml.NVMLError(nvml.TIMEOUT)

    monkeypatch.setattr(pynvml, "nvmlEventSetWait_v2", hang)
    monkeypatch.setattr(limits, "GPU_CLOSE_S", 0.05)
    thread = XidThread(found, devices(found, None, {}), Told())
    thread.begin(Refusals())
    assert entered.wait(30)
    assert not thread.end()
    assert driver.sets == 1
    back.set()
    thread.join(30)
    assert thread.end()
    assert driver.sets == 0
