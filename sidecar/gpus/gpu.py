"""Reads GPUs through NVML beside the proxy: polls them each second, and listens for their XID errors.

    event loop                            thread `gpu`                        thread `gpu-xid`
    poll ── each minute ─────────────▶ open NVML, list devices ── starts ──▶ wait for an XID
                                          each second: ask each device          │
    take ◀── call_soon_threadsafe ────── what they said                         │
    count ◀── call_soon_threadsafe ─────────────────────────────────────────────┘

A call into the driver can take milliseconds, and with a sick GPU for ever: none is made on the event loop, and the
threads are daemons. Where there is no driver the first thread ends after one `dlopen` in vain, the binding is not even
imported, and a minute later it is tried again. What to ask, and what it means, is `gpu_facts`' business.

The only room that imports `pynvml`.
"""

import asyncio
import ctypes
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from sidecar import limits
from sidecar.counting.tally import Attributes, Number, Tally
from sidecar.engine import scrape
from sidecar.gpus import gpu_driver, gpu_facts
from sidecar.gpus.gpu_driver import Device, Nvml, NvmlError, XidThread
from sidecar.judging.faults import told
from slo.signals import ERROR_TYPE, GPU_ERRORS, GPU_LAST_XID, GPU_LOST, HW_MODEL, HW_NAME, REASON, TELEMETRY_FAULTS

log = logging.getLogger(__name__)

LIBRARY = "libnvidia-ml.so.1"


