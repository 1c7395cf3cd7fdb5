"""Everything that can be wrong with a service is asked for in one place."""

from collector.judging import service_trouble
from collector.values.alerting import Wanted
from collector.values.columns import columns
from collector.values.deltas import CounterRow, Deltas
from collector.values.verdicts import BudgetRow
from collector.windowing.windows import Windows
from slo.signals import (
    ENGINE_PREEMPTIONS,
    GPU_LOST,
    KV_OCCUPANCY,
    LABELS,
    LAST_TOKEN_AGE,
    OUTCOME,
    OVERDUE,
    REQUESTS,
)
from slo.trouble import BUDGET_POLICY, EMPTY_REPLIES, ENGINE_STALLED, KV_PRESSURE, LOST_GPU
from tests.collector import scene
from tests.collector.scene import NOW_S

TEXT = scene.TTFT.replace("threshold: 500ms", 'threshold: 500ms, policy: [{budget_left: 50%, do: "stop"}]')


def told(windows: Windows, *budgets: BudgetRow) -> list[Wanted]:
    rows = columns(BudgetRow, budgets)
    return list(service_trouble.wanted(windows, rows, alerts={}, certified_rps={}, now_s=NOW_S))


def test_all_of_it_is_found() -> None:
    windows = scene.windows(TEXT)
    empty = ((LABELS[OUTCOME], "no_output"),)
    counters = [
        row
        for at_s in range(NOW_S - 600, NOW_S, 10)
        for row in (
            CounterRow("", "chat", "m", "i1", "proxy", REQUESTS.sql, empty, at_s, 9),
            CounterRow("", "chat", "m", "i1", "proxy", ENGINE_PREEMPTIONS.sql, (), at_s, 9),
        )
    ]
    said = ((OVERDUE, 9, "ttft"), (LAST_TOKEN_AGE, 90, ""), (KV_OCCUPANCY, 1, ""), (GPU_LOST, 1, "GPU-1"))
    gauges = [scene.gauge(metric.sql, value, at_s=NOW_S, attribute=of) for metric, value, of in said]
    windows.add(scene.live(NOW_S - 600, NOW_S))
    windows.add(Deltas(counters=tuple(counters), gauges=tuple(gauges)))
    budget = BudgetRow(NOW_S, "", "chat", "*", "ttft", 0, 9, 1.0, -1.0, None, 1.0, "counts")
    found = told(windows, budget)
    assert {one.key.name for one in found} == {BUDGET_POLICY, ENGINE_STALLED, EMPTY_REPLIES, KV_PRESSURE, LOST_GPU}


def test_a_service_that_is_well_has_none() -> None:
    windows = scene.windows(TEXT)
    windows.add(scene.live(NOW_S - 600, NOW_S))
    assert told(windows) == []
