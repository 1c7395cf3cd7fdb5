"""One evaluation: from the windows that end now, every figure and every alert (DESIGN 4.4 to 4.6, 5).

Pure: what it gives depends on the windows, the alerts that were, and the moment. Figures of a window without events
stand with counts of 0 and no burn; an unknown value is None, never 0.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collector import trouble
from collector.alerting import Alert, AlertKey, next_alerts
from collector.burning import BudgetRow, BurnRow, Judgement, judge
from collector.coverage import of_series
from collector.deltas import LatencyKey
from collector.quantile import Censored, Quantile, quantiles
from collector.track import tracks
from collector.windows import Windows
from slo import burn
from slo.objective import Spec
from slo.signals import OVERDUE

__all__ = ["Alert", "AlertKey", "BudgetRow", "BurnRow", "Evaluation", "PercentileRow", "evaluate"]

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 1.0)


@dataclass(frozen=True, slots=True)
class PercentileRow:
    """Percentiles of one latency over one window, in seconds; the columns of table `percentile`.

    `count` is of requests with a value, `censored` of those without; a quantile that falls among the latter is None
    and exceeds `at_least`. `rel_error` is the greatest of those quantiles that are known.
    """

    at_s: int
    environment: str
    service: str
    model: str
    signal: str
    source: str
    window_s: int
    count: int
    censored: int
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    max: float | None
    at_least: float | None
    rel_error: float | None
    coverage: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All that one tick says. `alerts` are those pending, firing or resolved just now; `transitions` those whose state
    changed now."""

    at_s: int
    percentiles: tuple[PercentileRow, ...]
    burns: tuple[BurnRow, ...]
    budgets: tuple[BudgetRow, ...]
    alerts: tuple[Alert, ...]
    transitions: tuple[Alert, ...]


def evaluate(windows: Windows, *, alerts: Mapping[AlertKey, Alert], now_s: int) -> Evaluation:
    """Judge the windows, which were advanced to this very moment. `alerts` are those pending or firing after the last
    evaluation."""
    judgements = list(_judgements(windows, alerts))
    wanted = [one for judgement in judgements for one in judgement.wanted]
    held, changed = next_alerts([*wanted, *trouble.wanted(windows, alerts=alerts, now_s=now_s)], alerts, now_s=now_s)
    return Evaluation(
        now_s,
        tuple(_percentiles(windows)),
        tuple(row for judgement in judgements for row in judgement.burns),
        tuple(judgement.budget for judgement in judgements),
        held,
        changed,
    )


def _judgements(windows: Windows, alerts: Mapping[AlertKey, Alert]) -> Iterator[Judgement]:
    for spec in windows.plan.specs:
        for objective in spec.objectives:
            tiers = burn.tiers(objective)
            for environment in windows.environments(spec):
                for found in tracks(windows, spec, objective, environment).values():
                    yield judge(windows, found, tiers=tiers, alerts=alerts)


def _percentiles(windows: Windows) -> Iterator[PercentileRow]:
    tables = {window_s: windows.tables(window_s, SHARES) for window_s in windows.plan.windows_s}
    own = {service: windows.plan.service_windows_s(service) for _, service in windows.services()}
    waiting = _waiting(windows)
    for key in windows.latency_keys():
        for window_s in own.get(key.service) or windows.plan.service_windows_s(key.service):
            overdue = waiting.get(key)
            alone = tables[window_s].get(key) if overdue is None else None
            if alone is not None:
                table, lane = alone
                yield _percentile(windows, key, window_s, (table.counts[lane], 0), table.of(lane))
            else:
                parts = windows.latency(key, window_s)
                censored = Censored(windows.waited(key, window_s), *(overdue or (0, 0.0)))
                counts = sum(part.count for part in parts), censored.count
                yield _percentile(windows, key, window_s, counts, quantiles(parts, SHARES, censored=censored))


def _percentile(
    windows: Windows, key: LatencyKey, window_s: int, counts: tuple[int, int], found: Sequence[Quantile]
) -> PercentileRow:
    covered = windows.coverage((key.environment, key.service), window_s)
    p50, p90, p95, p99, p999, largest = (one.value for one in found)
    return PercentileRow(
        windows.now_s,
        key.environment,
        key.service,
        key.model,
        key.signal,
        key.source,
        window_s,
        *counts,
        p50,
        p90,
        p95,
        p99,
        p999,
        largest,
        next((one.at_least for one in found if one.value is None), None),
        max((one.rel_error for one in found if one.value is not None), default=None),
        of_series(covered, window_s=window_s, age_s=windows.age_s(key)),
    )


def _waiting(windows: Windows) -> dict[LatencyKey, tuple[int, float]]:
    """Requests of each latency that wait past a deadline now, and how long each has waited at least.

    The proxy or middleware that measures a latency knows them. They have waited the shortest threshold of the
    objectives that could have set the deadline.
    """
    counts: defaultdict[LatencyKey, float] = defaultdict(float)
    for environment, service in windows.services():
        life = windows.fleet.life((environment, service))
        sources = {one.instance: one.source for one in life.instances} if life else {}
        for reading in windows.fleet.readings((environment, service), OVERDUE.sql, now_s=windows.now_s):
            if reading.value >= 1 and reading.instance in sources:
                of = environment, service, reading.model, reading.attribute, sources[reading.instance]
                counts[LatencyKey(*of)] += reading.value
    return {key: (round(count), _deadline_s(windows.plan.spec(key.service), key)) for key, count in counts.items()}


def _deadline_s(spec: Spec | None, key: LatencyKey) -> float:
    thresholds = [
        float(objective.threshold)
        for objective in (spec.objectives if spec else ())
        if objective.signal == key.signal and objective.match.holds_model(key.model) and objective.threshold
    ]
    return min(thresholds, default=0.0)
