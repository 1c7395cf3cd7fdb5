"""Two measurements of the same requests held against each other: the load's own records, and the collector's SQL.

The load writes when each request was written out to the sidecar's socket and when its first content came back; that is
the sidecar's hop seen from the other side. The `percentile` table holds what the sidecar measured and the collector
computed. Both are given the same set: the requests that had a first token by the row's time, counted off in that order,
and, beyond them, those the row calls censored.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from firsttoken.demo_plan import EXPORT_MS, MODEL, PERIOD_S, SERVICE, TICK_S

REL_TOLERANCE = 0.02
ABS_TOLERANCE_S = 0.005
SHARE = 0.95
# A row is this much older than what it could know at most: an export, two evaluations, and a busy machine.
MAX_AGE_S = EXPORT_MS / 1000 + 2 * TICK_S + 4
_ROW = """
    SELECT at_s, count, censored, p95 FROM percentile
    WHERE signal = 'ttft' AND source = 'proxy' AND service = ? AND model = ? AND window_s = ?
    ORDER BY at_s DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of `percentile`: TTFT of the window that ends at `at_s` (epoch seconds)."""

    at_s: int
    count: int
    censored: int
    p95_s: float | None


@dataclass(frozen=True, slots=True)
class Report:
    """The load's own record: epoch seconds of each first token and the TTFT at the sidecar's hop, by time; and how late
    (p95) the machine woke the load generator for a timer."""

    tokens: tuple[tuple[float, float], ...] = ()
    late_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """p95 TTFT of the same requests, by the load generator and in SQL; None where it is not known.

    `late_s` is how late this machine wakes a process: on a busy one the load generator reads a token so much later than
    the sidecar wrote it, and no better agreement can be asked for. `behind_s` is above 0 where SQL stopped being
    written so long before.
    """

    about: str
    count: int = 0
    load_s: float | None = None
    sql_s: float | None = None
    late_s: float = 0.0
    behind_s: float = 0.0

    @property
    def agrees(self) -> bool | None:
        """Whether SQL is up to date and near enough; None when there is nothing to compare."""
        if self.behind_s > 0:
            return False
        apart_s = self._apart_s
        return None if apart_s is None else apart_s <= self._tolerance_s + self.late_s

    @property
    def text(self) -> str:
        by_load = "not known" if self.load_s is None else f"{self.load_s * 1000:.1f} ms"
        in_sql = "not known" if self.sql_s is None else f"{self.sql_s * 1000:.1f} ms"
        behind = f", which is {self.behind_s:.0f} s behind" if self.behind_s > 0 else ""
        figures = f"{by_load} by the load generator, {in_sql} in SQL{behind}"
        return f"TTFT p95, {self.about}: {figures} ({self.count} requests; {self._verdict})"

    @property
    def _apart_s(self) -> float | None:
        return None if self.load_s is None or self.sql_s is None else abs(self.load_s - self.sql_s)

    @property
    def _tolerance_s(self) -> float:
        """2 % or 5 ms."""
        return max(REL_TOLERANCE * (self.load_s or 0.0), ABS_TOLERANCE_S)

    @property
    def _verdict(self) -> str:
        if self.agrees is None:
            return "no comparison"
        if not self.agrees:
            return "THEY DIFFER"
        if self._apart_s is not None and self._apart_s > self._tolerance_s:
            return f"they agree, on a machine so busy that it wakes a process {self.late_s * 1000:.0f} ms late"
        return "they agree"


def latest(database: Path) -> Measured | None:
    """The newest row over the demo's whole period, read as any user would read it."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5.0)) as connection:
        row = connection.execute(_ROW, (SERVICE, MODEL, PERIOD_S)).fetchone()
    return None if row is None else Measured(*row)


def read_report(path: Path) -> Report:
    """The record that a load's JSON holds; an empty one for a file that was never finished."""
    try:
        load = json.loads(path.read_text())
    except (OSError, ValueError):
        return Report()
    late_s = load["summary"]["late"]["p95"] or 0.0
    return Report(tuple(sorted(_first_tokens(load["started_at_s"], load["records"]))), late_s)


def _first_tokens(started_at_s: float, records: Iterable[Mapping[str, float | None]]) -> Iterable[tuple[float, float]]:
    for record in records:
        first_s, written_s = record["first_token_s"], record["written_s"]
        if first_s is not None and written_s is not None:
            yield started_at_s + first_s, first_s - written_s


def compare(about: str, row: Measured | None, report: Report, *, until_s: float) -> Comparison:
    """Hold a row against the load's record of as many requests, the earliest ones of the row's window.

    `until_s` is the moment up to which the row should know everything, but for `MAX_AGE_S`.
    """
    if row is None:
        return Comparison(about)
    in_window = [ttft_s for at_s, ttft_s in report.tokens if at_s > row.at_s - PERIOD_S]
    values = sorted(in_window[: row.count])
    rank = max(math.ceil(round(SHARE * (row.count + row.censored), 9)), 1)
    load_s = values[rank - 1] if rank <= len(values) else None
    behind_s = until_s - row.at_s
    return Comparison(about, row.count, load_s, row.p95_s, report.late_s, behind_s if behind_s > MAX_AGE_S else 0.0)
