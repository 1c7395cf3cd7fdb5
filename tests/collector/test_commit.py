"""What a write transaction does to the tables, on real databases."""

import asyncio
import math
from typing import Any

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from collector import commit, rows, schema
from collector.database import database_url, open_database
from collector.deltas import Deltas, LatencyKey, LatencyRow, SeriesKey
from collector.evaluate import Alert, AlertKey, BurnRow, Evaluation
from collector.histogram import Layout, from_values, merge

EXACT = SeriesKey(LatencyKey("", "chat", "m", "ttft", "proxy"), "i1", Layout(5))
COARSE = SeriesKey(LatencyKey("", "chat", "m", "ttft", "otel"), "i1", Layout(None, (0.1, 1.0)))


def after(database: str, *works: Any) -> Any:
    """The answer of the last of the works, each in a transaction of its own."""

    async def story() -> Any:
        engine = await open_database(database_url(database))
        try:
            answer = None
            for work in works:
                async with engine.begin() as connection:
                    await connection.run_sync(commit.take_turn)
                    answer = await connection.run_sync(work)
            return answer
        finally:
            await engine.dispose()

    return asyncio.run(story())


def test_histograms_of_the_same_step_are_merged(database: str) -> None:
    first, second = from_values([0.1, 0.2, 0.0]), from_values([0.2, 30.0])

    def write(one: Any) -> Any:
        latencies = (LatencyRow(EXACT, 100, one), LatencyRow(COARSE, 100, from_values([0.05, 5], COARSE.layout)))
        return lambda c: commit.write_deltas(c, Deltas(latencies=latencies), step_s=10, at_s=1)

    def read(connection: Connection) -> Any:
        found = {row.series_id: row for row in connection.execute(select(schema.rollup))}
        return [rows.rollup_histogram(found[rows.series_id(key)], key.layout) for key in (EXACT, COARSE)]

    exact, coarse = after(database, write(first), write(second), read)
    assert exact == merge(first, second)
    assert coarse.counts.tolist() == [2, 0, 2]


def test_digests_are_remembered(database: str) -> None:
    written = after(
        database,
        lambda c: commit.write_digests(c, [b"b", b"a"], at_s=1),
        lambda c: commit.write_digests(c, [b"a", b"c"], at_s=2),
        lambda c: commit.counted(c, {b"a", b"c", b"x"}),
    )
    assert written == {b"a", b"c"}


def test_many_digests_are_asked_for_in_parts(database: str) -> None:
    digests = {b"%d" % number for number in range(2 * commit.KEYS_PER_QUESTION + 1)}
    found = after(database, lambda c: commit.write_digests(c, digests, at_s=1), lambda c: commit.counted(c, digests))
    assert found == digests


def burn(at_s: int) -> Evaluation:
    row = BurnRow(at_s, "", "chat", "m", "ttft", 60, 9, 1, 2.0, 1.0, "counts", 0)
    return Evaluation(at_s, (), (row,), (), (), ())


def test_ticks_keep_the_latest_row_and_one_a_minute(database: str) -> None:
    ticks = [lambda c, at_s=at_s: commit.write_evaluation(c, burn(at_s)) for at_s in range(600, 800, 10)]
    kept = after(database, *ticks, lambda c: c.scalars(select(schema.burn_rate.c.at_s)).all())
    assert sorted(kept) == [650, 710, 770, 790]


def test_a_tick_written_again_stands_once(database: str) -> None:
    again = [lambda c: commit.write_evaluation(c, burn(600))] * 2
    assert after(database, *again, lambda c: c.scalars(select(schema.burn_rate.c.burn)).all()) == [2.0]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_no_nan_and_no_infinity_is_ever_stored(database: str, value: float) -> None:
    """SQLite keeps NaN as NULL, which is what unknown is; everything else is refused, and the tick with it."""
    row = BurnRow(600, "", "chat", "m", "ttft", 60, 9, 1, value, 1.0, "counts", 0)
    write = lambda c: commit.write_evaluation(c, Evaluation(600, (), (row,), (), (), ()))  # noqa: E731
    if math.isnan(value) and database.startswith("sqlite"):
        assert after(database, write, lambda c: c.scalars(select(schema.burn_rate.c.burn)).all()) == [None]
        return
    with pytest.raises(IntegrityError, match="finite"):
        after(database, write)
    assert after(database, lambda c: c.execute(select(schema.burn_rate)).all()) == []


@pytest.mark.parametrize("times", [1, 2])
def test_alerts_and_their_transitions_are_kept_once(database: str, times: int) -> None:
    key = AlertKey("LLMTTFTBudgetBurn", "", "chat", "*", "ttft", "fast")
    pending, firing = Alert(key, "pending", 1, None, (), ()), Alert(key, "firing", 2, 2, (), ())

    def read(connection: Connection) -> Any:
        states = connection.scalars(select(schema.alert.c.state)).all()
        return states, connection.scalars(select(schema.alert_event.c.state).order_by(schema.alert_event.c.at_s)).all()

    write = [lambda c: commit.write_alerts(c, [firing], [pending, firing])] * times
    assert after(database, *write, read) == (["firing"], ["pending", "firing"])
