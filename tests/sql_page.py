"""docs/sql.md: every table, column and view as the schema has it, how long it is kept, and questions that work.

The questions and the statements shown are run by `tests/collector/test_sql_page.py`, on SQLite and PostgreSQL.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Table

from collector import schema
from collector.storage import figures, partitions, retention, sql_views, sqlite_file
from collector.storage.retention import Limits
from slo.quantity import duration_text

DEFAULT = Limits(counts_s=35 * 86400)


@dataclass(frozen=True, slots=True)
class Example:
    """A question of somebody on call, and the SQL that answers it on every database."""

    asked: str
    sql: str


EXAMPLES = (
    Example(
        "Which objectives burn right now, and what is left of their budgets?",
        """\
SELECT b.service, b.model, b.objective, b.window_label, b.bad, b.burn, budgets_latest.remaining
FROM burn_rates_latest AS b
JOIN budgets_latest USING (environment, service, model, objective)
WHERE b.window_label = '1h' AND b.burn > 1
ORDER BY b.burn DESC""",
    ),
    Example(
        "What was the worst p95 of the time to first token in each hour of the last day, by model?",
        """\
SELECT at_s - at_s % 3600 AS hour_s, service, model, max(p95) AS worst_p95
FROM percentile
WHERE signal = 'ttft' AND source <> 'engine' AND window_s = 300
  AND at_s > (SELECT max(at_s) FROM percentile) - 86400
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3""",
    ),
    Example(
        "How often were we paged in the last four weeks, by what, and for how long?",
        """\
SELECT name, service, objective, count(*) AS pages, sum(lasted_s) AS lasted_s
FROM alert_events
WHERE state = 'resolved' AND lasted_s IS NOT NULL AND labels LIKE '%"notify":"page"%'
  AND at_s > (SELECT max(at_s) FROM alert_event) - 28 * 86400
GROUP BY 1, 2, 3
ORDER BY pages DESC""",
    ),
    Example(
        "How many events were good and bad in each hour (UTC), as counted at the source?",
        """\
SELECT start_s - start_s % 3600 AS hour_s, service, objective, sum(good) AS good, sum(bad) AS bad
FROM slo_count
WHERE start_s >= (SELECT max(start_s) FROM slo_count) - 86400
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3""",
    ),
)

ROLE = """\
CREATE ROLE dashboards LOGIN;  -- its password: \\password dashboards, in psql
GRANT USAGE ON SCHEMA public TO dashboards;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO dashboards;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO dashboards;
ALTER ROLE dashboards SET default_transaction_read_only = on;
ALTER ROLE dashboards SET statement_timeout = '30s';
ALTER ROLE dashboards SET idle_in_transaction_session_timeout = '60s';
"""

WARN_MIB = sqlite_file.WARN_BYTES >> 20
READ_ONLY_FILE = "file:firsttoken.db?mode=ro"


OPENING = """\
# SQL

Generated from `collector/schema.py` and `collector/storage/sql_views.py` by `make generate`.

