"""Reading back what was committed: page by page, and the same as it was written."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from sqlalchemy import Connection, select

from collector import schema
from collector.folding.rollup import Intake, fold
from collector.storage import commit, recall, upsert
from collector.storage.database import database_url, open_database
from collector.values.bins import Sheet
from collector.values.deltas import Deltas, LatencyRow, concat
from collector.values.histogram import Layout
from tests.collector import exports, scene
from tests.collector.storage.test_commit import after
from tests.collector.stores import NOW_S, batch, store

INTAKE = Intake(now_s=NOW_S, tick_s=10, oldest_s=NOW_S - 86400, since_s=NOW_S - 86400)


def some_deltas() -> Deltas:
    bodies = [exports.second(good=5, bad=2, at_s=NOW_S - 7 * number, instance=f"i{number % 3}") for number in range(40)]
    return concat([fold(batch(body), intake=INTAKE, streams={}) for body in bodies])


def written(deltas: Deltas) -> Callable[[Connection], None]:
    return lambda connection: commit.write_deltas(connection, deltas, step_s=10, at_s=NOW_S)


def read_back(
    database: str, *writes: Callable[[Connection], None], oldest_s: int = 0, latest_s: int = NOW_S
) -> tuple[Deltas, list[Sheet]]:
    """Everything that the database gives of a stretch after the writes."""
    stretch = {"oldest_s": oldest_s, "latest_s": latest_s}

    async def story() -> tuple[Deltas, list[Sheet]]:
        engine = await open_database(database_url(database))
        try:
            async with engine.begin() as connection:
                for write in writes:
                    await connection.run_sync(write)
            async with engine.connect() as connection:
                rows = [deltas async for deltas in recall.stored(connection, **stretch)]
                sheets = [sheet async for sheet in recall.sheets(connection, **stretch)]
                return concat(rows), sheets
        finally:
            await engine.dispose()

    return asyncio.run(story())


def bare(deltas: Deltas) -> dict[str, Any]:
    """The rows of a Deltas, in an order that does not depend on the database's collation."""
    names = ("slo", "gauges", "counters", "known", "instances")
    return {name: sorted(getattr(deltas, name), key=repr) for name in names}


def cells(rows: Iterable[LatencyRow]) -> dict[Any, int]:
    """What each bucket of each series and step holds; zeros under None."""
    found: Counter[Any] = Counter()
    for row in rows:
        at, one = (row.series.id, row.start_s), row.histogram
        found.update({(*at, one.offset + k): n for k, n in enumerate(one.counts.tolist()) if n})
        found.update({(*at, None): one.zero_count} if one.zero_count else {})
    return found


def cells_of(sheets: Iterable[Sheet]) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for sheet in sheets:
        at = [(sheet.series[of].id, start_s) for of, start_s in zip(sheet.of, sheet.starts_s.tolist(), strict=True)]
        held = sheet.bins
        for owner, bucket, count in zip(held.owners, held.buckets.tolist(), held.counts.tolist(), strict=True):
            found[*at[owner], bucket] += count
        found.update({(*at[owner], None): zeros for owner, zeros in enumerate(held.zeros.tolist()) if zeros})
    return found


@pytest.mark.parametrize("page", [3, 5_000])
def test_everything_comes_back_whatever_the_page(database: str, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(recall, "ROWS_PER_PAGE", page)
    deltas = some_deltas()
    found, sheets = read_back(database, written(deltas))
    assert bare(found) == bare(deltas)
    assert cells_of(sheets) == cells(deltas.latencies)


def test_histograms_of_several_layouts_lie_on_sheets_of_their_own(database: str) -> None:
    layouts = (Layout(5), Layout(3), Layout(None, (0.1, 1.0)))
    rows = [
        scene.values(start_s, [0.0, 0.05, start_s / NOW_S, 7.0], model=model, layout=layout)
        for layout in layouts
        for model in ("a", "b")
        for start_s in (NOW_S - 20, NOW_S - 10)
    ]
    _, sheets = read_back(database, written(Deltas(latencies=tuple(rows))))
    assert {sheet.series[0].layout for sheet in sheets} == set(layouts)
    assert all(len({series.layout for series in sheet.series}) == 1 for sheet in sheets)
    assert cells_of(sheets) == cells(rows)


def test_what_is_older_stays_where_it_is(database: str) -> None:
    deltas, oldest_s = some_deltas(), NOW_S - 100
    found, sheets = read_back(database, written(deltas), oldest_s=oldest_s)
    assert {row.start_s for row in found.slo} == {row.start_s for row in deltas.slo if row.start_s >= oldest_s}
    assert cells_of(sheets) == cells(row for row in deltas.latencies if row.start_s >= oldest_s)


def test_what_lies_ahead_stays_where_it_is(database: str) -> None:
    deltas, latest_s = some_deltas(), NOW_S - 100
    found, sheets = read_back(database, written(deltas), latest_s=latest_s)
    assert {row.start_s for row in found.slo} == {row.start_s for row in deltas.slo if row.start_s <= latest_s}
    assert cells_of(sheets) == cells(row for row in deltas.latencies if row.start_s <= latest_s)


def test_nothing_comes_of_nothing(database: str) -> None:
    assert read_back(database) == (Deltas(), [])


def test_the_earliest_known_step(database: str) -> None:
    assert after(database, recall.since_s) is None
    write = [lambda c: upsert.KNOWN.write(c, [(10, 50, "", "chat"), (60, 0, "", "chat")])]
    assert after(database, *write, recall.since_s) == 0


def test_steps_are_found_without_reading_the_table(database: str) -> None:
    rows = [(step, step * number, "", "chat") for step in (10, 60, 600) for number in range(5)]
    found = after(database, lambda c: upsert.KNOWN.write(c, rows), lambda c: recall.steps(c, schema.known))
    assert found == [10, 60, 600]


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
