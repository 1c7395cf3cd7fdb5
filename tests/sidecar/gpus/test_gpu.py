import asyncio
import contextlib
import logging
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sidecar import limits
from sidecar.counting.tally import Number, Tally
from sidecar.gpus import gpu, gpu_driver
from sidecar.gpus.gpu import GpuPoller
from slo.signals import (
    ERROR_TYPE,
    GPU_ENERGY,
    GPU_ERRORS,
    GPU_LAST_XID,
    GPU_LOST,
    GPU_MEMORY_LIMIT,
    GPU_UTILIZATION,
    HW_ID,
    REASON,
    TELEMETRY_FAULTS,
)
from tests.sidecar import nvml
from tests.sidecar.nvml import Driver, Gpu, Mig, installed
from tests.sidecar.rig import on_a_loop, until

ROOT = Path(__file__).parents[3]


@dataclass
class Watched:
    """A poller and what it counted."""

    poller: GpuPoller
    tally: Tally = field(default_factory=lambda: Tally(lambda _: ()))

    def gauge(self, name: str, at: str = "GPU-aaaa", *, now_s: float | None = None) -> float | None:
        """The one gauge of a device at the time of the last poll or another; None when it is absent."""
        found = [
            number.value
            for number in self.poller.gauges((self.poller._sample_s or 0.0) if now_s is None else now_s)
            if number.metric.name == name and dict(number.attributes)[HW_ID] == at
        ]
        assert len(found) <= 1
        return found[0] if found else None

    def totals(self, metric: str, key: str, at: str = "GPU-aaaa") -> dict[str, float]:
        """A counter of a device, by one of its attributes."""
        return {
            dict(number.attributes)[key]: number.value
            for number in self.tally.totals()
            if number.metric.name == metric and dict(number.attributes)[HW_ID] == at
        }

    @property
    def up(self) -> bool:
        return self.poller.up(time.monotonic())

    @property
    def faults(self) -> dict[str, float]:
        return {dict(n.attributes)[REASON]: n.value for n in self.tally.totals() if n.metric is TELEMETRY_FAULTS}


@contextlib.asynccontextmanager
async def watching(
    driver: Driver | None, *, visible: str | None = None, interval_s: float = 0.02, retry_s: float = 60.0
) -> AsyncIterator[Watched]:
    """A poller on a machine with that driver, ended at the end as the sidecar ends it."""
    with installed(driver):
        loop, tally = asyncio.get_running_loop(), Tally(lambda _: ())
        poller = GpuPoller(
            tally, on_loop=loop.call_soon_threadsafe, visible=visible, interval_s=interval_s, retry_s=retry_s
        )
        chore = loop.create_task(poller.poll())
        try:
            yield Watched(poller, tally)
        finally:
            chore.cancel()
            await asyncio.gather(chore, return_exceptions=True)
            await loop.run_in_executor(None, poller.close)
            assert gpu_threads() == []


def gpu_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("gpu")]


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "sidecar.gpus.gpu"]


@on_a_loop
async def test_without_a_driver_there_is_no_thread_and_the_gauge_is_down() -> None:
    async with watching(None) as watched:
        await until(lambda: watched.poller._thread is not None and not watched.poller._thread.is_alive())
        assert gpu_threads() == []
        assert not watched.up
        assert list(watched.poller.gauges(time.monotonic())) == []
        assert list(watched.tally.totals()) == []


