"""Burn rates and error budgets, found in the engine: what `collector.judging` says of the same events.

A *track* is an objective at one hash, for one model or all it matches (`*`): counts of different hashes judge by
different rules and never mix, and the worst track speaks for its objective. Events that their senders judged answer;
a model without any, or from while they had ended, is read off its histograms at the threshold (basis `histogram`).
"""

# ruff: noqa: S608  our own names, whole numbers and checked literals are all that goes into these texts

from collector.clickhouse.percentile_view import buckets
from collector.clickhouse.questions import AT, TICK, WINDOW, covered, held, objectives
from collector.clickhouse.tables import KNOWN, ROLLUP, SLO_COUNT
from collector.windowing.events import ACTIVE_S, COUNTS
from slo.quantity import HOUR_S
from slo.signals import ALL_MODELS, SOURCES

TRACKED = "tracked"
"""The view that both ask: every track over a window, or over each objective's own period where the window is 0."""
_LENGTH = f"if({WINDOW} = 0, window_s, {WINDOW})"
_WHO = "environment, service, objective"
_PACE = f"least({HOUR_S}, window_s)"
"""The window that tells how fast a budget goes (`slo.burn.pace_window_s`), where an objective is read."""


def burn_rate_view() -> str:
    """The question; its columns are those of the collector's table `burn_rate`."""
    return f"""\
SELECT {AT} AS at_s, environment, service, line AS model, objective, {WINDOW} AS window_s,
    good, bad, if(good + bad > 0, bad / (good + bad) / allowed_bad, NULL) AS burn, coverage, basis, unsure
FROM {TRACKED}(at_s = {AT}, window_s = {WINDOW}, tick_s = {TICK})
ORDER BY {_WHO}, model, ifNull(burn, -1) DESC, is_empty, objective_hash
LIMIT 1 BY {_WHO}, model
"""


def budget_view() -> str:
    """The question; its columns are those of the collector's table `budget`."""
    return f"""\
SELECT {AT} AS at_s, environment, service, line AS model, objective, good, bad,
    if(good + bad = 0, 0, allowed_bad * (good + bad) / least(greatest(age_s, {TICK}) / period_s, 1)) AS allowance,
    if(good + bad = 0, 1, (allowance - bad) / allowance) AS remaining,
    multiIf(good + bad = 0, NULL, allowance <= bad, 0, lately_bad = 0, NULL,
        (allowance - bad) / (lately_bad / least(greatest(age_s, {TICK}), {HOUR_S}, period_s))) AS exhausted_in_s,
    coverage, basis
FROM {TRACKED}(at_s = {AT}, window_s = 0, tick_s = {TICK})
ORDER BY {_WHO}, model, remaining, is_empty, objective_hash
LIMIT 1 BY {_WHO}, model
"""


def tracked_view() -> str:
    """Every track with its events, age and coverage. An objective of which nothing was ever heard has one that is
    empty."""
    return f"""\
SELECT environment, service, objective, objective_hash, line, good, bad, unsure, lately_bad, is_empty, allowed_bad,
    period_s, if(is_empty = 1, 0, {AT} + {TICK} - first_s) AS age_s,
    least(share, greatest(age_s, 0) / length_s) AS coverage,
    if(is_counted = 1, '{COUNTS}', 'histogram') AS basis
FROM (
    SELECT environment, service, objective, objective_hash, line, toInt64(sum(good)) AS good,
        toInt64(sum(bad)) AS bad, toInt64(sum(unsure)) AS unsure, toInt64(sum(lately_bad)) AS lately_bad,
        min(first_s) AS first_s, toUInt8(min(basis = '{COUNTS}')) AS is_counted, toUInt8(0) AS is_empty
    FROM ({_answering()}) ARRAY JOIN [toString(model), '{ALL_MODELS}'] AS line
    GROUP BY environment, service, objective, objective_hash, line
    UNION ALL
    SELECT environment, service, objective, '', '{ALL_MODELS}', 0, 0, 0, 0, 0, 1, 1 FROM ({_places()})
) AS tracks
GLOBAL INNER JOIN (
    SELECT service, objective, allowed_bad, window_s AS period_s, {_LENGTH} AS length_s FROM ({objectives()})
) AS told USING (service, objective)
GLOBAL LEFT JOIN ({covered(_lengths())}) AS services USING (environment, service, length_s)
"""


def _lengths() -> str:
    return f"if({WINDOW} = 0, (SELECT groupUniqArray(window_s) FROM ({objectives()})), [{WINDOW}])"


def _places() -> str:
    """Each objective in each environment that it is judged in: its own, or wherever its service is heard from."""
    heard = f"SELECT DISTINCT environment, service FROM {KNOWN.name} WHERE start_s <= {AT}"
    return f"""\
SELECT DISTINCT if(own != '', own, heard.environment) AS environment, told.service AS service, objective
FROM (SELECT environment AS own, service, objective FROM ({objectives()})) AS told
GLOBAL LEFT JOIN ({heard}) AS heard ON told.service = heard.service
"""


