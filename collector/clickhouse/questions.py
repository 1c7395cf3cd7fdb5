"""Pieces of SQL that the views share: which rows a window holds, at which step, and what is known of it.

They say in the engine's words what `collector.windowing` says in arrays: with now floored to the tick, a window holds
the steps that start after now less its length, at the step that it is held at (`rolling`). Nothing that starts after
the moment asked for is looked at; a collector counts what its senders' clocks put ahead of its own at once.
"""

# ruff: noqa: S608  our own names, whole numbers and checked literals are all that goes into these texts

from collector.clickhouse.tables import INSTANCE, KNOWN, OBJECTIVE, quoted
from collector.windowing.rolling import RUNGS
from slo.burn import FINE_WINDOW_S
from slo.quantity import MINUTE_S

AT, WINDOW, TICK = "{at_s:Int64}", "{window_s:Int64}", "{tick_s:Int64}"
"""What every question is asked with: the moment, the window and the collectors' tick, in seconds."""


def held(window: str, *, start: str = "start_s") -> str:
    """Whether a row lies in a window that ends at the moment asked for."""
    now = f"({AT} - {AT} % {TICK})"
    floored = f"{start} - {start} % {step(window)}"
    return f"{start} > {now} - {window} AND {floored} > {now} - {window} AND {start} <= {AT}"


def step(window: str) -> str:
    """The step that a window is held at."""
    *shorter, (longest_step_s, _) = RUNGS
    branches = ", ".join(f"{window} <= {longest_s}, {step_s}" for step_s, longest_s in shorter)
    return f"greatest({TICK}, multiIf({branches}, {longest_step_s}))"


def objectives() -> str:
    """What is promised: of each service as it was told last."""
    name = OBJECTIVE.name
    latest = f"SELECT service, max(written_s) FROM {name} GROUP BY service"
    return f"SELECT DISTINCT * FROM {name} WHERE (service, written_s) GLOBAL IN ({latest})"


def covered(lengths: str) -> str:
    """The share of each of several windows from which telemetry of each service is known, as `coverage` has it. A
    service that is elastic, or of which nobody sends on his own, is known from its first moment on."""
    return f"""\
SELECT environment, service, length_s,
    least(greatest(if(is_elastic = 1 OR is_periodic = 0, until - greatest(until - steps, since), seen), 0) / steps, 1)
        AS share
FROM (
    SELECT environment, service, length_s, if(length_s < {FINE_WINDOW_S}, {TICK}, {MINUTE_S}) AS unit_s,
        greatest(intDiv(length_s, unit_s), 1) AS steps, intDiv({AT}, unit_s) AS until,
        intDiv(min(start_s), unit_s) AS since,
        toInt64(uniqExactIf(intDiv(start_s, unit_s),
            intDiv(start_s, unit_s) >= until - steps AND intDiv(start_s, unit_s) < until)) AS seen
    FROM {KNOWN.name} ARRAY JOIN {lengths} AS length_s
    WHERE start_s <= {AT} GROUP BY environment, service, length_s
) AS heard
GLOBAL LEFT JOIN (
    SELECT environment, service, max(periodic) AS is_periodic FROM {INSTANCE.name} GROUP BY environment, service
) AS senders USING (environment, service)
GLOBAL LEFT JOIN (
    SELECT service, max(elastic) AS is_elastic FROM ({objectives()}) GROUP BY service
) AS specs USING (service)
"""


def view(name: str, question: str, comment: str, *, cluster: str) -> str:
    """The statement that keeps a question under a name, to be asked with its parameters."""
    return f"CREATE OR REPLACE VIEW {quoted(name)}{cluster} AS\n-- {comment}\n{question.rstrip()}"