def test_without_a_driver_the_binding_is_not_imported() -> None:
    code = """
import asyncio, sys, threading
from sidecar.counting.tally import Tally
from sidecar.gpus import gpu

gpu.LIBRARY = "libnvidia-ml-of-no-machine.so.1"

async def life():
    poller = gpu.GpuPoller(Tally(lambda _: ()), on_loop=asyncio.get_running_loop().call_soon_threadsafe)
    chore = asyncio.ensure_future(poller.poll())
    await asyncio.sleep(0)
    poller._thread.join(30)
    chore.cancel()
    print("pynvml" in sys.modules, threading.active_count())

asyncio.run(life())
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["False", "1"]
    assert ended.stderr == ""


@on_a_loop
async def test_a_driver_that_comes_later_is_found_at_the_next_try() -> None:
    driver = Driver(Gpu(), status=nvml.NO_DRIVER)
    async with watching(driver, retry_s=0.02) as watched:
        await asyncio.sleep(0.1)
        assert not watched.up
        driver.status = nvml.OK
        await until(lambda: watched.up)
        assert watched.gauge(GPU_UTILIZATION.name) == 0.42
    assert driver.open == 0


@on_a_loop
async def test_what_keeps_nvml_from_opening_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with watching(Driver(Gpu(), status=nvml.NO_DRIVER), retry_s=0.01) as watched:
        await asyncio.sleep(0.2)
        assert not watched.up
        assert watched.faults == {}
    assert messages(caplog) == ["GPUs cannot be read (driver not loaded, NVML error 9): tried again every 0.01 s"]


@on_a_loop
async def test_a_driver_without_its_binding_says_what_to_install(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watching(None) as watched:
        with installed(Driver(Gpu())):
            monkeypatch.setitem(sys.modules, "pynvml", None)
            watched.poller._run()
            watched.poller._run()
            monkeypatch.undo()
        assert not watched.up
    (message,) = [text for text in messages(caplog) if "pynvml" in text]
    assert "pip install 'firsttoken[gpu]'" in message


@on_a_loop
async def test_a_driver_without_a_gpu_is_no_gpu(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    driver = Driver()
    async with watching(driver) as watched:
        await until(lambda: driver.inits == 1 and driver.open == 0)
        assert not watched.up
    assert messages(caplog) == ["a driver but no GPU: no GPU telemetry"]


@on_a_loop
async def test_gpus_are_polled_and_their_totals_counted_from_first_sight() -> None:
    one = Gpu(energy_mj=5_000_900, ecc={0: 7, 1: 1})
    async with watching(Driver(one, Gpu(uuid="GPU-b"))) as watched:
        await until(lambda: watched.up)
        assert watched.gauge(GPU_MEMORY_LIMIT.name) == watched.gauge(GPU_MEMORY_LIMIT.name, "GPU-b") == 140 * nvml.GIB
        assert watched.totals(GPU_ERRORS.name, ERROR_TYPE) == {
            "xid": 0,
            "xid_application": 0,
            "corrected": 0,
            "uncorrected": 0,
        }
        assert watched.totals(GPU_ENERGY.name, HW_ID) == {"GPU-aaaa": 0}
        one.energy_mj, one.ecc = 5_002_100, {0: 9, 1: 2}
        await until(lambda: watched.totals(GPU_ENERGY.name, HW_ID) == {"GPU-aaaa": 2})
        assert watched.totals(GPU_ERRORS.name, ERROR_TYPE)["corrected"] == 2
        assert watched.totals(GPU_ERRORS.name, ERROR_TYPE)["uncorrected"] == 1
        one.energy_mj, one.ecc = 3_000, {0: 1, 1: 0}  # the driver was loaded again
        await until(lambda: watched.totals(GPU_ENERGY.name, HW_ID) == {"GPU-aaaa": 5})
        assert watched.totals(GPU_ERRORS.name, ERROR_TYPE)["corrected"] == 3
        assert watched.totals(GPU_ENERGY.name, HW_ID, "GPU-b") == {"GPU-b": 0}


@on_a_loop
async def test_what_no_gpu_of_a_kind_tells_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lacking = {"nvmlDeviceGetTotalEccErrors": nvml.NOT_SUPPORTED}
    gpus = [Gpu(uuid=f"GPU-{n}", name="GeForce", answers=dict(lacking)) for n in range(3)]
    async with watching(Driver(*gpus)) as watched:
        await until(lambda: watched.up)
        await until(lambda: watched.gauge(GPU_UTILIZATION.name, "GPU-2") is not None)
        assert set(watched.totals(GPU_ERRORS.name, ERROR_TYPE, "GPU-0")) == {"xid", "xid_application"}
    assert sorted(messages(caplog)) == [
        "GPUs are read every 0.02 s: gpu0 GeForce, gpu1 GeForce, gpu2 GeForce; driver 570.86.15",
        "GeForce: ECC errors corrected left out (not supported, NVML error 3)",
        "GeForce: ECC errors uncorrected left out (not supported, NVML error 3)",
    ]


@on_a_loop
async def test_only_visible_gpus_are_read() -> None:
    async with watching(Driver(Gpu(), Gpu(uuid="GPU-b")), visible="1") as watched:
        await until(lambda: watched.up)
        assert watched.gauge(GPU_UTILIZATION.name, "GPU-b") == 0.42
        assert watched.gauge(GPU_UTILIZATION.name) is None
        assert watched.gauge(GPU_LOST.name) is None


@on_a_loop
async def test_an_xid_is_counted_and_its_number_kept(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(Gpu())
    async with watching(driver) as watched:
        await until(lambda: "xid" in watched.totals(GPU_ERRORS.name, ERROR_TYPE))
        assert watched.gauge(GPU_LAST_XID.name) is None
        for code in (79, 79, 31):
            driver.xid(code)
        await until(lambda: watched.gauge(GPU_LAST_XID.name) == 31)
        totals = watched.totals(GPU_ERRORS.name, ERROR_TYPE)
        assert (totals["xid"], totals["xid_application"]) == (2, 1)
    assert [text for text in messages(caplog) if "XID" in text] == ["gpu0: XID error 79", "gpu0: XID error 31"]
    assert (driver.sets, driver.open) == (0, 0)


@on_a_loop
async def test_xid_counters_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GPU_DEVICES", 1)
    async with watching(Driver(Gpu())) as watched:
        await until(lambda: "xid" in watched.totals(GPU_ERRORS.name, ERROR_TYPE))
        watched.poller._xid(((HW_ID, "MIG-new"),), 79)
        assert watched.totals(GPU_ERRORS.name, ERROR_TYPE, "MIG-new") == {}
        assert watched.gauge(GPU_LAST_XID.name, "MIG-new") is None


@on_a_loop
async def test_a_lost_gpu_stays_lost_until_it_is_seen_well(caplog: pytest.LogCaptureFixture) -> None:
    bad = Gpu()
    driver = Driver(bad, Gpu(uuid="GPU-b"))
    async with watching(driver, retry_s=0.2) as watched:
        await until(lambda: watched.gauge(GPU_LOST.name) == 0)
        bad.answers = {"nvmlDeviceGetPowerUsage": nvml.LOST, "nvmlDeviceGetHandleByIndex_v2": nvml.LOST}
        await until(lambda: watched.gauge(GPU_LOST.name) == 1)
        assert watched.gauge(GPU_LOST.name, "GPU-b") == 0
        assert watched.gauge(GPU_LOST.name, now_s=time.monotonic() + 3600) == 1
        assert watched.gauge(GPU_LOST.name, "GPU-b", now_s=time.monotonic() + 3600) is None
        await until(lambda: driver.inits >= 3)  # opened anew, and still lost
        assert watched.gauge(GPU_LOST.name) == 1
        bad.answers = {}
        await until(lambda: watched.gauge(GPU_LOST.name) == 0)
        assert watched.gauge(GPU_UTILIZATION.name) == 0.42
    assert [text for text in messages(caplog) if "lost" in text] == ["gpu0 is lost or needs a reset"]
    assert driver.open == 0


@on_a_loop
async def test_mig_set_up_otherwise_is_seen_at_the_next_listing() -> None:
    one = Gpu(migs=[Mig("MIG-x", 3)])
    driver = Driver(one)
    async with watching(driver, retry_s=0.1) as watched:
        await until(lambda: watched.gauge(GPU_MEMORY_LIMIT.name, "MIG-x") == 10 * nvml.GIB)
        one.migs[:] = [Mig("MIG-y", 4), Mig("MIG-z", 5)]
        await until(lambda: watched.gauge(GPU_MEMORY_LIMIT.name, "MIG-z") == 10 * nvml.GIB)
        assert watched.gauge(GPU_MEMORY_LIMIT.name, "MIG-x") is None
    assert driver.open == 0


@on_a_loop
async def test_a_listing_that_has_not_changed_opens_nothing_anew() -> None:
    driver = Driver(Gpu(), Gpu(uuid="GPU-b", migs=[Mig("MIG-x", 3)]))
    async with watching(driver, retry_s=0.02) as watched:
        await until(lambda: watched.up)
        polls = driver.calls.count("nvmlDeviceGetPowerUsage")
        await until(lambda: driver.calls.count("nvmlDeviceGetPowerUsage") > polls + 20)
    assert driver.inits == 1


@on_a_loop
async def test_a_driver_that_hangs_makes_the_gauges_absent_and_is_left_behind(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, back = Driver(Gpu()), threading.Event()
    async with watching(driver) as watched:
        await until(lambda: watched.up)
        driver.hangs = lambda: back.wait(60)
        await until(lambda: not watched.up)
        assert watched.gauge(GPU_UTILIZATION.name, now_s=time.monotonic()) is None
        with monkeypatch.context() as patched:
            patched.setattr(limits, "GPU_CLOSE_S", 0.05)
            await asyncio.get_running_loop().run_in_executor(None, watched.poller.close)
        assert "the GPU driver does not answer: left behind" in messages(caplog)
        back.set()


@on_a_loop
async def test_a_fault_of_ours_is_counted_and_the_next_try_made(monkeypatch: pytest.MonkeyPatch) -> None:
    real, faults = gpu_driver.devices, [ZeroDivisionError(), ZeroDivisionError()]

    def devices(*arguments: object) -> object:
        if faults:
            raise faults.pop()
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(gpu_driver, "devices", devices)
    driver = Driver(Gpu())
    async with watching(driver, retry_s=0.02) as watched:
        await until(lambda: watched.up)
        assert watched.faults == {"ZeroDivisionError": 2}
    assert (driver.inits, driver.open) == (3, 0)


@on_a_loop
async def test_an_nvml_that_ends_is_opened_anew() -> None:
    one = Gpu()
    driver = Driver(one)
    async with watching(driver, retry_s=0.02) as watched:
        await until(lambda: watched.up)
        one.answers["nvmlDeviceGetPowerUsage"] = nvml.NO_DRIVER
        await until(lambda: driver.inits >= 3)
        one.answers.clear()
        await until(lambda: watched.up)
    assert (driver.open, driver.sets) == (0, 0)


def test_a_loop_that_has_ended_is_told_nothing() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    poller = GpuPoller(Tally(lambda _: ()), on_loop=loop.call_soon_threadsafe)
    poller._tell(poller._take, (), 0.0)
    assert not poller.up(0.0)


def test_the_default_is_no_more_than_one_poll_a_second() -> None:
    poller = GpuPoller(Tally(lambda _: ()), on_loop=lambda *_: None)
    assert poller._interval_s >= 1
    assert poller._retry_s == 60


@pytest.mark.gpu
@on_a_loop
async def test_a_real_gpu_is_what_nvidia_smi_says_it_is() -> None:
    smi = shutil.which("nvidia-smi")
    assert smi is not None
    asked = await asyncio.create_subprocess_exec(
        smi, "--query-gpu=uuid,name,memory.total", "--format=csv,noheader,nounits", stdout=subprocess.PIPE
    )
    rows = [line.split(", ") for line in (await asked.communicate())[0].decode().splitlines()]
    loop, tally = asyncio.get_running_loop(), Tally(lambda _: ())
    poller = GpuPoller(tally, on_loop=loop.call_soon_threadsafe)
    chore = loop.create_task(poller.poll())
    await until(lambda: poller.up(time.monotonic()))
    said: list[Number] = list(poller.gauges(time.monotonic()))
    chore.cancel()
    await loop.run_in_executor(None, poller.close)
    limits_by = {dict(n.attributes)[HW_ID]: n.value for n in said if n.metric is GPU_MEMORY_LIMIT}
    for uuid, name, mib in rows:
        assert limits_by[uuid] == pytest.approx(float(mib) * 2**20, rel=0.01)
        assert (uuid, name) in {(dict(n.attributes)[HW_ID], dict(n.attributes)["hw.model"]) for n in said}
    assert {dict(n.attributes)[HW_ID] for n in said if n.metric is GPU_LOST} >= {row[0] for row in rows}
    assert gpu_threads() == []
    assert gpu.LIBRARY == "libnvidia-ml.so.1"
