"""What a database says that it holds of a stretch; what ClickHouse says of the same is compared in `test_mirror`."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import Select
from sqlalchemy.engine import Connection

from collector.clickhouse import relations
from collector.clickhouse.blocks import Block
from collector.clickhouse.relations import RELATIONS, ROLLUPS, Relation
from collector.storage import recall
from collector.storage.database import database_url
from collector.storage.read_only import read_only
from tests.collector import exports
from tests.collector.stores import NOW_S, batch, store

BLOCK = Block(NOW_S - 600, NOW_S, 60)


def counted(database: str) -> None:
    """Two seconds of one minute, and one of another."""

    async def story() -> None:
        async with store(database) as one:
            for number, (at_s, good) in enumerate(((NOW_S - 130, 3), (NOW_S - 150, 4), (NOW_S - 200, 5))):
                await one.count(b"%d" % number, batch(exports.second(good=good, bad=1, at_s=at_s)))

    asyncio.run(story())


def answers(database: str, of: Relation, *, rows: bool = False) -> list[tuple[Any, ...]]:
    def ask(connection: Connection) -> list[tuple[Any, ...]]:
        steps = recall.steps(connection, of.stored)
        question: Select[Any] = relations.stored_totals(of, BLOCK, steps)
        if rows:
            question = relations.stored_rows(of, BLOCK, steps, [NOW_S - 180])
        return [tuple(row) for row in connection.execute(question)]

    return asyncio.run(read_only(database_url(database), ask))


def test_how_much_there_is_by_step(database: str) -> None:
    counted(database)
    found = {of.name: relations.totals(answers(database, of)) for of in RELATIONS}
    early, late = NOW_S - 240, NOW_S - 180
    assert found["rollup"] == {early: (6,), late: (9,)}
    assert found["slo_count"] == {early: (1, 5, 1), late: (1, 7, 2)}
    assert found["counter"] == {early: (1, 1.0), late: (1, 2.0)}
    assert found["known"] == {early: (1,), late: (1,)}


def test_the_rows_of_a_step_are_what_is_missing_of_nothing(database: str) -> None:
    counted(database)
    missing = relations.missing(ROLLUPS, answers(database, ROLLUPS, rows=True), [], origin="here")
    (row,) = missing.rows
    found = dict(zip(ROLLUPS.table.names, row, strict=True))
    assert (found["service"], found["origin"], found["start_s"]) == ("chat", "here", NOW_S - 180)
    assert (found["count"], found["min"], found["max"]) == (9, 0.1, 2.0)
    assert sum(found["bins"].values()) == 9
    assert len(found["bins"]) == 2


@pytest.mark.parametrize("of", RELATIONS, ids=lambda of: of.name)
def test_what_was_sent_is_asked_of_one_origin_alone(of: Relation) -> None:
    for question in (relations.sent_totals(of, BLOCK), relations.sent_rows(of, BLOCK)):
        assert "origin = {origin:String}" in question
        assert f"start_s >= {BLOCK.from_s}" in question


def test_known_steps_are_compared_by_the_minute_at_most() -> None:
    whole = Block(0, 86400, 3600)
    assert {of.name: of.grain_s(whole) for of in RELATIONS} == {
        "rollup": 3600, "slo_count": 3600, "counter": 3600, "known": 60,
    }  # fmt: skip
