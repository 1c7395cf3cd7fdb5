"""How long requests took, in PromQL, from the classic buckets of the sidecars' histograms.

Counts are added before a quantile is taken, never quantiles averaged. A quantile is exact only at a bucket's edge, and
every objective's own threshold is one. The engine's own histograms have the label `source`, and are never added in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from dashboards.model import Query
from dashboards.prometheus.pieces import RATE_INTERVAL, ask, folded, legend, rate, series
from dashboards.prometheus.selection import Labels, Selection
from dashboards.promise import quantile_name
from slo.promql import INSTANCE_LABEL, SERVICE_KEY, SUBJECT_KEY
from slo.quantity import plain
from slo.signals import CENSORED, LABELS, PROMPT_TOKENS, SIGNAL, SOURCE, TTFT_BY_PROMPT, Metric

ENGINE_SOURCE = "engine"
EDGE = "le"
PAST = {"yesterday": "1d", "a week ago": "7d"}


@dataclass(frozen=True, slots=True)
class PrometheusLatencies:
    """Latencies of what the variables of `selection` choose."""

    selection: Selection

    def percentiles(self, metric: Metric, quantiles: Sequence[Decimal]) -> tuple[Query, ...]:
        """All of them have the same exemplars: one asks for them."""
        return tuple(
            ask(
                self._quantile(metric, quantile, SUBJECT_KEY),
                (metric.prometheus,),
                ref=quantile_name(quantile),
                legend=legend(SUBJECT_KEY, quantile_name(quantile)),
                exemplars=quantile == max(quantiles),
            )
            for quantile in quantiles
        )

    def buckets(self, metric: Metric) -> Query:
        counted = series(f"{metric.prometheus}_bucket", self._of_sidecars(metric))
        text = folded("sum", (EDGE,), f"increase({counted}[{RATE_INTERVAL}])")
        return ask(text, (metric.prometheus,), legend=f"{{{{{EDGE}}}}}", shape="buckets", exemplars=True)

    def percentile_by_instance(self, metric: Metric, quantile: Decimal) -> tuple[Query, ...]:
        key = (*SERVICE_KEY, INSTANCE_LABEL)
        text = self._quantile(metric, quantile, key)
        return (ask(text, (metric.prometheus,), legend=legend(key, quantile_name(quantile))),)

    def mean_by_instance(self, metric: Metric) -> Query:
        key = (*SERVICE_KEY, INSTANCE_LABEL)
        return ask(self._mean(metric, key, self._of_sidecars(metric)), (metric.prometheus,), legend=legend(key))

    def beside_engine(self, metric: Metric, quantile: Decimal) -> tuple[Query, ...]:
        engine = {**self.selection.of_metric(metric), LABELS[SOURCE]: ENGINE_SOURCE}
        own = self._quantile(metric, quantile, SUBJECT_KEY)
        told = self._quantile(metric, quantile, SUBJECT_KEY, labels=engine)
        name, reads = quantile_name(quantile), (metric.prometheus,)
        return (
            ask(own, reads, ref="sidecar", legend=legend(SUBJECT_KEY, f"{name} at the sidecar")),
            ask(told, reads, ref="engine", legend=legend(SUBJECT_KEY, f"{name} by the engine")),
        )

    def by_prompt(self, _: Decimal, /) -> Query:
        """The mean: pages of sidecars show no buckets of each class."""
        key = (*SERVICE_KEY, LABELS[PROMPT_TOKENS])
        text = self._mean(TTFT_BY_PROMPT, key, self.selection.of_metric(TTFT_BY_PROMPT))
        return ask(text, (TTFT_BY_PROMPT.prometheus,), legend=legend(key, "tokens, mean"))

    def censored(self) -> Query:
        key = (*SERVICE_KEY, LABELS[SIGNAL])
        counted = rate(series(f"{CENSORED.prometheus}_count", self.selection.of_metric(CENSORED)))
        return ask(folded("sum", key, counted), (CENSORED.prometheus,), legend=legend(key))

    def against_past(self, metric: Metric, quantile: Decimal) -> tuple[Query, ...]:
        reads, name = (metric.prometheus,), quantile_name(quantile)
        now = ask(self._quantile(metric, quantile, SUBJECT_KEY), reads, ref="now", legend=legend(SUBJECT_KEY, name))
        before = (
            ask(
                self._quantile(metric, quantile, SUBJECT_KEY, offset=offset),
                reads,
                ref=f"ago{offset}",
                legend=legend(SUBJECT_KEY, f"{name} {when}"),
                look="thin",
            )
            for when, offset in PAST.items()
        )
        return (now, *before)

    def _of_sidecars(self, metric: Metric) -> Labels:
        return {**self.selection.of_metric(metric), f"{LABELS[SOURCE]}!=": ENGINE_SOURCE}

    def _mean(self, metric: Metric, key: Sequence[str], labels: Labels) -> str:
        taken, count = (
            folded("sum", key, rate(series(f"{metric.prometheus}_{part}", labels))) for part in ("sum", "count")
        )
        return f"{taken}\n/ ({count} > 0)"

    def _quantile(
        self,
        metric: Metric,
        quantile: Decimal,
        key: Sequence[str],
        *,
        labels: Labels | None = None,
        offset: str = "",
    ) -> str:
        counted = series(f"{metric.prometheus}_bucket", self._of_sidecars(metric) if labels is None else labels)
        return f"histogram_quantile({plain(quantile)}, {folded('sum', (EDGE, *key), rate(counted, offset=offset))})"
