"""What several queries share: names of lines, buckets of time, charts. Pure text.

Figures kept by step are read in buckets of the chart's own interval, and only in whole ones.
"""

from collections.abc import Sequence

from sqlalchemy import Table

from dashboards.sql.selection import COLUMNS, EVERYTHING
from slo.promql import SERVICE_KEY, SUBJECT_KEY
from slo.signals import ENVIRONMENT_LABEL

BUCKET_S = "($__interval_ms / 1000)"
NUMBER = "DOUBLE PRECISION"
TIME = f"CASE WHEN step_s > {BUCKET_S} THEN start_s ELSE start_s / {BUCKET_S} * {BUCKET_S} END"
SECONDS = f"CASE WHEN step_s > {BUCKET_S} THEN step_s ELSE {BUCKET_S} END"
WHOLE_BUCKETS = (
    f"start_s >= ($__from / 1000 / {BUCKET_S} + 1) * {BUCKET_S} AND start_s < $__to / 1000 / {BUCKET_S} * {BUCKET_S}"
)
ENVIRONMENT = "CASE environment WHEN '' THEN '' ELSE environment || ' ' END"


def named(labels: Sequence[str], name: str = "") -> str:
    """The name of a line: the columns of the labels with blanks between, and what comes after them."""
    columns = [COLUMNS.get(label, label) for label in labels if label != ENVIRONMENT_LABEL]
    rest = " || ' ' || ".join([*columns, *([f"'{name}'"] if name else [])])
    return f"{ENVIRONMENT} || {rest}" if ENVIRONMENT_LABEL in labels else rest


SERVICE_NAME = named(SERVICE_KEY)
MODEL_NAME = named(SUBJECT_KEY)
OBJECTIVE_NAME = f"{SERVICE_NAME} || ' ' || objective || CASE model WHEN {EVERYTHING} THEN '' ELSE ' ' || model END"


def chart(table: Table | str, time: str, *, metric: str, value: str, where: str) -> str:
    """A line a name; rows of one name and time are folded by `value`."""
    name = table if isinstance(table, str) else table.name
    return (
        f"SELECT {time} AS time, {metric} AS metric, CAST({value} AS {NUMBER}) AS value\n"
        f"FROM {name}\nWHERE {where}\nGROUP BY 1, 2\nORDER BY 1"
    )
