"""Any gauge or counter that the collector's tables keep, in SQL."""

# ruff: noqa: S608  these texts are for Grafana to send; nothing but our own names and checked names goes into them

from collections.abc import Sequence
from dataclasses import dataclass

from collector import schema
from dashboards.model import Fold, Query
from dashboards.sql.dialect import Dialect
from dashboards.sql.pieces import NUMBER, SECONDS, TIME, WHOLE_BUCKETS, chart, named
from dashboards.sql.selection import COLUMNS, GPU_LABEL, Selection
from slo.promql import SERVICE_KEY
from slo.signals import (
    BY_NAME,
    CLASS,
    HW_NAME,
    LABELS,
    REQUESTS,
    SYNTHETIC_CLASS,
    Metric,
)

FOLDS = {"sum": ("AVG(mean)", "SUM(value)"), "max": ('MAX("max")', "MAX(value)"), "min": ('MIN("min")', "MIN(value)")}
"""Over the steps of a bucket, then over what has one name."""


@dataclass(frozen=True, slots=True)
class SqlFigures:
    """Figures of what the variables of `selection` choose."""

    dialect: Dialect
    selection: Selection

    def keeps(self, metric: Metric, /) -> bool:
        """What sidecars and collectors say of themselves is on their pages alone."""
        return metric.name in BY_NAME

    def gauge(
        self, metric: Metric, by: Sequence[str] = SERVICE_KEY, *, fold: Fold = "sum", name: str = "", ref: str = "A"
    ) -> Query:
        inner, outer = FOLDS[fold]
        text = (
            f"SELECT time, metric, CAST({outer} AS {NUMBER}) AS value\nFROM (\n"
            f"  SELECT {TIME} AS time, {_of_gauge(by, name)} AS metric, {inner} AS value\n  FROM {schema.gauge.name}\n"
            f"  WHERE {WHOLE_BUCKETS} AND name = '{metric.sql}' AND {self.selection.of_metric(metric)}\n"
            "  GROUP BY 1, 2, instance, model, attribute\n) AS seen\nGROUP BY time, metric\nORDER BY time"
        )
        return Query(self.dialect.datasource, text, (f"{schema.gauge.name} {metric.sql}",), ref)

    def rate(
        self,
        metric: Metric,
        by: Sequence[str] = SERVICE_KEY,
        *,
        name: str = "",
        ref: str = "A",
        alive: Metric | None = None,  # noqa: ARG002  the tables hold what is 0 too
    ) -> Query:
        text = chart(
            schema.counter,
            TIME,
            metric=self._of_counter(by, name),
            value=f"SUM(value / {SECONDS})",
            where=f"{WHOLE_BUCKETS} AND {self.counted(metric)}",
        )
        return Query(self.dialect.datasource, text, (f"{schema.counter.name} {metric.sql}",), ref)

    def counted(self, metric: Metric) -> str:
        """The rows of a counter that the variables choose; of requests the real ones."""
        gpu = self._field(GPU_LABEL)
        real = f" AND {self._field(LABELS[CLASS])} <> '{SYNTHETIC_CLASS}'" if metric is REQUESTS else ""
        return f"name = '{metric.sql}'{real} AND {self.selection.of_metric(metric, gpu)}"

    def _of_counter(self, by: Sequence[str], name: str) -> str:
        columns = [label if label in COLUMNS else self._field(label) for label in by]
        return named(columns, name)

    def _field(self, label: str) -> str:
        return f"COALESCE({self.dialect.field('attributes', label)}, '')"


def _of_gauge(by: Sequence[str], name: str) -> str:
    """A gauge keeps one attribute, of a GPU its id."""
    return named([label if label in COLUMNS else "attribute" for label in by if label != LABELS[HW_NAME]], name)
