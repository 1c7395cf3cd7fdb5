"""The percentiles of every latency over a window, found in the engine: what `collector.judging.percentiles` finds.

Of each line (a latency, and where a service has several models all of them together as model `*`) the buckets of all
its histograms are laid out by their lower and by their upper edges. The value of rank k lies between the k-th lower
and the k-th upper edge, whatever layouts are mixed; the estimate and its error are those of `values.quantile`. Requests
that ended past a deadline without a value have no upper edge. Requests that wait at this very moment are known to a
collector alone, and not counted here.
"""

# ruff: noqa: S608  our own names, whole numbers and checked literals are all that goes into these texts

from collector.clickhouse.questions import AT, TICK, WINDOW, covered, held
from collector.clickhouse.tables import ROLLUP
from slo.signals import ALL_MODELS, TTFT_STRATA

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
_LINE = "environment, service, line, signal, source"


def percentile_view() -> str:
    """The question; its columns are those of the collector's table `percentile`."""
    columns = ", ".join(f"values[{place}] AS {name}" for place, name in enumerate(SHARES, 1))
    error = "if(lows[i] <= 0, if(highs[i] > 0, 1., 0.), (highs[i] - lows[i]) / (highs[i] + lows[i]))"
    return f"""\
SELECT {AT} AS at_s, environment, service, line AS model, signal, source, {WINDOW} AS window_s,
    toInt64(counted) AS count, toInt64(waited) AS censored, {columns},
    if(isNull(values[-1]) AND notEmpty(lows), lows[indexOf(arrayMap(high -> isInfinite(high), highs), 1)], NULL)
        AS at_least,
    if(notEmpty(known), arrayMax(arrayMap(i -> {error}, known)), NULL) AS rel_error,
    least(share, greatest({AT} + {TICK} - first_s, 0) / {WINDOW}) AS coverage
FROM (
    SELECT *, arrayFilter(i -> NOT isInfinite(highs[i]), arrayEnumerate(highs)) AS known,
        arrayResize(arrayMap((low, high) -> {_estimate("low", "high")}, lows, highs), {len(SHARES)}, NULL) AS values
    FROM ({_ranked()})
)
ORDER BY environment, service, model, signal, source
"""


def _estimate(low: str, high: str) -> str:
    return f"if(isInfinite({high}), NULL, if({low} <= 0, {high}, 2 * {low} / (1 + {low} / {high})))"


def _ranked() -> str:
    """Each line with the lower and the upper edges of its ranks; no edges where the window holds nothing."""
    shares = ", ".join(map(str, SHARES.values()))
    return f"""\
SELECT {_LINE}, first_s, share, counted, waited,
    if(counted + waited = 0, [], arrayMap(one -> greatest(ceil(round(one * (counted + waited), 9)), 1), [{shares}]))
        AS ranks,
    {_at_ranks("below")} AS lows,
    {_at_ranks("above")} AS highs
FROM ({_lines()}) AS lines
GLOBAL LEFT JOIN ({_laid_out()}) AS cells USING ({_LINE})
GLOBAL LEFT JOIN ({covered(f"[{WINDOW}]")}) AS services USING (environment, service)
"""


def _at_ranks(cells: str) -> str:
    """The edge of the first cell, in the order of the edges, up to which so many values lie."""
    ordered = f"arraySort(cell -> cell.1, {cells})"
    sums = f"arrayCumSum(cell -> cell.2, {ordered})"
    return f"arrayMap(rank -> {ordered}[arrayFirstIndex(sum -> sum >= rank, {sums})].1, ranks)"


def _lines() -> str:
    """Every line that was ever seen, and since when."""
    return f"""\
SELECT {_LINE}, min(first_s) AS first_s
FROM (
    SELECT environment, service, model, signal, source, min(start_s) AS first_s
    FROM {ROLLUP.name} WHERE start_s <= {AT} GROUP BY environment, service, model, signal, source
)
ARRAY JOIN {_lines_of()} AS line
GROUP BY {_LINE}
HAVING line != '{ALL_MODELS}' OR count() > 1
"""


def _lines_of() -> str:
    """The lines that a latency belongs to; those by prompt length are not told over all models."""
    strata = ", ".join(f"'{signal}'" for signal in TTFT_STRATA.values())
    return f"if(signal IN ({strata}), [toString(model)], [toString(model), '{ALL_MODELS}'])"


def _laid_out() -> str:
    """The cells of each line, as (edge, count): of values and waits by their lower, of values by their upper edges."""
    return f"""\
SELECT {_LINE},
    sumIf(total, censored = 0) AS counted, sumIf(total, censored = 1) AS waited,
    groupArrayArray(arrayZip(lows, counts)) AS below,
    groupArrayArray(arrayZip(if(censored = 1, arrayMap(high -> inf, highs), highs), counts)) AS above
FROM (
    SELECT *, arraySum(counts) AS total, {_lines_of()} AS of
    FROM ({buckets(_summed())})
)
ARRAY JOIN of AS line
GROUP BY {_LINE}
"""


def _summed() -> str:
    """The histograms of the window, of each latency and layout as one."""
    by = "environment, service, model, signal, source, censored, layout"
    return f"""\
SELECT {by}, sumMap(bins) AS cells, sum(zero_count) AS zeros
FROM {ROLLUP.name} WHERE {held(WINDOW)} GROUP BY {by}
"""


def buckets(summed: str) -> str:
    """The question's rows, which have a `layout`, `cells` and `zeros`, with the edges and counts of their buckets."""
    return f"""\
SELECT *, arrayPushBack(mapValues(cells), zeros) AS counts,
    arrayPushBack(arrayMap(i -> if(is_exp, exp2(i * width), bounds[i + 1]), mapKeys(cells)), 0.) AS lows,
    arrayPushBack(arrayMap(i -> if(is_exp, exp2((i + 1) * width), bounds[i + 2]), mapKeys(cells)), 0.) AS highs
FROM (
    SELECT *, startsWith(layout, 'exp:') AS is_exp, exp2(-toInt32OrZero(substring(layout, 5))) AS width,
        if(is_exp, [], arrayConcat([0.], JSONExtract(concat('[', substring(layout, 4), ']'), 'Array(Float64)'), [inf]))
            AS bounds
    FROM ({summed})
)
"""
