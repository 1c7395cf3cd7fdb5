"""Any gauge or counter of the sidecars and collectors, in PromQL."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.model import Fold, Query
from dashboards.prometheus.pieces import ask, folded, legend, rate, series
from dashboards.prometheus.selection import Labels, Selection
from slo.promql import INSTANCE_LABEL, JOB_LABEL, SERVICE_KEY, on
from slo.signals import CLASS, LABELS, REQUESTS, SYNTHETIC_CLASS, Metric

TELLER_LABELS = (*SERVICE_KEY, INSTANCE_LABEL, JOB_LABEL)
"""What tells apart those who tell; other labels tell apart what they tell of."""


def real(metric: Metric) -> Labels:
    """What keeps synthetic requests out of their count."""
    return {f"{LABELS[CLASS]}!=": SYNTHETIC_CLASS} if metric is REQUESTS else {}


@dataclass(frozen=True, slots=True)
class PrometheusFigures:
    """Figures of what the variables of `selection` choose."""

    selection: Selection

    def keeps(self, _: Metric, /) -> bool:
        return True

    def gauge(
        self, metric: Metric, by: Sequence[str] = SERVICE_KEY, *, fold: Fold = "sum", name: str = "", ref: str = "A"
    ) -> Query:
        text = folded(fold, by, series(metric, self.selection.of_metric(metric)))
        return ask(text, (metric.prometheus,), ref=ref, legend=legend(by, name))

    def rate(
        self,
        metric: Metric,
        by: Sequence[str] = SERVICE_KEY,
        *,
        name: str = "",
        ref: str = "A",
        alive: Metric | None = None,
    ) -> Query:
        counted = series(metric, {**self.selection.of_metric(metric), **real(metric)})
        text, reads = folded("sum", by, rate(counted)), [metric.prometheus]
        if alive is not None:
            whose = tuple(label for label in by if label in TELLER_LABELS)
            known = folded("group", whose, series(alive, self.selection.of_metric(alive)))
            text, reads = f"{text}\nor {on(whose)} 0 * {known}", [metric.prometheus, alive.prometheus]
        return ask(text, tuple(reads), ref=ref, legend=legend(by, name))
