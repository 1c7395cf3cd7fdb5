"""What PostgreSQL and SQLite write differently, and their plugins: a time range, JSON, numbers as text."""

# ruff: noqa: S608  these texts are for Grafana to send; nothing but our own names and checked names goes into them

from dataclasses import dataclass

from sqlalchemy import Table

from dashboards.model import POSTGRES, Datasource

FROM_S, TO_S = "$__from / 1000", "$__to / 1000"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL that the plugin of a datasource sends."""

    datasource: Datasource

    def in_range(self, column: str, *, earlier_s: int = 0) -> str:
        """Rows whose `column` (epoch seconds) lies in the time range shown, or so much before it."""
        if earlier_s:
            return f"{column} BETWEEN {FROM_S} - {earlier_s} AND {TO_S} - {earlier_s}"
        if self._is_postgres:
            return f"$__unixEpochFilter({column})"
        return f"{column} BETWEEN {FROM_S} AND {TO_S}"

    def latest(self, table: Table) -> str:
        """The moment of the last evaluation in the time range."""
        return f"(SELECT MAX(at_s) FROM {table.name} WHERE {self.in_range('at_s')})"

    def field(self, column: str, key: str) -> str:
        """A text inside a column of JSON."""
        if self._is_postgres:
            return f"CAST({column} AS json) ->> '{key}'"
        return f"json_extract({column}, '$.{key}')"

    def elements(self, column: str) -> str:
        """The numbers of an array in JSON as rows of `place` (from 0) and `n`, to be joined to its table as `bin`."""
        if self._is_postgres:
            listed = f"json_array_elements_text(CAST({column} AS json)) WITH ORDINALITY AS listed(item, nth)"
            rows = f"SELECT nth - 1 AS place, CAST(item AS BIGINT) AS n FROM {listed}"
            return f"CROSS JOIN LATERAL ({rows}) AS bin"
        return f"CROSS JOIN json_each({column}) AS bin"

    @property
    def place(self) -> str:
        """The place of a row of `elements`."""
        return "bin.place" if self._is_postgres else "bin.key"

    @property
    def element(self) -> str:
        """The number of a row of `elements`."""
        return "bin.n" if self._is_postgres else "bin.value"

    def milliseconds(self, microseconds: str) -> str:
        """Whole microseconds as text in milliseconds, in one width, so that texts sort as numbers do."""
        if self._is_postgres:
            return f"""to_char({microseconds} / 1000.0, '99999990.0" ms"')"""
        return f"printf('%11.1f ms', {microseconds} / 1000.0)"

    @property
    def _is_postgres(self) -> bool:
        return self.datasource is POSTGRES
