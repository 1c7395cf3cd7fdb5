"""Alerts on GPUs: throttled, faulty, lost. From the sidecars' own NVML signals, and from dcgm-exporter where that runs.

Of dcgm-exporter only what its list of counters has on unless told otherwise is asked for (no ECC counters, no throttle
reasons). It knows no service: its alerts speak of a GPU, and leave out those that a sidecar reads itself.
"""

from collections.abc import Iterator

from alerts.annotations import Links, Said
from alerts.group import Alert
from alerts.trouble_alert import trouble_alert
from slo import promql
from slo.objective import Spec
from slo.promql import INSTANCE_LABEL, SERVICE_KEY, by, of_service, on
from slo.quantity import duration_text
from slo.signals import (
    DCGM_GPU_LABEL,
    DCGM_ROW_REMAP_FAILED,
    DCGM_UNCORRECTABLE_ROWS,
    DCGM_XID,
    ERROR_TYPE,
    GPU_ERRORS,
    GPU_LOST,
    GPU_MEMORY_LIMIT,
    GPU_REMAP_FAILED,
    GPU_REMAP_PENDING,
    GPU_THROTTLE,
    HW_ID,
    HW_NAME,
    LABELS,
    REASON,
    SERVICE_LABEL,
)
from slo.trouble import (
    APPLICATION_XIDS,
    GPU_ERROR_TYPES,
    GPU_ERROR_WINDOW_S,
    GPU_FAULTY,
    GPU_THROTTLED,
    LOST_GPU,
    THROTTLE_REASONS,
    THROTTLE_SHARE,
    THROTTLE_WINDOW_S,
    TROUBLES,
)

GPU_KEY = (*SERVICE_KEY, INSTANCE_LABEL, LABELS[HW_ID], LABELS[HW_NAME])


def gpu_alerts(spec: Spec, links: Links) -> Iterator[Alert]:
    """Those of the GPUs that the service's sidecars read."""
    place = (
        "{{ $labels." + SERVICE_LABEL + " }}, instance {{ $labels." + INSTANCE_LABEL + " }}, "
        "{{ $labels." + LABELS[HW_NAME] + " }} ({{ $labels." + LABELS[HW_ID] + " }})"
    )
    yield trouble_alert(
        spec,
        TROUBLES[GPU_THROTTLED],
        _throttled(spec),
        Said(
            f"A GPU of {spec.service} is slowed down by heat or power.",
            f"{place}: its clocks were held back for {{{{ $value | humanizePercentage }}}} of the last "
            f"{duration_text(THROTTLE_WINDOW_S)} by the hardware or for heat.",
        ),
        links,
    )
    yield trouble_alert(
        spec,
        TROUBLES[GPU_FAULTY],
        _faulty(spec),
        Said(
            f"A GPU of {spec.service} reports errors.",
            f"{place}: an XID, an uncorrected memory error, or a row of memory that waits for a reset or could "
            "not be remapped.",
        ),
        links,
    )
    yield trouble_alert(
        spec,
        TROUBLES[LOST_GPU],
        f"max {by(GPU_KEY)} ({GPU_LOST.prometheus}{of_service(spec)}) == 1",
        Said(
            f"A GPU of {spec.service} is lost.",
            f"{place}: it has fallen off the bus, or does nothing before it is reset.",
        ),
        links,
    )


def _throttled(spec: Spec) -> str:
    series = GPU_THROTTLE.prometheus + of_service(spec, **{f"{LABELS[REASON]}=~": "|".join(THROTTLE_REASONS)})
    share = f"rate({series}[{duration_text(THROTTLE_WINDOW_S)}])"
    return f"max {by(GPU_KEY)} ({share}) > {promql.number(THROTTLE_SHARE)}"


def _faulty(spec: Spec) -> str:
    series = GPU_ERRORS.prometheus + of_service(spec, **{f"{LABELS[ERROR_TYPE]}=~": "|".join(GPU_ERROR_TYPES)})
    errors = f"sum {by(GPU_KEY)} (increase({series}[{duration_text(GPU_ERROR_WINDOW_S)}])) > 0"
    states = (
        f"max {by(GPU_KEY)} ({metric.prometheus}{of_service(spec)}) == 1"
        for metric in (GPU_REMAP_FAILED, GPU_REMAP_PENDING)
    )
    return "\nor\n".join((errors, *states))


def dcgm_faulty(matchers: str) -> str:
    """What dcgm-exporter says of faulty GPUs; `matchers` choose among them, as `namespace="llm"`.

    Its XID is the number of the last one: a change says that there was another, and one of the same number is not seen.
    """
    selector, window = f"{{{matchers}}}" if matchers else "", duration_text(GPU_ERROR_WINDOW_S)
    xid = DCGM_XID + selector
    own_making = " or ".join(f"{xid} == {number}" for number in APPLICATION_XIDS)
    ours = f'label_replace({GPU_MEMORY_LIMIT.prometheus}, "{DCGM_GPU_LABEL}", "$1", "{LABELS[HW_ID]}", "(.+)")'
    return (
        f"(\n  (changes({xid}[{window}]) > 0 and {xid} > 0)\n    unless ({own_making})\n"
        f"  or increase({DCGM_UNCORRECTABLE_ROWS}{selector}[{window}]) > 0\n"
        f"  or {DCGM_ROW_REMAP_FAILED}{selector} > 0\n)\n"
        f"unless {on((DCGM_GPU_LABEL,))} {ours}"
    )
