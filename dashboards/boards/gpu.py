"""GPU: what the devices under the engines do, as sidecars read it from the driver and as NVIDIA's dcgm-exporter does.

Utilization says only that some kernel ran; memory is held whether or not it is used. What explains latency is clocks
held back, errors, and a device that is gone.
"""

from collections.abc import Sequence
from decimal import Decimal

from dashboards.boards.parts import THIRD
from dashboards.boards.plan import Given, Plan
from dashboards.grafana.grid import Panel, Section
from dashboards.grafana.panels import timeseries
from dashboards.model import SHARE, YES_NO, About
from dashboards.prometheus import dcgm
from dashboards.questions import Dcgm, Source
from slo.promql import INSTANCE_LABEL, SERVICE_KEY
from slo.signals import (
    ERROR_TYPE,
    GPU_ENERGY,
    GPU_ERRORS,
    GPU_LAST_XID,
    GPU_LOST,
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
    HW_NAME,
    LABELS,
    REASON,
    Metric,
)

BY_GPU = (*SERVICE_KEY, LABELS[HW_NAME], LABELS[HW_ID])
NO_GPU = "No GPU is read"
NO_FAULT = "None so far"
PERCENT, MIB, MHZ = Decimal("0.01"), Decimal(1 << 20), Decimal(1_000_000)


def sections(source: Source, _: Given) -> tuple[Section, ...]:
    """Everything on the page; slo.yaml says nothing of GPUs."""
    return (
        Section("Work, as sidecars read it", _work(source)),
        Section("Trouble, as sidecars read it", _trouble(source)),
        Section("By dcgm-exporter", _by_dcgm(source.dcgm) if source.dcgm else ()),
    )


PLAN = Plan(
    "gpu",
    "GPU",
    "Devices under the engines: work, memory, power and heat, clocks held back, errors; ours and dcgm-exporter's.",
    (*SERVICE_KEY, INSTANCE_LABEL, LABELS[HW_ID], dcgm.HOST_LABEL),
    sections,
)


def _gauge(source: Source, title: str, metric: Metric, unit: str, *, most: Decimal | None = None) -> Panel:
    about = About(title, metric.description, unit, width=THIRD, empty=NO_GPU, most=most)
    return timeseries(about, (source.figures.gauge(metric, BY_GPU, fold="max"),))


def _work(source: Source) -> tuple[Panel, ...]:
    drawn = About("Power", "Power drawn, beside the limit that is enforced.", "watt", empty=NO_GPU)
    limit = source.figures.gauge(GPU_POWER_LIMIT, BY_GPU, fold="max", name="limit", ref="limited")
    spent = About("Energy", f"{GPU_ENERGY.description} As watts.", "watt", empty=NO_GPU)
    return (
        _gauge(source, "Time with any kernel", GPU_UTILIZATION, SHARE, most=Decimal(1)),
        _gauge(source, "Memory allocated", GPU_MEMORY_UTILIZATION, SHARE, most=Decimal(1)),
        _gauge(source, "Memory allocated, in bytes", GPU_MEMORY_USAGE, "bytes"),
        timeseries(drawn, (source.figures.gauge(GPU_POWER, BY_GPU, fold="max", ref="drawn"), limit)),
        timeseries(spent, (source.figures.rate(GPU_ENERGY, BY_GPU),)),
        _gauge(source, "Temperature", GPU_TEMPERATURE, "celsius"),
    )


def _trouble(source: Source) -> tuple[Panel, ...]:
    held = About(
        "Clocks held back",
        "Share of the time in which each reason held clocks back: power, heat, or another part of the machine.",
        SHARE, empty=NO_GPU, most=Decimal(1),
    )  # fmt: skip
    errors = About(
        "Errors", "ECC errors and XIDs per second, by kind; xid_application is a program's own fault.",
        "eps", empty=NO_GPU,
    )  # fmt: skip
    return (
        timeseries(held, (source.figures.rate(GPU_THROTTLE, (*BY_GPU, LABELS[REASON])),)),
        timeseries(errors, (source.figures.rate(GPU_ERRORS, (*BY_GPU, LABELS[ERROR_TYPE])),)),
        _last_xid(source),
        _gauge(source, "Rows remapped", GPU_REMAPPED_ROWS, "short"),
        timeseries(
            About(
                "Remapping waits or failed",
                "Whether a row waits for a reset, and whether one could not be remapped.",
                YES_NO,
                empty=NO_GPU,
                most=Decimal(1),
            ),
            (
                source.figures.gauge(GPU_REMAP_PENDING, BY_GPU, fold="max", name="pending", ref="pending"),
                source.figures.gauge(GPU_REMAP_FAILED, BY_GPU, fold="max", name="failed", ref="failed"),
            ),
        ),
        _gauge(source, "Lost", GPU_LOST, YES_NO, most=Decimal(1)),
    )


def _last_xid(source: Source) -> Panel:
    about = About("Last XID", GPU_LAST_XID.description, "none", empty=NO_FAULT)
    return timeseries(about, (source.figures.gauge(GPU_LAST_XID, BY_GPU, fold="max"),))


DCGM_FIGURES: Sequence[tuple[str, str, str, str, Decimal]] = (
    ("Utilization", "Share of the time with any kernel.", dcgm.UTILIZATION, SHARE, PERCENT),
    ("Engine active", "Share of the time with graphics or compute at work.", dcgm.ENGINE_ACTIVE, SHARE, Decimal(1)),
    ("Tensor cores active", "Share of cycles with a tensor core at work.", dcgm.TENSOR_ACTIVE, SHARE, Decimal(1)),
    ("Memory interface active", "Share of cycles that move memory.", dcgm.MEMORY_ACTIVE, SHARE, Decimal(1)),
    ("Memory in use", "Device memory in use.", dcgm.MEMORY_USED, "bytes", MIB),
    ("Power drawn", "Power that the device draws.", dcgm.POWER, "watt", Decimal(1)),
    ("Heat", "Temperature of the chip.", dcgm.TEMPERATURE, "celsius", Decimal(1)),
    ("Clock", "Clock of the multiprocessors.", dcgm.CLOCK, "hertz", MHZ),
    ("Number of the last XID", "0: there was none.", dcgm.XID, "none", Decimal(1)),
)
"""Title, what it is, field, unit, and what one of the field is in it."""
NO_DCGM = "No dcgm-exporter is scraped"


def _by_dcgm(of: Dcgm) -> tuple[Panel, ...]:
    share = About(
        "Share of memory in use", "Device memory in use, over all that there is.", SHARE, empty=NO_DCGM, most=Decimal(1)
    )
    figures = (
        timeseries(
            About(title, about, unit, empty=NO_DCGM, most=Decimal(1) if unit == SHARE else None),
            (of.figure(field, worth=one),),
        )
        for title, about, field, unit, one in DCGM_FIGURES
    )
    return (*figures, timeseries(share, (of.memory_share(),)))
