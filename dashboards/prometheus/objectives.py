"""How the objectives stand, in PromQL: over the records of the generated rules and the sidecars' own counts.

No collector is needed. Records carry, beside each model, the model `*` for all of them together; what sidecars count
does not. So where an objective is judged, `_together` gives the `*` when it is among the models chosen (All chooses
it), else each chosen model for itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from dashboards.model import Look, Query, Shape
from dashboards.prometheus.figures import real
from dashboards.prometheus.pieces import ask, folded, legend, rate, series
from dashboards.prometheus.selection import Labels, Selection
from dashboards.questions import NOT_SPENT, STATES
from dashboards.subjects import NEVER_JUDGED_OUTCOMES
from slo import promql
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY, SUBJECT_KEY, TIER_LABEL, VERDICT_KEY, by, on
from slo.quantity import duration_text
from slo.signals import ALL_MODELS, LABELS, MODEL_LABEL, OUTCOME, REQUESTS, RESULT, SERVICE_LABEL, SLO_EVENTS

PROMISE_KEY = (SERVICE_LABEL, OBJECTIVE_LABEL)
OBJECTIVE_KEY = (*SERVICE_KEY, OBJECTIVE_LABEL)
OBJECTIVE_LEGEND = legend((*OBJECTIVE_KEY, MODEL_LABEL))
ENDS_READS = (promql.BUDGET_EXHAUSTED_IN, promql.BUDGET_ALLOWANCE)
STATE_READS = (promql.BUDGET_REMAINING, promql.BUDGET_ALLOWANCE, promql.ALERTS, promql.OBJECTIVE_TARGET)
JUDGED_READS = (SLO_EVENTS.prometheus, REQUESTS.prometheus)

Write = Callable[[Labels], str]


@dataclass(frozen=True, slots=True)
class PrometheusObjectives:
    """Objectives that the variables of `selection` choose. `periods_s` are the periods of all objectives, longest
    first; `untold` the names of those that do not judge requests but time."""

    selection: Selection
    periods_s: tuple[int, ...]
    untold: tuple[str, ...] = ()

    def budget_left(self) -> Query:
        return self._asked_of_budget(f"sort({self._left()})", "latest")

    def budget_over_time(self) -> Query:
        return self._asked_of_budget(self._left(), "series")

    def exhausted_in(self) -> Query:
        """The soonest first; those that have no end come last."""
        ends = self._together(_ends)
        return ask(f"sort((\n{ends}\n) >= 0)\nor ({ends})", ENDS_READS, legend=OBJECTIVE_LEGEND, shape="latest")

    def state(self) -> Query:
        promised = f"0 * group {by(PROMISE_KEY)} ({series(promql.OBJECTIVE_TARGET, self.selection.of_promise)})"
        text = f"(\n{self._together(_state)}\n)\nor {on(PROMISE_KEY)} {promised}"
        return ask(text, STATE_READS, legend=OBJECTIVE_LEGEND, shape="latest")

    def standing(self, windows_s: Sequence[int]) -> tuple[Query, ...]:
        rows, of = partial(ask, shape="table"), self.selection.of_objective
        promised = f"max {by(PROMISE_KEY)} ({series(promql.OBJECTIVE_TARGET, self.selection.of_promise)})"
        known = f"0 * group {by(VERDICT_KEY)} ({series(promql.BUDGET_ALLOWANCE, of)})"
        target = f"({known} + {on(PROMISE_KEY)} group_left () {promised})\nor {on(PROMISE_KEY)} {promised}"
        state = f"({_state(of)})\nor {on(PROMISE_KEY)} 0 * {promised}"
        burns = {f"burn{duration_text(window)}": promql.burn_rate(window) for window in windows_s}
        return (
            rows(state, STATE_READS, ref="state"),
            rows(_verdict(promql.BUDGET_REMAINING)(of), (promql.BUDGET_REMAINING,), ref="left"),
            rows(_ends(of), ENDS_READS, ref="ends"),
            *(rows(_verdict(record)(of), (record,), ref=ref) for ref, record in burns.items()),
            rows(self._coverage(of), self._coverage_reads(), ref="coverage"),
            rows(target, (promql.OBJECTIVE_TARGET,), ref="target"),
        )

    def burn(self, long_s: int, short_s: int) -> tuple[Query, ...]:
        windows: dict[int, Look] = {short_s: "thin", long_s: "plain"}
        return tuple(
            ask(
                self._together(_verdict(promql.burn_rate(window_s))),
                (promql.burn_rate(window_s),),
                ref="long" if look == "plain" else "short",
                legend=f"{legend(OBJECTIVE_KEY, duration_text(window_s))} {{{{{MODEL_LABEL}}}}}",
                look=look,
            )
            for window_s, look in sorted(windows.items(), reverse=True)
        )

    def coverage(self) -> Query:
        return ask(self._together(self._coverage), self._coverage_reads(), legend=OBJECTIVE_LEGEND)

    def events(self, result: str) -> Query:
        counted = series(SLO_EVENTS, {**self.selection.of_objective, LABELS[RESULT]: result})
        return ask(folded("sum", OBJECTIVE_KEY, rate(counted)), (SLO_EVENTS.prometheus,), legend=legend(OBJECTIVE_KEY))

    def judged(self) -> Query:
        events = folded("sum", OBJECTIVE_KEY, self._events())
        asked = f"{on(SERVICE_KEY)} group_left () ({folded('sum', SERVICE_KEY, self._judgeable())} > 0)"
        text = f"clamp_max({events}\n/ {asked}, 1)"
        return ask(text, JUDGED_READS, legend=legend(OBJECTIVE_KEY))

    def unjudged(self) -> Query:
        """Of each model the objective that judges most of its requests counts; whether another judges the rest, counts
        do not tell."""
        most = folded("max", SUBJECT_KEY, folded("sum", VERDICT_KEY, self._events()))
        asked = folded("sum", SUBJECT_KEY, self._judgeable())
        judged = folded("sum", SERVICE_KEY, f"{most} or 0 * {asked}")
        text = f"clamp_min(1 - {judged}\n/ ({folded('sum', SERVICE_KEY, asked)} > 0), 0)"
        return ask(text, JUDGED_READS, legend=legend(SERVICE_KEY))

    def _events(self) -> str:
        requests = {f"{OBJECTIVE_LABEL}!~": "|".join(self.untold)} if self.untold else {}
        return rate(series(SLO_EVENTS, {**self.selection.of_model, **requests}))

    def _judgeable(self) -> str:
        judgeable = {f"{LABELS[OUTCOME]}!~": "|".join(NEVER_JUDGED_OUTCOMES)}
        return rate(series(REQUESTS, {**self.selection.of_model, **real(REQUESTS), **judgeable}))

    def _left(self) -> str:
        return self._together(_verdict(promql.BUDGET_REMAINING))

    def _asked_of_budget(self, text: str, shape: Shape) -> Query:
        return ask(text, (promql.BUDGET_REMAINING,), legend=OBJECTIVE_LEGEND, shape=shape)

    def _coverage(self, labels: Labels) -> str:
        """Of the longest window that there is: no objective has one longer than its period."""
        records = (promql.coverage(period_s) for period_s in self.periods_s)
        return f"\nor {on(VERDICT_KEY)} ".join(_verdict(record)(labels) for record in records)

    def _coverage_reads(self) -> tuple[str, ...]:
        return tuple(promql.coverage(period_s) for period_s in self.periods_s)

    def _together(self, write: Write) -> str:
        of = self.selection.of_objective
        all_models, each = write({**of, MODEL_LABEL: ALL_MODELS}), write({**of, f"{MODEL_LABEL}!=": ALL_MODELS})
        return f"(\n{all_models}\n)\nor {on(OBJECTIVE_KEY)} (\n{each}\n)"


def _state(labels: Labels) -> str:
    """The place in `STATES`: spent before burning, for then the contract is broken whether or not it burns now."""
    key = by(VERDICT_KEY)
    firing = series(promql.ALERTS, {"alertstate": "firing", f"{TIER_LABEL}!=": "", **labels})
    allowed = series(promql.BUDGET_ALLOWANCE, labels)
    return (
        f"{STATES.index('spent')} * group {key} ({series(promql.BUDGET_REMAINING, labels)} <= 0)\n"
        f"or {STATES.index('burning')} * group {key} ({firing})\n"
        f"or {STATES.index('kept')} * group {key} ({allowed} > 0)\n"
        f"or {STATES.index('no data')} * group {key} ({allowed})"
    )


def _ends(labels: Labels) -> str:
    ends, allowed = _verdict(promql.BUDGET_EXHAUSTED_IN)(labels), series(promql.BUDGET_ALLOWANCE, labels)
    return f"{ends}\nor 0 * group {by(VERDICT_KEY)} ({allowed} > 0) - {-NOT_SPENT}"


def _verdict(record: str) -> Write:
    return lambda labels: folded("max", VERDICT_KEY, series(record, labels))
