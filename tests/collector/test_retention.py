"""Ageing on real databases: folding loses no count, dropping loses nothing that a window can reach."""

from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from collector import commit, recall, retention, rows, schema, upsert
from collector.deltas import Deltas, LatencyKey, LatencyRow, SeriesKey
from collector.histogram import Histogram, Layout, from_values, merge
from collector.retention import Limits
from tests.collector.test_commit import after

HOUR_S, DAY_S = 3600, 86400
NOW_S = 1_800_000_000
LIMITS = Limits(counts_s=35 * DAY_S)
KEY = SeriesKey(LatencyKey("", "chat", "m", "ttft", "proxy"), "i1", Layout(5))
AGES_S = (60, HOUR_S, 3 * HOUR_S, 2 * DAY_S, 5 * DAY_S, 20 * DAY_S)


def sweep(connection: Connection, *, now_s: int = NOW_S, whole: bool = True) -> None:
    for piece in retention.pieces(now_s, LIMITS, whole=whole):
        while piece(connection):
            pass


def moments() -> list[int]:
    """A minute's ticks at each of the ages."""
    return [(NOW_S - age_s) // 10 * 10 + 10 * number for age_s in AGES_S for number in range(6)]


def a_past(connection: Connection) -> None:
    latencies = tuple(LatencyRow(KEY, at_s, from_values([0.1, at_s % 7 + 1.0])) for at_s in moments())
    commit.write_deltas(connection, Deltas(latencies=latencies), step_s=10, at_s=NOW_S)
    key = ("", "chat", "m")
    upsert.SLO_COUNT.write(connection, [(10, at_s, *key, "ttft", "h", 3, 1) for at_s in moments()])
    upsert.COUNTER.write(connection, [(10, at_s, *key, "i1", "proxy", "requests", "{}", 2.0) for at_s in moments()])
    upsert.KNOWN.write(connection, [(10, at_s, "", "chat") for at_s in moments()])
    upsert.GAUGE.write(
        connection,
        [(10, s, *key, "i1", "queue", "", 1.0, s % 9 + 1.0, 2.0, 2.0, s * 10**9, 2) for s in moments()],
    )


def whole(connection: Connection) -> dict[str, Any]:
    slo, gauge, counter = schema.slo_count.c, schema.gauge.c, schema.counter.c
    one = Histogram(Layout(5))
    for row in connection.execute(select(schema.rollup)):
        one = merge(one, rows.rollup_histogram(row, Layout(5)))
    figures = connection.execute(
        select(func.max(gauge.max), func.sum(gauge.samples), func.sum(gauge.mean * gauge.samples))
    )
    return {
        "latencies": (one.count, one.counts.tolist(), one.max),
        "slo": [int(value) for value in connection.execute(select(func.sum(slo.good), func.sum(slo.bad))).one()],
        "gauge": [float(value) for value in figures.one()],
        "counter": float(connection.scalar(select(func.sum(counter.value))) or 0),
    }


def test_folding_loses_no_count_and_ends_at_the_steps_of_each_age(database: str) -> None:
    before = after(database, a_past, whole)
    assert after(database, sweep, whole) == before

    def steps(connection: Connection) -> dict[str, list[int]]:
        tables = (schema.rollup, schema.slo_count, schema.counter, schema.gauge, schema.known)
        return {table.name: recall.steps(connection, table) for table in tables}

    found = after(database, steps)
    for name in ("rollup", "slo_count", "counter", "gauge"):
        assert found[name] == [10, 60, 600, 3600], name
    assert found["known"] == [10, 60]


def test_a_second_sweep_finds_nothing_to_do(database: str) -> None:
    def rows_of(connection: Connection) -> list[Any]:
        return [connection.execute(select(table)).all() for table in schema.metadata.sorted_tables]

    first = after(database, a_past, sweep, rows_of)
    assert after(database, sweep, rows_of) == first


def test_late_rows_join_what_was_folded(database: str) -> None:
    late = [(10, (NOW_S - 5 * DAY_S) // 10 * 10, "", "chat", "m", "ttft", "h", 100, 0)]
    before = after(database, a_past, sweep, lambda c: upsert.SLO_COUNT.write(c, late), whole)
    count = len(after(database, lambda c: c.execute(select(schema.slo_count)).all()))
    assert after(database, sweep, whole) == before
    assert len(after(database, lambda c: c.execute(select(schema.slo_count)).all())) == count - 1


def test_what_no_window_reaches_is_dropped(database: str) -> None:
    def left(connection: Connection) -> list[int]:
        tables = (schema.rollup, schema.slo_count, schema.counter, schema.known, schema.gauge, schema.series)
        return [len(connection.execute(select(table)).all()) for table in tables]

    later = lambda c: sweep(c, now_s=NOW_S + 40 * DAY_S)  # noqa: E731
    assert after(database, a_past, later, left) == [0] * 6


def test_a_series_lives_as_long_as_its_rows(database: str) -> None:
    assert after(database, a_past, sweep, lambda c: len(c.execute(select(schema.series)).all())) == 1


@pytest.mark.parametrize("whole_sweep", [True, False])
def test_figures_older_than_two_days_are_one_in_ten_minutes(database: str, whole_sweep: bool) -> None:
    edge_s = NOW_S - retention.FINE_FIGURES_S
    ages = [*range(NOW_S - 3 * DAY_S, NOW_S - 3 * DAY_S + 1800, 60), *range(edge_s - 1200, edge_s + 600, 60)]

    def write(connection: Connection) -> None:
        budget = ("", "chat", "m", "ttft", 1, 0, 1.0, 1.0, None, 1.0, "counts")
        upsert.BUDGET.write(connection, [(at_s, *budget) for at_s in ages])

    found = after(
        database,
        write,
        lambda c: sweep(c, whole=whole_sweep),
        lambda c: sorted(c.scalars(select(schema.budget.c.at_s)).all()),
    )
    assert [at_s for at_s in found if at_s >= edge_s] == [at_s for at_s in ages if at_s >= edge_s]
    recent = [at_s for at_s in found if edge_s - 1200 <= at_s < edge_s]
    assert len(recent) == 2
    assert all(at_s % 600 == 540 for at_s in recent)
    assert len([at_s for at_s in found if at_s < edge_s - 1200]) == (3 if whole_sweep else 30)


def test_forgotten_by_age(database: str) -> None:
    def write(connection: Connection) -> None:
        upsert.BATCH.write(connection, [(b"old", NOW_S - 2 * DAY_S), (b"new", NOW_S - 60)])
        streams = [("old", 1, 2, "1", NOW_S - 3 * DAY_S), ("new", 1, 2, "1", NOW_S)]
        upsert.STREAM.write(connection, streams)
        upsert.INSTANCE.write(connection, [("", "chat", "gone", "proxy", 1, NOW_S - 40 * DAY_S, 1)])

    def left(connection: Connection) -> list[Any]:
        columns = (schema.batch.c.digest, schema.stream.c.stream, schema.instance.c.instance)
        return [connection.scalars(select(column)).all() for column in columns]

    assert after(database, write, sweep, left) == [[b"new"], ["new"], []]


def test_the_pieces_are_short(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long past is folded block by block, each a transaction of its own."""
    monkeypatch.setattr(retention, "BLOCK_S", HOUR_S)
    times = [NOW_S - 5 * DAY_S + HOUR_S * number for number in range(10)]
    write = lambda c: upsert.KNOWN.write(c, [(10, at_s, "", "chat") for at_s in times])  # noqa: E731
    done = []

    def count(connection: Connection) -> None:
        for piece in retention.pieces(NOW_S, LIMITS, whole=False):
            while piece(connection):
                done.append(piece)

    after(database, write, count)
    assert len(done) == 10
