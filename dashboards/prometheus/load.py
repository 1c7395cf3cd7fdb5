"""How much is asked of a service, and how much it is known to bear, in PromQL."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.model import Query
from dashboards.prometheus.figures import real
from dashboards.prometheus.latencies import ENGINE_SOURCE
from dashboards.prometheus.pieces import ask, folded, legend, rate, series
from dashboards.prometheus.selection import Labels, Selection
from dashboards.promise import Limit
from dashboards.subjects import REFUSED_OUTCOMES
from slo.promql import SERVICE_KEY, number, on, quoted
from slo.signals import (
    E2E,
    ENGINE_RUNNING,
    IN_FLIGHT,
    LABELS,
    OUTCOME,
    REQUESTS,
    SERVICE_LABEL,
    SOURCE,
    TOKEN_TYPE,
    TOKENS,
    Metric,
)

RANGE, STEP = "$__range", "$__interval"


@dataclass(frozen=True, slots=True)
class PrometheusLoad:
    """The load on what the variables of `selection` choose."""

    selection: Selection

    def offered(self) -> Query:
        return ask(self._requests(), (REQUESTS.prometheus,), legend=legend(SERVICE_KEY))

    def peak(self) -> Query:
        most = f"max_over_time(({self._requests()})[{RANGE}:{STEP}])"
        return ask(most, (REQUESTS.prometheus,), legend=legend(SERVICE_KEY), shape="latest")

    def headroom(self, certified: Sequence[Limit]) -> Query:
        known = "\nor ".join(
            f'label_replace(vector({number(limit.value)}), "{SERVICE_LABEL}", {quoted(limit.service)}, "", "")'
            for limit in certified
        )
        text = f"1 - {self._requests()}\n/ {on((SERVICE_LABEL,))} group_left () ({known})"
        return ask(text, (REQUESTS.prometheus,), legend=legend(SERVICE_KEY))

    def concurrency(self) -> tuple[Query, ...]:
        """By Little's law the requests in flight are the arrivals per second times the mean time in the service: the
        seconds spent in it per second."""
        spent = rate(self._series(E2E, {f"{LABELS[SOURCE]}!=": ENGINE_SOURCE}, part="_sum"))
        return (
            ask(
                folded("sum", SERVICE_KEY, self._series(IN_FLIGHT)),
                (IN_FLIGHT.prometheus,),
                ref="counted",
                legend=legend(SERVICE_KEY, "counted"),
            ),
            ask(
                folded("sum", SERVICE_KEY, spent),
                (E2E.prometheus,),
                ref="little",
                legend=legend(SERVICE_KEY, "by Little's law"),
            ),
        )

    def refused(self) -> Query:
        refused = self._requests({f"{LABELS[OUTCOME]}=~": "|".join(REFUSED_OUTCOMES)})
        return ask(f"{refused}\n/ ({self._requests()} > 0)", (REQUESTS.prometheus,), legend=legend(SERVICE_KEY))

    def speed(self) -> Query:
        written = folded("sum", SERVICE_KEY, rate(self._series(TOKENS, {LABELS[TOKEN_TYPE]: "output"})))
        running = folded("sum", SERVICE_KEY, self._series(ENGINE_RUNNING))
        reads = (TOKENS.prometheus, ENGINE_RUNNING.prometheus)
        return ask(f"{written}\n/ ({running} > 0)", reads, legend=legend(SERVICE_KEY))

    def _requests(self, labels: Labels | None = None) -> str:
        return folded("sum", SERVICE_KEY, rate(self._series(REQUESTS, {**real(REQUESTS), **(labels or {})})))

    def _series(self, metric: Metric, labels: Labels | None = None, *, part: str = "") -> str:
        return series(metric.prometheus + part, {**self.selection.of_metric(metric), **(labels or {})})
