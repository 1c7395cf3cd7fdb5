"""docs/sql.md tells the truth: what it shows runs on both databases, and what it advises keeps readers from writing."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Connection, text

from collector import schema
from collector.storage import partitions, sql_views, upsert
from tests.collector.storage.test_commit import after
from tests.collector.stores import added
from tests.sql_page import EXAMPLES, READ_ONLY_FILE, ROLE, sql_page

NOW_S = 1_800_000_000
HOUR_S = NOW_S // 3600 * 3600
ALERT = ("", "chat", "LLMTTFTBudgetBurn", "*", "ttft", "fast")
PAGE = '{"notify":"page","severity":"critical"}'
FOUND: dict[str, list[tuple[Any, ...]]] = {
    "burn right now": [("chat", "*", "ttft", "1h", 30, 6.0, 0.25)],
    "worst p95": [(HOUR_S - 3600, "chat", "m", 0.75), (HOUR_S, "chat", "m", 0.5)],
    "were we paged": [("LLMTTFTBudgetBurn", "chat", "ttft", 1, 600)],
    "good and bad in each hour": [(HOUR_S - 3600, "chat", "ttft", 10, 1), (HOUR_S, "chat", "ttft", 30, 3)],
}
"""What each question finds, by words of it."""


def a_day(connection: Connection) -> None:
    key = ("", "chat", "*", "ttft")
    counted = (1.0, "counts")
    burns = [(HOUR_S, *key, 3600, 70, 30, 6.0, *counted, 0), (HOUR_S - 60, *key, 3600, 70, 30, 9.0, *counted, 0)]
    added(connection, schema.burn_rate, burns)
    added(connection, schema.budget, [(HOUR_S, *key, 70, 30, 40.0, 0.25, None, *counted)])
    latencies = ((HOUR_S - 120, 0.25), (HOUR_S - 60, 0.75), (HOUR_S, 0.5))
    for at_s, p95 in latencies:
        quantiles = (9, 0, 0.1, 0.2, p95, 0.9, 0.9, 0.9, None, 0.01, 1.0)
        added(connection, schema.percentile, [(at_s, "", "chat", "m", "ttft", "proxy", 300, *quantiles)])
    events = [(HOUR_S - 900, "firing", None), (HOUR_S - 300, "resolved", HOUR_S - 900)]
    upsert.ALERT_EVENT.write(connection, [(at, *ALERT, state, fired, PAGE, "{}") for at, state, fired in events])
    steps = ((HOUR_S - 60, 10, 1), (HOUR_S, 10, 1), (HOUR_S + 60, 20, 2))
    upsert.SLO_COUNT.write(connection, [(60, at, *key[:2], "m", "ttft", "h", good, bad) for at, good, bad in steps])


@pytest.mark.parametrize("words", FOUND)
def test_every_question_shown_is_answered(database: str, words: str) -> None:
    (example,) = [one for one in EXAMPLES if words in one.asked]

    def ask(connection: Connection) -> list[tuple[Any, ...]]:
        rows = connection.execute(text(example.sql.replace(":", r"\:")))
        return [tuple(value if isinstance(value, str | float) else int(value) for value in row) for row in rows]

    assert after(database, a_day, ask) == FOUND[words]
    assert len(EXAMPLES) == len(FOUND)


def test_every_table_view_and_column_has_its_place() -> None:
    page = sql_page()
    for table in schema.metadata.sorted_tables:
        section = page.split(f"\n## {table.name}\n")[1].split("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [column.name for column in table.columns]
        assert f"| `{table.name}` |" in page.split("## How long what is kept")[1].split("\n## ")[0]
    for one in sql_views.VIEWS:
        section = page.split(f"\n## {one.table.name} (view)\n")[1].split("\n## ")[0]
        names = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
        whole = schema.views.tables[one.table.name.removesuffix("_latest")]
        assert names == [column.name for column in one.table.columns] or f"`{whole.name}`" in section
    for tier in partitions.TIERS:
        assert f"`<table>_{tier.name}_<start>`" in page


@pytest.mark.tools
def test_the_role_shown_reads_everything_and_writes_nothing(shared_database: str) -> None:
    """Also in the pieces that come after it."""
    role = ROLE.replace("dashboards", "dashboards_of_a_test")
    after(shared_database, a_day)

    async def grant() -> None:
        connection = await asyncpg.connect(shared_database)
        await connection.execute(role)
        await connection.close()

    async def read() -> list[int]:
        reader = await asyncpg.connect(shared_database.replace("firsttoken@", "dashboards_of_a_test@"))
        try:
            names = [*schema.metadata.tables, *schema.views.tables]
            found = [await reader.fetchval(f"SELECT count(*) FROM {name}") for name in names]
            for way in ("", "SET default_transaction_read_only = off;"):
                with pytest.raises(asyncpg.PostgresError, match=r"read-only|permission denied"):
                    await reader.execute(f"{way} DELETE FROM slo_count")
            return found
        finally:
            await reader.close()

    async def take_back() -> None:
        connection = await asyncpg.connect(shared_database)
        await connection.execute("DROP OWNED BY dashboards_of_a_test; DROP ROLE dashboards_of_a_test")
        await connection.close()

    asyncio.run(grant())
    try:
        while after(shared_database, lambda c: partitions.make_ahead(c, now_s=NOW_S + 90 * 86400)):
            pass
        counted = (60, NOW_S + 90 * 86400, "", "chat", "m", "ttft", "h", 1, 1)
        after(shared_database, lambda c: upsert.SLO_COUNT.write(c, [counted]))
        assert sum(asyncio.run(read())) > 10
    finally:
        asyncio.run(take_back())


def test_the_file_shown_is_read_and_never_written(tmp_path: Path) -> None:
    """Beside a collector that has it open, and without one."""

    def read() -> None:
        url = READ_ONLY_FILE.replace("firsttoken.db", str(tmp_path / "firsttoken.db"))
        with closing(sqlite3.connect(url, uri=True)) as reader:
            assert reader.execute("SELECT count(*) FROM budgets").fetchone() == (1,)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("DELETE FROM budget")

    after(str(tmp_path / "firsttoken.db"), a_day, lambda _: read())
    read()
