"""How long requests took, in SQL: percentiles as the collector keeps them, and its histograms.

A percentile that falls among requests still without a value is drawn at what it is known to exceed; one that is
promised but is none of the table's columns has no line. Bins of histograms are exponential: bin i of scale s ends at
2^((i + 1) / 2^s) seconds; a heatmap has four bins a doubling.
"""

# ruff: noqa: S608  these texts are for Grafana to send; nothing but our own names and checked names goes into them

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from collector import schema
from dashboards.model import Look, Query, Shape
from dashboards.promise import quantile_name
from dashboards.sql.dialect import Dialect
from dashboards.sql.pieces import MODEL_NAME, SECONDS, SERVICE_NAME, TIME, WHOLE_BUCKETS, chart
from dashboards.sql.selection import Selection
from slo.promql import INSTANCE_LABEL
from slo.quantity import DAY_S
from slo.signals import TTFT_STRATA, Metric

QUANTILES = {Decimal("0.5"): "p50", Decimal("0.9"): "p90", Decimal("0.95"): "p95", Decimal("0.99"): "p99",
             Decimal("0.999"): "p999"}  # fmt: skip
WINDOW_S = 300
PAST = {"yesterday": DAY_S, "a week ago": 7 * DAY_S}
BY_SIDECARS, BY_ENGINE = "source <> 'engine'", "source = 'engine'"
QUARTERS_US = (1_189_207, 1_414_214, 1_681_793, 2_000_000)
"""Where the four bins above a second end; all others are these times powers of 2."""
LEAST_OCTAVE, MOST_OCTAVE = -20, 11
"""Bins beyond these are far from any latency; the shift below has room for them."""