def _answering() -> str:
    """The series of events that answer, as `collector.judging.track` picks them: the counts of every active hash, and
    for a model without any, or whose counts have ended, the histogram of its best source."""
    of, model = _WHO, f"{_WHO}, model"
    return f"""\
SELECT * FROM (
    SELECT *, max(has_ended) OVER (PARTITION BY {model}) AS is_read,
        min(if(has_ended, rank, 99)) OVER (PARTITION BY {model}) AS best
    FROM (
        SELECT *, basis != '{COUNTS}' AND last_s > counted_s + {ACTIVE_S} AS has_ended
        FROM (
            SELECT *, max(if(is_active, last_s, 0)) OVER (PARTITION BY {model}) AS counted_s
            FROM (
                SELECT *, basis = '{COUNTS}' AND last_s >= latest_s - {ACTIVE_S} AS is_active
                FROM (
                    SELECT *, max(if(basis = '{COUNTS}', last_s, 0)) OVER (PARTITION BY {of}) AS latest_s,
                        indexOf([{", ".join(f"'{source}'" for source in SOURCES)}], basis) AS rank
                    FROM ({_judged()} UNION ALL {_read()})
                )
            )
        )
    )
)
WHERE (is_active AND NOT is_read) OR (has_ended AND rank = best)
"""


def _judged() -> str:
    """Events as their senders judged them."""
    return f"""\
SELECT environment, service, model, objective, objective_hash, '{COUNTS}' AS basis,
    min(start_s) AS first_s, max(start_s) AS last_s, sumIf(counted.good, {held("length_s")}) AS good,
    sumIf(counted.bad, {held("length_s")}) AS bad, toUInt64(0) AS unsure,
    sumIf(counted.bad, {held("pace_s")}) AS lately_bad
FROM {SLO_COUNT.name} AS counted
GLOBAL INNER JOIN (
    SELECT service, objective, environment AS own, {_LENGTH} AS length_s, {_PACE} AS pace_s FROM ({objectives()})
) AS told USING (service, objective)
WHERE start_s <= {AT} AND own IN ('', environment)
GROUP BY environment, service, model, objective, objective_hash
"""


def _read() -> str:
    """Events read off histograms, from when the counts of the model ended on."""
    by = "environment, service, model, objective, objective_hash, source, threshold_s"
    return f"""\
SELECT environment, service, model, objective, objective_hash, toString(source) AS basis, min(first_s) AS first_s,
    max(last_s) AS last_s, sumIf(arraySum(counts_under), of = 0) AS good, sumIf(arraySum(counts_over), of = 0) AS bad,
    sumIf(arraySum(counts_cut), of = 0) AS unsure, sumIf(arraySum(counts_over), of = 1) AS lately_bad
FROM (
    SELECT *, arrayMap((low, high) -> if(low <= 0, 0, if(isInfinite(high), inf, 2 * low / (1 + low / high)))
            <= threshold_s, lows, highs) AS is_under,
        arrayMap((count, under) -> if(under, count, 0), counts, is_under) AS counts_under,
        arrayMap((count, under) -> if(under, 0, count), counts, is_under) AS counts_over,
        arrayMap((count, low, high) -> if(low < threshold_s AND high > threshold_s, count, 0), counts, lows, highs)
            AS counts_cut
    FROM ({buckets(_summed(by))})
)
GROUP BY environment, service, model, objective, objective_hash, source
"""


def _summed(by: str) -> str:
    """The histograms that answer, added up for the window (of 0) and for that of the pace (of 1)."""
    judged = f"""\
SELECT environment, service, model, objective, objective_hash, max(start_s) AS judged_s
FROM {SLO_COUNT.name} WHERE start_s <= {AT} GROUP BY environment, service, model, objective, objective_hash
"""
    told = f"""\
SELECT service, signal, objective, objective_hash, environment AS own, models, threshold_s, {_LENGTH} AS length_s,
    {_PACE} AS pace_s
FROM ({objectives()}) WHERE readable = 1
"""
    return f"""\
SELECT {by}, layout, of, min(start_s) AS first_s, max(start_s) AS last_s,
    sumMapIf(bins, is_held[of + 1]) AS cells, sumIf(zero_count, is_held[of + 1]) AS zeros
FROM (
    SELECT *, [{held("length_s")}, {held("pace_s")}] AS is_held
    FROM {ROLLUP.name} AS measured
    GLOBAL INNER JOIN ({told}) AS told USING (service, signal)
    GLOBAL LEFT JOIN ({judged}) AS counted USING (environment, service, model, objective, objective_hash)
    WHERE censored = 0 AND start_s <= {AT} AND own IN ('', environment) AND match(model, models)
        AND start_s > if(judged_s > 0, judged_s + {ACTIVE_S}, -1)
)
ARRAY JOIN [0, 1] AS of
GROUP BY {by}, layout, of
"""
