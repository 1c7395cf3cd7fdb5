"""Evaluations for the watch over drift: the p95 of a few latencies, minute by minute."""

from collections.abc import Iterable, Iterator, Sequence

from collector.judging.evaluate import Evaluation
from collector.judging.percentiles import PercentileRow
from collector.values.alerting import Alert
from collector.values.columns import columns
from collector.values.verdicts import BudgetRow, BurnRow, DriftRow

NOW_S = 1_800_000_000 // 86400 * 86400
DRIFT = DriftRow(NOW_S, "", "chat", "m", "ttft", "proxy", 0.25, 0.4, 0.5, 1200, "server")


def row(
    at_s: int,
    p95: float | None,
    *,
    count: int = 600,
    model: str = "m",
    signal: str = "ttft",
    source: str = "proxy",
    window_s: int = 300,
) -> PercentileRow:
    quantiles = (None, None, p95, None, None, None)
    return PercentileRow(
        at_s,
        "",
        "chat",
        model,
        signal,
        source,
        window_s,
        count,
        0,
        *quantiles,
        at_least=None,
        rel_error=0.01,
        coverage=1.0,
    )


def latency(at_s: int, p95: float | None, *, count: int = 600, **of: str) -> Iterator[PercentileRow]:
    """One latency over the windows that are asked for."""
    for window_s, times in ((300, 1), (1800, 6), (86400, 288)):
        yield row(at_s, p95, count=count * times, window_s=window_s, **of)  # type: ignore[arg-type]


def evaluation(
    at_s: int, rows: Iterable[PercentileRow], *, alerts: Sequence[Alert] = (), drifts: Sequence[DriftRow] = ()
) -> Evaluation:
    found = columns(PercentileRow, rows)
    return Evaluation(at_s, found, columns(BurnRow), columns(BudgetRow), tuple(alerts), (), tuple(drifts))
