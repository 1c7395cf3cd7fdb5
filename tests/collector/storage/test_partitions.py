"""Pieces of time on a real PostgreSQL: rows lie where they should, what is old goes whole, a question reads its own."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Connection, select, text

from collector import schema
from collector.storage import partitions, retention, upsert
from collector.storage.retention import Limits
from slo.quantity import DAY_S, HOUR_S
from tests.collector.storage.test_commit import after
from tests.collector.stores import added

pytestmark = pytest.mark.tools
NOW_S = 1_800_000_000
TODAY_S = NOW_S // DAY_S * DAY_S
LIMITS = Limits(counts_s=35 * DAY_S)
KEY = ("", "chat", "m", "ttft", "h", 3, 1)
BUDGET = ("", "chat", "m", "ttft", 1, 0, 1.0, 1.0, None, 1.0, "counts")


def ahead(connection: Connection, now_s: int = NOW_S) -> None:
    while partitions.make_ahead(connection, now_s=now_s):
        pass


def counts(connection: Connection, *rows: tuple[int, int]) -> None:
    upsert.SLO_COUNT.write(connection, [(step_s, start_s, *KEY) for step_s, start_s in rows])


def places(connection: Connection, table: str = "slo_count") -> dict[str, int]:
    """How many rows lie in which piece."""
    return dict(Counter(connection.scalars(text(f"SELECT tableoid::regclass::text FROM {table}"))))


def names(connection: Connection, table: str = "slo_count") -> set[str]:
    """The pieces of a table, without the rests."""
    branches = partitions.branches(schema.metadata.tables[table])
    return {piece.name for branch in branches for piece in partitions.pieces(connection, branch)}


def day(start_s: int) -> str:
    return f"{datetime.fromtimestamp(start_s, UTC):%Y%m%d}"


def test_rows_lie_in_the_piece_of_their_step_and_time(shared_database: str) -> None:
    hour_s = NOW_S // HOUR_S * HOUR_S
    week_s = NOW_S // (7 * DAY_S) * 7 * DAY_S
    rows = [(10, hour_s), (10, hour_s + HOUR_S - 10), (10, hour_s + HOUR_S), (60, NOW_S // 60 * 60), (600, week_s)]
    odd = [(10, 0), (10, NOW_S + 400 * DAY_S), (3600, week_s - 3600)]
    found = after(shared_database, ahead, lambda c: counts(c, *sorted(rows + odd)), places)
    assert found == {
        f"slo_count_fine_{day(hour_s)}_{hour_s % DAY_S // HOUR_S:02}": 2,
        f"slo_count_fine_{day(hour_s + HOUR_S)}_{(hour_s + HOUR_S) % DAY_S // HOUR_S:02}": 1,
        f"slo_count_minute_{day(NOW_S)}": 1,
        f"slo_count_ten_minutes_{day(week_s)}": 1,
        "slo_count_fine_rest": 2,
        "slo_count_hour_rest": 1,
    }


def test_a_row_meets_the_row_of_its_key_in_whichever_piece(shared_database: str) -> None:
    rows = [(10, 0), (10, NOW_S)]
    twice = [lambda c: counts(c, *rows)] * 2
    read = lambda c: sorted(tuple(row) for row in c.execute(select(schema.slo_count)))  # noqa: E731
    found = after(shared_database, ahead, *twice, read)
    assert found == [(step_s, start_s, *KEY[:5], 6, 2) for step_s, start_s in rows]


def test_every_table_that_grows_has_pieces_of_now_and_ahead(shared_database: str) -> None:
    def covered(connection: Connection) -> dict[str, bool]:
        found = {}
        for branch in partitions.all_branches():
            pieces = partitions.pieces(connection, branch)
            ends = [piece.to_s for piece in pieces]
            found[branch.name] = min(piece.from_s for piece in pieces) <= NOW_S and max(ends) >= NOW_S + branch.piece_s
            assert ends[:-1] == [piece.from_s for piece in pieces[1:]]
        return found

    found = after(shared_database, ahead, ahead, covered)
    assert len(found) == 4 * len(partitions.TIERS) + 3
    assert all(found.values())


def test_a_piece_whose_rows_lie_in_the_rest_is_not_made(shared_database: str) -> None:
    """The rows of its time stay together, and are none the worse for it."""
    found = after(shared_database, lambda c: counts(c, (60, NOW_S)), ahead, names)
    assert f"slo_count_minute_{day(NOW_S)}" not in found
    assert f"slo_count_minute_{day(NOW_S + DAY_S)}" in found
    assert after(shared_database, lambda c: counts(c, (60, NOW_S + 60)), places) == {"slo_count_minute_rest": 2}


def test_what_is_past_goes_whole_and_what_was_folded_leaves_no_piece(shared_database: str) -> None:
    def sweep(connection: Connection, now_s: int) -> None:
        for piece in retention.pieces(now_s, LIMITS, whole=True):
            while piece(connection):
                pass

    rows = [(10, NOW_S // HOUR_S * HOUR_S + 10 * number) for number in range(6)]
    after(shared_database, ahead, lambda c: counts(c, *rows))
    for age_s in (4 * HOUR_S, 4 * DAY_S, 15 * DAY_S):
        found = after(shared_database, lambda c, age_s=age_s: sweep(c, NOW_S + age_s), places)
        assert len(found) == 1, age_s
    assert next(iter(found)).startswith("slo_count_hour")
    assert after(shared_database, lambda c: sweep(c, NOW_S + 50 * DAY_S), places) == {}
    left = after(shared_database, names)
    assert left
    assert all(not name.endswith(day(NOW_S)) for name in left)


def rewrite(connection: Connection) -> bool:
    return partitions.rewrite(connection, table=schema.budget, before_s=TODAY_S + DAY_S, coarse_s=600)


def rewrite_all(connection: Connection) -> None:
    while rewrite(connection):
        pass


def a_day_of_figures(connection: Connection) -> None:
    ages = [TODAY_S + 60 * number for number in range(1440) if number // 10 != 77]
    added(connection, schema.budget, [(at_s, *BUDGET) for at_s in ages])


def test_figures_of_a_day_are_written_anew(shared_database: str) -> None:
    """With the last moment of each ten minutes, where there is one."""
    found = after(shared_database, ahead, a_day_of_figures, rewrite_all, lambda c: places(c, "budget"))
    assert found == {f"budget_{day(NOW_S)}_thin": 143}
    kept = after(shared_database, lambda c: c.scalars(select(schema.budget.c.at_s)).all())
    assert sorted(kept) == [TODAY_S + 600 * number + 540 for number in range(144) if number != 77]
    assert after(shared_database, rewrite) is False


def test_rewriting_goes_on_where_it_was_broken_off(shared_database: str) -> None:
    """Each piece is a transaction: until the last one readers see the day as it was."""
    after(shared_database, ahead, a_day_of_figures)
    for _ in range(5):
        assert after(shared_database, rewrite) is True

    def roll_back(connection: Connection) -> None:
        attempt = connection.begin_nested()
        assert rewrite(connection)
        attempt.rollback()

    assert after(shared_database, roll_back, lambda c: places(c, "budget")) == {f"budget_{day(NOW_S)}": 1430}
    found = after(shared_database, rewrite_all, lambda c: places(c, "budget"))
    assert found == {f"budget_{day(NOW_S)}_thin": 143}


QUESTIONS = {
    f"SELECT * FROM budget WHERE at_s >= {NOW_S}": 2,
    f"SELECT * FROM budgets WHERE at_s >= {NOW_S}": 2,
    f"SELECT * FROM slo_count WHERE step_s = 10 AND start_s >= {NOW_S}": 4,
    f"SELECT * FROM slo_count WHERE start_s BETWEEN {NOW_S} AND {NOW_S + 60}": 4,
}
"""Questions, and how many pieces there are of that time."""


def test_a_question_reads_the_pieces_of_its_time(shared_database: str) -> None:
    """And the rests, where rows of any time may lie."""

    def plan(connection: Connection, question: str) -> set[str]:
        found = connection.scalar(text(f"EXPLAIN (FORMAT JSON) {question}"))
        return {name for name in relations(found) if not name.endswith("_rest")}

    def plans(connection: Connection) -> dict[str, set[str]]:
        return {question: plan(connection, question) for question in QUESTIONS}

    before = partial(ahead, now_s=NOW_S - 7 * DAY_S)
    found = after(shared_database, before, ahead, plans)
    assert {question: len(names) for question, names in found.items()} == QUESTIONS
    after_now = {f"{day(NOW_S)}", f"{day(NOW_S + DAY_S)}"}
    assert {name.removeprefix("budget_") for name in found[f"SELECT * FROM budget WHERE at_s >= {NOW_S}"]} == after_now


def relations(plan: Any) -> list[str]:
    """Every table that a plan reads."""
    if isinstance(plan, list):
        return [name for one in plan for name in relations(one)]
    if not isinstance(plan, dict):
        return []
    mine = [plan["Relation Name"]] if "Relation Name" in plan else []
    return mine + [name for one in plan.values() for name in relations(one)]


def test_a_reader_holds_upkeep_up_for_a_moment_only(shared_database: str, caplog: pytest.LogCaptureFixture) -> None:
    """What it holds is left to the next sweep, and all else of the transaction is done."""
    after(shared_database, ahead, lambda c: counts(c, (10, NOW_S)))
    hour_s = NOW_S // HOUR_S * HOUR_S + HOUR_S
    drop = lambda c: partitions.drop_past(c, table=schema.slo_count, before_s=hour_s, now_s=NOW_S)  # noqa: E731

    async def beside_a_reader() -> dict[str, int]:
        reader = await asyncpg.connect(shared_database)
        try:
            async with reader.transaction():
                await reader.fetch("SELECT * FROM slo_count")
                return await asyncio.to_thread(
                    after, shared_database, lambda c: (drop(c), counts(c, (60, NOW_S))), places
                )
        finally:
            await reader.close()

    assert sum(asyncio.run(beside_a_reader()).values()) == 2
    assert ["left to the next sweep" in record.getMessage() for record in caplog.records] == [True]
    assert list(after(shared_database, drop, places)) == [f"slo_count_minute_{day(NOW_S)}"]
