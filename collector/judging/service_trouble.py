"""Everything that can be wrong with a service beside the burn of its objectives (DESIGN 4.6).

Names, numbers and times of these alerts stand in `slo.trouble`, which the Prometheus rules read too.
"""

from collections.abc import Iterator, Mapping

from collector.judging import certified_trouble, gpu_trouble, policy, saturation, share_trouble, trouble
from collector.judging.certified_trouble import CertifiedRps
from collector.values.alerting import Alert, AlertKey, Wanted
from collector.values.columns import Columns
from collector.values.verdicts import BudgetRow
from collector.windowing.windows import Windows


def wanted(
    windows: Windows,
    budgets: Columns[BudgetRow],
    *,
    alerts: Mapping[AlertKey, Alert],
    certified_rps: CertifiedRps,
    now_s: int,
) -> Iterator[Wanted]:
    """The alerts that should pend or fire now. `alerts` are those that were pending or firing."""
    yield from policy.wanted(windows.plan.specs, budgets)
    yield from trouble.wanted(windows, alerts=alerts, now_s=now_s)
    yield from share_trouble.wanted(windows, now_s=now_s)
    yield from saturation.wanted(windows, alerts=alerts, now_s=now_s)
    yield from certified_trouble.wanted(windows, certified_rps=certified_rps, alerts=alerts, now_s=now_s)
    yield from gpu_trouble.wanted(windows, alerts=alerts, now_s=now_s)
