"""What a write transaction does to the tables, on real databases."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import Connection, select

from collector import schema
from collector.storage import commit, rows
from collector.storage.database import database_url, open_database
from collector.values.alerting import Alert, AlertKey
from collector.values.deltas import Deltas, LatencyKey, LatencyRow, SeriesKey
from collector.values.histogram import Layout, from_values, merge

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
        return {row.series_id: row for row in connection.execute(select(schema.rollup))}

    found = after(database, write(first), write(second), read)
    exact, coarse = (rows.rollup_histogram(found[key.id], key.layout) for key in (EXACT, COARSE))
    assert exact == merge(first, second)
    assert coarse.counts.tolist() == [2, 0, 2]


def test_only_what_is_later_than_all_that_is_known_is_written_without_a_look(database: str) -> None:
    """A row at or before the latest step of its series may be there; so may any of a series of which nothing is
    known."""
    first, second = from_values([0.1, 0.2, 0.0]), from_values([0.2, 30.0])

    def write(latest_s: dict[int, int], *rows_of: LatencyRow) -> Any:
        return lambda c: commit.write_latencies(c, rows_of, step_s=10, latest_s=latest_s)

    def read(connection: Connection) -> Any:
        return connection.execute(select(schema.rollup).order_by(schema.rollup.c.start_s)).all()

    found = after(
        database,
        write({}, LatencyRow(EXACT, 100, first)),
        write({EXACT.id: 100}, LatencyRow(EXACT, 100, second), LatencyRow(EXACT, 110, first)),
        write({EXACT.id: 110}, LatencyRow(EXACT, 120, second)),
        write({}, LatencyRow(EXACT, 110, first)),
        read,
    )
    expected = [merge(first, second), merge(first, first), second]
    assert [rows.rollup_histogram(row, EXACT.layout) for row in found] == expected
    assert after(database, lambda c: list(c.scalars(select(schema.series.c.id)))) == [EXACT.id]


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


@pytest.mark.parametrize("times", [1, 2])
def test_alerts_and_their_transitions_are_kept_once(database: str, times: int) -> None:
    key = AlertKey("LLMTTFTBudgetBurn", "", "chat", "*", "ttft", "fast")
    pending, firing = Alert(key, "pending", 1, None, (), ()), Alert(key, "firing", 2, 2, (), ())

    def read(connection: Connection) -> Any:
        states = connection.scalars(select(schema.alert.c.state)).all()
        return states, connection.scalars(select(schema.alert_event.c.state).order_by(schema.alert_event.c.at_s)).all()

    write = [lambda c: commit.write_alerts(c, [firing], [pending, firing])] * times
    assert after(database, *write, read) == (["firing"], ["pending", "firing"])
