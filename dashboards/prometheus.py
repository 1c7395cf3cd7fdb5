"""The overview's questions in PromQL: over the records of the generated rules and the sidecars' own series.

No collector is needed. Records carry, beside each model, the model `*` for all of them together; what sidecars count
does not. So where an objective is judged, `_together` gives the `*` when it is among the models chosen (All chooses
it), else each chosen model for itself.

Variables stand in regular expressions only, in Grafana's own escaping, so that any model name may be chosen; All is
`.*`, which also matches a label that is not there. `$__rate_interval` is the only window that is not a record's own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from dashboards.model import PROMETHEUS, Datasource, Look, Marks, Query, Shape, Variable
from dashboards.promise import Limit, quantile_name
from dashboards.source import NOT_SPENT, STATES
from slo import promql
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY, TIER_LABEL, VERDICT_KEY, by, number, on, selector
from slo.quantity import duration_text, plain
from slo.signals import (
    ALL_MODELS,
    CLASS,
    ENGINE_RUNNING,
    ENGINE_WAITING,
    ENVIRONMENT_LABEL,
    HEARTBEAT,
    IN_FLIGHT,
    KV_OCCUPANCY,
    LABELS,
    LAST_TOKEN_AGE,
    MODEL_LABEL,
    OUTCOME,
    OVERDUE,
    REQUESTS,
    RESULT,
    SERVICE_LABEL,
    SIGNAL,
    SLO_EVENTS,
    SOURCE,
    SYNTHETIC_CLASS,
    WAITING_FIRST_TOKEN,
    Metric,
)

EVERYTHING = ".*"
RATE_INTERVAL = "$__rate_interval"
ENGINE_SOURCE = "engine"
PROMISE_KEY = (SERVICE_LABEL, OBJECTIVE_LABEL)
OBJECTIVE_KEY = (*SERVICE_KEY, OBJECTIVE_LABEL)
ALERT_KEY = ("alertname", "severity", "notify", *VERDICT_KEY, TIER_LABEL)

Labels = Mapping[str, str]
OF_SERVICE: Labels = {f"{label}=~": f"${label}" for label in SERVICE_KEY}
OF_MODEL: Labels = {**OF_SERVICE, f"{MODEL_LABEL}=~": f"${MODEL_LABEL}"}
OF_ENGINE: Labels = {**OF_SERVICE, f"{MODEL_LABEL}=~": f"(${MODEL_LABEL})?"}
"""What an engine says of itself carries no model when it serves several."""
OF_PROMISE: Labels = {f"{label}=~": f"${label}" for label in PROMISE_KEY}
OF_OBJECTIVE: Labels = {**OF_MODEL, f"{OBJECTIVE_LABEL}=~": f"${OBJECTIVE_LABEL}"}
OF_ALERT: Labels = {
    "alertname=~": "LLM.+",
    f"{SERVICE_LABEL}!=": "",
    **OF_SERVICE,
    f"{MODEL_LABEL}=~": f"(${MODEL_LABEL})?|[*]",
    f"{OBJECTIVE_LABEL}=~": f"(${OBJECTIVE_LABEL})?",
}
"""Alerts of a whole service have neither model nor objective: they stay whatever is chosen of these."""

OBJECTIVE_LEGEND = " ".join(f"{{{{{label}}}}}" for label in (*SERVICE_KEY, OBJECTIVE_LABEL, MODEL_LABEL))
SERVICE_LEGEND = " ".join(f"{{{{{label}}}}}" for label in SERVICE_KEY)
MODEL_LEGEND = f"{SERVICE_LEGEND} {{{{{MODEL_LABEL}}}}}"

Write = Callable[[Labels], str]
_query = partial(Query, PROMETHEUS)


@dataclass(frozen=True, slots=True)
class PrometheusSource:
    """Figures from a Prometheus that scrapes sidecars and evaluates the generated rules. `periods_s` are the periods
    of all objectives, longest first."""

    periods_s: tuple[int, ...]

    @property
    def datasource(self) -> Datasource:
        return PROMETHEUS

    def variables(self) -> tuple[Variable, ...]:
        alive, judged = HEARTBEAT.prometheus, SLO_EVENTS.prometheus
        of_environment = {key: value for key, value in OF_SERVICE.items() if key.startswith(ENVIRONMENT_LABEL)}
        return (
            _variable(ENVIRONMENT_LABEL, "Environment", alive, {}),
            _variable(SERVICE_LABEL, "Service", alive, of_environment),
            _variable(MODEL_LABEL, "Model", judged, OF_SERVICE),
            _variable(OBJECTIVE_LABEL, "Objective", judged, OF_SERVICE),
        )

    def marks(self) -> tuple[Marks, ...]:
        firing = promql.ALERTS + selector({"alertstate": "firing", **OF_ALERT})
        words = f"{{{{{SERVICE_LABEL}}}}} {{{{{OBJECTIVE_LABEL}}}}} {{{{{MODEL_LABEL}}}}}"
        return (Marks("Firing alerts", firing, "{{alertname}}", words, f"severity,{TIER_LABEL}"),)

    def budget_left(self) -> Query:
        return self._budget_left("latest")

    def budget_over_time(self) -> Query:
        return self._budget_left("series")

    def exhausted_in(self) -> Query:
        return _query(_together(_ends), ENDS_READS, legend=OBJECTIVE_LEGEND, shape="latest")

    def state(self) -> Query:
        promised = f"0 * group {by(PROMISE_KEY)} ({promql.OBJECTIVE_TARGET}{selector(OF_PROMISE)})"
        text = f"(\n{_together(_state)}\n)\nor {on(PROMISE_KEY)} {promised}"
        return _query(text, STATE_READS, legend=OBJECTIVE_LEGEND, shape="latest")

    def standing(self, windows_s: Sequence[int]) -> tuple[Query, ...]:
        ask = partial(_query, shape="table")
        promised = f"max {by(PROMISE_KEY)} ({promql.OBJECTIVE_TARGET}{selector(OF_PROMISE)})"
        known = f"0 * group {by(VERDICT_KEY)} ({promql.BUDGET_ALLOWANCE}{selector(OF_OBJECTIVE)})"
        target = f"({known} + {on(PROMISE_KEY)} group_left () {promised})\nor {on(PROMISE_KEY)} {promised}"
        state = f"({_state(OF_OBJECTIVE)})\nor {on(PROMISE_KEY)} 0 * {promised}"
        burns = {f"burn{duration_text(window)}": promql.burn_rate(window) for window in windows_s}
        return (
            ask(state, STATE_READS, ref="state"),
            ask(_verdict(promql.BUDGET_REMAINING)(OF_OBJECTIVE), (promql.BUDGET_REMAINING,), ref="left"),
            ask(_ends(OF_OBJECTIVE), ENDS_READS, ref="ends"),
            *(ask(_verdict(record)(OF_OBJECTIVE), (record,), ref=ref) for ref, record in burns.items()),
            ask(self._coverage(OF_OBJECTIVE), self._coverage_reads(), ref="coverage"),
            ask(target, (promql.OBJECTIVE_TARGET,), ref="target"),
        )

    def alerts(self) -> Query:
        since = f"{promql.ALERTS}_FOR_STATE{selector(OF_ALERT)}"
        firing = promql.ALERTS + selector({"alertstate": "firing", **OF_ALERT})
        text = f"1000 * max {by(ALERT_KEY)} (\n  {since}\n  and ignoring (alertstate) {firing}\n)"
        return _query(text, (promql.ALERTS, f"{promql.ALERTS}_FOR_STATE"), shape="table", ref="since")

    def burn(self, long_s: int, short_s: int) -> tuple[Query, ...]:
        windows: dict[int, Look] = {short_s: "thin", long_s: "plain"}
        return tuple(
            _query(
                _together(_verdict(promql.burn_rate(window_s))),
                (promql.burn_rate(window_s),),
                ref="long" if look == "plain" else "short",
                legend=f"{SERVICE_LEGEND} {{{{{OBJECTIVE_LABEL}}}}} {duration_text(window_s)} {{{{{MODEL_LABEL}}}}}",
                look=look,
            )
            for window_s, look in sorted(windows.items(), reverse=True)
        )

    def limits(self, limits: Sequence[Limit]) -> Query:
        by_line: dict[tuple[Decimal, str], list[Limit]] = {}
        for limit in limits:
            by_line.setdefault((limit.value, limit.text), []).append(limit)
        lines = (_line(value, text, found) for (value, text), found in sorted(by_line.items()))
        text = "\nor\n".join(lines)
        return _query(text, (promql.OBJECTIVE_TARGET,), ref="limit", legend="{{limit}}", look="limit")

    def coverage(self) -> Query:
        return _query(_together(self._coverage), self._coverage_reads(), legend=OBJECTIVE_LEGEND)

    def events(self, result: str) -> Query:
        events = SLO_EVENTS.prometheus + selector({**OF_OBJECTIVE, LABELS[RESULT]: result})
        text = f"sum {by(OBJECTIVE_KEY)} ({_rate(events)})"
        return _query(text, (SLO_EVENTS.prometheus,), legend=f"{SERVICE_LEGEND} {{{{{OBJECTIVE_LABEL}}}}}")

    def outcomes(self) -> Query:
        real = {**OF_MODEL, f"{LABELS[CLASS]}!=": SYNTHETIC_CLASS}
        text = f"sum {by((LABELS[OUTCOME],))} ({_rate(REQUESTS.prometheus + selector(real))})"
        return _query(text, (REQUESTS.prometheus,), legend=f"{{{{{LABELS[OUTCOME]}}}}}")

    def in_flight(self) -> tuple[Query, ...]:
        return (
            _sum(IN_FLIGHT, OF_MODEL, ref="inflight", legend=f"{SERVICE_LEGEND} in flight"),
            _sum(WAITING_FIRST_TOKEN, OF_MODEL, ref="waiting", legend=f"{SERVICE_LEGEND} without a first token"),
        )

    def overdue(self) -> Query:
        key = (*SERVICE_KEY, LABELS[SIGNAL])
        text = f"sum {by(key)} ({OVERDUE.prometheus}{selector(OF_MODEL)})"
        return _query(text, (OVERDUE.prometheus,), legend=f"{SERVICE_LEGEND} {{{{{LABELS[SIGNAL]}}}}}")

    def silence(self) -> Query:
        text = f"max {by(SERVICE_KEY)} ({LAST_TOKEN_AGE.prometheus}{selector(OF_SERVICE)})"
        return _query(text, (LAST_TOKEN_AGE.prometheus,), legend=SERVICE_LEGEND)

    def latency(self, metric: Metric, quantiles: Sequence[Decimal]) -> tuple[Query, ...]:
        matchers = selector({**OF_MODEL, f"{LABELS[SOURCE]}!=": ENGINE_SOURCE})
        return tuple(
            _query(
                promql.latency_quantile(metric, plain(quantile), matchers, interval=RATE_INTERVAL),
                (metric.prometheus,),
                ref=quantile_name(quantile),
                legend=f"{MODEL_LEGEND} {quantile_name(quantile)}",
            )
            for quantile in quantiles
        )

    def kv_occupancy(self) -> Query:
        key = (*SERVICE_KEY, MODEL_LABEL)
        text = f"max {by(key)} ({KV_OCCUPANCY.prometheus}{selector(OF_ENGINE)})"
        return _query(text, (KV_OCCUPANCY.prometheus,), legend=MODEL_LEGEND)

    def engine(self) -> tuple[Query, ...]:
        return (
            _sum(ENGINE_RUNNING, OF_ENGINE, ref="running", legend=f"{SERVICE_LEGEND} running"),
            _sum(ENGINE_WAITING, OF_ENGINE, ref="waiting", legend=f"{SERVICE_LEGEND} waiting"),
        )

    def _budget_left(self, shape: Shape) -> Query:
        text = _together(_verdict(promql.BUDGET_REMAINING))
        return _query(text, (promql.BUDGET_REMAINING,), legend=OBJECTIVE_LEGEND, shape=shape)

    def _coverage(self, labels: Labels) -> str:
        """Of the longest window that there is: no objective has one longer than its period."""
        records = (promql.coverage(period_s) for period_s in self.periods_s)
        return f"\nor {on(VERDICT_KEY)} ".join(_verdict(record)(labels) for record in records)

    def _coverage_reads(self) -> tuple[str, ...]:
        return tuple(promql.coverage(period_s) for period_s in self.periods_s)


ENDS_READS = (promql.BUDGET_EXHAUSTED_IN, promql.BUDGET_ALLOWANCE)
STATE_READS = (promql.BUDGET_REMAINING, promql.BUDGET_ALLOWANCE, promql.ALERTS, promql.OBJECTIVE_TARGET)


def _state(labels: Labels) -> str:
    """The place in `STATES`: spent before burning, for then the contract is broken whether or not it burns now."""
    key, own = by(VERDICT_KEY), selector(labels)
    firing = promql.ALERTS + selector({"alertstate": "firing", f"{TIER_LABEL}!=": "", **labels})
    return (
        f"{STATES.index('spent')} * group {key} ({promql.BUDGET_REMAINING}{own} <= 0)\n"
        f"or {STATES.index('burning')} * group {key} ({firing})\n"
        f"or {STATES.index('kept')} * group {key} ({promql.BUDGET_ALLOWANCE}{own} > 0)\n"
        f"or {STATES.index('no data')} * group {key} ({promql.BUDGET_ALLOWANCE}{own})"
    )


def _ends(labels: Labels) -> str:
    ends = _verdict(promql.BUDGET_EXHAUSTED_IN)(labels)
    return f"{ends}\nor 0 * group {by(VERDICT_KEY)} ({promql.BUDGET_ALLOWANCE}{selector(labels)} > 0) - {-NOT_SPENT}"


def _verdict(record: str) -> Write:
    return lambda labels: f"max {by(VERDICT_KEY)} ({record}{selector(labels)})"


def _together(write: Write) -> str:
    all_models = write({**OF_OBJECTIVE, MODEL_LABEL: ALL_MODELS})
    each = write({**OF_OBJECTIVE, f"{MODEL_LABEL}!=": ALL_MODELS})
    return f"(\n{all_models}\n)\nor {on(OBJECTIVE_KEY)} (\n{each}\n)"


def _rate(series: str) -> str:
    return f"rate({series}[{RATE_INTERVAL}])"


def _sum(metric: Metric, labels: Labels, *, ref: str, legend: str) -> Query:
    text = f"sum {by(SERVICE_KEY)} ({metric.prometheus}{selector(labels)})"
    return _query(text, (metric.prometheus,), ref=ref, legend=legend)


def _line(value: Decimal, text: str, limits: Sequence[Limit]) -> str:
    """A constant that is there while one of the objectives that set it is chosen."""
    by_service: dict[str, list[str]] = {}
    for limit in limits:
        by_service.setdefault(limit.service, []).append(limit.objective.replace(".", r"\."))
    set_by = ({SERVICE_LABEL: name, f"{OBJECTIVE_LABEL}=~": "|".join(names)} for name, names in by_service.items())
    chosen = " or ".join(f"{promql.OBJECTIVE_TARGET}{_both(OF_PROMISE, own)}" for own in set_by)
    return f'label_replace({number(value)} * group ({chosen}), "limit", {promql.quoted(text)}, "", "")'


def _both(chosen: Labels, own: Labels) -> str:
    """A selector by two sets of matchers, which may name the same label."""
    return f"{selector(chosen)[:-1]},{selector(own)[1:]}"


def _variable(label: str, title: str, metric: str, labels: Labels) -> Variable:
    own = selector(labels) if labels else ""
    query = f"label_values({metric}{own}, {label})"
    return Variable(label, title, query, EVERYTHING, f"Label {label} of {metric}.")
