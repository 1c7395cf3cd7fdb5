"""NVML in use: its devices, what each still answers, and the wait for XID errors.

Takes the binding as it was imported (`gpu` does that) and gives values; refusals of NVML become NvmlError here and
nowhere else. Everything in this room blocks, and runs on threads of its own.
"""

import ctypes
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from sidecar import limits
from sidecar.counting.tally import Attributes, Number
from sidecar.gpus import gpu_facts
from sidecar.gpus.gpu_facts import NO_INSTANCE, Answer, Ask, Question
from slo.signals import GPU_LOST, HW_ID

log = logging.getLogger(__name__)

Place = tuple[int, int, int]  # the GPU's handle as a number, its GPU instance and compute instance
Refused = Callable[[Attributes, str, "NvmlError"], None]  # told which device gives up what, and why
NOWHERE: Place = (0, NO_INSTANCE, NO_INSTANCE)


class NvmlError(Exception):
    """NVML refused a call; `code` is its error number."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{reason.lower()}, NVML error {code}")
        self.code = code

    @property
    def refusal(self) -> gpu_facts.Refusal:
        """What it means for what was asked."""
        return gpu_facts.refusal(self.code)


class Nvml:
    """The binding, whatever its version and the driver's."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def call(self, function: str, *arguments: object) -> Any:
        """The answer as the binding gives it. A function that binding or driver lacks is refused, as NVML would."""
        found = getattr(self._binding, function, None)
        if found is None:
            raise NvmlError(gpu_facts.FUNCTION_NOT_FOUND, "no such function in pynvml")
        try:
            return found(*arguments)
        except self._binding.NVMLError as error:
            raise NvmlError(error.value, str(error)) from None
        except (AttributeError, TypeError, ValueError, ctypes.ArgumentError):
            # A binding that wants other arguments, or cannot read what it got.
            raise NvmlError(gpu_facts.FUNCTION_NOT_FOUND, "another function in pynvml") from None

    def known(self, function: str, *arguments: object) -> Any:
        """The answer, or None when it is refused. NvmlError only when NVML as a whole has ended."""
        try:
            return self.call(function, *arguments)
        except NvmlError as error:
            if error.refusal == "ended":
                raise
            return None

    def ask(self, handle: object, ask: Ask) -> Answer:
        """The answer as plain integers."""
        answer = self.call(ask.function, handle, *ask.arguments)
        if ask.fields:
            return tuple(int(getattr(answer, field)) for field in ask.fields)
        return tuple(map(int, answer)) if isinstance(answer, tuple | list) else (int(answer),)

    def text(self, function: str, *arguments: object) -> str:
        """The answer as text; older bindings give bytes."""
        found = self.call(function, *arguments)
        return found.decode(errors="replace") if isinstance(found, bytes) else str(found)


class Device:
    """One GPU or MIG device, and the questions that it still answers. Without a handle it is lost."""

    def __init__(self, handle: object, attributes: Attributes, place: Place) -> None:
        self.handle, self.attributes, self.place = handle, attributes, place
        self.mig = place[1] != NO_INSTANCE
        self.lost = handle is None
        self._open: list[tuple[Question, list[Ask]]] = [(q, list(q.asks)) for q in gpu_facts.questions(mig=self.mig)]

    def read(self, nvml: Nvml, at_ns: int, refused: Refused) -> Iterator[Number]:
        """Everything that the device says now. NvmlError: NVML as a whole has ended."""
        for question, asks in self._open:
            answer = None if self.lost else self._answer(nvml, question, asks, refused)
            for point in () if answer is None else question.points(answer, at_ns):
                yield Number(point.metric, (*self.attributes, *point.more), point.value)
        self._open = [(question, asks) for question, asks in self._open if asks]
        if not self.mig:
            yield Number(GPU_LOST, self.attributes, int(self.lost))

    def _answer(self, nvml: Nvml, question: Question, asks: list[Ask], refused: Refused) -> Answer | None:
        """The answer to one question; a way of asking that GPU or driver lacks is not tried again."""
        while asks:
            try:
                return nvml.ask(self.handle, asks[0])
            except NvmlError as error:
                if error.refusal == "ended":
                    raise
                self.lost = error.refusal == "lost"
                if error.refusal != "unsupported":
                    return None
                del asks[0]
                if not asks:
                    refused(self.attributes, question.name, error)
        return None


