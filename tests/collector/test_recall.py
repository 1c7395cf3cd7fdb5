"""Reading back what was committed: page by page, and the same as it was written."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import select

from collector import commit, recall, schema, upsert
from collector.deltas import Deltas, concat
from collector.rollup import Intake, fold
from tests.collector import exports
from tests.collector.stores import NOW_S, batch, store
from tests.collector.test_commit import after

INTAKE = Intake(now_s=NOW_S, tick_s=10, oldest_s=NOW_S - 86400, since_s=NOW_S - 86400)


def some_deltas() -> Deltas:
    bodies = [exports.second(good=5, bad=2, at_s=NOW_S - 7 * number, instance=f"i{number % 3}") for number in range(40)]
    return concat([fold(batch(body), intake=INTAKE, streams={}) for body in bodies])


def bare(deltas: Deltas) -> dict[str, Any]:
    """The rows of a Deltas, in an order that does not depend on the database's collation."""
    names = ("latencies", "slo", "gauges", "counters", "known", "instances")
    return {name: sorted(getattr(deltas, name), key=repr) for name in names}


@pytest.mark.parametrize("page", [3, 5_000])
def test_everything_comes_back_whatever_the_page(database: str, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(recall, "ROWS_PER_PAGE", page)
    deltas = some_deltas()
    found = after(
        database,
        lambda c: commit.write_deltas(c, deltas, step_s=10, at_s=NOW_S),
        lambda c: concat(list(recall.stored_deltas(c, oldest_s=0))),
    )
    assert bare(found) == bare(deltas)


def test_what_is_older_stays_where_it_is(database: str) -> None:
    deltas, oldest_s = some_deltas(), NOW_S - 100
    found = after(
        database,
        lambda c: commit.write_deltas(c, deltas, step_s=10, at_s=NOW_S),
        lambda c: concat(list(recall.stored_deltas(c, oldest_s=oldest_s))),
    )
    assert {row.start_s for row in found.slo} == {row.start_s for row in deltas.slo if row.start_s >= oldest_s}


def test_the_earliest_known_step(database: str) -> None:
    assert after(database, recall.since_s) is None
    write = [lambda c: upsert.KNOWN.write(c, [(10, 50, "", "chat"), (60, 0, "", "chat")])]
    assert after(database, *write, recall.since_s) == 0


def test_steps_are_found_without_reading_the_table(database: str) -> None:
    rows = [(step, step * number, "", "chat") for step in (10, 60, 600) for number in range(5)]
    found = after(database, lambda c: upsert.KNOWN.write(c, rows), lambda c: recall.steps(c, schema.known))
    assert found == [10, 60, 600]


def test_what_a_webhook_was_told(database: str) -> None:
    row = ("http://h/", "page:x", "firing", 1)
    found = after(database, lambda c: upsert.NOTIFICATION.write(c, [row]), recall.notifications)
    assert found == {("http://h/", "page:x"): "firing"}


def test_cumulative_streams_go_on_where_they_ended(database: str) -> None:
    """A counter that stood at 100 counts 20 more when it comes back at 120, also by another process."""
    from slo import signals
    from tests.collector import messages

    def at(value: int, second: int) -> Any:
        point = messages.number(value, at_s=NOW_S + second, start_s=NOW_S - 50, attributes={})
        return batch(exports.export([messages.counter(signals.HEARTBEAT.name, point, temporality=messages.CUMULATIVE)]))

    async def story() -> None:
        for number, (value, second) in enumerate([(100, -20), (120, -10), (125, -5)]):
            async with store(database) as one:
                await one.count(b"%d" % number, at(value, second))
                counted = await one.read(lambda c: c.scalars(select(schema.counter.c.value)).all())
        assert sum(counted) == 125

    asyncio.run(story())
