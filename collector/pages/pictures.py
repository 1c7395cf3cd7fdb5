"""Which line of the past an objective's chart draws, against which limit, and within which bounds it is true. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collector.pages.charts import MAX_POINTS, Bounds, Chart, Span, chart
from collector.pages.history import BURN_WINDOW_S, COLUMNS, USUAL_COLUMN, History, Points
from collector.pages.standing import Facts, quantile_name
from collector.values import words
from slo.objective import Objective
from slo.signals import ALL_MODELS

ALL_TOLD = "all models"
ROUGH = 1.05
"""A true value may be at most so many times what it is at least, before a small chart shows that."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart with its title, its latest value, the limit drawn into it, and the unit of its values; `is_rough` when
    its error is large enough to be seen."""

    chart: Chart
    title: str
    now: str
    limit: str
    unit: str
    is_rough: bool = False


def picture(
    history: History, objective: Objective, rows: Sequence[Facts], *, key: tuple[str, str], points: int = MAX_POINTS
) -> Picture:
    """The promised percentile of each model against its threshold; of an objective without one, its burn against 1.
    `key` is the environment and the service."""
    span = Span(history.since_s, history.until_s, points)
    column = COLUMNS.get(float(objective.goal), USUAL_COLUMN)
    keys = {row["model"]: (*key, row["model"], objective.signal) for row in rows}
    known = {model: history.percentiles[of] for model, of in keys.items() if of in history.percentiles}
    if known and objective.threshold is not None:
        lines = {ALL_TOLD if model == ALL_MODELS else model: columns[column] for model, columns in known.items()}
        bounds = _bounds(next(iter(known.values())), column) if len(known) == 1 else ()
        drawn = chart(lines, span=span, threshold=float(objective.threshold), bounds=bounds)
        title = f"{quantile_name(column)} over {words.duration(history.window_s)}"
        is_rough = any(most is None or most > least * ROUGH for _, least, most in bounds)
        return Picture(drawn, title, words.latency(drawn.latest), words.limit(objective), "s", is_rough)
    burns = {ALL_TOLD: history.burns.get((*key, rows[0]["model"], objective.name), ())}
    drawn = chart(burns, span=span, threshold=1.0)
    return Picture(drawn, f"burn over {words.duration(BURN_WINDOW_S)}", words.burn(drawn.latest), words.burn(1.0), "×")


def points(history: History, objective: Objective, rows: Sequence[Facts], *, key: tuple[str, str]) -> Points:
    """The values that the chart of an objective is drawn from: of its only model, or of the first of several."""
    column = COLUMNS.get(float(objective.goal), USUAL_COLUMN)
    keys = [(*key, row["model"], objective.signal) for row in rows]
    known = next((history.percentiles[of] for of in keys if of in history.percentiles), None)
    if known is not None and objective.threshold is not None:
        return known[column]
    return history.burns.get((*key, rows[0]["model"], objective.name), ())


def _bounds(columns: Mapping[str, Points], column: str) -> Bounds:
    """Where the true values lie: within the error of the histogram, and anywhere above what is known to be exceeded."""
    errors, least = dict(columns.get("rel_error", ())), dict(columns.get("at_least", ()))
    found: list[tuple[int, float, float | None]] = []
    for at_s, value in columns[column]:
        if value is not None:
            error = errors.get(at_s) or 0.0
            is_exceeded = value == least.get(at_s)
            found.append(
                (at_s, value if is_exceeded else value * (1 - error), None if is_exceeded else value * (1 + error))
            )
    return found
