"""One evaluation: from the windows that end now, every figure and every alert (DESIGN 4.4 to 4.6, 5).

Pure: what it gives depends on the windows, the alerts that were, and the moment. Figures of a window without events
stand with counts of 0 and no burn; an unknown value is None, never 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from collector.judging import drift_alert, service_trouble
from collector.judging.burning import Promise, judge
from collector.judging.certified_trouble import CertifiedRps
from collector.judging.percentiles import PercentileRow, percentiles
from collector.judging.track import tracks
from collector.values.alerting import Alert, AlertKey, next_alerts
from collector.values.columns import Columns
from collector.values.verdicts import BudgetRow, BurnRow, DriftRow
from collector.windowing.windows import Windows
from slo import burn


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All that one tick says. `alerts` are those pending, firing or resolved just now; `transitions` those whose state
    changed now; `drifts` those that were open before."""

    at_s: int
    percentiles: Columns[PercentileRow]
    burns: Columns[BurnRow]
    budgets: Columns[BudgetRow]
    alerts: tuple[Alert, ...]
    transitions: tuple[Alert, ...]
    drifts: tuple[DriftRow, ...] = ()

    def __hash__(self) -> int:
        """By itself, not by thousands of figures: what is made of an evaluation is made once."""
        return id(self)


@dataclass(frozen=True, slots=True)
class Given:
    """What is given beside the windows: drifts that last, alerts that ended lately, what services are certified for."""

    drifts: tuple[DriftRow, ...] = ()
    ended: tuple[Alert, ...] = ()
    certified_rps: CertifiedRps = field(default_factory=dict)


def evaluate(
    windows: Windows, *, alerts: Mapping[AlertKey, Alert], now_s: int, given: Given | None = None
) -> Evaluation:
    """Judge the windows, which were advanced to this very moment. `alerts` are those pending or firing after the last
    evaluation; what is not `given` is not judged."""
    given = Given() if given is None else given
    judgement = judge(windows, list(_promises(windows)), alerts=alerts, ended=given.ended)
    troubles = service_trouble.wanted(
        windows, judgement.budgets, alerts=alerts, certified_rps=given.certified_rps, now_s=now_s
    )
    drifting = drift_alert.wanted(given.drifts, plan=windows.plan, now_s=now_s)
    held, changed = next_alerts([*judgement.wanted, *troubles, *drifting], alerts, now_s=now_s)
    return Evaluation(now_s, percentiles(windows), judgement.burns, judgement.budgets, held, changed, given.drifts)


def _promises(windows: Windows) -> Iterator[Promise]:
    for spec in windows.plan.specs:
        for objective in spec.objectives:
            tiers, kept_s = burn.tiers(objective), burn.windows_s(objective)
            for environment in windows.environments(spec):
                for found in tracks(windows, spec, objective, environment).values():
                    yield Promise(found, tiers, kept_s)
