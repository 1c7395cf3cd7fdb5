"""The figures of an evaluation as lines of the Prometheus text format, written from columns.

prometheus_client makes an object of each sample and writes it as text again at each scrape; ten thousand models have
several hundred thousand samples, so theirs are written here, once an evaluation. The lines are the same in the
OpenMetrics format. A figure that is unknown has no line.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from collector.judging.evaluate import Evaluation
from collector.judging.percentiles import QUANTILES
from collector.values.columns import Columns, columns
from collector.values.verdicts import BudgetRow, DriftRow
from slo import signals
from slo.quantity import duration_text
from slo.signals import ENVIRONMENT_LABEL, LABELS, MODEL_LABEL, SERVICE_LABEL, Metric

_WHOM = {"environment": ENVIRONMENT_LABEL, "model": MODEL_LABEL}
_OBJECTIVE = {**_WHOM, "objective": LABELS[signals.OBJECTIVE], "service": SERVICE_LABEL}
_LATENCY = {"service": SERVICE_LABEL, "signal": LABELS[signals.SIGNAL], "source": LABELS[signals.SOURCE]}
"""Labels by column, in their own order, as prometheus_client has them; `quantile` stands between the last two."""
_DRIFT = {"environment": ENVIRONMENT_LABEL, "kind": LABELS[signals.DRIFT_KIND], "model": MODEL_LABEL, **_LATENCY}


@lru_cache(maxsize=1)
def figures(evaluation: Evaluation) -> bytes:
    """Every figure, family by family; of one evaluation made once."""
    return "".join(_lines(evaluation)).encode()


def _lines(evaluation: Evaluation) -> Iterator[str]:
    burns, budgets, latencies = evaluation.burns, evaluation.budgets, evaluation.percentiles
    of = _labels(burns, _OBJECTIVE, windows_s=burns.column("window_s"))
    yield from _family(signals.BURN_RATE, [(of, burns.column("burn"))])
    yield from _family(signals.COVERAGE, [(of, burns.column("coverage"))])
    yield from _budgets(budgets)
    front, back = _labels(latencies, _WHOM), _labels(latencies, _LATENCY, windows_s=latencies.column("window_s"))
    quantiles = [
        (
            [f'{before},quantile="{share}",{after}' for before, after in zip(front, back, strict=True)],
            latencies.column(name),
        )
        for name, share in QUANTILES.items()
    ]
    yield from _family(signals.LATENCY, quantiles)
    drifts = columns(DriftRow, evaluation.drifts)
    yield from _family(signals.LATENCY_DRIFT, [(_labels(drifts, _DRIFT), drifts.column("effect"))])


def _budgets(budgets: Columns[BudgetRow]) -> Iterator[str]:
    of = _labels(budgets, _OBJECTIVE)
    yield from _family(signals.BUDGET_REMAINING, [(of, budgets.column("remaining"))])
    yield from _family(signals.BUDGET_EXHAUSTED_IN, [(of, budgets.column("exhausted_in_s"))])


def _family(metric: Metric, parts: Iterable[tuple[Sequence[str], Sequence[float | None]]]) -> Iterator[str]:
    name = metric.prometheus
    yield f"# HELP {name} {_escaped(metric.description)}\n# TYPE {name} gauge\n"
    for labels, values in parts:
        yield from (
            f"{name}{{{of}}} {float(value)!r}\n" for of, value in zip(labels, values, strict=True) if value is not None
        )


def _labels(rows: Columns[Any], names: dict[str, str], *, windows_s: Sequence[int] | None = None) -> list[str]:
    """The labels of every row, as they stand between the braces."""
    texts = [[f'{label}="{_escaped(value)}"' for value in rows.column(column)] for column, label in names.items()]
    if windows_s is not None:
        texts.append([f'window="{_window(window_s)}"' for window_s in windows_s])
    return [",".join(of) for of in zip(*texts, strict=True)]


@lru_cache(maxsize=64)
def _window(window_s: int) -> str:
    return duration_text(window_s)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
