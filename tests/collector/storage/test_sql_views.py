"""Views on real databases: moments in UTC whatever the time zone, labels of windows, the latest figures alone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, select, text

from collector import schema
from collector.storage import sql_views, upsert
from tests.collector.storage.test_commit import after
from tests.collector.stores import added

HOURS = {
    # Both are half past one in New York on the night the clock goes back; the other two are either side of the gap.
    "2026-11-01T05:30:00Z": "2026-11-01T05",
    "2026-11-01T06:30:00Z": "2026-11-01T06",
    "2026-03-08T06:30:00Z": "2026-03-08T06",
    "2026-03-08T07:30:00Z": "2026-03-08T07",
}
BUDGET = ("", "chat", "m", "ttft", 1, 0, 1.0, 1.0, None, 1.0, "counts")
BURN = ("", "chat", "m", "ttft")


def seconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp())


def view(name: str) -> Any:
    return schema.views.tables[name]


def instant(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def test_every_view_and_column_has_a_comment_and_no_name_of_a_table() -> None:
    tables = [one.table for one in sql_views.VIEWS]
    assert [str(column) for table in tables for column in table.columns if not column.comment] == []
    assert [table.name for table in tables if not table.comment] == []
    assert {table.name for table in tables}.isdisjoint(schema.metadata.tables)
    assert len({table.name for table in tables}) == len(tables)


def test_g08_hours_are_those_of_utc(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")

    def write(connection: Connection) -> None:
        upsert.SLO_COUNT.write(
            connection, sorted((10, seconds(at), "", "chat", "m", "ttft", "h", 1, 0) for at in HOURS)
        )

    def read(connection: Connection) -> dict[str, int]:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET TIME ZONE 'America/New_York'"))
        counts = view("slo_counts")
        assert {instant(at) for at in connection.scalars(select(counts.c.at))} == {instant(at) for at in HOURS}
        question = "SELECT start_s - start_s % 3600 AS hour_s, sum(good) FROM slo_counts GROUP BY 1"
        found = connection.execute(text(question)).all()
        return {f"{datetime.fromtimestamp(hour_s, UTC):%Y-%m-%dT%H}": int(good) for hour_s, good in found}

    assert after(database, write, read) == dict.fromkeys(HOURS.values(), 1)


def test_g03_a_moment_is_found_by_its_instant(database: str) -> None:
    """Written at -08:00, looked for at +00:00."""
    at_s = seconds("2026-01-01T13:30:45-08:00")

    def read(connection: Connection) -> list[Any]:
        since = "'2026-01-01T21:00:00Z'"
        return list(
            connection.scalars(text(f"SELECT at FROM budgets WHERE at >= {since} AND at < '2026-01-01T21:31Z'"))
        )

    (found,) = after(database, lambda c: added(c, schema.budget, [(at_s, *BUDGET)]), read)
    assert instant(found) == datetime(2026, 1, 1, 21, 30, 45, tzinfo=UTC)


def test_the_latest_views_show_the_last_evaluation_alone(database: str) -> None:
    def write(connection: Connection) -> None:
        added(connection, schema.budget, [(at_s, *BUDGET) for at_s in (600, 660, 720)])

    def read(connection: Connection) -> list[Any]:
        return [connection.execute(select(view(name).c.at_s)).scalars().all() for name in ("budgets", "budgets_latest")]

    every, latest = after(database, write, read)
    assert (sorted(every), latest) == ([600, 660, 720], [720])


def test_the_latest_result_of_capacity_is_that_of_each_service_model_and_kind(database: str) -> None:
    def row(at_s: int, kind: str, model: str = "m", target: str = "http://a") -> tuple[Any, ...]:
        figures = (3.5, None, 8.0, None, None, None, None, None, None)
        return (at_s, "", "chat", model, kind, target, "certified", "ttft", *figures, "{}")

    rows = [row(60, "certify"), row(120, "certify", target="http://b"), row(60, "size"), row(30, "certify", "other")]

    def read(connection: Connection) -> list[Any]:
        question = "SELECT at_s, model, kind, certified_rps FROM capacity_results_latest ORDER BY at_s, kind"
        (at,) = connection.scalars(text("SELECT at FROM capacity_results WHERE at_s = 120"))
        assert instant(at) == datetime(1970, 1, 1, 0, 2, tzinfo=UTC)
        return [tuple(row) for row in connection.execute(text(question))]

    found = after(database, lambda c: added(c, schema.capacity_result, rows), read)
    assert found == [(30, "other", "certify", 3.5), (60, "m", "size", 3.5), (120, "m", "certify", 3.5)]


@pytest.mark.parametrize("name", ["percentiles", "burn_rates", "budgets", "capacity_results"])
def test_the_latest_view_has_the_columns_of_the_whole(name: str) -> None:
    columns = [[(c.name, c.comment) for c in view(one).columns] for one in (name, f"{name}_latest")]
    assert columns[0] == columns[1]


def test_windows_are_labelled_as_everywhere(database: str) -> None:
    labels = {15: "15s", 90: "90s", 300: "5m", 1800: "30m", 5400: "90m", 3600: "1h", 86400: "1d", 2419200: "28d"}

    def write(connection: Connection) -> None:
        rows = [(600, *BURN, window_s, 1, 0, None, 1.0, "counts", 0) for window_s in sorted(labels)]
        added(connection, schema.burn_rate, rows)

    def read(connection: Connection) -> dict[int, str]:
        burns = view("burn_rates")
        return {row.window_s: row.window_label for row in connection.execute(select(burns))}

    assert after(database, write, read) == labels


def test_a_firing_that_ended_says_how_long_it_was(database: str) -> None:
    key = ("", "chat", "LLMTTFTBudgetBurn", "*", "ttft", "fast")

    def write(connection: Connection) -> None:
        fired, told = (100, *key, "firing", 100, "{}", "{}"), (700, *key, "resolved", 100, "{}", "{}")
        upsert.ALERT_EVENT.write(connection, [fired, told])
        upsert.ALERT.write(connection, [(*key, "resolved", 700, "critical", "page", None, "{}", "{}")])

    def read(connection: Connection) -> Any:
        lasted = connection.scalars(text("SELECT lasted_s FROM alert_events ORDER BY at_s")).all()
        return lasted, connection.execute(text("SELECT since, fired FROM alerts")).one()

    lasted, (since, fired) = after(database, write, read)
    assert lasted == [None, 600]
    assert (instant(since), fired) == (datetime(1970, 1, 1, 0, 11, 40, tzinfo=UTC), None)


def test_latencies_say_what_they_speak_of(database: str) -> None:
    def write(connection: Connection) -> None:
        upsert.SERIES.write(connection, [(7, "", "chat", "m", "ttft", "proxy", "i", "exp:5", 0)])
        rows = [(10, 0, 7, 4, 2.0, 0.1, 1.0, 5, 0, 0, "[4]"), (10, 10, 7, 0, 0.0, None, None, 5, 0, 0, "[]")]
        upsert.ROLLUP.write(connection, rows)

    def read(connection: Connection) -> list[Any]:
        question = "SELECT service, signal, start_s, count, mean FROM latencies ORDER BY start_s"
        return [tuple(row) for row in connection.execute(text(question))]

    assert after(database, write, read) == [("chat", "ttft", 0, 4, 0.5), ("chat", "ttft", 10, 0, None)]
