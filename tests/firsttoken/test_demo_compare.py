"""The two measurements held against each other, on real SQLite and a real report."""

import json
import sqlite3
from pathlib import Path

import pytest

from firsttoken.demo_compare import MAX_AGE_S, Comparison, Measured, Report, compare, latest, read_report
from firsttoken.demo_plan import MODEL, PERIOD_S, SERVICE

TOKENS = Report(tuple((1000.0 + index, 0.01 * (index + 1)) for index in range(40)))


def database(path: Path, *rows: tuple[object, ...]) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE percentile (at_s, service, model, signal, source, window_s, count, censored, p95)"
        )
        connection.executemany("INSERT INTO percentile VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    return path


def test_the_newest_row_of_the_demos_own_series_is_read(tmp_path: Path) -> None:
    right = (SERVICE, MODEL, "ttft", "proxy", PERIOD_S)
    path = database(
        tmp_path / "x.db",
        (1000, *right, 3, 0, 0.1),
        (1002, *right, 5, 1, 0.2),
        (1004, "other", *right[1:], 9, 9, 9.0),
        (1004, SERVICE, MODEL, "tpot", "proxy", PERIOD_S, 9, 9, 9.0),
        (1004, SERVICE, MODEL, "ttft", "engine", PERIOD_S, 9, 9, 9.0),
        (1004, SERVICE, MODEL, "ttft", "proxy", 60, 9, 9, 9.0),
    )
    assert latest(path) == Measured(1002, 5, 1, 0.2)


def test_a_database_without_a_row_has_none(tmp_path: Path) -> None:
    assert latest(database(tmp_path / "x.db")) is None


def test_reading_never_makes_a_database(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        latest(tmp_path / "absent.db")
    assert not list(tmp_path.iterdir())


def test_first_tokens_come_by_time_with_the_ttft_of_the_hop(tmp_path: Path) -> None:
    report = tmp_path / "load.json"
    records = [
        {"first_token_s": 3.0, "written_s": 2.5},
        {"first_token_s": 1.0, "written_s": 0.75},
        {"first_token_s": None, "written_s": 0.5},
        {"first_token_s": None, "written_s": None},
    ]
    report.write_text(json.dumps({"started_at_s": 1000.0, "records": records, "summary": {"late": {"p95": 0.002}}}))
    assert read_report(report) == Report(((1001.0, 0.25), (1003.0, 0.5)), 0.002)


@pytest.mark.parametrize("text", [None, "", '{"records": ['])
def test_a_report_that_was_never_finished_holds_nothing(text: str | None, tmp_path: Path) -> None:
    report = tmp_path / "load.json"
    if text is not None:
        report.write_text(text)
    assert read_report(report) == Report()


def test_a_row_is_held_against_as_many_requests_the_earliest() -> None:
    found = compare("x", Measured(1030, 20, 0, 0.19), TOKENS, until_s=1030)
    assert found.load_s == pytest.approx(0.19)
    assert (found.count, found.agrees) == (20, True)


def test_what_left_the_rows_window_is_left_out() -> None:
    early = Report(((1000.0 - PERIOD_S, 9.0), *TOKENS.tokens))
    assert compare("x", Measured(1030, 20, 0, 0.19), early, until_s=1030).load_s == pytest.approx(0.19)


def test_the_censored_are_the_slowest() -> None:
    assert compare("x", Measured(1030, 20, 1, 0.2), TOKENS, until_s=1030).load_s == pytest.approx(0.2)
    unknown = compare("x", Measured(1030, 20, 5, None), TOKENS, until_s=1030)
    assert (unknown.load_s, unknown.agrees) == (None, None)


def test_without_a_row_there_is_nothing_to_compare() -> None:
    found = compare("x", None, TOKENS, until_s=1030)
    assert (found.count, found.agrees) == (0, None)
    assert found.text == "TTFT p95, x: not known by the load generator, not known in SQL (0 requests; no comparison)"


def test_sql_that_stopped_being_written_does_not_agree() -> None:
    found = compare("x", Measured(1030, 20, 0, 0.19), TOKENS, until_s=1030 + MAX_AGE_S + 1)
    assert found.agrees is False
    assert "s behind" in found.text
    assert compare("x", Measured(1030, 20, 0, 0.19), TOKENS, until_s=1030 + MAX_AGE_S).agrees


AGREEMENT = {
    "the same": (0.1, 0.1, True),
    "within 5 ms": (0.010, 0.0149, True),
    "over 5 ms of little": (0.010, 0.016, False),
    "within 2 % of much": (10.0, 10.19, True),
    "over 2 % of much": (10.0, 10.21, False),
}


@pytest.mark.parametrize(("load_s", "sql_s", "agrees"), AGREEMENT.values(), ids=AGREEMENT.keys())
def test_agreement_is_within_two_percent_or_five_milliseconds(load_s: float, sql_s: float, agrees: bool) -> None:
    found = Comparison("x", 9, load_s, sql_s)
    assert found.agrees is agrees
    assert ("THEY DIFFER" in found.text) is not agrees


def test_a_machine_that_wakes_processes_late_is_allowed_for_and_named() -> None:
    assert Comparison("x", 9, 0.100, 0.091).agrees is False
    busy = Comparison("x", 9, 0.100, 0.091, late_s=0.006)
    assert busy.agrees is True
    assert busy.text.endswith("they agree, on a machine so busy that it wakes a process 6 ms late)")
    assert Comparison("x", 9, 0.100, 0.097, late_s=0.006).text.endswith("they agree)")
    assert Comparison("x", 9, 0.100, 0.088, late_s=0.006).agrees is False
