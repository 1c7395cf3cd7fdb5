"""GPUs throttled, faulty and lost, as the sidecars' NVML and dcgm-exporter tell it, by promtool."""

from pathlib import Path

import pytest

from alerts.annotations import Links
from alerts.fleet import fleet_groups
from alerts.gpu_alert import gpu_alerts
from alerts.group import Group
from tests.alerts.support import firing, promtool_test, spec

pytestmark = pytest.mark.tools

GROUP = Group("g", 30, tuple(gpu_alerts(spec(), Links())))
DCGM = [
    group for group in fleet_groups(Links(), dcgm='namespace="llm"', query_offset_s=0) if group.name.endswith("gpu")
]


def gpu(name: str, more: str = "", hw_id: str = "GPU-1") -> str:
    return f'hw_gpu_{name}{{service_name="chat",instance="a",hw_id="{hw_id}",hw_name="gpu0"{more}}}'


def throttled(reason: str) -> str:
    return gpu("throttle_seconds_total", f',reason="{reason}"')


def errors(kind: str) -> str:
    return gpu("errors_total", f',error_type="{kind}"')


def dcgm(name: str, uuid: str = "GPU-1", namespace: str = "llm") -> str:
    return f'DCGM_FI_DEV_{name}{{UUID="{uuid}",gpu="0",Hostname="n1",namespace="{namespace}"}}'


ONE, NONE = {'{hw_id="GPU-1"}': 1.0}, dict[str, float]()
THROTTLED, FAULTY, LOST = (firing(f"LLMGPU{what}", by="hw_id") for what in ("Throttled", "Faulty", "Lost"))

CASES = {
    "held back by heat a third of the time": (THROTTLED, {throttled("hw_thermal"): "0+10x60"}, ONE),
    "held back by heat for a moment": (THROTTLED, {throttled("hw_thermal"): "0x50 10 20 20x8"}, NONE),
    "run at its power cap, as GPUs are": (THROTTLED, {throttled("sw_power_cap"): "0+30x60"}, NONE),
    "an XID of the hardware": (FAULTY, {errors("xid"): "0x50 1x10"}, ONE),
    "an XID of a program's own": (FAULTY, {errors("xid_application"): "0x50 9x10"}, NONE),
    "an uncorrected error of memory": (FAULTY, {errors("uncorrected"): "3x50 4x10"}, ONE),
    "corrected errors": (FAULTY, {errors("corrected"): "0+5x60"}, NONE),
    "errors of long ago": (FAULTY, {errors("xid"): "7x60"}, NONE),
    "a row that cannot be remapped": (FAULTY, {gpu("row_remap_failed"): "1x60"}, ONE),
    "a row that waits for a reset": (FAULTY, {gpu("row_remap_pending"): "1x60"}, ONE),
    "all rows well": (FAULTY, {gpu("row_remap_failed"): "0x60", gpu("row_remap_pending"): "0x60"}, NONE),
    "gone": (LOST, {gpu("lost"): "0x40 1x20"}, ONE),
    "there": (LOST, {gpu("lost"): "0x60"}, NONE),
}


@pytest.mark.parametrize("case", CASES)
def test_a_gpu_that_a_sidecar_reads(tmp_path: Path, case: str) -> None:
    alert, series, expected = CASES[case]
    promtool_test(tmp_path, groups=[GROUP], series=series, checks=[("29m", alert, expected)], step="30s")


FAULTY_DCGM = firing("LLMGPUFaulty", by="UUID")
UUID = {'{UUID="GPU-1"}': 1.0}
DCGM_CASES = {
    "another XID": ({dcgm("XID_ERRORS"): "0x50 79x10"}, UUID),
    "an XID of a program's own": ({dcgm("XID_ERRORS"): "0x50 31x10"}, NONE),
    "the same last XID all day": ({dcgm("XID_ERRORS"): "79x60"}, NONE),
    "a driver loaded anew": ({dcgm("XID_ERRORS"): "79x50 0x10"}, NONE),
    "a row remapped": ({dcgm("UNCORRECTABLE_REMAPPED_ROWS"): "0x50 1x10"}, UUID),
    "a row that cannot be": ({dcgm("ROW_REMAP_FAILURE"): "1x60"}, UUID),
    "a GPU of somebody else's": ({dcgm("ROW_REMAP_FAILURE", namespace="games"): "1x60"}, NONE),
    "one that a sidecar reads itself": ({dcgm("ROW_REMAP_FAILURE"): "1x60", gpu("memory_limit_bytes"): "9x60"}, NONE),
    "another than a sidecar reads": (
        {dcgm("ROW_REMAP_FAILURE"): "1x60", gpu("memory_limit_bytes", hw_id="GPU-2"): "9x60"},
        UUID,
    ),
}


@pytest.mark.parametrize("case", DCGM_CASES)
def test_a_gpu_of_dcgm_exporter(tmp_path: Path, case: str) -> None:
    series, expected = DCGM_CASES[case]
    promtool_test(tmp_path, groups=DCGM, series=series, checks=[("29m", FAULTY_DCGM, expected)], step="30s")
