"""What went wrong and what changed, in PromQL: alerts of the generated rules, drift by the collector, starts."""

from dataclasses import dataclass

from dashboards.model import Query
from dashboards.prometheus.pieces import ask, folded, legend, rate, series
from dashboards.prometheus.selection import Selection
from slo import promql
from slo.promql import COUNT_KEY, INSTANCE_LABEL, SERVICE_KEY, SUBJECT_KEY, TIER_LABEL, VERDICT_KEY, by, on
from slo.signals import DRIFT_KIND, HEARTBEAT, LABELS, LATENCY, LATENCY_DRIFT, RESULT, SIGNAL, SLO_EVENTS, SOURCE

ALERT_KEY = ("alertname", "severity", "notify", *VERDICT_KEY, TIER_LABEL)
SINCE = f"{promql.ALERTS}_FOR_STATE"
DRIFT_KEY = (*SUBJECT_KEY, LABELS[SIGNAL], LABELS[SOURCE], LABELS[DRIFT_KIND])
RANGE = "$__range"


@dataclass(frozen=True, slots=True)
class PrometheusIncidents:
    """Incidents of what the variables of `selection` choose."""

    selection: Selection

    def alerts(self) -> Query:
        text = f"1000 * max {by(ALERT_KEY)} (\n  {self._since()}\n  and ignoring (alertstate) {self._firing()}\n)"
        return ask(text, (promql.ALERTS, SINCE), shape="table", ref="since")

    def firing(self) -> Query:
        text = f'count by (notify) ({self._firing()})\nor label_replace(vector(0), "notify", "page", "", "")'
        return ask(text, (promql.ALERTS,), legend="{{notify}}")

    def past(self) -> Query:
        began = f"max_over_time({self._since()}[{RANGE}])"
        fired = f"max_over_time({self._firing()}[{RANGE}])"
        text = f"1000 * max {by(ALERT_KEY)} (\n  {began}\n  and ignoring (alertstate) {fired}\n)"
        return ask(text, (promql.ALERTS, SINCE), shape="table", ref="since")

    def drift(self) -> Query:
        """0 while the collector has latencies that might shift."""
        shifted = folded("max", DRIFT_KEY, series(LATENCY_DRIFT, self.selection.of_model))
        watched = folded("group", SERVICE_KEY, series(LATENCY, self.selection.of_model))
        text = f"{shifted}\nor {on(SERVICE_KEY)} 0 * {watched}"
        return ask(text, (LATENCY_DRIFT.prometheus, LATENCY.prometheus), legend=legend(DRIFT_KEY))

    def starts(self) -> Query:
        lived = series(HEARTBEAT, self.selection.of_metric(HEARTBEAT))
        text = f"1000 * (time() - {folded('max', (*SERVICE_KEY, INSTANCE_LABEL), lived)})"
        return ask(text, (HEARTBEAT.prometheus,), shape="table", ref="since")

    def contracts(self) -> Query:
        counted = rate(series(SLO_EVENTS, self.selection.of_objective))
        text = folded("sum", (*COUNT_KEY, LABELS[RESULT]), counted)
        return ask(text, (SLO_EVENTS.prometheus,), shape="table", ref="events")

    def _firing(self) -> str:
        return series(promql.ALERTS, {"alertstate": "firing", **self.selection.of_alert})

    def _since(self) -> str:
        return series(SINCE, self.selection.of_alert)