def devices(nvml: Nvml, visible: str | None, known: dict[int, Attributes]) -> list[Device]:
    """The GPUs that `visible` (CUDA_VISIBLE_DEVICES) leaves, each followed by its MIG devices.

    `known` remembers who was at each index: a GPU that is lost cannot say it any more. NvmlError: NVML has ended.
    """
    found: list[Device] = []
    for index in range(min(nvml.call("nvmlDeviceGetCount"), limits.GPU_DEVICES)):
        gpu = _gpu(nvml, index, known)
        if gpu is not None:
            found += (gpu, *_migs(nvml, gpu))
    ids = gpu_facts.visible(visible, [device.attributes for device in found])
    return [device for device in found if dict(device.attributes)[HW_ID] in ids][: limits.GPU_DEVICES]


def _gpu(nvml: Nvml, index: int, known: dict[int, Attributes]) -> Device | None:
    """The GPU at an index; None for one that is none of our business, as another container's."""
    try:
        handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
        uuid, model = nvml.text("nvmlDeviceGetUUID", handle), nvml.text("nvmlDeviceGetName", handle)
    except NvmlError as error:
        if error.refusal == "ended":
            raise
        if error.refusal == "lost":
            return Device(None, known.get(index) or gpu_facts.identity("", "", index), NOWHERE)
        return None
    known[index] = gpu_facts.identity(uuid, model, index)
    return Device(handle, known[index], (address(handle), NO_INSTANCE, NO_INSTANCE))


def _migs(nvml: Nvml, gpu: Device) -> Iterator[Device]:
    """The MIG devices of a GPU; most places for them are empty."""
    places = 0 if gpu.lost else nvml.known("nvmlDeviceGetMaxMigDeviceCount", gpu.handle) or 0
    for index in range(min(places, limits.GPU_DEVICES)):
        handle = nvml.known("nvmlDeviceGetMigDeviceHandleByIndex", gpu.handle, index)
        if handle is None:
            continue
        with suppress(NvmlError):  # gone again
            uuid = nvml.text("nvmlDeviceGetUUID", handle)
            instance = int(nvml.call("nvmlDeviceGetGpuInstanceId", handle))
            compute = int(nvml.call("nvmlDeviceGetComputeInstanceId", handle))
            attributes = gpu_facts.mig_identity(gpu.attributes, uuid, (index, instance))
            yield Device(handle, attributes, (gpu.place[0], instance, compute))


def address(handle: Any) -> int:
    """A device handle as a number: the same device of one NVML has the same."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


class XidThread(threading.Thread):
    """Waits for XID errors, and tells each with the attributes of the device that had it."""

    def __init__(self, nvml: Nvml, listed: list[Device], tell: Callable[[Attributes, int], None]) -> None:
        super().__init__(name="gpu-xid", daemon=True)
        self._nvml, self._listed, self._tell = nvml, listed, tell
        self._owners = {device.place: device.attributes for device in listed}
        self._over = threading.Event()
        self._events: object = None

    def begin(self, refused: Refused) -> list[Attributes]:
        """Ask for the events of every GPU, and start to wait where one gives them; the devices that are heard."""
        try:
            self._events = self._nvml.call("nvmlEventSetCreate")
        except NvmlError as error:
            refused((), "XID errors", error)
            return []
        heard = {device.place[0] for device in self._listed if not device.mig and self._register(device, refused)}
        if heard:
            self.start()
        return [device.attributes for device in self._listed if device.place[0] in heard]

    def _register(self, gpu: Device, refused: Refused) -> bool:
        if gpu.lost:
            return False
        try:
            self._nvml.call("nvmlDeviceRegisterEvents", gpu.handle, gpu_facts.XID_EVENT, self._events)
        except NvmlError as error:
            refused(gpu.attributes, "XID errors", error)
            return False
        return True

    def run(self) -> None:
        while not self._over.is_set():
            try:
                event = self._nvml.call("nvmlEventSetWait_v2", self._events, limits.GPU_EVENT_WAIT_MS)
            except NvmlError as error:
                if error.refusal != "timeout":  # a GPU that is lost makes every wait fail at once
                    self._over.wait(limits.GPU_INTERVAL_S)
                continue
            if event.eventType == gpu_facts.XID_EVENT:
                self._tell(self._owner(event), int(event.eventData))

    def _owner(self, event: Any) -> Attributes:
        at = address(event.device)
        exact = self._owners.get((at, int(event.gpuInstanceId), int(event.computeInstanceId)))
        return exact or self._owners.get((at, NO_INSTANCE, NO_INSTANCE)) or gpu_facts.identity("unknown", "", 0)

    def end(self) -> bool:
        """End the wait and free the events; False when the driver does not come back, so that nothing may be freed."""
        self._over.set()
        if self.is_alive():
            self.join(limits.GPU_CLOSE_S)
            if self.is_alive():
                return False
        if self._events is not None:
            with suppress(NvmlError):
                self._nvml.call("nvmlEventSetFree", self._events)
        return True