The collector's product: the same tables and views on SQLite and PostgreSQL. `firsttoken collector schema --dialect
sqlite|postgresql` prints the statements that make them. In the tables times are whole epoch seconds (UTC, whatever the
time zone of a session), durations are seconds, and what is unknown is NULL, never 0, NaN or infinity. The views show
the same with timestamps: `timestamptz` on PostgreSQL, ISO 8601 text in UTC on SQLite.

The revision of the tables stands in `schema_version`. A collector makes the tables in an empty database and brings
those of an earlier release on when it starts, in one transaction; those of a later release it leaves alone.

## Questions

They work as they stand on both databases. A range of time belongs on `at_s` or `start_s`: these are keys, and
PostgreSQL reads only the pieces of that time.
"""

READERS = f"""\
## Reading beside a collector

Readers hold no writer up, but what one holds open cannot be cleared away: end transactions, and set a limit.

PostgreSQL: give dashboards a role of their own. It reads every table there is and every one to come:

```sql
{ROLE.rstrip()}
```

Run it as the role that the collector connects with, or say `FOR ROLE` that one in the fourth statement: default
privileges go by who makes a table.

SQLite: open the file as `{READ_ONLY_FILE}`. The reader must be allowed to write to its folder, where
the index of the log lies (`-shm`), unless the collector runs. While one reads, the log (`-wal`) cannot be begun anew: a
reader that keeps a transaction open makes it grow, the collector warns beyond {WARN_MIB} MiB, and the log is cut once
that reader ends. A file made by the first release never shrinks, though its free pages are used again; `PRAGMA
auto_vacuum = INCREMENTAL; VACUUM;` while no collector runs changes that.
"""

KEPT_HOW = """\
## How long what is kept

Rows are folded into longer steps as they age, which changes no count, and dropped by whole pieces of time. On
PostgreSQL the pieces are partitions, made ahead and dropped as they are; rows of odd times (late ones, the past of an
earlier release) lie in the partition named `..._rest`. Ask the tables, never a partition.
"""

KEPT = {
    "alert": "as long as the database: one row an alert that ever left ok",
    "capacity_result": "as long as the database: one row a run of `firsttoken capacity` with `--database`",
    "journal": "minutes",
    "leader": "one row",
    "notification": "as long as the database: one row a group of alerts",
    "schema_version": "one row",
    "series": "as long as its instance",
}


def sql_page() -> str:
    """The page."""
    parts = (OPENING, *_examples(), READERS, KEPT_HOW, _tiers(), _ages(), *_views(), *_tables())
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _examples() -> Iterator[str]:
    for example in EXAMPLES:
        yield f"{example.asked}\n\n```sql\n{example.sql}\n```"


def _tiers() -> str:
    ages = [*(duration_text(age_s) for _, age_s in retention.FOLDS), "never"]
    names = ["shorter than 1m", *(f"{duration_text(tier.from_s)} and longer" for tier in partitions.TIERS[1:])]
    rows = [
        "| steps | folded into the next after | dropped in pieces of | partitions on PostgreSQL |",
        "|---|---|---|---|",
    ]
    for tier, name, age in zip(partitions.TIERS, names, ages, strict=True):
        rows.append(f"| {name} | {age} | {duration_text(tier.piece_s)} | `<table>_{tier.name}_<start>` |")
    return "\n".join(rows)


def _ages() -> str:
    rows = [f"| `{table.name}` | {_kept(table)} |" for table in schema.metadata.sorted_tables]
    return "\n".join(("| table | kept |", "|---|---|", *rows))


def _kept(table: Table) -> str:
    if table in retention.COUNTS:
        how = "by tiers of steps" if partitions.branches(table) else "one table on PostgreSQL too"
        if table is schema.gauge:
            return f"{duration_text(DEFAULT.gauges_s)}, {how}"
        return f"`--retention` (35d), or a day longer than the longest window, {how}"
    if table in figures.TABLES:
        fine, coarse = duration_text(retention.FINE_FIGURES_S), duration_text(retention.COARSE_FIGURE_S)
        return f"one row a minute for {fine}, one in {coarse} up to {duration_text(DEFAULT.figures_s)}, by days"
    for column, age_s in retention.lifetimes(DEFAULT):
        if column.table is table:
            return f"{duration_text(age_s)} after `{column.name}`"
    return KEPT[table.name]


def _views() -> Iterator[str]:
    for view in sql_views.VIEWS:
        table = view.table
        whole = table.name.removesuffix("_latest")
        rows = [f"| `{column.name}` | {column.comment} |" for column in table.columns]
        columns = "\n".join(("| column | meaning |", "|---|---|", *rows))
        if table.name != whole:
            columns = f"The columns are those of `{whole}`."
        yield f"## {table.name} (view)\n\n{table.comment}\n\n{columns}"


def _tables() -> Iterator[str]:
    for table in schema.metadata.sorted_tables:
        rows = ["| column | type | meaning |", "|---|---|---|"]
        for column in table.columns:
            key = " (key)" if column.primary_key else ""
            rows.append(f"| `{column.name}` | {column.type}{key} | {column.comment} |")
        yield "\n".join((f"## {table.name}\n\n{table.comment}\n", *rows))
