"""Ageing on real databases: folding loses no count, dropping loses nothing that a window can reach."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from collector import schema
from collector.storage import commit, figures, partitions, recall, retention, rows, upsert
from collector.storage.retention import Limits
from collector.storage.stacks import on_own_stack
from collector.values.deltas import Deltas, LatencyKey, LatencyRow, SeriesKey
from collector.values.histogram import Histogram, Layout, from_values, merge
from tests.collector.storage.test_commit import after
from tests.collector.stores import added, everything

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


def pieces_of_then(connection: Connection, now_s: int) -> None:
    while partitions.make_ahead(connection, now_s=now_s):
        pass


def values() -> Deltas:
    return Deltas(tuple(LatencyRow(KEY, at_s, from_values([0.1, at_s % 7 + 1.0])) for at_s in moments()))


def a_past(connection: Connection) -> None:
    pieces_of_then(connection, NOW_S - AGES_S[4])
    upsert.INSTANCE.write(connection, [("", "chat", "i1", "proxy", NOW_S - DAY_S, NOW_S, 1)])
    commit.write_deltas(connection, on_own_stack(connection, values), step_s=10, at_s=NOW_S)
    key = ("", "chat", "m")
    upsert.SLO_COUNT.write(connection, [(10, at_s, *key, "ttft", "h", 3, 1) for at_s in moments()])
    upsert.COUNTER.write(connection, [(10, at_s, *key, "i1", "proxy", "requests", "{}", 2.0) for at_s in moments()])
    upsert.KNOWN.write(connection, [(10, at_s, "", "chat") for at_s in moments()])
    upsert.GAUGE.write(
        connection,
        [(10, s, *key, "i1", "queue", "", 1.0, s % 9 + 1.0, 2.0, 2.0, s * 10**9, 2) for s in moments()],
    )


def together(stored: Sequence[Any]) -> Histogram:
    one = Histogram(Layout(5))
    for row in stored:
        one = merge(one, rows.rollup_histogram(row, Layout(5)))
    return one


def whole(connection: Connection) -> dict[str, Any]:
    slo, gauge, counter = schema.slo_count.c, schema.gauge.c, schema.counter.c
    stored = connection.execute(select(schema.rollup)).all()
    one = on_own_stack(connection, lambda: together(stored))
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


COUNTS = (schema.rollup, schema.slo_count, schema.counter, schema.known, schema.gauge)


def left(connection: Connection) -> dict[str, int]:
    tables = (*COUNTS, schema.series, schema.instance)
    return {table.name: len(connection.execute(select(table)).all()) for table in tables}


def test_what_no_window_reaches_is_dropped_with_its_whole_piece(database: str) -> None:
    """Within the week that holds the end of the longest window nothing is dropped yet."""

    def oldest_s(connection: Connection) -> int:
        return int(connection.scalar(select(func.min(schema.slo_count.c.start_s))) or 0)

    first_s = after(database, a_past, sweep, oldest_s)
    week_s = first_s // (7 * DAY_S) * 7 * DAY_S
    gone_s = week_s + 7 * DAY_S + LIMITS.counts_s
    assert after(database, lambda c: sweep(c, now_s=gone_s - 1), oldest_s) == first_s
    assert after(database, lambda c: sweep(c, now_s=gone_s), oldest_s) >= week_s + 7 * DAY_S


def test_in_the_end_nothing_is_left(database: str) -> None:
    later = lambda c: sweep(c, now_s=NOW_S + 60 * DAY_S)  # noqa: E731
    assert after(database, a_past, later, left) == dict.fromkeys(after(database, left), 0)


def test_a_series_lives_as_long_as_its_instance(database: str) -> None:
    """And that outlives its rows: they are looked up by it as long as they are there."""
    late = lambda c: sweep(c, now_s=NOW_S + LIMITS.counts_s + 6 * DAY_S)  # noqa: E731
    found = after(database, a_past, sweep, late, left)
    assert found["series"] == found["instance"] == 1
    assert found["known"] == 0


def budgets(connection: Connection, moments_s: list[int], *, keys: int = 1) -> None:
    for number in range(keys):
        budget = ("", "chat", f"m{number}", "ttft", 1, 0, 1.0, 1.0, None, 1.0, "counts")
        added(connection, schema.budget, [(at_s, *budget) for at_s in moments_s])


def kept_moments(connection: Connection) -> list[int]:
    return sorted(connection.scalars(select(schema.budget.c.at_s)).all())


@pytest.mark.parametrize("whole_sweep", [True, False])
def test_figures_older_than_two_days_are_one_in_ten_minutes(database: str, whole_sweep: bool) -> None:
    edge_s = NOW_S - retention.FINE_FIGURES_S
    ages = [*range(NOW_S - 3 * DAY_S, NOW_S - 3 * DAY_S + 1800, 60), *range(edge_s - 1200, edge_s + 600, 60)]
    found = after(database, lambda c: budgets(c, ages), lambda c: sweep(c, whole=whole_sweep), kept_moments)
    assert [at_s for at_s in found if at_s >= edge_s] == [at_s for at_s in ages if at_s >= edge_s]
    recent = [at_s for at_s in found if edge_s - 1200 <= at_s < edge_s]
    assert len(recent) == 2
    assert all(at_s % 600 == 540 for at_s in recent)
    assert len([at_s for at_s in found if at_s < edge_s - 1200]) == (3 if whole_sweep else 30)


def test_figures_in_days_of_their_own_are_thinned_once_the_day_is_old(database: str) -> None:
    """As PostgreSQL cuts them: a day written anew has the last moment of each ten minutes, as everywhere."""
    day_s = (NOW_S - 5 * DAY_S) // DAY_S * DAY_S
    ages = list(range(day_s - 1800, day_s + DAY_S + 1800, 60))

    def write(connection: Connection) -> None:
        pieces_of_then(connection, day_s)
        budgets(connection, ages, keys=2)

    found = after(database, write, sweep, kept_moments)
    assert found == sorted(at_s for at_s in ages if at_s % 600 == 540 for _ in range(2))
    assert after(database, sweep, kept_moments) == found


def test_figures_are_dropped_by_days(database: str) -> None:
    day_s = NOW_S // DAY_S * DAY_S
    write = lambda c: budgets(c, [day_s - 91 * DAY_S - 60, day_s - 90 * DAY_S - 60, day_s - 60])  # noqa: E731
    assert after(database, write, sweep, kept_moments) == [day_s - 90 * DAY_S - 60, day_s - 60][-1:]


def test_forgotten_by_age(database: str) -> None:
    def write(connection: Connection) -> None:
        upsert.BATCH.write(connection, [(b"old", NOW_S - 2 * DAY_S), (b"new", NOW_S - 60)])
        streams = [("old", 1, 2, "1", NOW_S - 3 * DAY_S), ("new", 1, 2, "1", NOW_S)]
        upsert.STREAM.write(connection, streams)
        upsert.INSTANCE.write(connection, [("", "chat", "gone", "proxy", 1, NOW_S - 50 * DAY_S, 1)])

    def left(connection: Connection) -> list[Any]:
        columns = (schema.batch.c.digest, schema.stream.c.stream, schema.instance.c.instance)
        return [connection.scalars(select(column)).all() for column in columns]

    assert after(database, write, sweep, left) == [[b"new"], ["new"], []]


def test_every_table_that_grows_is_swept() -> None:
    """What is not: the state of each alert, what receivers were told, what `firsttoken capacity` found, series (with
    their instances), and what several collectors share, which they prune themselves."""
    swept = {table.name for table in (*retention.COUNTS, *figures.TABLES)}
    swept |= {column.table.name for column, _ in retention.lifetimes(LIMITS)}
    kept = {"alert", "capacity_result", "notification", "series", "schema_version", "journal", "leader"}
    assert swept.isdisjoint(kept)
    assert swept | kept == set(schema.metadata.tables)


def noted_sweep(connection: Connection, seen: list[tuple[object, int]]) -> None:
    """Sweep, and note how many rows each transaction took out."""
    for piece in retention.pieces(NOW_S, LIMITS, whole=True):
        more = True
        while more:
            before = sum(map(len, everything(connection).values()))
            more = piece(connection)
            seen.append((piece, before - sum(map(len, everything(connection).values()))))


def test_each_piece_takes_so_many_rows_at_most(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long past is folded and dropped piece by piece, each a transaction of its own, and to the same end."""
    before = after(database, a_past, whole)
    monkeypatch.setattr(retention, "ROWS_A_FOLD", 7)
    monkeypatch.setattr(retention, "ROWS_A_DELETE", 7)
    old = [(b"%d" % number, NOW_S - 2 * DAY_S + number) for number in range(40)]
    seen: list[tuple[object, int]] = []
    after(database, lambda c: upsert.BATCH.write(c, old), lambda c: noted_sweep(c, seen))
    assert max(taken for _, taken in seen) <= 8
    assert sum(taken for _, taken in seen if taken) > 60
    assert after(database, whole) == before
    assert after(database, lambda c: c.scalars(select(schema.batch.c.digest)).all()) == []


def test_a_step_with_more_rows_than_a_piece_is_folded_all_the_same(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ROWS_A_FOLD", 3)
    start_s = (NOW_S - 5 * DAY_S) // 3600 * 3600
    counted = [(10, start_s + 10 * (n % 2), "", "chat", f"m{n}", "ttft", "h", n, 1) for n in range(20)]
    left = lambda c: sorted(tuple(row) for row in c.execute(select(schema.slo_count)))  # noqa: E731
    found = after(database, lambda c: upsert.SLO_COUNT.write(c, sorted(counted)), sweep, left)
    step_s = 600
    assert found == sorted((step_s, start_s, *row[2:]) for row in counted)
