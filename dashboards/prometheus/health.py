"""Whether the figures themselves can be relied on, in PromQL: what Prometheus, sidecars and collectors say of that."""

from dataclasses import dataclass

from dashboards.model import Query
from dashboards.prometheus.pieces import ask, folded, legend, rate, series
from dashboards.prometheus.selection import Selection
from slo import promql
from slo.promql import INSTANCE_LABEL, JOB_LABEL, SERVICE_KEY
from slo.quantity import HOUR_S
from slo.signals import COMMIT_TIME, COMMITS, EVALUATION_AGE, HEARTBEAT, TICKS

LATELY = "1d"
GROUP_LABEL = "rule_group"
OURS = {f"{GROUP_LABEL}=~": ".*;firsttoken:.*"}


@dataclass(frozen=True, slots=True)
class PrometheusHealth:
    """Health of the telemetry of what the variables of `selection` choose; collectors belong to all services."""

    selection: Selection

    def heard(self) -> Query:
        alive = folded("group", SERVICE_KEY, series(HEARTBEAT, self.selection.of_metric(HEARTBEAT)))
        text = f"clamp_max(count_over_time(({alive})[{HOUR_S // 60}m:1m]) / {HOUR_S // 60}, 1)"
        return ask(text, (HEARTBEAT.prometheus,), legend=legend(SERVICE_KEY))

    def instances(self) -> tuple[Query, ...]:
        """Records of the generated rules keep in mind for an hour who has been heard."""
        key, of = (*SERVICE_KEY, INSTANCE_LABEL), self.selection.of_metric(HEARTBEAT)
        heard = folded("max", key, series(promql.LAST_HEARD, of))
        lived = folded("max", key, series(HEARTBEAT, of))
        return (
            ask(f"time() - {heard}", (promql.LAST_HEARD,), ref="silent", shape="table"),
            ask(f"1000 * (time() - {lived})", (HEARTBEAT.prometheus,), ref="since", shape="table"),
        )

    def evaluation_age(self) -> Query:
        text = folded("min", (JOB_LABEL,), series(EVALUATION_AGE, {}))
        return ask(text, (EVALUATION_AGE.prometheus,), legend=legend((JOB_LABEL,)))

    def scrapes(self) -> tuple[Query, ...]:
        heard = (f"last_over_time({series(metric, {})}[{LATELY}])" for metric in (HEARTBEAT, TICKS))
        ours = f"group by ({JOB_LABEL}) ({' or '.join(heard)})"
        text = f"min by ({JOB_LABEL}, {INSTANCE_LABEL}) (up and on ({JOB_LABEL}) {ours})"
        reads = ("up", HEARTBEAT.prometheus, TICKS.prometheus)
        return (ask(text, reads, legend=legend((JOB_LABEL, INSTANCE_LABEL))),)

    def rule_failures(self) -> tuple[Query, ...]:
        records = {"failed": promql.RULE_FAILURES, "missed": promql.RULE_GROUPS_MISSED}
        return tuple(
            ask(folded("sum", (GROUP_LABEL,), rate(series(record, OURS))), (record,), ref=ref,
                legend=legend((GROUP_LABEL,), ref))
            for ref, record in records.items()
        )  # fmt: skip

    def commit_time(self) -> tuple[Query, ...]:
        key = (JOB_LABEL, INSTANCE_LABEL)
        taken, count = (folded("sum", key, rate(series(metric, {}))) for metric in (COMMIT_TIME, COMMITS))
        return (ask(f"{taken}\n/ ({count} > 0)", (COMMIT_TIME.prometheus, COMMITS.prometheus), legend=legend(key)),)

    def errors_of_quantiles(self) -> tuple[Query, ...]:
        return ()

    def intake(self) -> tuple[Query, ...]:
        return ()