@dataclass(frozen=True, slots=True)
class SqlLatencies:
    """Latencies of what the variables of `selection` choose."""

    dialect: Dialect
    selection: Selection

    def percentiles(self, metric: Metric, quantiles: Sequence[Decimal]) -> tuple[Query, ...]:
        return tuple(
            self._percentile(metric, quantile, quantile_name(quantile), BY_SIDECARS, ref=quantile_name(quantile))
            for quantile in quantiles
            if quantile in QUANTILES
        )

    def buckets(self, metric: Metric) -> Query:
        """`quarter` numbers the bins, four a doubling; 0 ends a quarter above a second."""
        bins = self.dialect.elements("rollup.bins")
        place = f"(rollup.bin_offset + {self.dialect.place})"
        quarter = (
            f"CASE WHEN rollup.scale >= 2 THEN {place} >> CAST(rollup.scale - 2 AS INTEGER)\n"
            f"      ELSE {place} << CAST(2 - rollup.scale AS INTEGER) END"
        )
        least, most = 4 * LEAST_OCTAVE, 4 * MOST_OCTAVE
        inner = (
            f"SELECT {TIME} AS time,\n    {quarter} AS quarter, {self.dialect.element} AS n\n"
            f"  FROM rollup JOIN series ON series.id = rollup.series_id\n  {bins}\n"
            f"  WHERE {WHOLE_BUCKETS} AND rollup.scale IS NOT NULL AND {self._series(metric)}"
        )
        edge = " ".join(f"WHEN {rest} THEN {end}" for rest, end in enumerate(QUARTERS_US))
        place = f"(quarter + {-least})"
        end_us = f"(({_shifted(f'CASE {place} % 4 {edge} END', f'{place} / 4')}) >> {-LEAST_OCTAVE})"
        text = (
            chart(
                f"(\n  {inner}\n) AS seen",
                "time",
                metric=self.dialect.milliseconds(end_us),
                value="SUM(n)",
                where=f"quarter BETWEEN {least} AND {most} AND n > 0",
            ).removesuffix("ORDER BY 1")
            + "ORDER BY 1, 2"
        )
        return self._query(text, (schema.rollup.name, schema.series.name), shape="buckets")

    def percentile_by_instance(self, _: Metric, __: Decimal, /) -> tuple[Query, ...]:
        """The tables keep percentiles of each model, not of each instance."""
        return ()

    def mean_by_instance(self, metric: Metric) -> Query:
        text = chart(
            "rollup JOIN series ON series.id = rollup.series_id",
            TIME,
            metric=f"{SERVICE_NAME} || ' ' || instance",
            value='SUM("sum") / SUM("count")',
            where=f'{WHOLE_BUCKETS} AND {self._series(metric)} AND "count" > 0',
        )
        return self._query(text, (schema.rollup.name, schema.series.name))

    def beside_engine(self, metric: Metric, quantile: Decimal) -> tuple[Query, ...]:
        name = quantile_name(quantile)
        return (
            self._percentile(metric, quantile, f"{name} at the sidecar", BY_SIDECARS, ref="sidecar"),
            self._percentile(metric, quantile, f"{name} by the engine", BY_ENGINE, ref="engine"),
        )

    def by_prompt(self, quantile: Decimal) -> Query:
        column = QUANTILES[quantile]
        strata = ", ".join(f"'{signal}'" for signal in TTFT_STRATA.values())
        names = " ".join(f"WHEN '{signal}' THEN '{stratum}'" for stratum, signal in TTFT_STRATA.items())
        text = chart(
            schema.percentile,
            "at_s",
            metric=f"{SERVICE_NAME} || ' ' || CASE signal {names} END || ' tokens {quantile_name(quantile)}'",
            value=f"MAX(COALESCE({column}, at_least))",
            where=f"{self.dialect.in_range('at_s')} AND signal IN ({strata}) AND window_s = {WINDOW_S}"
            f" AND COALESCE({column}, at_least) IS NOT NULL AND {self.selection.of_model}",
        )
        return self._query(text, (schema.percentile.name,))

    def censored(self) -> Query:
        text = chart(
            "rollup JOIN series ON series.id = rollup.series_id",
            TIME,
            metric=f"{SERVICE_NAME} || ' ' || signal",
            value=f'SUM("count" * 1.0 / {SECONDS})',
            where=f"{WHOLE_BUCKETS} AND censored = 1 AND {self._chosen}",
        )
        return self._query(text, (schema.rollup.name, schema.series.name))

    def against_past(self, metric: Metric, quantile: Decimal) -> tuple[Query, ...]:
        name = quantile_name(quantile)
        return (
            self._percentile(metric, quantile, name, BY_SIDECARS, ref="now"),
            *(
                self._percentile(
                    metric, quantile, f"{name} {when}", BY_SIDECARS, ref=f"ago{ago_s // DAY_S}d", ago_s=ago_s
                )
                for when, ago_s in PAST.items()
            ),
        )

    def _percentile(
        self, metric: Metric, quantile: Decimal, name: str, source: str, *, ref: str, ago_s: int = 0
    ) -> Query:
        column = QUANTILES[quantile]
        text = chart(
            schema.percentile,
            f"at_s + {ago_s}" if ago_s else "at_s",
            metric=f"{MODEL_NAME} || ' {name}'",
            value=f"MAX(COALESCE({column}, at_least))",
            where=f"{self.dialect.in_range('at_s', earlier_s=ago_s)} AND signal = '{metric.sql}' AND {source}"
            f" AND window_s = {WINDOW_S} AND COALESCE({column}, at_least) IS NOT NULL AND {self.selection.of_model}",
        )
        return self._query(text, (schema.percentile.name,), ref=ref, look="thin" if ago_s else "plain")

    @property
    def _chosen(self) -> str:
        return f"{self.selection.of_model} AND {self.selection.chosen(INSTANCE_LABEL)}"

    def _series(self, metric: Metric) -> str:
        return f"signal = '{metric.sql}' AND {BY_SIDECARS} AND censored = 0 AND {self._chosen}"

    def _query(
        self, text: str, reads: tuple[str, ...], *, ref: str = "A", look: Look = "plain", shape: Shape = "series"
    ) -> Query:
        return Query(self.dialect.datasource, text, reads, ref, look=look, shape=shape)


def _shifted(value: str, places: str) -> str:
    """A whole number times two to the `places`, in 64 bits on either database."""
    return f"CAST({value} AS BIGINT) << CAST({places} AS INTEGER)"