class GpuPoller:
    """All GPUs of this machine that `visible`, a CUDA_VISIBLE_DEVICES, leaves; None leaves all.

    `on_loop(function, *arguments)` has the event loop call a function; what is counted and shown lives there alone.
    """

    def __init__(
        self,
        tally: Tally,
        *,
        on_loop: Callable[..., object],
        visible: str | None = None,
        interval_s: float = limits.GPU_INTERVAL_S,
        retry_s: float = limits.GPU_RETRY_S,
    ) -> None:
        self._tally, self._on_loop, self._visible = tally, on_loop, visible
        self._interval_s, self._retry_s = interval_s, retry_s
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._sample_s: float | None = None
        self._gauges: tuple[Number, ...] = ()
        self._raw: dict[tuple[str, Attributes], float] = {}
        self._lost: dict[Attributes, bool] = {}
        self._xid_devices: set[Attributes] = set()
        self._last_xid: dict[Attributes, int] = {}
        self._told: set[str] = set()
        self._at_index: dict[int, Attributes] = {}

    # On the event loop.

    async def poll(self) -> None:
        """Poll for ever: one try now, and one each `retry_s` while there is nothing to poll. Raises nothing."""
        while True:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="gpu", daemon=True)
                with suppress(RuntimeError):  # no thread to be had: the next try may get one
                    self._thread.start()
            await asyncio.sleep(self._retry_s)

    def close(self) -> None:
        """End the threads and let NVML go. Waits, but never for long: a driver that hangs is left behind."""
        self._ended.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(limits.GPU_CLOSE_S)
            if self._thread.is_alive():
                log.warning("the GPU driver does not answer: left behind")

    def up(self, now_s: float) -> bool:
        """Whether GPUs are being read."""
        return self._sample_s is not None and now_s - self._sample_s <= limits.STALE_INTERVALS * self._interval_s

    def gauges(self, now_s: float) -> Iterator[Number]:
        """What the GPUs said while it is fresh. A lost GPU stays lost until it is seen well; the last XID stays."""
        up = self.up(now_s)
        yield from self._gauges if up else ()
        yield from (Number(GPU_LOST, gpu, int(lost)) for gpu, lost in self._lost.items() if up or lost)
        yield from (Number(GPU_LAST_XID, device, code) for device, code in self._last_xid.items())

    def _take(self, said: Iterable[Number], at_s: float) -> None:
        self._sample_s, gauges = at_s, []
        for number in said:
            if number.metric.kind == "counter":
                self._count(number)
            elif number.metric is GPU_LOST:
                if number.value and not self._lost.get(number.attributes):
                    log.error("%s is lost or needs a reset", _name(number.attributes))
                self._lost[number.attributes] = bool(number.value)
            else:
                gauges.append(number)
        self._gauges = tuple(gauges)

    def _count(self, total: Number) -> None:
        """Count what a total of NVML grew by since it was last seen; at first sight the counter is made, at 0."""
        key = total.metric.name, total.attributes
        before, self._raw[key] = self._raw.get(key), total.value
        self._tally.add(total.metric, total.attributes, int(scrape.increase(before, total.value)))

    def _hear(self, devices: Iterable[Attributes]) -> None:
        """These devices' XIDs will be told: their counters exist from now on. (MIG makes new ids without an end.)"""
        for device in devices:
            if len(self._xid_devices) < limits.GPU_DEVICES:
                self._xid_devices.add(device)
                for kind in gpu_facts.XID_TYPES:
                    self._tally.create(GPU_ERRORS, (*device, (ERROR_TYPE, kind)))

    def _xid(self, device: Attributes, code: int) -> None:
        self._say(f"{_name(device)}: XID error {code}", logging.WARNING)
        self._hear((device,))
        if device in self._xid_devices:
            self._tally.add(GPU_ERRORS, (*device, (ERROR_TYPE, gpu_facts.xid_type(code))))
            self._last_xid[device] = code

    # On the threads.

    def _run(self) -> None:
        """Open NVML and poll, again and again while that is of use; whatever goes wrong ends here."""
        try:
            while not self._ended.is_set() and self._session():
                pass
        except NvmlError as error:
            self._say(f"GPUs cannot be read ({error}): tried again every {self._retry_s:g} s", logging.WARNING)
        except Exception as error:  # noqa: BLE001  promise 1: a fault of telemetry is counted, and no more
            log.error("GPU telemetry fault %s: tried again in %g s", told(error), self._retry_s)
            self._tell(self._tally.add, TELEMETRY_FAULTS, ((REASON, type(error).__name__),))

    def _session(self) -> bool:
        """One time with NVML open; whether to open it again at once. NvmlError: it is not to be had."""
        nvml = self._load()
        if nvml is None:
            return False
        nvml.call("nvmlInit")
        free = True
        try:
            devices = gpu_driver.devices(nvml, self._visible, self._at_index)
            if not devices:
                self._say("a driver but no GPU: no GPU telemetry")
                return False
            driver = nvml.known("nvmlSystemGetDriverVersion")
            self._say(f"GPUs are read every {self._interval_s:g} s: {_models(devices)}; driver {driver}")
            xids = XidThread(nvml, devices, lambda device, code: self._tell(self._xid, device, code))
            try:
                self._tell(self._hear, xids.begin(self._refused))
                return self._watch(nvml, devices)
            finally:
                free = xids.end()
        finally:
            if free:
                with suppress(NvmlError):
                    nvml.call("nvmlShutdown")

    def _watch(self, nvml: Nvml, devices: list[Device]) -> bool:
        """Poll until the end, or until NVML has to be opened anew: a GPU is lost, or MIG was set up otherwise."""
        listed_s = time.monotonic()
        while not self._ended.is_set():
            began_s = time.monotonic()
            if began_s - listed_s >= self._retry_s:
                listed_s = began_s
                now = gpu_driver.devices(nvml, self._visible, self._at_index)
                if any(device.lost for device in devices) or _identities(now) != _identities(devices):
                    return True
            said = [number for gpu in devices for number in gpu.read(nvml, time.monotonic_ns(), self._refused)]
            self._tell(self._take, said, time.monotonic())
            self._ended.wait(max(0.0, self._interval_s - (time.monotonic() - began_s)))
        return False

    def _load(self) -> Nvml | None:
        """The binding, where there is a driver for it: to look for the driver first spares the rest the import."""
        try:
            ctypes.CDLL(LIBRARY)
        except OSError:
            self._say("no GPU driver: no GPU telemetry", logging.DEBUG)
            return None
        try:
            import pynvml
        except ImportError:
            self._say("a GPU driver, but no pynvml: pip install 'firsttoken[gpu]' for GPU telemetry", logging.WARNING)
            return None
        return Nvml(pynvml)

    def _refused(self, device: Attributes, what: str, error: NvmlError) -> None:
        """Say that a kind of GPU does not tell something; that GPU's neighbours of the same kind need not repeat it."""
        self._say(f"{dict(device).get(HW_MODEL, 'GPU')}: {what} left out ({error})")

    def _tell(self, act: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._on_loop(act, *arguments)

    def _say(self, message: str, level: int = logging.INFO) -> None:
        """Log a message the first time."""
        if message not in self._told and len(self._told) < limits.GPU_TOLD:
            self._told.add(message)
            log.log(level, "%s", message)


def _identities(devices: Iterable[Device]) -> list[Attributes]:
    return [device.attributes for device in devices]


def _name(device: Attributes) -> str:
    return dict(device).get(HW_NAME, "GPU")


def _models(devices: Iterable[Device]) -> str:
    return ", ".join(f"{of[HW_NAME]} {of.get(HW_MODEL, '')}".strip() for of in (dict(d.attributes) for d in devices))
