"""NVIDIA's dcgm-exporter: the fields that its list of counters has on by default, by GPU.

It knows GPUs and hosts, no services: of the dashboard's variables only the host chooses among its series.
"""

from dataclasses import dataclass
from decimal import Decimal

from dashboards.model import Query
from dashboards.prometheus.pieces import ask, folded, legend, series
from dashboards.prometheus.selection import Labels, Selection
from slo.promql import number
from slo.signals import DCGM_GPU_LABEL, DCGM_XID

HOST_LABEL = "Hostname"
UTILIZATION, ENGINE_ACTIVE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
TENSOR_ACTIVE, MEMORY_ACTIVE = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"
MEMORY_USED, MEMORY_FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
POWER, TEMPERATURE, CLOCK = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK"
XID = DCGM_XID
GPU_KEY = (HOST_LABEL, "gpu", DCGM_GPU_LABEL)


@dataclass(frozen=True, slots=True)
class PrometheusDcgm:
    """Fields of the GPUs on the hosts that the variables of `selection` choose."""

    selection: Selection

    def figure(self, field: str, *, worth: Decimal = Decimal(1)) -> Query:
        text = folded("max", GPU_KEY, series(field, self._chosen))
        shown = text if worth == 1 else f"{text} * {number(worth)}"
        return ask(shown, (field,), legend=legend(GPU_KEY[:2]))

    def memory_share(self) -> Query:
        used, free = (folded("max", GPU_KEY, series(field, self._chosen)) for field in (MEMORY_USED, MEMORY_FREE))
        return ask(f"{used}\n/ ({used} + {free})", (MEMORY_USED, MEMORY_FREE), legend=legend(GPU_KEY[:2]))

    @property
    def _chosen(self) -> Labels:
        return self.selection.chosen(HOST_LABEL)
